"""Rules of CUDA blocks: their shape, their threads' registers, the cells that they cover, and the grid."""

from __future__ import annotations

from math import prod

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda import temporal_blocking as marches
from lbmtune.catalogue.families.cuda.shared_memory import asked_bytes
from lbmtune.catalogue.limits import RESERVED_BYTES, Limits, extents, registers_allowed
from lbmtune.catalogue.problem.case import Case

_TIMES_REGISTERS = 6
"""What may wait from plane to plane, in registers that a thread has; all beyond those goes to local memory and back.

Of 2,651 recorded trials the worst has 5.8 times as many (5 cells in doubles, 4 steps, 640 threads)."""


def size(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Threads that a device has for a block."""
    if min(config.block) < 1:
        return f"block {extents(config.block)} has an extent below 1"
    threads = prod(config.block)
    if threads > limits.threads_per_block:
        return f"block {extents(config.block)} = {threads} threads; this device allows {limits.threads_per_block}"
    for axis, (extent, allowed) in enumerate(zip(config.block, limits.block, strict=True)):
        if extent > allowed:
            return (
                f"block {extents(config.block)} has {extent} threads along {'xyz'[axis]}; this device allows {allowed}"
            )
    return None


def shape(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Whole warps along x for vectors, and no more rows and planes than the domain has; tiles end where it ends."""
    if config.marches:
        return None
    x = config.block[0]
    if config.cells_per_thread > 1 and x % 32 and 32 % x:
        return (
            f"block {extents(config.block)}: with {config.cells_per_thread} cells per thread "
            "its x must divide or be a multiple of 32"
        )
    if case.domain[2] < config.block[2] or case.domain[1] < config.block[1]:
        return f"block {extents(config.block)} reaches beyond the domain {extents(case.domain)} along y or z"
    return None


def covers_row(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Not twice the row, or more."""
    if config.indirect:
        return None
    covered = config.block[0] * config.cells_per_thread
    needed = -(-case.domain[0] // config.cells_per_thread) * config.cells_per_thread
    if covered >= 2 * needed and config.block[0] > 32:
        return (
            f"block {extents(config.block)} x {config.cells_per_thread} cells covers {covered} cells "
            f"of a row of {case.domain[0]}"
        )
    return None


def registers(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """One way to limit registers, within what the device has."""
    if config.max_registers and config.min_blocks:
        return (
            f"max_registers {config.max_registers} with min_blocks {config.min_blocks}: "
            "launch bounds override the compiler's cap"
        )
    if config.max_registers and not 32 <= config.max_registers <= 255:
        return f"max_registers {config.max_registers} is outside 32..255"
    threads = prod(config.block)
    if config.min_blocks * threads > limits.threads_per_multiprocessor:
        return (
            f"min_blocks {config.min_blocks} x {threads} threads; "
            f"a multiprocessor holds {limits.threads_per_multiprocessor}"
        )
    return None


def shared(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Shared memory for as many blocks as launch bounds ask for; where they stay on chip their number follows."""
    if config.min_blocks < 2 or config.resident:
        return None
    needed = asked_bytes(case, config)
    if not needed or config.min_blocks * (needed + RESERVED_BYTES) <= limits.shared_bytes_per_multiprocessor:
        return None
    return (
        f"min_blocks {config.min_blocks} x ({needed:,} + {RESERVED_BYTES:,} reserved) bytes of shared memory; "
        f"a multiprocessor has {limits.shared_bytes_per_multiprocessor:,}"
    )


def waiting(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Registers for what waits for the next plane, at least in part."""
    if not config.marches:
        return None
    threads = prod(config.block) * max(1, config.min_blocks)
    allowed = config.max_registers or registers_allowed(threads)
    needed = marches.waiting_words(case, config)
    if needed <= _TIMES_REGISTERS * allowed:
        return None
    return (
        f"steps {config.steps} x rows {config.rows} x cells_per_thread {config.cells_per_thread}: {needed:,} registers "
        f"wait for the next plane, more than {_TIMES_REGISTERS} times the {allowed} that a thread has"
    )


def march(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Cells of a column; with a list, sites that a thread goes on to, a block further each time."""
    planes = config.march
    if config.indirect:
        taken = config.block[0] * config.cells_per_thread * planes
        few = planes > 1 and taken > case.sites
        return f"march {planes}: a block takes {taken:,} sites of a domain of {case.sites:,} cells" if few else None
    if planes > case.domain[2] and not (config.marches or config.moments_on_chip):
        return f"march {planes}: a column of the domain {extents(case.domain)} has {case.domain[2]} cells"
    if planes > 1 and config.block[2] > 1:
        return f"march {planes} with block {extents(config.block)}: a block that marches is one cell thick along z"
    return None


def order(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """An order of its own."""
    if config.block_order == "row":
        return None
    if config.block_order != "z-curve":
        return f"block_order {config.block_order!r}: row and z-curve exist"
    blocks = _blocks(case, config)
    fast, slow = blocks[:2] if case.stencil.dimensions == 2 else blocks[1:]
    if fast % 2 or slow % 2:
        axes = "x and y" if case.stencil.dimensions == 2 else "y and z"
        return f"block_order z-curve: the grid {extents(blocks)} is not even along {axes}, so it is the row order"
    return None


def _blocks(case: Case, config: CudaConfig) -> tuple[int, int, int]:
    if config.marches:
        return marches.blocks(case, config)
    cells = marches.block_cells(case.stencil, config)
    if config.indirect:
        return (-(-case.sites // (cells[0] * config.march)), 1, 1)
    x, y, z = (-(-n // c) for n, c in zip(case.domain, cells, strict=True))
    return x, y, z


def grid(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Blocks that a device has for a grid."""
    blocks = _blocks(case, config)
    if any(n > allowed for n, allowed in zip(blocks, limits.grid, strict=True)):
        return f"grid {extents(blocks)} for block {extents(config.block)}; this device allows {extents(limits.grid)}"
    return None


def rings(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """What kernels of blocks with rings have no part of."""
    if not config.propagation.phase(case.stencil, 0).blockwise:
        return None
    if config.cells_per_thread > 1:
        return f"cells_per_thread {config.cells_per_thread} with scheme {config.scheme}: rows of blocks are not aligned"
    if config.wrap != "arithmetic":
        return f"wrap {config.wrap} with scheme {config.scheme}: the rings of the blocks are its ghost layer"
    if config.march > 1 or config.block_order != "row":
        return (
            f"march {config.march} and block_order {config.block_order} with scheme {config.scheme}: "
            "a thread block updates the block of cells that it owns, at once"
        )
    if config.macroscopics != "never":
        return (
            f"macroscopics {config.macroscopics} with scheme {config.scheme}: kernels of blocks with rings write none"
        )
    return None
