"""Tiles: the cells of a box of tx x ty x tz are adjacent; one array of tiles per direction.

Source: Tran, Lee, Hong 2017, section 4.2.2, equations 9 and 10, for a tile of any shape.
"""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from lbmtune.catalogue.knobs import knob
from lbmtune.catalogue.layouts.layout import Extents, Int, Layout, Tile


@dataclass(frozen=True)
class Tiled(Layout):
    """Tiles, and the cells within a tile, in lexicographic order; each extent is a multiple of the tile's.

    together: 1, a direction has its own array of tiles; 0, a tile holds all directions, one after the other.
    """

    name: ClassVar[str] = "tiled"
    together: ClassVar[int] = 1

    layout_tile: Tile = knob(
        (16, 4, 1), "cells of a tile, x by y by z", unit="cells", search=("16x4x1", "32x2x2", "32x4x4", "64x2x1")
    )

    @property
    def tile(self) -> Tile:
        """Return the multiples of the extents: whole tiles."""
        return self.layout_tile

    @property
    def run(self) -> int:
        """Return the adjacent cells of one component: tx."""
        return self.tile[0]

    def along_x(self, x: Int, extents: Extents) -> Int:
        """Return the offset of cell x: that of its tile in a row of tiles, and its place in a row of the tile."""
        tx = self.tile[0]
        return (x // tx) * self._tile_elements(extents) + x % tx

    def along_y(self, y: Int, extents: Extents) -> Int:
        """Return the offset of row y: that of its row of nx / tx tiles, and of its row of tx cells within a tile."""
        tx, ty, _ = self.tile
        return (y // ty) * (extents.x * (self._tile_elements(extents) // tx)) + (y % ty) * tx

    def along_z(self, z: Int, extents: Extents) -> Int:
        """Return the offset of plane z: that of its plane of tiles, and of its plane of tx * ty cells within a tile."""
        tx, ty, tz = self.tile
        plane = extents.x * extents.y * (self._tile_elements(extents) // (tx * ty))
        return (z // tz) * plane + (z % tz) * (tx * ty)

    def component(self, q: Int, extents: Extents) -> Int:
        """Return the offset of component q: that of its array, or of its run of cells within a tile."""
        return q * (extents.x * extents.y * extents.z if self.together else prod(self.tile))

    def length(self, extents: Extents) -> Int:
        """Return the number of elements of all cells."""
        return extents.q * (extents.x * extents.y * extents.z)

    def _tile_elements(self, extents: Extents) -> int:
        return prod(self.tile) * (1 if self.together else extents.q)
