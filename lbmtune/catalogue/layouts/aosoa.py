"""Array of structures of arrays: groups of W cells along x, in each group one run of W per direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.knobs import knob
from lbmtune.catalogue.layouts.layout import Extents, Int, Tile


@dataclass(frozen=True)
class AoSoA:
    """index = ((z * ny + y) * nx + W * (x / W)) * Q + q * W + x % W; the row length must be a multiple of W."""

    name: ClassVar[str] = "aosoa"
    together: ClassVar[int] = 0

    width: int = knob(32, "cells along x of a group", unit="cells", search=(16, 32, 64, 128), least=2)

    @property
    def run(self) -> int:
        """W cells are adjacent."""
        return self.width

    @property
    def tile(self) -> Tile:
        """Rows are whole groups."""
        return (self.width, 1, 1)

    def along_x(self, x: Int, extents: Extents) -> Int:
        """Groups of W * Q values, and the lane within the group."""
        return (x // self.width) * (self.width * extents.q) + x % self.width

    def along_y(self, y: Int, extents: Extents) -> Int:
        """Rows of nx cells."""
        return y * (extents.x * extents.q)

    def along_z(self, z: Int, extents: Extents) -> Int:
        """Planes of nx * ny cells."""
        return z * (extents.x * extents.y * extents.q)

    def component(self, q: Int, extents: Extents) -> Int:
        """Runs of W."""
        return q * self.width

    def length(self, extents: Extents) -> Int:
        """All cells."""
        return extents.x * extents.y * extents.z * extents.q
