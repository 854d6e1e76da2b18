"""Rows of components: all cells of a row for one component, then the same row for the next one.

All values of a cell lie within one row, so that one address and constant distances reach them. Components of a cell
may lie together in groups of a few (which moments use; what is left over is a smaller group of its own).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.layouts.layout import Extents, Int, Tile


@dataclass(frozen=True)
class Rows:
    """index = ((z * ny + y) * Q + q - q % G) * nx + G * x + q % G, in a last, smaller group with its size for G.

    group: components of a cell that lie together.
    """

    name: ClassVar[str] = "rows"
    run: ClassVar[int] = 0
    tile: ClassVar[Tile] = (1, 1, 1)
    together: ClassVar[int] = 0

    group: int = 1

    def along_x(self, x: Int, extents: Extents) -> Int:
        """Groups of a cell, in all groups but a smaller last one."""
        return x * self.group

    def along_y(self, y: Int, extents: Extents) -> Int:
        """Rows of Q times nx."""
        return y * (extents.x * extents.q)

    def along_z(self, z: Int, extents: Extents) -> Int:
        """Planes of ny such rows."""
        return z * (extents.x * extents.y * extents.q)

    def component(self, q: Int, extents: Extents) -> Int:
        """The row of a group, and the place in the group."""
        return q // self.group * self.group * extents.x + q % self.group

    def length(self, extents: Extents) -> Int:
        """All rows."""
        return extents.x * extents.y * extents.z * extents.q
