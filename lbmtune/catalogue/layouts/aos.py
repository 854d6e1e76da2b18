"""Array of structures: the q populations of a cell are adjacent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.layouts.layout import Extents, Int, Tile


@dataclass(frozen=True)
class AoS:
    """index = ((z * ny + y) * nx + x) * Q + q."""

    name: ClassVar[str] = "aos"
    run: ClassVar[int] = 1
    tile: ClassVar[Tile] = (1, 1, 1)
    together: ClassVar[int] = 0

    def along_x(self, x: Int, extents: Extents) -> Int:
        """Return the offset of cell x in its row; a cell has Q values."""
        return x * extents.q

    def along_y(self, y: Int, extents: Extents) -> Int:
        """Return the offset of row y in its plane; a row has nx cells."""
        return y * (extents.x * extents.q)

    def along_z(self, z: Int, extents: Extents) -> Int:
        """Return the offset of plane z; a plane has nx * ny cells."""
        return z * (extents.x * extents.y * extents.q)

    def component(self, q: Int, extents: Extents) -> Int:
        """Return the offset of component q in its cell: q."""
        return q

    def length(self, extents: Extents) -> Int:
        """Return the number of elements of all cells."""
        return extents.x * extents.y * extents.z * extents.q
