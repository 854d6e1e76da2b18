"""Terms of what goes through memory, from copies that lie as the populations of a kernel do.

Each is a pure function of the case, the configuration, what was compiled and the calibration of a machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.temporal_blocking import SECTOR_BYTES
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.limits import WARP
from lbmtune.model.gpu.array_of_structures import of_structures, undisplaced
from lbmtune.model.gpu.inputs import (
    AHEAD,
    IN_PLACE,
    RUNS,
    SECTORS,
    WORD_BYTES,
    Subject,
    sides,
    stays_at_home,
    walking_name,
)
from lbmtune.model.gpu.sectors import Partial, own_cells, partial_sectors, stored_apart
from lbmtune.model.machine.figures import nearest, numbered
from lbmtune.records import Term

_LISTED, _WIDTHS = 64, (2, 4, 8)
"""Threads of a block that was measured with a list; bytes of what was displaced."""


def bandwidth(subject: Subject, *, by_runs: bool = True) -> float:
    """Bytes per second of a copy of 19 streams that lie as those of the kernel do, with the same access width.

    Streams that lie apart are as many open pages of memory, and closer ones are fewer. Source: measured,
    `Calibration.runs_bytes_per_s`, `listed_bytes_per_s`; `displaced_bytes_per_s` where single elements lie together.
    """
    run = subject.run_bytes if by_runs else 0
    by_list = _by_list(subject) if subject.config.indirect else 1.0
    if 0 < run < SECTOR_BYTES:
        return by_list * of_structures(subject)
    rate = _of_runs(subject, run)
    if by_runs and not subject.config.indirect and _row_bytes(subject) <= SECTOR_BYTES:
        rate *= _of_narrow_rows(subject)
    return by_list * rate


def plain_bandwidth(subject: Subject) -> float:
    """The same where nothing is displaced, nor found by a list, and threads go along all cells: what a copy of such
    streams has by itself, whatever the kernel does with them.
    """
    if 0 < subject.run_bytes < SECTOR_BYTES:
        return undisplaced(subject)
    return _of_runs(subject, subject.run_bytes)


def _of_runs(subject: Subject, run_bytes: int) -> float:
    """Of streams of which so many bytes lie together; 0: all of them."""
    rates, access = subject.calibration.runs_bytes_per_s, subject.access_bytes
    known = numbered(tuple(rates), f"{access} of ")
    return rates[known[nearest(known, run_bytes)] if run_bytes else str(access)]


def _row_bytes(subject: Subject) -> float:
    """Of a value, of a row of a block; of tiles, whose rows may lie together, what does so."""
    case, config = subject.case, subject.config
    if config.by_faces:
        return own_cells(case, config).piece_bytes
    return config.block[0] * config.cells_per_thread * config.stored.bytes


def _of_narrow_rows(subject: Subject) -> float:
    """How much slower a copy is whose blocks have a sector of each row: memory moves two at once."""
    rates, width = subject.calibration.displaced_bytes_per_s, subject.config.stored.bytes
    known = {one: rates[f"{width} none by {one}"] for one in (WARP // 2, WARP)}
    return min(1.0, known[WARP // 2] / known[WARP])


def _by_list(subject: Subject) -> float:
    """How much faster, or slower, bytes go that are loaded more often than stored, and by a list."""
    return _listed(subject) / subject.calibration.runs_bytes_per_s[str(subject.config.stored.bytes)]


def _listed(subject: Subject, how: str = "") -> float:
    """Bytes per second of the copy by a list that is like a scheme: both places follow from it, or loads, or stores."""
    rates, scheme = subject.calibration.listed_bytes_per_s, subject.config.propagation
    side = "in place" if scheme.in_place else "stores" if "stores" in sides(subject, 0) else "loads"
    return rates[f"{subject.config.stored.bytes} {side}{how}"]


def _listed_bytes(subject: Subject) -> int:
    """Of an access of that copy, its word included."""
    return 2 * subject.config.stored.bytes + WORD_BYTES


def runs(subject: Subject) -> Term:
    """What streams in runs take more, or less, than such that lie apart."""
    moved = traffic(subject.case, subject.config).total
    apart, here = (moved / bandwidth(subject, by_runs=by_runs) for by_runs in (False, True))
    sentence = f"{subject.run_bytes or 'all'} bytes of a stream lie together"
    return Term(name=RUNS, seconds=here - apart, sentence=sentence, source="micro-benchmark `runs`")


def partial(subject: Subject) -> Term:
    """What sectors take that a warp touches but does not fill (`model.gpu.sectors`)."""
    alone = 0 < subject.run_bytes < SECTOR_BYTES  # the copy of single elements has them already
    found = Partial(0.0, 0.0) if alone else partial_sectors(subject.case, subject.config)
    apart = 0.0 if alone else stored_apart(subject.case, subject.config)
    apart_s = apart * _per_element_sector_s(subject, WORD_BYTES, _stored(subject.config)) if apart else 0.0
    told = f", {apart:.3g} in two parts" if apart else ""
    return Term(
        name=SECTORS,
        seconds=_partial_s(found, subject) + apart_s,
        sentence=f"{found.loads:.3g} loaded and {found.stores:.3g} stored in part per update{told}",
        source="counted on the layout; micro-benchmarks `displaced`, `listed`",
    )


def _partial_s(partial: Partial, subject: Subject) -> float:
    """Stores to where the same thread has loaded find their sector in the cache: both sides were measured together."""
    if subject.config.propagation.in_place:
        return max(partial) * _per_sector_s(subject, "in place")
    return sum(count * _per_sector_s(subject, side) for count, side in zip(partial, ("loads", "stores"), strict=True))


def _per_sector_s(subject: Subject, side: str) -> float:
    """Of a sector that two warps share: each displaced access of a warp has two.

    With a list, warps that share one are anywhere in a block, and sectors are counted as those of words. Loads are
    those of the copy by a list, and so are schemes of which one step of two takes all populations from neighbours and
    leaves them there.
    """
    config = subject.config
    if config.indirect and (side == "loads" or stays_at_home(subject)):
        return _per_listed_sector_s(subject)
    if config.cells_per_thread > 1 and not config.indirect:
        return _longer_s(subject, _vectors(subject), side, _usual(side), _side_by_side(config)) / _parts(config)
    return _per_element_sector_s(subject, WORD_BYTES if config.indirect else config.stored.bytes, side)


def _per_element_sector_s(subject: Subject, width: int, side: str) -> float:
    """The same of accesses of single elements of so many bytes."""
    threads = _LISTED if subject.config.indirect else _side_by_side(subject.config)
    copies = _elements(subject, width, in_runs=subject.run_bytes == WARP * width)
    return _longer_s(subject, copies, side, _usual(side), threads) / _parts(subject.config)


def _usual(side: str) -> str:
    """What displaced rows take in any case is not counted."""
    return "rows" if side == "in place" else "none"


def _stored(config: CudaConfig) -> str:
    """The side of a copy that stores as the scheme does."""
    return "in place" if config.propagation.in_place else "stores"


def _parts(config: CudaConfig) -> int:
    """Sectors that a displaced access of a warp touches and does not fill: two of each row."""
    return 2 if config.indirect else 2 * max(1, WARP // config.block[0])


def _side_by_side(config: CudaConfig) -> int:
    """Threads whose cells lie in a row."""
    return config.block[0] // WARP * WARP or config.block[0]


def _per_listed_sector_s(subject: Subject) -> float:
    """The same where places are found by a list."""
    longer = 1 / _listed(subject, " displaced") - 1 / _listed(subject)
    return max(0.0, _listed_bytes(subject) * WARP * longer) / 2


class _Copies(NamedTuple):
    """Displaced copies of one kind: their rates by name, how the names begin, and bytes that a thread moves at once."""

    rates: Mapping[str, float]
    name: str
    width: int


def _elements(subject: Subject, width: int, *, in_runs: bool) -> _Copies:
    """Of elements of so many bytes; in_runs: whether the runs of a stream are as long as what a warp moves at once."""
    run = f"of {WARP * width} " if in_runs else ""
    return _Copies(subject.calibration.displaced_bytes_per_s, f"{width} {run}", width)


def _vectors(subject: Subject) -> _Copies:
    """Of vectors as those of the kernel: lanes hand elements on, and only those at the ends of a warp access others."""
    element, width = subject.config.stored.bytes, subject.access_bytes
    run = f"of {WARP * width} " if 0 < subject.run_bytes <= WARP * width else ""
    return _Copies(subject.calibration.shuffled_bytes_per_s, f"{element} x {width // element} {run}", width)


def _longer_s(subject: Subject, copies: _Copies, side: str, usual: str, threads: int, least: int = 0) -> float:
    """What an access of a warp takes longer that is displaced on a side, than usual.

    threads: side by side, of a block; least: of those of the usual copy.
    """
    walking = walking_name(subject.config)
    # of two as near, the larger
    known = sorted(numbered(tuple(copies.rates), f"{copies.name}{side} by ", walking), reverse=True)

    def rate(one: str, threads: int) -> float:
        return copies.rates[f"{copies.name}{one} by {nearest(known, threads)}{walking}"]

    there, usually = rate(side, threads), rate(usual, max(threads, least))
    # displaced by rows alone, small pieces of few threads are slower still than by rows and elements
    if side == "rows":
        there = max(there, rate("in place", threads))
    if usual == "rows":
        usually = max(usually, rate("in place", threads))
    streams = subject.machine.streams
    moved = streams if side == "stay" else sum(q % 3 != 1 for q in range(streams))
    return max(0.0, 2 * copies.width * WARP * streams / moved * (1 / there - 1 / usually))


def in_place(subject: Subject) -> Term:
    """What it takes where populations go back to where they came from, and more in other rows than the cell's.

    What a warp accesses at once, and where that is less a run, is a piece; the smaller they are the more it matters,
    and the shorter the rows of a block. By counters no more bytes are moved than elsewhere: they take longer.
    """
    config, stencil = subject.config, subject.case.stencil
    element, access = config.stored.bytes, WARP * subject.access_bytes
    piece = min(subject.run_bytes or access, access)
    found = further = seconds = 0.0
    if config.propagation.in_place and not config.indirect and piece >= SECTOR_BYTES:
        period = config.propagation.period
        passes = (phase for parity in range(period) for phase in config.propagation.passes(stencil, parity))
        accesses = [one for phase in passes for one in phase.accesses]
        found, further = len(accesses) / period, sum(any(one.read.offset[1:]) for one in accesses) / period
        copies = _elements(subject, nearest(_WIDTHS, piece / WARP), in_runs=subject.run_bytes == piece)
        wide = _side_by_side(config) * config.cells_per_thread * element // copies.width
        # rows that are narrow are slower in any case: all of that is in what is compared with whole warps here
        stays_s = _longer_s(subject, copies, "stay", "none", wide, WARP)
        further_s = _longer_s(subject, copies, "rows", "stay", wide)
        seconds = (found * stays_s + further * further_s) * element / piece
    return Term(
        name=IN_PLACE,
        seconds=seconds,
        sentence=f"{found:g} in place per update, {further:g} of them in other rows, {piece} bytes at once",
        source="micro-benchmark `displaced`",
    )


def words_ahead(subject: Subject) -> Term:
    """What it takes to ask for words of the list before they are read."""
    asked = subject.config.indirect and subject.config.prefetch_index
    words = traffic(subject.case, subject.config).index / WORD_BYTES if asked else 0.0
    longer = 1 / _listed(subject, " ahead") - 1 / _listed(subject) if words else 0.0
    return Term(
        name=AHEAD,
        seconds=words * max(0.0, _listed_bytes(subject) * longer),
        sentence=f"{words:g} words of the list are asked for ahead",
        source="micro-benchmark `listed`",
    )
