"""Array of structures: the q populations of a cell together."""

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
        """Cells of Q values."""
        return x * extents.q

    def along_y(self, y: Int, extents: Extents) -> Int:
        """Rows of nx cells."""
        return y * (extents.x * extents.q)

    def along_z(self, z: Int, extents: Extents) -> Int:
        """Planes of nx * ny cells."""
        return z * (extents.x * extents.y * extents.q)

    def component(self, q: Int, extents: Extents) -> Int:
        """Q itself."""
        return q

    def length(self, extents: Extents) -> Int:
        """All cells."""
        return extents.x * extents.y * extents.z * extents.q
