"""Values of knobs of CPU kernels that a study searches, made for a case and a device."""

from collections.abc import Mapping
from math import ceil, prod
from typing import Any

from lbmtune.catalogue.families.common_ranges import FLAGS, LINKS, ORDER, fixed
from lbmtune.catalogue.families.cpu.moments_wavefront import MARGIN
from lbmtune.catalogue.families.made import Made, Range
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.problem.case import Case

_LINE_BYTES, _SETS_BYTES = 64, 4096
"""A cache line; and the bytes after which the sets of a first-level cache repeat, which is a page."""
_APART = (13, 25, 65)
"""Lines between arrays: odd, so that no two of 19 or 27 arrays begin at the same set; the last one skips a page."""
_CONSTANT_APART = 108
"""Lines between arrays at constant distances: 27 times four, so that 16 sets take turns."""
_LONGEST_ROW = 512
"""Cells of a row of moments that stays in a first-level cache."""
_LEANER = ("bgk", "trt")
_AHEAD = (0, 64, 128)


def line(config: Any) -> int:
    """Return the elements of a cache line."""
    return int(_LINE_BYTES // config.stored.bytes)


def array_cells(case: Case, config: Any) -> int:
    """Return the elements of the array of a direction, without padding."""
    stored = config.stored_extents(case)
    return int(prod((stored.x, stored.y, stored.z)))


def _shares_sets(case: Case, config: Any) -> bool:
    return array_cells(case, config) * int(config.stored.bytes) % _SETS_BYTES == 0


def _vectors(case: Case, config: Any, limits: Limits) -> Range:
    most = 2 * limits.vector_bits
    found = tuple(
        bits
        for bits in (256, 512)
        if bits <= most and (config.indirect or case.domain[0] % (bits // (8 * config.computed.bytes)) == 0)
    )
    if not found:
        return Range((0,), f"rows of {case.domain[0]} cells are no whole vectors")
    return Range(found, "vectors that the processor has and that rows are multiples of")


def _wrap(case: Case, config: Any, limits: Limits) -> Range:
    if config.vector_bits:
        return Range(("ghost",), "vectors need ghost columns")
    return Range(("ghost", "select"), "a scalar loop may select the neighbours at the ends of rows")


def _row_padding(case: Case, config: Any, limits: Limits) -> Range:
    unit = line(config)
    if config.row_offset % unit:
        return Range((0,), "rows that begin within a line gain nothing from whole lines")
    return Range(tuple({0: None, _to_line(case, config): None}), "none, or as many cells as make whole lines of a row")


def _whole_lines(case: Case, config: Any, limits: Limits) -> Range:
    return Range((_to_line(case, config),), "rows of whole lines, so that all begin with a line")


def _to_line(case: Case, config: Any) -> int:
    return -(int(config.row_offset) + case.domain[0] + 1) % line(config)


def _padding(case: Case, config: Any, limits: Limits) -> Range:
    if not _shares_sets(case, config):
        return Range((0,), "direction arrays begin at different sets of the cache")
    apart = tuple(lines * line(config) for lines in _APART)
    return Range(apart, f"arrays of {array_cells(case, config):,} elements begin at one set of the cache without it")


def _page(case: Case, config: Any, limits: Limits) -> Range:
    if not _shares_sets(case, config):
        return Range((0,), "direction arrays begin at different sets of the cache")
    return Range((0, _APART[-1] * line(config)), "arrays begin at one set of the cache without padding or stride")


def _stride(case: Case, config: Any, limits: Limits) -> Range:
    if config.memory.padding or not _shares_sets(case, config):
        return Range((0,), "padding, or the extents, keep direction arrays apart")
    constant = array_cells(case, config) + _CONSTANT_APART * line(config)
    return Range((constant,), "a constant distance that keeps direction arrays apart")


def _loop(case: Case, config: Any, limits: Limits) -> Range:
    if case.domain[2] == 1:
        return Range(("zy",), "there is one plane")
    return Range(("z", "zy"), "tiles of rows are for schemes of blocks")


def _passes(case: Case, config: Any, limits: Limits) -> Range:
    leaner = ("minimal",) if case.collision in _LEANER else ()
    return Range(("one", "pipelined", *leaner), "two passes read as often as the pipelined form, and wait longer")


def _tile(case: Case, config: Any, limits: Limits) -> Range:
    rows = [n for n in (8, 16, 32, 64) if n <= case.domain[1]] or [case.domain[1]]
    return Range(tuple(extents((n, 1)) for n in rows), "tiles whose rows stay in a cache through all steps")


def _steps(case: Case, config: Any, limits: Limits) -> Range:
    return Range((2, 3, 4, 6, 8), "the rows of more steps leave the cache")


def _tile_of_moments(case: Case, config: Any, limits: Limits) -> Range:
    nx, ny, nz = case.domain
    parts = ceil(nx / _LONGEST_ROW)
    along_x = ceil(nx / (parts * MARGIN)) * MARGIN
    flat = case.stencil.dimensions == 2
    rows = sorted({min(n, ny) for n in (8, 16, 32)})
    planes = [1] if flat else sorted({min(n, nz) for n in (16, 32)})
    found = tuple(extents((along_x, y, z)) for y in rows for z in planes)
    return Range(found, f"rows of up to {_LONGEST_ROW} cells, as many as stay in a cache through all steps")


DIRECT: Mapping[str, Made] = {
    "flags": FLAGS,
    "vector_bits": Made(_vectors, after=("storage",)),
    "wrap": Made(_wrap, after=("vector_bits",)),
    "row_padding": Made(_row_padding, after=("storage", "wrap", "row_offset")),
    "padding": Made(_padding, after=("storage", "layout", "wrap", "row_offset", "row_padding")),
    "width": fixed("runs of one vector of 512 bits", 16),
    "parallel_loop": Made(_loop),
    "collision_passes": Made(_passes),
    "prefetch_propagated": fixed("more cells ahead leave the cache before they are taken", *_AHEAD),
    "prefetch_local": fixed("more cells ahead leave the cache before they are taken", *_AHEAD),
}
WAVEFRONT: Mapping[str, Made] = {
    "flags": FLAGS,
    "layout": fixed("rows of one direction stay in a cache", "soa"),
    "vector_bits": DIRECT["vector_bits"],
    "wrap": DIRECT["wrap"],
    "row_offset": fixed("rows begin with a line", 16),
    "row_padding": Made(_whole_lines, after=("storage", "wrap", "row_offset")),
    "padding": Made(_page, after=("storage", "layout", "wrap", "row_offset", "row_padding")),
    "stride": Made(_stride, after=("storage", "layout", "wrap", "row_offset", "row_padding", "padding")),
    "tile": Made(_tile),
    "steps": Made(_steps),
    "collision_passes": Made(_passes),
    "row_tail": fixed("a loop of its own for the last cells of a row", "peeled"),
    "prefetch_propagated": DIRECT["prefetch_propagated"],
    "prefetch_local": fixed("the rows of the last step, or none", 0, 128),
    "prefetch_rows": fixed("all values", 0, 1),
}
MOMENTS_WAVEFRONT: Mapping[str, Made] = {
    "flags": FLAGS,
    "vector_bits": DIRECT["vector_bits"],
    "padding": Made(_padding, after=("storage", "layout", "row_offset", "row_padding")),
    "tile": Made(_tile_of_moments),
    "steps": fixed("the rings of more steps leave the cache", 1, 2, 3, 4),
    "prefetch_rows": fixed("all values", 0, 1),
    "streaming_stores": fixed("all values", 0, 1),
}
SPARSE: Mapping[str, Made] = {
    "order": ORDER,
    "links": LINKS,
    "vector_bits": DIRECT["vector_bits"],
    "padding": fixed("the number of nodes decides whether arrays share sets of the cache", 0, 1040),
    "width": fixed("runs of one vector of 512 bits, and of two", 16, 32),
    "gather": fixed("all values", "vector", "lanes"),
    "prefetch_index": fixed("none, or a few vectors ahead", 0, 64),
}
