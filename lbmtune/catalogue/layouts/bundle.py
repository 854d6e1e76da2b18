"""Bundles: directions in groups; each group has an array of its own, in which the values of a cell are adjacent.

The last group is as long as the others, so that a cell has the same index in all of them; if the group size does not
divide q, some elements stay unused. For the directions of a group see `lbmtune.catalogue.schemes.scheme.bundled`.
Source: Robertsen 2018, section 3.4.1 and figure 3.8; Mattila et al. 2008.
"""

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.knobs import knob
from lbmtune.catalogue.layouts.layout import Extents, Int, Layout


@dataclass(frozen=True)
class Bundle(Layout):
    """index = (q / G) * cells * G + ((z * ny + y) * nx + W * (x / W)) * G + (q % G) * W + x % W, here with W = 1."""

    name: ClassVar[str] = "bundle"
    width: int = 1

    group: int = knob(3, "directions per bundle", search=(3, 5, 9), least=2)

    @property
    def together(self) -> int:
        """Return the directions that share an array: G."""
        return self.group

    @property
    def run(self) -> int:
        """Return the adjacent cells of one component: W."""
        return self.width

    def component(self, q: Int, extents: Extents) -> Int:
        """Return the offset of component q: that of its bundle's array, and of its run of W in the structure."""
        bundle = extents.x * extents.y * extents.z * self.together
        return (q // self.together) * bundle + (q % self.together) * self.width

    def length(self, extents: Extents) -> Int:
        """Return the number of elements of all bundles, with the unused ones of the last."""
        bundles = -(-extents.q // self.together)
        return extents.x * extents.y * extents.z * (bundles * self.together)
