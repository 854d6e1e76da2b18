"""What CPU kernels of a box of populations share: rows with ghost columns, or with selected indices."""

from __future__ import annotations

from dataclasses import dataclass

from lbmtune.catalogue.backend_records import CpuConfig
from lbmtune.catalogue.families.groups import Bounded, RowsOfCells
from lbmtune.catalogue.families.small_domains import distinct, is_flat, odd
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import Cells
from lbmtune.catalogue.storage_frame import StorageFrame
from lbmtune.lattice import Lattice

_THIN = 3
"""Rows of a domain too thin for all steps at once."""


@dataclass(frozen=True, kw_only=True)
class BoxOfRows(RowsOfCells, Bounded):
    """Rows of a box of populations."""

    def awkward_domain(self, case: Case) -> Cells:
        """Return extents of no whole tile of rows."""
        return distinct(case, self.awkward_row, odd(self.tile_y + 2), odd(self.tile_z))

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


@dataclass(frozen=True, kw_only=True)
class TilesOfRows(CpuConfig):
    """Several steps of the rows of a tile, one behind the other."""

    @property
    def tile(self) -> tuple[int, ...]:
        """Extents of a tile, rows along y and z last."""
        raise NotImplementedError

    @property
    def steps(self) -> int:
        """Time steps of a launch."""
        raise NotImplementedError

    @property
    def loop(self) -> str:
        """Threads share tiles."""
        return "tile"

    @property
    def tile_y(self) -> int:
        """Rows of a tile along y."""
        return self.tile[-2]

    @property
    def tile_z(self) -> int:
        """Rows of a tile along z."""
        return self.tile[-1]

    @property
    def fused_steps(self) -> int:
        """Time steps of a launch."""
        return self.steps

    def extra_domains(self, case: Case) -> tuple[Cells, ...]:
        """Return a domain that is too thin for all steps of a launch at once, if they are several."""
        if self.steps <= _THIN // 2 + 1:
            return ()
        return ((self.awkward_domain(case)[0], _THIN, 1 if is_flat(case) else _THIN + 2),)
