"""Terms of what goes through memory, from measured copies whose streams lie as the populations of a kernel do."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.limits import SECTOR_BYTES, WARP
from lbmtune.model.gpu.inputs import Inputs, walking_suffix
from lbmtune.model.gpu.terms.array_of_structures import of_structures, undisplaced
from lbmtune.model.gpu.terms.sectors import Partial, partial_sectors, stored_apart
from lbmtune.model.machine.curves import by_number, closest, nearest
from lbmtune.model.machine.description import WORD_BYTES
from lbmtune.records import Term
from lbmtune.records.terms import IN_PLACE, RUNS, SECTORS

_WIDTHS = (2, 4, 8)
"""Bytes of the elements of displaced copies."""


def bandwidth(inputs: Inputs, *, by_runs: bool = True) -> float:
    """Return the bytes per second of a copy whose streams lie as those of the kernel, with its access width.

    Streams that lie apart are as many open pages of memory; closer ones are fewer. Source:
    `Calibration.runs_bytes_per_s`, `listed_bytes_per_s`; `displaced_bytes_per_s` if single elements lie together.
    """
    run = inputs.run_bytes if by_runs else 0
    if 0 < run < SECTOR_BYTES:
        return inputs.list_factor * of_structures(inputs)
    rate = _of_runs(inputs, run)
    if by_runs and inputs.row_bytes <= SECTOR_BYTES:
        rate *= _of_narrow_rows(inputs)
    return inputs.list_factor * rate


def plain_bandwidth(inputs: Inputs) -> float:
    """Return the bytes per second of a copy of such streams without displacements and lists."""
    if 0 < inputs.run_bytes < SECTOR_BYTES:
        return undisplaced(inputs)
    return _of_runs(inputs, inputs.run_bytes)


def _of_runs(inputs: Inputs, run_bytes: int) -> float:
    """Return the rate of streams with runs of that length; 0: streams that lie apart. Three words are no vector."""
    rates = inputs.calibration.runs_bytes_per_s
    access = closest(by_number(tuple(rates), ""), inputs.access_bytes)
    measured = by_number(tuple(rates), f"{access} of ")
    return rates[measured[nearest(measured, run_bytes)] if run_bytes else str(access)]


def _of_narrow_rows(inputs: Inputs) -> float:
    """Return the factor of blocks with one sector of each row, of which memory moves two at once."""
    rates, width = inputs.calibration.displaced_bytes_per_s, inputs.config.stored.bytes
    measured = {threads: rates[f"{width} none by {threads}"] for threads in (WARP // 2, WARP)}
    return min(1.0, measured[WARP // 2] / measured[WARP])


def runs(inputs: Inputs) -> Term:
    """Return the time that streams in runs take beyond streams that lie apart; negative if they take less."""
    moved = traffic(inputs.case, inputs.config).total
    apart, here = (moved / bandwidth(inputs, by_runs=by_runs) for by_runs in (False, True))
    sentence = f"{inputs.run_bytes or 'all'} contiguous bytes of a stream"
    return Term(RUNS, here - apart, sentence, "micro-benchmark `runs`")


def partial(inputs: Inputs) -> Term:
    """Return the time of sectors that a warp touches and does not fill (`model.gpu.terms.sectors`)."""
    case, config = inputs.case, inputs.config
    alone = 0 < inputs.run_bytes < SECTOR_BYTES  # the copy of single elements has them already
    found = Partial(0.0, 0.0) if alone else partial_sectors(case, config)
    apart = 0.0 if alone else stored_apart(case, config)
    side = "in place" if config.propagation.in_place else "stores"
    apart_s = apart * _per_sector_s(inputs, elements(inputs, WORD_BYTES), side) if apart else 0.0
    copies = _vectors(inputs) if config.cells_per_thread > 1 else elements(inputs, config.stored.bytes)
    more = f", {apart:.3g} in two parts" if apart else ""
    return sectors_term(inputs, found, lambda side: _per_sector_s(inputs, copies, side), apart_s, more)


def sectors_term(
    inputs: Inputs, found: Partial, per_sector_s: Callable[[str], float], more_s: float = 0.0, more: str = ""
) -> Term:
    """Return the term of partial sectors. per_sector_s: seconds of one, by the side of displaced copies.

    In place, a store finds the sector of its load in the cache, as was measured.
    """
    if inputs.config.propagation.in_place:
        seconds = max(found) * per_sector_s("in place")
    else:
        seconds = sum(count * per_sector_s(side) for count, side in zip(found, ("loads", "stores"), strict=True))
    sentence = f"{found.loads:.3g} loaded and {found.stores:.3g} stored in part per update{more}"
    return Term(SECTORS, seconds + more_s, sentence, "counted on the layout; micro-benchmarks `displaced`, `listed`")


class Copies(NamedTuple):
    """Displaced copies of one kind: rates by name, how the names begin, and the bytes that a thread moves at once."""

    rates: Mapping[str, float]
    name: str
    width: int


def elements(inputs: Inputs, width: int, piece_bytes: int = 0) -> Copies:
    """Return copies of elements of a width, in runs if those of the kernel are as long as a piece.

    piece_bytes: 0 for the access of a warp.
    """
    run = f"of {WARP * width} " if inputs.run_bytes == (piece_bytes or WARP * width) else ""
    return Copies(inputs.calibration.displaced_bytes_per_s, f"{width} {run}", width)


def _vectors(inputs: Inputs) -> Copies:
    """Return copies by vectors: lanes shuffle elements, and only the ends of a warp access other cells."""
    element, width = inputs.config.stored.bytes, inputs.access_bytes
    run = f"of {WARP * width} " if 0 < inputs.run_bytes <= WARP * width else ""
    return Copies(inputs.calibration.shuffled_bytes_per_s, f"{element} x {width // element} {run}", width)


def _per_sector_s(inputs: Inputs, copies: Copies, side: str) -> float:
    """Return seconds of a sector that two warps share: a displaced access of a warp has two in each row."""
    config = inputs.config
    return longer_s(inputs, copies, side, usual(side), _side_by_side(config)) / (2 * max(1, WARP // config.block[0]))


def usual(side: str) -> str:
    """Return the side that a displaced copy is compared with: rows alone if it is in place."""
    return "rows" if side == "in place" else "none"


def _side_by_side(config: CudaConfig) -> int:
    """Return the threads whose cells lie in a row."""
    return config.block[0] // WARP * WARP or config.block[0]


def longer_s(inputs: Inputs, copies: Copies, side: str, usual: str, threads: int, least: int = 0) -> float:
    """Return the additional seconds of an access of a warp that is displaced on a side.

    usual: side of the copy that it is compared with; threads: side by side in a block; least: fewest threads of the
    usual copy.
    """
    suffix = walking_suffix(inputs)
    # of two equally near numbers, the larger one
    measured = sorted(by_number(tuple(copies.rates), f"{copies.name}{side} by ", suffix), reverse=True)

    def rate(one: str, threads: int) -> float:
        return copies.rates[f"{copies.name}{one} by {nearest(measured, threads)}{suffix}"]

    displaced, reference = rate(side, threads), rate(usual, max(threads, least))
    # displaced by rows alone, small pieces of few threads are slower than by rows and elements
    if side == "rows":
        displaced = max(displaced, rate("in place", threads))
    if usual == "rows":
        reference = max(reference, rate("in place", threads))
    streams = inputs.machine.streams
    moved = streams if side == "stay" else sum(q % 3 != 1 for q in range(streams))
    return max(0.0, 2 * copies.width * WARP * streams / moved * (1 / displaced - 1 / reference))


def in_place(inputs: Inputs) -> Term:
    """Return the additional time of populations that go back to where they came from, most in other rows.

    The smaller of the access of a warp and a run is a piece. Smaller pieces and shorter rows of a block take longer;
    by counters they move no more bytes.
    """
    config, stencil = inputs.config, inputs.case.stencil
    element, access = config.stored.bytes, WARP * inputs.access_bytes
    piece = min(inputs.run_bytes or access, access)
    found = further = seconds = 0.0
    if config.propagation.in_place and piece >= SECTOR_BYTES:
        period = config.propagation.period
        accesses = [one for phase in config.propagation.all_passes(stencil) for one in phase.accesses]
        found, further = len(accesses) / period, sum(any(one.read.offset[1:]) for one in accesses) / period
        copies = elements(inputs, nearest(_WIDTHS, piece / WARP), piece)
        wide = _side_by_side(config) * config.cells_per_thread * element // copies.width
        # narrow rows are slower in any case: this comparison with whole warps includes that
        stays_s = longer_s(inputs, copies, "stay", "none", wide, WARP)
        further_s = longer_s(inputs, copies, "rows", "stay", wide)
        seconds = (found * stays_s + further * further_s) * element / piece
    sentence = f"{found:g} accesses in place per update, {further:g} of them in other rows, {piece} bytes at once"
    return Term(IN_PLACE, seconds, sentence, "micro-benchmark `displaced`")
