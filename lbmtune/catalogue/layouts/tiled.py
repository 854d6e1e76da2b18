"""Tiles: the cells of a box of tx x ty x tz together, one array per direction.

Source: Tran, Lee, Hong 2017, section 4.2.2, equations 9 and 10, for a tile of any shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from lbmtune.catalogue.knobs import knob
from lbmtune.catalogue.layouts.layout import Extents, Int, Tile


@dataclass(frozen=True)
class Tiled:
    """Tiles one after the other, x fastest, and so are the cells of a tile; each extent a multiple of the tile's.

    together: 1, a direction has its own array of tiles; 0, a tile holds all directions, one after the other.
    """

    name: ClassVar[str] = "tiled"
    together: ClassVar[int] = 1

    layout_tile: Tile = knob(
        (16, 4, 1), "cells of a tile, x by y by z", unit="cells", search=("16x4x1", "32x2x2", "32x4x4", "64x2x1")
    )

    @property
    def tile(self) -> Tile:
        """Extents are whole tiles."""
        return self.layout_tile

    @property
    def run(self) -> int:
        """The cells of a tile along x are adjacent."""
        return self.tile[0]

    def along_x(self, x: Int, extents: Extents) -> Int:
        """Tiles, and the cell within the row of a tile."""
        tx = self.tile[0]
        return (x // tx) * self._tile_elements(extents) + x % tx

    def along_y(self, y: Int, extents: Extents) -> Int:
        """Rows of nx / tx tiles, and rows of tx cells within a tile."""
        tx, ty, _ = self.tile
        return (y // ty) * (extents.x * (self._tile_elements(extents) // tx)) + (y % ty) * tx

    def along_z(self, z: Int, extents: Extents) -> Int:
        """Planes of nx / tx * ny / ty tiles, and planes of tx * ty cells within a tile."""
        tx, ty, tz = self.tile
        plane = extents.x * extents.y * (self._tile_elements(extents) // (tx * ty))
        return (z // tz) * plane + (z % tz) * (tx * ty)

    def component(self, q: Int, extents: Extents) -> Int:
        """Arrays of all cells, or runs of a tile's cells."""
        return q * (extents.x * extents.y * extents.z if self.together else prod(self.tile))

    def length(self, extents: Extents) -> Int:
        """All cells of whole tiles."""
        return extents.q * (extents.x * extents.y * extents.z)

    def _tile_elements(self, extents: Extents) -> int:
        return prod(self.tile) * (1 if self.together else extents.q)
