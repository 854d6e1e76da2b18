"""Structure of arrays: all cells of one direction together, x fastest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.knobs import knob
from lbmtune.catalogue.layouts.layout import Extents, Int, Tile


@dataclass(frozen=True)
class SoA:
    """index = q * (stride or cells + padding) + (z * ny + y) * nx + x."""

    name: ClassVar[str] = "soa"
    run: ClassVar[int] = 0
    tile: ClassVar[Tile] = (1, 1, 1)
    together: ClassVar[int] = 1

    padding: int = knob(0, "elements between direction arrays", unit="elements")
    stride: int = knob(
        0, "elements from one direction array to the next, as a constant; 0: from extents and padding", unit="elements"
    )

    def along_x(self, x: Int, extents: Extents) -> Int:
        """X itself."""
        return x

    def along_y(self, y: Int, extents: Extents) -> Int:
        """Rows of nx."""
        return y * extents.x

    def along_z(self, z: Int, extents: Extents) -> Int:
        """Planes of nx * ny."""
        return z * (extents.x * extents.y)

    def component(self, q: Int, extents: Extents) -> Int:
        """Arrays of all cells, with padding between them or a stride apart."""
        return q * (self.stride or extents.x * extents.y * extents.z + self.padding)

    def length(self, extents: Extents) -> Int:
        """Q arrays; more than those of a stride where cells need more, which is not legal: no formula tells of it."""
        cells = extents.x * extents.y * extents.z
        if not self.stride:
            return extents.q * (cells + self.padding)
        return extents.q * (max(self.stride, cells) if isinstance(cells, int) else self.stride)
