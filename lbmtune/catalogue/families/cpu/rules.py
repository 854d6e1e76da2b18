"""Rules of CPU kernels."""

from __future__ import annotations

import re
from typing import Any

from lbmtune.catalogue.families import common_rules, moment_rules
from lbmtune.catalogue.families.cpu.direct import Direct
from lbmtune.catalogue.families.cpu.moments_wavefront import EDGE_ROWS, MARGIN, MomentsWavefront, reach, width
from lbmtune.catalogue.families.cpu.rows import BoxOfRows
from lbmtune.catalogue.families.cpu.sparse import Sparse
from lbmtune.catalogue.families.cpu.wavefront import Wavefront, has_wavefront
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import told
from lbmtune.catalogue.record import CpuConfig, knobs_by_name
from lbmtune.catalogue.schemes.scheme import keeps_links
from lbmtune.catalogue.storage import beyond_stride, stored_extents

_LEANER = ("bgk", "trt")
"""Operators that `collisions.min_instruction_forms` has a form of, named here without SymPy."""
_LOOP = re.compile(r"z|zy|tile-[1-9]\d*x[1-9]\d*")


def _vectors(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    """Vectors that the processor has and that rows and runs are multiples of."""
    if config.vector_bits > 2 * limits.vector_bits:
        return f"vector_bits={config.vector_bits}; this CPU has {limits.vector_bits}, and two registers make a vector"
    if not config.vector_bits:
        return None
    lanes = config.vector_bits // (8 * config.computed.bytes)
    if not config.indirect and case.domain[0] % lanes:
        domain, use = extents(case.domain), "wrap=select or " if "wrap" in knobs_by_name(type(config)) else ""
        lacks = f"nx={case.domain[0]} is not a multiple of {lanes} lanes of {config.compute}"
        return f"domain {domain}: {lacks} (use {use}vector_bits=0)"
    if config.wrap == "select":
        return f"vector_bits={config.vector_bits} is not supported for wrap=select (use 0): vectors need ghost columns"
    run = config.memory.run
    if run and run % lanes:
        return (
            f"vector_bits={config.vector_bits} is not supported for layout={config.memory.name}: "
            f"its runs of {run} cells are not multiples of {lanes} lanes"
        )
    return None


def _threads(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    """Threads that the device has cores for."""
    if not 1 <= config.threads <= limits.cores:
        return f"threads={config.threads}; this device has {limits.cores} cores"
    return None


def _pages(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    """Huge pages that the system gives."""
    if config.pages == "huge" and not limits.huge_pages:
        return "pages=huge is not supported here (use normal): this system gives no transparent huge pages of 2 MiB"
    return None


def _patches(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    """Patches, which rows of a box know by flags."""
    if case.patches and config.flags == "compiled":
        return f"flags=compiled is not supported for a patch on face {case.patches[0].face} (use memory)"
    return None


def _rows(case: Case, config: BoxOfRows, limits: Limits) -> str | None:
    """A row that begins where its ends need it, with a whole run of the layout."""
    if config.wrap == "ghost" and config.row_offset < 1:
        return (
            f"row_offset={config.row_offset} is not supported for wrap=ghost (use 1 or more): it needs a ghost column"
        )
    run = config.memory.run
    if run > 1 and config.row_offset % run:
        return f"row_offset={config.row_offset} is not a multiple of the runs of {run} cells of {config.memory.name}"
    return None


def _stride(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    """A stride that holds the arrays, instead of padding."""
    stride, padding = _of_soa(config)
    if not stride:
        return None
    if padding:
        return f"stride={stride} is not supported for padding={padding} (use 0): the stride includes it"
    return beyond_stride(case, config)


def _of_soa(config: CpuConfig) -> tuple[int, int]:
    return getattr(config.layout, "stride", 0), getattr(config.layout, "padding", 0)


def _streaming_stores(case: Case, config: Any, limits: Limits) -> str | None:
    """Stores that fill cache lines."""
    if not config.streaming_stores:
        return None
    line = 64 // config.stored.bytes
    if config.vector_bits != 512 or config.computed.bytes != config.stored.bytes:
        return (
            f"streaming_stores=1 with {config.vector_bits} bits of {config.storage}: "
            "a store must fill a cache line of 64 bytes"
        )
    if config.memory.name != "soa":
        return f"streaming_stores=1 is not supported for layout={config.memory.name} (use soa)"
    row = stored_extents(case, config).x
    stride, padding = _of_soa(config)
    between, name = (stride, "stride") if stride else (padding, "padding")
    if config.row_offset % line or row % line or between % line:
        return (
            f"streaming_stores=1: row_offset={config.row_offset}, row length {row} and {name}={between} "
            f"must be multiples of {line} elements"
        )
    return None


def _collision_passes(case: Case, config: BoxOfRows, limits: Limits) -> str | None:
    """Schemes, layouts and operators whose pairs can be read again."""
    if config.collision_passes == "one":
        return None
    what = f"collision_passes={config.collision_passes} is not supported for"
    if told(case):
        return f"{what} a {told(case)} (use one): what completes cells at such a face is not in memory"
    if config.collision_passes == "minimal" and case.collision not in _LEANER:
        return f"{what} collision={case.collision} (use two): {' and '.join(_LEANER)} have a form of fewer instructions"
    if config.memory.run > 1:
        return f"{what} layout={config.memory.name} (use one): cells that lie in groups would be put together twice"
    phases = [config.propagation.phase(case.stencil, parity) for parity in range(config.propagation.period)]
    if any(phase.blockwise or phase.ordered or not keeps_links(phase, case.stencil) for phase in phases):
        return f"{what} scheme={config.scheme} (use one): a pair is not left where it was read"
    return None


def _parallel_loop(case: Case, config: Direct, limits: Limits) -> str | None:
    """Loops that exist."""
    if not _LOOP.fullmatch(config.parallel_loop):
        return f"parallel_loop={config.parallel_loop} is not supported (use z, zy, or tiles such as tile-8x4)"
    if config.propagation.phase(case.stencil, 0).blockwise and config.loop != "tile":
        return f"parallel_loop={config.parallel_loop} is not supported for scheme={config.scheme} (use tile-8x4)"
    return None


def _in_order(case: Case, config: Direct, limits: Limits) -> str | None:
    """Schemes whose rows come in order."""
    if not config.propagation.phase(case.stencil, 0).ordered:
        return None
    what = f"is not supported for scheme={config.scheme}"
    if config.wrap != "ghost":
        return f"wrap={config.wrap} {what} (use ghost): the last cell of a row swaps over ghost columns"
    if config.flags != "compiled":
        return f"flags={config.flags} {what} (use compiled): a row knows by faces alone which swaps are due"
    return None


def _listed_scheme(case: Case, config: Sparse, limits: Limits) -> str | None:
    """Schemes that need no box."""
    phase = config.propagation.phase(case.stencil, 0)
    if phase.blockwise:
        return f"scheme={config.scheme} is not supported for family sparse (use pull): its blocks are cut out of a box"
    if phase.ordered:
        return f"scheme={config.scheme} is not supported for family sparse (use pull): its order is that of rows"
    return None


def _wavefront(case: Case, config: Wavefront, limits: Limits) -> str | None:
    """Schemes whose rows of several steps can be under way at once."""
    if has_wavefront(config.propagation, case.stencil):
        return None
    return (
        f"scheme={config.scheme} is not supported for family wavefront (use aa, esoteric-twist or esoteric-pull): "
        "each step must be one pass over one lattice in place, in any order"
    )


def _prefetch_rows(case: Case, config: Wavefront | MomentsWavefront, limits: Limits) -> str | None:
    """Rows of one direction, and steps that have work in a cache meanwhile."""
    if not config.prefetch_rows:
        return None
    if config.steps == 1:
        return "prefetch_rows=1 is not supported for steps=1 (use 0): there is no work in a cache meanwhile"
    if config.memory.name != "soa":
        return f"prefetch_rows=1 is not supported for layout={config.memory.name} (use soa)"
    return None


def _moment_tiles(case: Case, config: MomentsWavefront, limits: Limits) -> str | None:
    """Tiles of whole vectors and of more rows than what a cell sends may pass."""
    if config.tile_x < MARGIN or config.tile_x % MARGIN:
        return f"tile={extents(config.tile)}: rows of a tile have a multiple of {MARGIN} cells"
    if width(case.stencil, config) < EDGE_ROWS * reach(case.stencil):
        return f"tile={extents(config.tile)}: what a cell sends may pass {EDGE_ROWS} rows of a tile"
    return None


def _moment_flags(case: Case, config: MomentsWavefront, limits: Limits) -> str | None:
    """Flags of solid cells alone: faces are known by their place."""
    if config.flags == "memory" and not case.geometry:
        return "flags=memory is not supported for moments without solid cells (use compiled): faces are compiled in"
    return None


_MACHINE = (_vectors, _threads, _pages)
_ROWS = (common_rules.flags, _patches, _vectors, _rows, _stride, _collision_passes)
DIRECT = (_parallel_loop, _in_order, *_ROWS, _streaming_stores, _threads, _pages)
SPARSE = (_listed_scheme, *_MACHINE, common_rules.implicit, common_rules.nodes)
WAVEFRONT = (_wavefront, *_ROWS, _prefetch_rows, _threads, _pages)
MOMENTS_WAVEFRONT = (
    moment_rules.moments,
    moment_rules.faces,
    moment_rules.patches,
    _moment_flags,
    common_rules.flags,
    _moment_tiles,
    _vectors,
    _streaming_stores,
    _prefetch_rows,
    _threads,
    _pages,
)
