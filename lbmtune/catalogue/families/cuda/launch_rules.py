"""Rules of CUDA launches: thread blocks, registers, vectors, indices and the grid."""

import re
from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any

from lbmtune.catalogue.backend_records import CudaConfig
from lbmtune.catalogue.domain_conditions import Condition, DomainRule, Place, along, sites
from lbmtune.catalogue.footprint import index_bounds
from lbmtune.catalogue.knobs import Scalar
from lbmtune.catalogue.layouts.layout import Int
from lbmtune.catalogue.limits import RESERVED_BYTES, WARP, Limits, extents
from lbmtune.catalogue.problem.case import Case

_LIMIT = re.compile(r"none|\d+-(?:registers|blocks)")


def size(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Require threads that a device has for a thread block."""
    threads = prod(config.block)
    if threads > limits.threads_per_block:
        block, allowed = extents(config.block), limits.threads_per_block
        return f"block {block} = {threads} threads; this device allows {allowed} (use fewer along an axis)"
    for axis, (extent, allowed) in enumerate(zip(config.block, limits.block, strict=True)):
        if extent > allowed:
            return (
                f"block {extents(config.block)} has {extent} threads along {'xyz'[axis]}; this device allows {allowed} "
                "(use fewer there)"
            )
    return None


def register_limit(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Require a limit of registers that the compiler takes and the device has."""
    limit = config.register_limit
    if not _LIMIT.fullmatch(limit):
        return f"register_limit={limit} is not supported (use none, or for example 96-registers or 3-blocks)"
    if limit.endswith("registers") and not 32 <= config.max_registers <= 255:
        return f"register_limit={limit} is not supported (use 32-registers to 255-registers)"
    return min_blocks(case, config, limits)


def min_blocks(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Require thread blocks whose threads a multiprocessor holds."""
    if config.min_blocks * prod(config.block) > limits.threads_per_multiprocessor:
        return (
            f"{config.min_blocks} blocks of {prod(config.block)} threads; "
            f"a multiprocessor holds {limits.threads_per_multiprocessor} threads (use fewer or smaller blocks)"
        )
    return None


@DomainRule
def vectors(case: Case, config: CudaConfig, limits: Limits) -> Iterator[str | Condition]:
    """Require vectors of at most 16 bytes that rows, runs and paddings are multiples of."""
    cells = config.cells_per_thread
    width = cells * config.stored.bytes
    if width > 16:
        yield f"cells_per_thread={cells} x {config.stored.bytes} bytes = {width}; one access moves at most 16 bytes"
    if not config.indirect:
        yield whole_vectors(case, cells)
    run = config.memory.run
    if cells > 1 and run and run % cells:
        yield (
            f"cells_per_thread={cells} is not supported for layout={config.memory.name}: "
            f"its runs of {run} cells are not multiples of {cells}"
        )
    padding = getattr(config.memory, "padding", 0)
    if padding % cells:
        yield f"padding={padding} is not a multiple of cells_per_thread={cells}"


def whole_vectors(case: Case, cells: int) -> Condition:
    """Return the condition that threads of so many cells have whole rows."""
    what = f"cells_per_thread={cells}"
    said = f"domain {extents(case.domain)}: nx={{value}} is not a multiple of {what}"
    return Condition(value=along(0), multiple=cells, because=what, said=said)


def shared(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Require shared memory for as many blocks as launch bounds ask for."""
    if config.min_blocks < 2:
        return None
    needed = config.shared_bytes(case)
    if not needed or config.min_blocks * (needed + RESERVED_BYTES) <= limits.shared_bytes_per_multiprocessor:
        return None
    return (
        f"{config.min_blocks} blocks of ({needed:,} + {RESERVED_BYTES:,} reserved) bytes of shared memory; "
        f"a multiprocessor has {limits.shared_bytes_per_multiprocessor:,}"
    )


def prefetch_buffer(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Require shared memory of a block for what is copied ahead."""
    needed = config.shared_bytes(case)
    if needed <= limits.shared_bytes_per_block:
        return None
    return (
        f"prefetch_to=shared with block {extents(config.block)} needs {needed:,} bytes of shared memory; "
        f"a block of this device has {limits.shared_bytes_per_block:,}"
    )


@DomainRule
def whole_groups(case: Case, config: CudaConfig, limits: Limits) -> Iterator[Condition]:
    """Require rows of whole groups if neighbours are found by arithmetic."""
    if config.memory.name == "aosoa" and config.wrap == "arithmetic":
        what = f"the AoSoA width={config.memory.run}"
        said = f"domain {extents(case.domain)}: nx={{value}} is not a multiple of {what}"
        yield Condition(value=along(0), multiple=config.memory.run, because=what, said=said)


def whole_warps(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Require whole warps along x for vectors, or whole rows of threads in a warp."""
    if config.cells_per_thread == 1 or not config.block[0] % WARP or not WARP % config.block[0]:
        return None
    return (
        f"block {extents(config.block)}: with cells_per_thread={config.cells_per_thread} "
        f"its x must divide or be a multiple of {WARP}"
    )


def asynchronous(case: Case, config: Any, limits: Limits) -> str | None:
    """Require asynchronous copies that the device has."""
    if config.prefetch_to != "shared" or limits.asynchronous:
        return None
    return "prefetch_to=shared is not supported by this device (use registers): it needs compute capability 8.0"


def usual_alone(config: CudaConfig, what: str, *knobs: tuple[str, Scalar, str]) -> str | None:
    """Return why a knob of some is refused that has not its usual value. knobs: name, usual value, reason."""
    for name, usual, reason in knobs:
        if (value := getattr(config, name)) != usual:
            return f"{name}={value} is not supported for {what} (use {usual}): {reason}"
    return None


@DomainRule
def index_bits(case: Case, config: CudaConfig, limits: Limits) -> Iterator[Condition]:
    """64 bits only if 32 are enough: otherwise they are used anyway."""
    if not config.index_bits:
        return
    said, because = "index_bits=64 is the same as 0: {value:,} elements need as many", "otherwise they are no choice"
    for which in range(2):
        value = partial(_index_bound, config=config, which=which)
        yield Condition(value=value, most=2**32 - 1, because=f"index_bits=64: {because}", said=said)


def _index_bound(place: Place, config: CudaConfig, which: int) -> Int:
    return index_bounds(place.stored, config)[which]


def dependent(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Require programmatic dependent launch on a device that has it."""
    if config.launch == "dependent" and not limits.dependent:
        return "launch=dependent is not supported by this device (use call or graph): it needs compute capability 9.0"
    return None


def in_order(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """Require schemes whose cells may be visited in any order."""
    if not config.propagation.phase(case.stencil, 0).ordered:
        return None
    return (
        f"scheme={config.scheme} is not supported on CUDA (use swap): a cell swaps with those updated before it, and "
        "thread blocks run in no order"
    )


@DomainRule
def grid(case: Case, config: CudaConfig, limits: Limits) -> Iterator[Condition]:
    """Require thread blocks that a device has for a grid."""
    cells = config.block_cells(case.stencil)
    said = f"grid {extents(config.blocks(case))} for block {extents(config.block)}; this device allows "
    said, because = said + extents(limits.grid), "of the grid a device takes"
    if config.indirect:
        yield Condition(value=sites, most=limits.grid[0] * prod(cells), because=because, said=said)
        return
    for axis, (allowed, covered, more) in enumerate(zip(limits.grid, cells, config.ends(case), strict=True)):
        yield Condition(value=along(axis), most=allowed * covered + more, because=because, said=said)
