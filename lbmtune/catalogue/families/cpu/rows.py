"""What CPU kernels of a box of populations share: rows with ghost columns, or with selected indices."""

from __future__ import annotations

from dataclasses import dataclass

from lbmtune.catalogue.families.groups import Bounded, RowsOfCells
from lbmtune.catalogue.storage_frame import StorageFrame
from lbmtune.lattice import Lattice


@dataclass(frozen=True, kw_only=True)
class BoxOfRows(RowsOfCells, Bounded):
    """Rows of a box of populations."""

    def frame(self, lattice: Lattice) -> StorageFrame:
        """Return where the cells of a domain lie in storage; tiles of blockwise schemes have rings along y and z."""
        ends = self.wrap == "ghost"
        before, after = self.row_offset, ends + self.row_padding
        if self.propagation.phase(lattice, 0).blockwise:
            solid = int(lattice.dimensions == 3)
            blocks = (0, self.tile_y, self.tile_z * solid)
            ghost = (ends, True, bool(solid))
            return StorageFrame(ghost, (before, 1, solid), (after, 1, solid), self.memory.tile, lattice.q, blocks)
        return StorageFrame((ends, False, False), (before, 0, 0), (after, 0, 0), self.memory.tile, lattice.q)
