"""Values of knobs of one-step kernels on CUDA that a study searches, made for a case and a device."""

from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Any

from lbmtune.catalogue.families.common_ranges import FLAGS, LINKS, ORDER, fixed
from lbmtune.catalogue.families.made import Made, Range
from lbmtune.catalogue.layouts.layout import Extents
from lbmtune.catalogue.limits import WARP, Limits, extents
from lbmtune.catalogue.problem.case import Case

_LEAST_THREADS, _MOST_THREADS = 64, 256
"""Threads of a block: fewer leave places for warps empty, more are never faster in the recorded sets."""
_USEFUL = 0.75
"""Share of useful lanes of a row, of the most, that a block along x must have: memory hides as many idle ones."""
_SMALL = 1 << 15
"""Cells per multiprocessor below which a launch takes a share of a step that counts."""
_PADDED = 1 / 8
"""Most of a row that whole runs may add to it."""
_SETS_BYTES = 1 << 16
"""Bytes after which the sets of the caches repeat."""
_SKEW = 64
"""Elements between arrays that keep them apart: they fill a line, and 16-byte accesses stay aligned."""


def _useful(lanes: int, threads: int) -> float:
    """Return the share of threads that have cells, of blocks over a row."""
    return lanes / (-(-lanes // threads) * threads)


def _block(case: Case, config: Any, limits: Limits) -> Range:
    lanes = -(-case.domain[0] // config.cells_per_thread)
    whole = [WARP << n for n in range(6)] + [-(-lanes // (parts * WARP)) * WARP for parts in range(1, 5)]
    along_x = sorted({x for x in whole if x <= _MOST_THREADS and (x == WARP or x < 2 * lanes)})
    best = max(_useful(lanes, x) for x in along_x)
    along_x = [x for x in along_x if _useful(lanes, x) >= _USEFUL * best]
    flat = case.domain[1:]
    found = [
        (x, y, 1) for x, y in product(along_x, (1, 2, 4)) if _LEAST_THREADS <= x * y <= _MOST_THREADS and y <= flat[0]
    ]
    reason = (
        f"{_LEAST_THREADS} to {_MOST_THREADS} threads in whole warps, of which rows of {case.domain[0]} cells leave "
        "the fewest idle"
    )
    return Range(tuple(map(extents, found or [(WARP, 1, 1)])), reason)


BLOCK = Made(_block, after=("cells_per_thread",))


def array_bytes(case: Case, config: Any) -> int:
    """Return the bytes from one direction array to the next, without padding."""
    stored: Extents = config.stored_extents(case)
    return int(prod((stored.x, stored.y, stored.z))) * int(config.stored.bytes)


def _padding(case: Case, config: Any, limits: Limits) -> Range:
    if config.indirect:
        return Range((0, _SKEW), "the number of nodes decides whether arrays share sets of the cache")
    if (found := array_bytes(case, config)) % _SETS_BYTES == 0:
        return Range((0, _SKEW), f"arrays of {found:,} bytes share sets of the cache, unless they are padded")
    return Range((0,), f"arrays of {found:,} bytes begin at different sets of the cache")


PADDING = Made(_padding, after=("storage", "layout", "wrap", "cells_per_thread"))


def _launch(case: Case, config: Any, limits: Limits) -> Range:
    cells = case.sites // max(1, limits.multiprocessors)
    if cells >= _SMALL:
        return Range(("call",), f"a step of {cells:,} cells per multiprocessor hides a launch")
    best = "dependent" if limits.dependent else "graph"
    return Range((best,), f"a step of {cells:,} cells per multiprocessor does not hide a launch")


LAUNCH = Made(_launch)


def _vectors(case: Case, config: Any, limits: Limits) -> Range:
    most = 16 // config.stored.bytes
    fitting = tuple(n for n in (1, 2, 4, 8) if n <= most and (config.indirect or case.domain[0] % n == 0))
    return Range(fitting, "one access moves up to 16 bytes, and rows are whole vectors")


VECTORS = Made(_vectors, after=("storage",))


def _width(case: Case, config: Any, limits: Limits) -> Range:
    wide, nx = (32, 64, 128), case.domain[0]
    if config.indirect:
        return Range(wide, "a warp, and two and four, in one run")
    if config.wrap == "ghost":
        return Range(
            tuple(n for n in wide if -nx % n <= nx * _PADDED) or (16,), "runs that pad a row by an eighth at most"
        )
    return Range(tuple(n for n in wide if nx % n == 0) or (16,), "runs that rows are multiples of")


WIDTH = Made(_width, after=("wrap",))


ONE_STEP: Mapping[str, Made] = {"cells_per_thread": VECTORS, "width": WIDTH, "padding": PADDING, "launch": LAUNCH}
_REGISTERS = fixed(
    "limits of fewer registers spill, and of more are no limits",
    *("none", "2-blocks", "3-blocks", "4-blocks", "64-registers", "96-registers", "128-registers"),
)
DIRECT = {
    **ONE_STEP,
    "block": BLOCK,
    "flags": FLAGS,
    "boundary": fixed(
        "skipped solid cells have another transient: for studies that ask for it", "branch", "predicated"
    ),
    "register_limit": _REGISTERS,
}
COLUMN = {
    **ONE_STEP,
    "block": BLOCK,
    "wrap": fixed("a ghost layer was within 1 % of it in recorded sets", "arithmetic"),
    "register_limit": fixed("columns need the registers of several cells", "none", "2-blocks", "3-blocks"),
}
SPARSE = {
    **ONE_STEP,
    "order": ORDER,
    "links": LINKS,
    "prefetch_index": fixed("none, or about a wave of thread blocks ahead", 0, 1 << 16),
    "register_limit": _REGISTERS,
}
