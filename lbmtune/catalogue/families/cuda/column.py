"""Column: one time step of a box per launch; a thread updates a column of cells along z, one after another.

A thread may read the next cells of its column before it collides the present one, so that their loads overlap with its
arithmetic: into registers, or into shared memory by asynchronous copies (cp.async).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from lbmtune.catalogue.backend_records import Block
from lbmtune.catalogue.domain_conditions import Condition, DomainRule, along
from lbmtune.catalogue.families.cuda import launch_rules
from lbmtune.catalogue.families.cuda.box import LAUNCH, SHAPE, Box
from lbmtune.catalogue.families.small_domains import is_flat, odd, one_more
from lbmtune.catalogue.knobs import Acts, knob
from lbmtune.catalogue.limits import MOST_REGISTERS, WARP, Limits, extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.lattice import Lattice

LEAST_BYTES = 4
"""Bytes that an asynchronous copy moves at least. Source: PTX ISA, cp.async."""
_FAR = 2
"""Prefetch distance in cells from which on more than one cell is in flight."""
_REGISTER_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class Column(Box):
    """One step of a box, a column of cells along z per thread."""

    family: ClassVar[str] = "column"
    title: ClassVar[str] = "one step of a box, by columns"

    z_cells: int = knob(8, "cells of a column along z", unit="cells", search=(4, 8, 16), least=2)
    prefetch_cells: int = knob(0, "cells of the column that are read ahead", unit="cells", allowed=(0, 1, 2, 3))
    prefetch_to: str = knob(
        "registers",
        "destination of cells that are read ahead: registers, or shared memory by cp.async",
        allowed=("registers", "shared"),
        acts=(Acts(on="prefetch_cells", values=(0,), unless=True, because="nothing is read ahead"),),
    )

    def block_cells(self, lattice: Lattice) -> Block:
        """Return the cells along each axis that a thread block updates."""
        x, y, z = super().block_cells(lattice)
        return x, y, z * self.z_cells

    def awkward_domain(self, case: Case) -> Block:
        """Return extents of which end columns have one cell; if cells are read far ahead, two or three."""
        if self.prefetch_cells >= _FAR:
            return super().awkward_domain(case)
        x, y, z = self.block_cells(case.stencil)
        ny, nz = odd(y), one_more(z)
        return self._within_grid(case, x, ny + 2 * (ny == nz), nz)

    def extra_domains(self, case: Case) -> tuple[Block, ...]:
        """Add a domain whose last columns have one cell, if cells are read far ahead.

        Sets of registers take turns there, and a column that ends early ends in another place of the loop.
        """
        nx, ny, nz = self.awkward_domain(case)
        last = one_more(self.block_cells(case.stencil)[2])
        rings = super().extra_domains(case)
        if self.prefetch_cells < _FAR or is_flat(case) or nz == last:
            return rings
        return (*rings, (nx, ny + 2 * (ny == last), last))

    def shared_bytes(self, case: Case) -> int:
        """Return the shared memory of a thread block for cells that its threads copy ahead.

        Each thread copies what it will take itself: the populations of its cells, and, if it has several, those of the
        cell beyond an end of the row that a warp has of it.
        """
        if self.prefetch_to != "shared":
            return super().shared_bytes(case)
        threads, cells, element = prod(self.block), self.cells_per_thread, self.stored.bytes
        ends = threads // min(self.block[0], WARP) if cells > 1 else 0
        of_block = case.stencil.q * (threads * cells * element + ends * max(LEAST_BYTES, element))
        return self.prefetch_cells * of_block


def _whole_faces(case: Case, config: Column, limits: Limits) -> str | None:
    if case.geometry:
        return f"geometry {case.geometry} is not supported for family column (use direct): it knows whole faces alone"
    if case.patches:
        return f"a {case.patches[0].kind} patch is not supported for family column (use direct): whole faces only"
    if config.propagation.phase(case.stencil, 0).blockwise:
        return (
            f"scheme={config.scheme} is not supported for family column (use direct): a thread block updates the "
            "block of cells that it owns, at once"
        )
    return None


@DomainRule
def _column(case: Case, config: Column, limits: Limits) -> Iterator[str | Condition]:
    what = f"z_cells={config.z_cells}"
    said = f"{what}: a column of the domain {extents(case.domain)} has {{value}} cells"
    yield Condition(value=along(2), least=config.z_cells, because=what, said=said)
    if config.block[2] > 1:
        yield f"block {extents(config.block)} with {what}: the block is one thread thick along z"


def _prefetch(case: Case, config: Column, limits: Limits) -> str | None:
    if not config.prefetch_cells:
        return None
    if config.prefetch_cells >= config.z_cells:
        return f"prefetch_cells={config.prefetch_cells}: a thread has {config.z_cells - 1} cells after its first"
    return _registers_ahead(case, config)


def _registers_ahead(case: Case, config: Column) -> str | None:
    """Return why a thread cannot hold the cells that it has read and those that it reads, or None."""
    sets = config.prefetch_cells + 1
    needed = sets * config.cells_per_thread * case.stencil.q * (config.computed.bytes // _REGISTER_BYTES)
    if sets == 2 or needed <= MOST_REGISTERS or config.prefetch_to == "shared":
        return None  # two sets may be spilled in part; what is copied takes no registers
    return (
        f"prefetch_cells={config.prefetch_cells} with cells_per_thread={config.cells_per_thread}: {sets} sets of "
        f"{case.stencil.q} populations in {config.compute} take {needed} registers; a thread has {MOST_REGISTERS}"
    )


def _copies(case: Case, config: Column, limits: Limits) -> str | None:
    if config.prefetch_to != "shared":
        return None
    moved = config.cells_per_thread * config.stored.bytes
    if moved < LEAST_BYTES:
        return (
            f"prefetch_to=shared with cells_per_thread={config.cells_per_thread} of {config.storage}: "
            f"{moved} bytes at once; an asynchronous copy moves 4, 8 or 16"
        )
    if (config.load_hint, config.l2_prefetch) != ("default", 0):
        return (
            f"prefetch_to=shared is not supported for load_hint={config.load_hint} and "
            f"l2_prefetch={config.l2_prefetch} (use registers): a copy has no such hints"
        )
    if config.addresses == "shared":
        return "prefetch_to=shared is not supported for addresses=shared (use registers): cells take the shared memory"
    return launch_rules.prefetch_buffer(case, config, limits)


RULES = (
    _whole_faces,
    launch_rules.in_order,
    *SHAPE,
    _column,
    _prefetch,
    launch_rules.asynchronous,
    _copies,
    launch_rules.shared,
    *LAUNCH,
)
