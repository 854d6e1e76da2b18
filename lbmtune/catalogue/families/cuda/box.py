"""What CUDA kernels of a box share that do one time step per launch: direct and column."""

from __future__ import annotations

from dataclasses import dataclass

from lbmtune.catalogue.backend_records import Block
from lbmtune.catalogue.families.groups import CacheHints, Indexed, Launched, Propagated, ThreadBlocks, Vectorised
from lbmtune.catalogue.footprint import pass_bytes, ring_bytes
from lbmtune.catalogue.knobs import knob
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.storage_frame import StorageFrame, aligned
from lbmtune.lattice import Lattice


@dataclass(frozen=True, kw_only=True)
class Box(Indexed, CacheHints, Launched, Vectorised, ThreadBlocks, Propagated):
    """One step of a box per launch."""

    wrap: str = knob(
        "arithmetic",
        "periodic neighbours along y and z: index arithmetic, or a ghost layer that a second kernel refreshes",
        search=("arithmetic", "ghost"),
        allowed=("arithmetic", "ghost"),
    )
    block_order: str = knob("row", "order of thread blocks over the grid", allowed=("row", "z-curve"))

    def block_cells(self, lattice: Lattice) -> Block:
        """Return the cells along each axis that a thread block updates."""
        x, y, z = self.block
        return x * self.cells_per_thread, y, z

    def frame(self, lattice: Lattice) -> StorageFrame:
        """Return where the cells of a domain lie in storage.

        With a ghost layer the wrap along x stays arithmetic: lanes exchange values anyway, and columns of ghost cells
        are slow to copy.
        """
        x, y, z = self.memory.tile
        align = (max(self.kept.row_unit(self.cells_per_thread), x), y, z)
        if self.propagation.phase(lattice, 0).blockwise:
            ring = (1, 1, int(lattice.dimensions == 3))
            return StorageFrame((True, True, bool(ring[2])), ring, ring, align, lattice.q, self.block)
        if self.wrap == "arithmetic":
            return aligned(align, self.kept.values(lattice))
        ghost = (False, True, lattice.dimensions == 3)
        layer = (0, 1, int(ghost[2]))
        return StorageFrame(ghost, layer, layer, align, lattice.q)

    def population_bytes(self, case: Case) -> float:
        """Return the bytes of populations that one update moves: each pass reads and writes once; and rings."""
        return pass_bytes(case, self) + ring_bytes(case, self)
