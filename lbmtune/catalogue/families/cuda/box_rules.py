"""Rules of CUDA kernels of a box with one step per launch: direct and column."""

from __future__ import annotations

from lbmtune.catalogue.boundaries.cell_flags import by_words
from lbmtune.catalogue.families import common_rules
from lbmtune.catalogue.families.cuda import launch_rules
from lbmtune.catalogue.families.cuda.box import Box
from lbmtune.catalogue.families.cuda.column import LEAST_BYTES, Column
from lbmtune.catalogue.families.cuda.direct import Direct
from lbmtune.catalogue.limits import MOST_REGISTERS, Limits, extents
from lbmtune.catalogue.problem.case import Case

_REGISTER_BYTES = 4


def _shape(case: Case, config: Box, limits: Limits) -> str | None:
    """Whole warps along x for vectors, and no more rows and planes than the domain has."""
    x = config.block[0]
    if config.cells_per_thread > 1 and x % 32 and 32 % x:
        return (
            f"block {extents(config.block)}: with cells_per_thread={config.cells_per_thread} "
            "its x must divide or be a multiple of 32"
        )
    if case.domain[2] < config.block[2] or case.domain[1] < config.block[1]:
        return f"block {extents(config.block)} is larger than the domain {extents(case.domain)} along y or z"
    return None


def _covers_row(case: Case, config: Box, limits: Limits) -> str | None:
    """Less than twice the row."""
    covered = config.block[0] * config.cells_per_thread
    needed = -(-case.domain[0] // config.cells_per_thread) * config.cells_per_thread
    if covered >= 2 * needed and config.block[0] > 32:
        return (
            f"block {extents(config.block)} x {config.cells_per_thread} cells covers {covered} cells "
            f"of a row of {case.domain[0]}"
        )
    return None


def _wrap(case: Case, config: Box, limits: Limits) -> str | None:
    """Rows of whole groups if neighbours are found by arithmetic."""
    width = getattr(config.memory, "width", 1)
    if config.memory.name == "aosoa" and config.wrap == "arithmetic" and case.domain[0] % width:
        return f"domain {extents(case.domain)}: nx={case.domain[0]} is not a multiple of the AoSoA width={width}"
    return None


def _block_order(case: Case, config: Box, limits: Limits) -> str | None:
    """A grid that a z-curve orders otherwise than by rows."""
    if config.block_order == "row":
        return None
    blocks = config.blocks(case)
    fast, slow = blocks[:2] if case.stencil.dimensions == 2 else blocks[1:]
    if fast % 2 or slow % 2:
        axes = "x and y" if case.stencil.dimensions == 2 else "y and z"
        return (
            f"block_order=z-curve is not supported for the grid {extents(blocks)} (use row): "
            f"it is not even along {axes}, so it is the row order"
        )
    return None


def _rings(case: Case, config: Box, limits: Limits) -> str | None:
    """What kernels of blocks with rings of ghost cells do not have."""
    if not config.propagation.phase(case.stencil, 0).blockwise:
        return None
    for name, value, usual, reason in (
        ("cells_per_thread", config.cells_per_thread, 1, "rows of blocks are not aligned"),
        ("wrap", config.wrap, "arithmetic", "the rings of the blocks are its ghost layer"),
        ("block_order", config.block_order, "row", "a thread block updates the block of cells that it owns"),
        ("macroscopics", config.macroscopics, "never", "kernels of blocks with rings write none"),
        ("flags", config.flags, "compiled", "the rings of its blocks hold whole faces alone"),
    ):
        if value != usual:
            return f"{name}={value} is not supported for scheme={config.scheme} (use {usual}): {reason}"
    if case.patches:
        return f"a {case.patches[0].kind} patch is not supported for scheme={config.scheme}: rings hold whole faces"
    return None


def _boundary(case: Case, config: Direct, limits: Limits) -> str | None:
    """Kernels whose cells know cut links by words."""
    if not by_words(case, config):
        return None
    if config.boundary == "predicated" and config.cells_per_thread > 1:
        return (
            f"boundary=predicated is not supported for cells_per_thread={config.cells_per_thread} (use branch): "
            "a vector has one address"
        )
    if config.wrap == "ghost":
        return f"flags={config.flags} is not supported for wrap=ghost (use arithmetic): ghost rows know faces alone"
    if config.macroscopics != "never":
        return (
            f"macroscopics={config.macroscopics} is not supported for flags={config.flags} (use never): "
            "kernels that read words of cells write none"
        )
    return None


def _whole_faces(case: Case, config: Column, limits: Limits) -> str | None:
    """Columns know whole faces alone."""
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


def _column(case: Case, config: Column, limits: Limits) -> str | None:
    """Cells of a column that the domain has."""
    if config.z_cells > case.domain[2]:
        return f"z_cells={config.z_cells}: a column of the domain {extents(case.domain)} has {case.domain[2]} cells"
    if config.block[2] > 1:
        return f"block {extents(config.block)} with z_cells={config.z_cells}: the block is one thread thick along z"
    return None


def _prefetch(case: Case, config: Column, limits: Limits) -> str | None:
    """Cells that a thread may read before their turn."""
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
    """Asynchronous copies that the device has and that move what a thread reads."""
    if config.prefetch_to != "shared":
        return None
    if not limits.asynchronous:
        return "prefetch_to=shared is not supported by this device (use registers): it needs compute capability 8.0"
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
    return launch_rules.prefetch_buffer(case, config, limits)


_BOX = (launch_rules.size, launch_rules.vectors, _shape, _covers_row, launch_rules.register_limit, _wrap)
_LAUNCH = (launch_rules.index_bits, _block_order, launch_rules.dependent, launch_rules.grid)
DIRECT = (_rings, launch_rules.in_order, common_rules.flags, *_BOX, common_rules.implicit, _boundary, *_LAUNCH)
COLUMN = (_whole_faces, launch_rules.in_order, *_BOX, _column, _prefetch, _copies, launch_rules.shared, *_LAUNCH)
