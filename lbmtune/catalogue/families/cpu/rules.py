"""Rules of CPU kernels."""

from __future__ import annotations

from collections.abc import Callable

from lbmtune.catalogue.config import CPU_BOUNDARIES, CpuConfig
from lbmtune.catalogue.families import common_rules as common
from lbmtune.catalogue.families.cpu.moments_wavefront_rules import why_no_pipeline
from lbmtune.catalogue.families.cpu.wavefront import MAX_STEPS, sweeps
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import conditions
from lbmtune.catalogue.schemes.scheme import keeps_links, reads_along_x
from lbmtune.catalogue.storage import beyond_stride, stored_extents

PINNINGS = ("none", "cores")
PAGES = ("default", "normal", "huge")
READS = ("once", "twice", "ahead", "lean")
_LEANER = ("bgk", "trt")
"""Operators of which `collisions.lean` has a form of its own, named here without SymPy."""
FAR_ENDS = ("inside", "between")
FIRST_TOUCHES = ("serial", "parallel")


def _representation(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if config.of_moments:
        return why_no_pipeline(case, config)
    return (
        f"tile_x {config.tile_x} with representation populations: rows of a tile are whole" if config.tile_x else None
    )


def _names(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if config.loop not in ("z", "zy", "tile"):
        return f"loop {config.loop!r}: z, zy and tile exist"
    if config.wrap not in ("ghost", "select"):
        return f"wrap {config.wrap!r}: ghost and select exist on the CPU"
    if config.vector_bits not in (0, 256, 512):
        return f"vector_bits {config.vector_bits}: 0, 256 and 512 exist"
    if config.gather not in ("vector", "lanes"):
        return f"gather {config.gather!r}: vector and lanes exist"
    if config.gather == "lanes" and not config.indirect:
        return "gather lanes with direct addressing: nothing is gathered there"
    tile = f"tile_y {config.tile_y} and tile_z {config.tile_z} with loop {config.loop}"
    if config.loop == "tile" and min(config.tile_y, config.tile_z) < 1:
        return f"{tile}: both at least 1"
    if config.loop != "tile" and (config.tile_y or config.tile_z):
        return f"{tile}: only loop tile has tiles"
    return None


def _vectors(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if config.vector_bits > 2 * limits.vector_bits:
        return f"vector_bits {config.vector_bits}; this CPU has {limits.vector_bits}, and two registers make a vector"
    if not config.vector_bits:
        return None
    lanes = config.vector_bits // (8 * config.computed.bytes)
    if not config.indirect and case.domain[0] % lanes:
        domain = extents(case.domain)
        return f"domain {domain}: nx = {case.domain[0]} is not divisible by {lanes} lanes of {config.compute}"
    if config.wrap == "select":
        return f"vector_bits {config.vector_bits} with wrap select: vectors need the ghost columns"
    run = config.memory.run
    if run and run % lanes:
        return (
            f"vector_bits {config.vector_bits} with layout {config.layout}: "
            f"its runs of {run} cells are no multiple of {lanes} lanes"
        )
    return None


def _rows(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if config.wrap == "ghost" and config.row_offset < 1 and not config.of_moments:
        return f"row_offset {config.row_offset}: the ghost column before a row needs 1"
    if config.wrap == "select" and config.row_offset:
        return f"row_offset {config.row_offset} with wrap select: rows start at 0"
    run = config.memory.run
    if run > 1 and not config.indirect and config.row_offset % run:
        return f"row_offset {config.row_offset} is no multiple of the runs of {run} cells of layout {config.layout}"
    return None


def _stride(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if not config.stride:
        return None
    if config.layout != "soa":
        return f"stride {config.stride} with layout {config.layout}: only soa has separate direction arrays"
    if config.padding:
        return f"stride {config.stride} with padding {config.padding}: a stride says all about where arrays begin"
    return beyond_stride(case, config)


def _streaming_stores(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if not config.streaming_stores:
        return None
    if config.streaming_stores != 1:
        return f"streaming_stores {config.streaming_stores}: 0 and 1 exist"
    if config.scheme != "pull":
        return (
            f"streaming_stores with scheme {config.scheme}: only pull writes whole aligned lines that it did not read"
        )
    line = 64 // config.stored.bytes
    if config.vector_bits != 512 or config.computed.bytes != config.stored.bytes:
        return (
            f"streaming_stores with {config.vector_bits} bits of {config.storage}: "
            "a store must fill a cache line of 64 bytes"
        )
    if config.layout != "soa":
        return f"streaming_stores with layout {config.layout}: only soa is prepared for them"
    row = stored_extents(case, config).x
    between = "stride" if config.stride else "padding"
    if config.row_offset % line or row % line or getattr(config, between) % line:
        return (
            f"streaming_stores: row_offset {config.row_offset}, row length {row} and {between} "
            f"{getattr(config, between)} must be multiples of {line} elements"
        )
    return None


def _prefetch(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    for name in ("prefetch_propagated", "prefetch_local", "prefetch_index"):
        ahead = getattr(config, name)
        if ahead and not config.vector_bits:
            return f"{name} {ahead} with vector_bits 0: asked for in every cell it keeps the compiler from vectors"
    return None


def _reads(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if config.reads not in READS:
        return f"reads {config.reads!r}: {', '.join(READS)} exist"
    if config.reads == "once":
        return None
    if not config.vector_bits:
        return f"reads {config.reads} with vector_bits 0: the compiler would have to prove that a store changes no load"
    if config.flags != "compiled":
        return f"reads {config.reads} with flags {config.flags}: cells with cut links would ask their flags twice"
    if conditions(case):
        return f"reads {config.reads} with faces {case.faces}: what completes cells at such a face is not in memory"
    if config.reads == "lean" and case.collision not in _LEANER:
        have = " and ".join(_LEANER)
        return f"reads lean with collision {case.collision}: {have} have a form of fewer instructions; take reads twice"
    if config.memory.run > 1:
        return f"reads {config.reads} with layout {config.layout}: cells that lie in groups would be put together twice"
    phases = [config.propagation.phase(case.stencil, parity) for parity in range(config.propagation.period)]
    if any(phase.blockwise or phase.ordered or not keeps_links(phase, case.stencil) for phase in phases):
        return f"reads {config.reads} with scheme {config.scheme}: a pair is not left where it was read"
    return None


def _far_ends(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if config.far_ends not in FAR_ENDS:
        return f"far_ends {config.far_ends!r}: {' and '.join(FAR_ENDS)} exist"
    if config.far_ends == "inside":
        return None
    if not config.vector_bits:
        return "far_ends between with vector_bits 0: single cells read a far end that is filled before the loop"
    if config.flags != "compiled":
        return f"far_ends between with flags {config.flags}: words of the last cells decide what is filled"
    if not reads_along_x(config.propagation, case.stencil):
        return f"far_ends between with scheme {config.scheme}: its loop fills no far end"
    return None


def _steps(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if config.steps == 1 or config.of_moments:
        return None
    if not 1 <= config.steps <= MAX_STEPS:
        return f"steps {config.steps}: 1 to {MAX_STEPS}"
    if config.indirect:
        return f"steps {config.steps} with {config.addressing} addressing: there are no rows that lie behind others"
    if not sweeps(config.propagation, case.stencil):
        return (
            f"steps {config.steps} with scheme {config.scheme}: rows of several steps are under way at once only where "
            "each step is one pass over one lattice in place, in any order"
        )
    if config.loop != "tile":
        return f"steps {config.steps} with loop {config.loop}: tiles of rows go through several steps"
    return None


def _prefetch_rows(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if config.prefetch_rows not in (0, 1):
        return f"prefetch_rows {config.prefetch_rows}: 0 and 1 exist"
    if not config.prefetch_rows:
        return None
    if config.steps == 1:
        return "prefetch_rows 1 with steps 1: there is no work in a cache meanwhile"
    if not config.vector_bits:
        return "prefetch_rows 1 with vector_bits 0: asked for in every cell it keeps the compiler from vectors"
    if config.layout != "soa":
        return f"prefetch_rows 1 with layout {config.layout}: only soa has rows of one direction"
    return None


def _boundary(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if config.boundary not in CPU_BOUNDARIES:
        return f"boundary {config.boundary!r}: {' and '.join(CPU_BOUNDARIES)} exist on the CPU"
    if not config.implicit:
        return None
    if not config.indirect:
        return f"boundary implicit with {config.addressing} addressing: on the CPU only lists leave out what is skipped"
    return common.implicit(case, config)


def _threads(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if not 1 <= config.threads <= limits.cores:
        return f"threads {config.threads}; this device has {limits.cores} cores"
    return None


def _memory(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    for name, known in (("pinning", PINNINGS), ("pages", PAGES), ("first_touch", FIRST_TOUCHES)):
        if getattr(config, name) not in known:
            return f"{name} {getattr(config, name)!r}: {', '.join(known)} exist"
    if config.pages == "huge" and not limits.huge_pages:
        return "pages huge: this system gives no transparent huge pages of 2 MiB"
    if config.first_touch == "parallel" and config.threads == 1:
        return "first_touch parallel with threads 1: one thread works on all rows"
    return None


def _tiles_with_rings(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if not config.propagation.phase(case.stencil, 0).blockwise or config.loop == "tile":
        return None
    return f"loop {config.loop} with scheme {config.scheme}: its blocks are the tiles of loop tile"


def _in_order(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if not config.propagation.phase(case.stencil, 0).ordered:
        return None
    if config.loop != "z":
        return f"loop {config.loop} with scheme {config.scheme}: each thread goes through the rows of a slab in order"
    if config.wrap != "ghost":
        return f"wrap {config.wrap} with scheme {config.scheme}: the last cell of a row swaps over ghost columns"
    if config.flags != "compiled":
        return f"flags {config.flags} with scheme {config.scheme}: a row knows which swaps are due by faces alone"
    return None


# in this order: a rule may take for granted what those before it demand
RULES: tuple[Callable[[Case, CpuConfig, Limits], str | None], ...] = (
    *common.FIRST,
    _representation,
    _tiles_with_rings,
    _in_order,
    *common.LAYOUTS,
    _names,
    _vectors,
    _rows,
    _stride,
    _streaming_stores,
    _prefetch,
    _reads,
    _far_ends,
    _boundary,
    common.neighbours,
    _steps,
    _prefetch_rows,
    _threads,
    _memory,
    *common.LAST,
)
