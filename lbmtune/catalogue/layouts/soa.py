"""Structure of arrays: one array of all cells per direction, x fastest."""

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.knobs import knob
from lbmtune.catalogue.layouts.layout import Extents, Int, Layout


@dataclass(frozen=True)
class SoA(Layout):
    """index = q * (stride or cells + padding) + (z * ny + y) * nx + x."""

    name: ClassVar[str] = "soa"
    together: ClassVar[int] = 1

    padding: int = knob(0, "elements between direction arrays", unit="elements")
    stride: int = knob(
        0, "elements from one direction array to the next, as a constant; 0: from extents and padding", unit="elements"
    )

    def component(self, q: Int, extents: Extents) -> Int:
        """Return the offset of the array of component q: a multiple of the stride, or of the cells and padding."""
        return q * (self.stride or extents.x * extents.y * extents.z + self.padding)

    def length(self, extents: Extents) -> Int:
        """Return the elements of Q arrays. Cells beyond the stride (illegal) are counted in ints only."""
        cells = extents.x * extents.y * extents.z
        if not self.stride:
            return extents.q * (cells + self.padding)
        return extents.q * (max(self.stride, cells) if isinstance(cells, int) else self.stride)
