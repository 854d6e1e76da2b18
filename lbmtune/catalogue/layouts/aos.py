"""Array of structures: the q populations of a cell are adjacent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.layouts.layout import Extents, Int, StackedRows, Tile


@dataclass(frozen=True)
class AoS(StackedRows):
    """index = ((z * ny + y) * nx + x) * Q + q."""

    name: ClassVar[str] = "aos"
    run: ClassVar[int] = 1
    tile: ClassVar[Tile] = (1, 1, 1)
    together: ClassVar[int] = 0

    def along_x(self, x: Int, extents: Extents) -> Int:
        """Return the offset of cell x in its row; a cell has Q values."""
        return x * extents.q

    def component(self, q: Int, extents: Extents) -> Int:
        """Return the offset of component q in its cell: q."""
        return q
