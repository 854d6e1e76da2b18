"""Bundles: the directions in groups; a group has its own array, in which the values of one cell are adjacent.

The last group is as long as the others, so that a cell lies at one place in all of them: where the group size does not
divide q, some elements stay unused. Which directions go together: `lbmtune.catalogue.schemes.scheme.bundled`.
Source: Robertsen 2018, section 3.4.1 and figure 3.8; Mattila et al. 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.knobs import knob
from lbmtune.catalogue.layouts.layout import Extents, Int, Tile


@dataclass(frozen=True)
class Bundle:
    """index = (q / G) * cells * G + ((z * ny + y) * nx + W * (x / W)) * G + (q % G) * W + x % W, here with W = 1."""

    name: ClassVar[str] = "bundle"
    width: int = 1

    group: int = knob(3, "directions per bundle", search=(3, 5, 9), least=2)

    @property
    def together(self) -> int:
        """G directions share an array."""
        return self.group

    @property
    def run(self) -> int:
        """W cells are adjacent."""
        return self.width

    @property
    def tile(self) -> Tile:
        """Rows are whole runs."""
        return (self.width, 1, 1)

    def along_x(self, x: Int, extents: Extents) -> Int:
        """Structures of W * G values, and the lane within."""
        return (x // self.width) * (self.width * self.together) + x % self.width

    def along_y(self, y: Int, extents: Extents) -> Int:
        """Rows of nx cells."""
        return y * (extents.x * self.together)

    def along_z(self, z: Int, extents: Extents) -> Int:
        """Planes of nx * ny cells."""
        return z * (extents.x * extents.y * self.together)

    def component(self, q: Int, extents: Extents) -> Int:
        """Arrays of bundles, and runs of W within a bundle."""
        bundle = extents.x * extents.y * extents.z * self.together
        return (q // self.together) * bundle + (q % self.together) * self.width

    def length(self, extents: Extents) -> Int:
        """All bundles, the last one filled up."""
        bundles = -(-extents.q // self.together)
        return extents.x * extents.y * extents.z * (bundles * self.together)
