"""Values of knobs of kernels with tiles on CUDA that a study searches, made for a case and a device."""

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.families.common_ranges import FLAGS, REPRESENTATION, fixed
from lbmtune.catalogue.families.cuda.chunks import tapered_lengths, uniform_lengths
from lbmtune.catalogue.families.cuda.face_exchange import FaceExchange
from lbmtune.catalogue.families.cuda.persistent import Persistent
from lbmtune.catalogue.families.cuda.ranges import LAUNCH
from lbmtune.catalogue.families.cuda.temporal_blocking import PACKS, TemporalBlocking, waiting_words
from lbmtune.catalogue.families.made import Made, Range
from lbmtune.catalogue.limits import MOST_REGISTERS, REGISTERS, RESERVED_BYTES, WARP, Limits, extents, registers_allowed
from lbmtune.catalogue.problem.case import Case

_HELD = 0.75
"""Share of the registers of a thread that may hold values from plane to plane.

In 20 recorded sets no kernel within 20 % of the fastest has more.
"""
_WARPS = range(1, 25)
"""Warps of a block along y: more leave a thread fewer than 80 registers."""
_WORK = 1.5
"""Times the fewest cells that all blocks of a plane may compute, halos included."""
_TILES = ("8x8x8", "16x8x8", "32x8x4")


def _steps(case: Case, config: TemporalBlocking, limits: Limits) -> Range:
    if case.stencil.dimensions == 2:
        return Range((1, 2, 3, 4, 5, 6, 8), "halos along one axis alone: tiles are wide enough for more steps")
    least = 1 if config.of_moments else 2
    return Range(tuple(range(least, 5)), "the halo of more steps is most of a tile")


def _cells(case: Case, config: TemporalBlocking, limits: Limits) -> Range:
    if case.stencil.dimensions == 2:
        return Range((1, 2, 4), "more cells need more registers than a thread has")
    if config.steps > 1:
        return Range((1,), "several steps of two cells need more registers than a thread has")
    return Range((1, 2), "more cells need more registers than a thread has")


def _rows(case: Case, config: TemporalBlocking, limits: Limits) -> Range:
    if case.stencil.dimensions == 2:
        return Range((1,), "warps go up along y")
    most = 2 if config.steps == 1 else 5
    return Range(tuple(range(1, most + 1)), "more rows save few halos, and need more registers than a thread has")


def _pack(case: Case, config: TemporalBlocking, limits: Limits) -> Range:
    bytes_of_one, values = config.cells_per_thread * config.stored.bytes, config.kept.values(case.stencil)
    most = 32 if case.stencil.dimensions == 2 else 16
    rests = {n: values % n or n for n in PACKS if n <= values and 8 <= n * bytes_of_one <= most}
    found = tuple(n for n, rest in rests.items() if not rest & (rest - 1))
    return Range(found or (1,), f"values of 8 to {most} bytes are loaded together, and those left over as well")


def _register_limit(case: Case, config: TemporalBlocking, limits: Limits) -> Range:
    if config.steps > 1 and case.stencil.dimensions == 3:
        return Range(("none",), "two blocks of several steps leave a thread too few registers")
    return Range(("none", "2-blocks"), "more blocks leave a thread too few registers")


def _block(case: Case, config: TemporalBlocking, limits: Limits) -> Range:
    """Warps along y: of those that leave a thread as many registers, the fewest computed cells, and the most warps."""
    if case.stencil.dimensions == 2:
        return Range(tuple(extents((WARP, n, 1)) for n in (2, 4, 8)), "each warp has a tile of its own")
    ny, halo, together = case.domain[1], 2 * config.steps, max(1, config.min_blocks)
    heights = {n: n * config.rows - halo for n in _WARPS if n * config.rows > halo}
    work = {n: -(-ny // height) * n * config.rows for n, height in heights.items()}
    alike: dict[int, list[int]] = {}
    for n in work:
        alike.setdefault(registers_allowed(WARP * n * together), []).append(n)
    found = {n for several in alike.values() for n in (min(several, key=lambda n: (work[n], n)), several[-1])}
    kept = sorted(n for n in found if work[n] <= _WORK * min(work.values()))
    reason = f"warps that leave few rows of {ny} to halos, and as many as registers allow"
    return Range(tuple(extents((WARP, n, 1)) for n in kept), reason)


def _z_buffer(case: Case, config: TemporalBlocking, limits: Limits) -> Range:
    allowed = registers_allowed(prod(config.block) * max(1, config.min_blocks))
    several = case.stencil.dimensions == 3 and config.steps > 1
    places = {place: replace(config, z_buffer=place) for place in ("registers", *(("shared",) * several))}
    found = tuple(place for place, one in places.items() if waiting_words(case, one) <= _HELD * allowed)
    return Range(found, f"what waits for the next plane takes up to {_HELD:.0%} of a thread's registers")


def _warp_sync(case: Case, config: TemporalBlocking, limits: Limits) -> Range:
    if case.stencil.dimensions == 2:
        return Range(("block",), "warps do not synchronise")
    if config.steps == 1:
        return Range(("block",), "one exchange in each plane")
    return Range(("block", "neighbours"), "which is faster depends on the exchange")


def _overread(case: Case, config: TemporalBlocking, limits: Limits) -> Range:
    if config.warp_sync == "block":
        return Range((0,), "a tail branch costs nothing beside a barrier of the block")
    return Range((0, 1), "without a tail branch warps run on, for one more plane that is read")


def _schedule(case: Case, config: TemporalBlocking, limits: Limits) -> Range:
    if not cuts(case) or case.stencil.dimensions == 2:
        return Range(("uniform",), "all blocks take as long: there are no cut links")
    return Range(("uniform", "tapered"), "blocks with cut links take longer, which shorter later blocks make up for")


def _chunks(case: Case, config: TemporalBlocking, limits: Limits) -> Range:
    flat = case.stencil.dimensions == 2
    x, y, _ = config.blocks(case)
    planes, columns = case.domain[1 if flat else 2], x if flat else x * y
    places = limits.multiprocessors * _blocks_at_once(case, config, limits)
    lengths = tapered_lengths if config.chunk_schedule == "tapered" else uniform_lengths
    found = lengths(planes, config.steps, columns, places)
    return Range(found, f"waves of blocks that fill {limits.multiprocessors} multiprocessors, by {planes} planes")


def _blocks_at_once(case: Case, config: TemporalBlocking, limits: Limits) -> int:
    """Return the blocks that a multiprocessor is sure to hold, whatever registers the compiler takes."""
    by_registers = REGISTERS // (prod(config.block) * (MOST_REGISTERS + 1))
    wanted = max(1, config.min_blocks, by_registers)
    needed = config.shared_bytes(case)
    return max(1, min(wanted, limits.shared_bytes_per_multiprocessor // (needed + RESERVED_BYTES)))


_SHAPE = ("storage", "representation", "cells_per_thread", "steps", "rows")
_ON_CHIP = ("register_limit", "block", "flags", "z_buffer", "plane_fetch", "warp_sync")
TEMPORAL_BLOCKING: Mapping[str, Made] = {
    "representation": REPRESENTATION,
    "flags": FLAGS,
    "launch": LAUNCH,
    "steps": Made(_steps, after=("representation",)),
    "cells_per_thread": Made(_cells, after=("steps",)),
    "rows": Made(_rows, after=("steps",)),
    "pack": Made(_pack, after=("storage", "representation", "cells_per_thread")),
    "register_limit": Made(_register_limit, after=("steps",)),
    "block": Made(_block, after=("steps", "rows", "register_limit")),
    "z_buffer": Made(_z_buffer, after=(*_SHAPE, "register_limit", "block", "flags")),
    "warp_sync": Made(_warp_sync, after=("steps",)),
    "overread": Made(_overread, after=("warp_sync",)),
    "chunk_schedule": Made(_schedule),
    "chunk_planes": Made(_chunks, after=(*_SHAPE, *_ON_CHIP, "pack", "chunk_schedule")),
}


def _divisors(number: int, most: int) -> list[int]:
    return [n for n in range(1, min(number, most) + 1) if number % n == 0]


def _state(case: Case, config: Persistent, limits: Limits) -> Range:
    """Forms of the state that fit into shared memory, and into half of the registers if they are moments."""
    makes = REPRESENTATION.make(case, config, limits)
    values = {
        "populations": case.stencil.q,
        "moments": 1 + case.stencil.dimensions * (case.stencil.dimensions + 3) // 2,
    }
    held = {"populations": 0, "moments": REGISTERS * 4 // 2}
    found = tuple(
        form
        for form in makes.values
        if values[str(form)] * config.stored.bytes * case.sites
        <= limits.multiprocessors * (limits.shared_bytes_per_multiprocessor + held[str(form)])
    )
    if not found or not limits.cooperative:
        return Range((), f"{case.sites:,} cells do not fit on chip")
    return Range(found, "forms whose state fits on chip")


def _row_cells(case: Case, config: Persistent, limits: Limits) -> Range:
    if not config.of_moments:
        return Range((1,), "a thread has one column of a tile of populations")
    found = tuple(n for n in range(1, 9) if case.domain[0] % n == 0 and case.domain[0] // n in (8, 16, 32))
    return Range(found, f"8, 16 or 32 threads have a row of {case.domain[0]} cells")


def _rows_of_tile(case: Case, config: Persistent, limits: Limits) -> Range:
    nx, ny, _ = case.domain
    x = nx // config.cells_per_thread
    if x > limits.threads_per_block:
        return Range((), f"rows of {nx} cells have more threads than a block")
    along = 1 if case.stencil.dimensions == 2 else ny
    found = tuple(extents((x, y, 1)) for y in _divisors(along, limits.threads_per_block // x) if x * y >= 64)
    return Range(found, f"whole rows of {nx} cells, as many as divide {ny}")


def _tile_planes(case: Case, config: Persistent, limits: Limits) -> Range:
    _, ny, nz = case.domain
    flat = case.stencil.dimensions == 2
    along, columns = (ny, 1) if flat else (nz, -(-ny // config.block[1]))
    layers = limits.multiprocessors * max(1, config.min_blocks) // columns
    if not layers:
        return Range((), "all blocks of a layer are not resident at once")
    least = -(-along // layers)
    every = [n for n in range(least, along + 1) if (config.of_moments and not flat) or along % n == 0]
    reason = "the fewest planes whose blocks are all resident at once, and the next"
    return Range(tuple(every[:2]), reason)


def _register_planes(case: Case, config: Persistent, limits: Limits) -> Range:
    if not config.of_moments:
        return Range((0,), "a tile of populations lies in shared memory")
    found = tuple(n for n in _divisors(config.tile_planes, 8) if config.tile_planes >= 2 * n)
    return Range((0, *found), "registers keep one plane of each two, three or more of a tile")


_TILED = ("storage", "representation", "cells_per_thread", "block", "min_blocks")
PERSISTENT: Mapping[str, Made] = {
    "representation": Made(_state, after=("storage",)),
    "flags": FLAGS,
    "layout": fixed("the state is loaded and stored once per launch", "rows", "soa"),
    "padding": fixed("the state is loaded and stored once per launch", 0),
    "cells_per_thread": Made(_row_cells, after=("representation",)),
    "min_blocks": fixed("more blocks leave a thread too few registers", 0, 2, 3, 4),
    "block": Made(_rows_of_tile, after=("cells_per_thread",)),
    "tile_planes": Made(_tile_planes, after=_TILED),
    "register_planes": Made(_register_planes, after=("representation", "tile_planes")),
    "grid_sync": fixed("which is faster depends on the number of blocks", "all", "neighbours"),
}


def _cubes(case: Case, config: FaceExchange, limits: Limits) -> Range:
    flat = ("16x16x1", "32x8x1")
    return Range(flat if case.stencil.dimensions == 2 else _TILES, "256 to 1,024 cells, one per thread, with few faces")


def _same(case: Case, config: FaceExchange, limits: Limits) -> Range:
    return Range((extents(config.memory.tile),), "tiles of the layout, so that blocks read contiguous memory")


FACE_EXCHANGE: Mapping[str, Made] = {
    "flags": FLAGS,
    "launch": LAUNCH,
    "layout_tile": Made(_cubes),
    "tile": Made(_same, after=("layout_tile",)),
    "register_limit": fixed("fewer blocks leave multiprocessors idle", "2-blocks", "3-blocks", "4-blocks"),
}
