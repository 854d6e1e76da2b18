"""Knobs and rules of CUDA kernels of a box that do one time step per launch: direct and column."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from lbmtune.catalogue.backend_records import Block
from lbmtune.catalogue.domain_conditions import Condition, DomainRule, along, at_least, blocks
from lbmtune.catalogue.families.cuda import launch_rules
from lbmtune.catalogue.families.groups import (
    BLOCKWISE,
    CacheHints,
    Indexed,
    Launched,
    Propagated,
    ThreadBlocks,
    Vectorised,
)
from lbmtune.catalogue.families.small_domains import odd, rounded
from lbmtune.catalogue.footprint import pass_bytes, ring_bytes
from lbmtune.catalogue.knobs import Acts, knob
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.storage_frame import StorageFrame
from lbmtune.lattice import Lattice

_START_BYTES = 8
"""Bytes of the place where a direction starts."""


@dataclass(frozen=True, kw_only=True)
class Box(Indexed, CacheHints, Launched, Vectorised, ThreadBlocks, Propagated):
    """One step of a box per launch."""

    clipped_knob: ClassVar[str] = "block"

    wrap: str = knob(
        "arithmetic",
        "periodic neighbours along y and z: index arithmetic, or a ghost layer that a second kernel refreshes",
        search=("arithmetic", "ghost"),
        allowed=("arithmetic", "ghost"),
    )
    block_order: str = knob("row", "order of thread blocks over the grid", allowed=("row", "z-curve"))
    addresses: str = knob(
        "computed",
        "where each direction starts in storage: computed by a thread, or loaded from shared memory for each access",
        allowed=("computed", "shared"),
        acts=(
            Acts(on="pointer_swap", values=(0,), because="slots are parameters"),
            Acts(on="scheme", values=BLOCKWISE, unless=True, because="its blocks have rings"),
        ),
    )

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
            return super().frame(lattice)
        ghost = (False, True, lattice.dimensions == 3)
        layer = (0, 1, int(ghost[2]))
        return StorageFrame(ghost, layer, layer, align, lattice.q)

    def warp_frame(self, lattice: Lattice, threads: Block) -> StorageFrame:
        """Return the frame of one warp; planes of rows share no sector, so that ghost rows do not count."""
        in_rows = self.memory.tile[1:] == (1, 1)
        return replace(self, block=threads, wrap="arithmetic" if in_rows else self.wrap).frame(lattice)

    def shared_bytes(self, case: Case) -> int:
        """Return the shared memory of a thread block for where the directions start."""
        return case.stencil.q * _START_BYTES if self.addresses == "shared" else 0

    def awkward_domain(self, case: Case) -> Block:
        """Return extents of no whole block; with a z-curve, of so many blocks that the curve fills several squares."""
        x, y, z = self.block_cells(case.stencil)
        return self._within_grid(case, x, odd(y), odd(z))

    def _within_grid(self, case: Case, x: int, ny: int, nz: int) -> Block:
        if self.block_order != "row":
            # six blocks by four (two by six in two dimensions), so that a curve fills more than one square
            _, y, z = self.block_cells(case.stencil)
            ny, nz = 5 * y + 1, 3 * z + 1
        return rounded(case, self.row_cells(1), x, ny, nz)

    def population_bytes(self, case: Case) -> float:
        """Return the bytes of populations that one update moves: each pass reads and writes once; and rings."""
        return pass_bytes(case, self) + ring_bytes(case, self)


@DomainRule
def _shape(case: Case, config: Box, limits: Limits) -> Iterator[Condition]:
    what = f"block {extents(config.block)}"
    said = f"{what} is larger than the domain {extents(case.domain)} along y or z"
    yield from at_least(config.block, what, said, axes=(1, 2))


@DomainRule
def _covers_row(case: Case, config: Box, limits: Limits) -> Iterator[Condition]:
    threads, cells = config.block[0], config.cells_per_thread
    if threads > 32:
        what = f"block {extents(config.block)} x {cells} cells"
        most = max(32, (2 * case.domain[0] - 1) // cells // 32 * 32)
        covers = f"{threads * cells} cells of a row of {case.domain[0]}"
        said = f"{what} covers {covers} (use at most {most} threads along x)"
        yield Condition(value=along(0), least=threads // 2 * cells + 1, because=what, said=said)


@DomainRule
def _block_order(case: Case, config: Box, limits: Limits) -> Iterator[Condition]:
    if config.block_order == "row":
        return
    axes = (0, 1) if case.stencil.dimensions == 2 else (1, 2)
    said = (
        f"block_order=z-curve is not supported for the grid {extents(config.blocks(case))} (use row): "
        f"it is not even along {' and '.join('xyz'[axis] for axis in axes)}, so it is the row order"
    )
    cells = config.block_cells(case.stencil)
    for axis in axes:
        of_axis = partial(blocks, cells=cells, axis=axis)
        yield Condition(value=of_axis, multiple=2, because="block_order=z-curve", said=said)


SHAPE = (
    launch_rules.size,
    launch_rules.vectors,
    launch_rules.whole_warps,
    _shape,
    _covers_row,
    launch_rules.register_limit,
    launch_rules.whole_groups,
)
LAUNCH = (launch_rules.index_bits, _block_order, launch_rules.dependent, launch_rules.grid)
