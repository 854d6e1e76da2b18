"""Array of structures of arrays: groups of W cells along x, in each group one run of W per direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.knobs import knob
from lbmtune.catalogue.layouts.layout import Extents, Int, StackedRows, Tile


@dataclass(frozen=True)
class AoSoA(StackedRows):
    """index = ((z * ny + y) * nx + W * (x / W)) * Q + q * W + x % W; the row length must be a multiple of W."""

    name: ClassVar[str] = "aosoa"
    together: ClassVar[int] = 0

    width: int = knob(32, "cells along x of a group", unit="cells", search=(16, 32, 64, 128), least=2)

    @property
    def run(self) -> int:
        """Adjacent cells of one component: W."""
        return self.width

    @property
    def tile(self) -> Tile:
        """Multiples of the extents: rows are whole groups."""
        return (self.width, 1, 1)

    def along_x(self, x: Int, extents: Extents) -> Int:
        """Return the offset of cell x in its row: that of its group of W * Q values, and its lane."""
        return (x // self.width) * (self.width * extents.q) + x % self.width

    def component(self, q: Int, extents: Extents) -> Int:
        """Return the offset of the run of W values of component q."""
        return q * self.width
