"""The terms of the model of one-step kernels on a GPU: seconds that an update takes of the whole device.

Each is a pure function of the case, the configuration, what was compiled and the calibration of a machine. They add up,
because what they stand for goes through the same memory; threads in flight then decide how much of its bandwidth is
used, and the issue of instructions is a bound of its own. Parameters come from micro-benchmarks alone.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import log, prod
from typing import NamedTuple

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.indirect import listed_rows
from lbmtune.catalogue.march import SECTOR_BYTES, WARP, block_cells, blocks, planes_together, shared_bytes
from lbmtune.catalogue.scheme import Phase
from lbmtune.catalogue.storage import frame
from lbmtune.catalogue.waiting import most_waiting_bytes
from lbmtune.model.machine import ACCESS_BYTES, Calibration, Machine
from lbmtune.model.named import numbered
from lbmtune.model.occupancy import registers_allowed, threads_together
from lbmtune.model.sectors import Partial, partial_sectors, stored_apart
from lbmtune.records import Resources, Term

RUNS, SECTORS, ROWS, AHEAD, LOCAL = "runs", "partial sectors", "rows in place", "words ahead", "local memory"
THREADS, WALK, WAVES = "threads in flight", "walking threads", "waves"
LAUNCH, LATENCY, ISSUE, RINGS = "launch", "latency", "instructions", "rings"

_ADDRESSES = {1: 60, 2: 32}
"""Registers beside what a thread keeps of its cells, by the number of lattices; as compiled for sm_90."""
_RING_THREADS, _RING_SLOTS = 128, 28
"""Threads that refresh the ring of a block, and instructions for each population that a cell of it may hold; as
compiled for sm_90, 22 to 33 by layout."""
_OF_POINTER = 3
"""Registers that a word of a list and the address that it leads to take."""
WORD_BYTES = 4
"""Of a register, and what displaced copies move at once."""
_BATCHES = {False: (15, 4), True: (3, 12, 4)}
"""Loads of a column of vectors between two branches, where values are converted or not; as compiled for sm_90."""
_WALKERS, _LISTED, _WIDTHS = 64, 64, (2, 4, 8)
"""Threads of a block that was measured walking, and with a list; bytes of what was displaced."""
_WITHIN = 1.2
"""How near the estimate of registers is: what lies within is not taken for spilled."""
_TIMES_SPILLED = 3
"""How often what is spilled is stored or loaded; from the same."""


@dataclass(frozen=True)
class Subject:
    """What is predicted: a configuration of a case on a machine, and what its compiled kernel uses."""

    case: Case
    config: CudaConfig
    machine: Machine
    calibration: Calibration
    resources: Resources

    @cached_property
    def access_bytes(self) -> int:
        """What a thread loads or stores at once."""
        config = self.config
        return min(config.cells_per_thread * config.pack * config.stored.bytes, ACCESS_BYTES)

    @cached_property
    def threads(self) -> int:
        """Those that share a multiprocessor."""
        resources = replace(self.resources, shared_bytes=self.shared_bytes)
        return threads_together(self.config, resources, self.calibration.l1_bytes)

    @property
    def shared_bytes(self) -> int:
        """Of a block, what it asks for when it is launched included, which the compiler does not know."""
        return max(_asked_bytes(self.case, self.config), self.resources.shared_bytes)

    @cached_property
    def run_bytes(self) -> int:
        """Of a direction, what lies together before another one begins; 0: all of it."""
        config = self.config
        cells = self.case.domain[0] * config.pack if config.memory.name == "rows" else config.memory.run
        return cells * config.stored.bytes


def _asked_bytes(case: Case, config: CudaConfig) -> int:
    """Of shared memory, what a launch asks for."""
    return shared_bytes(case, config) if config.marches else most_waiting_bytes(case, config)


def bandwidth(subject: Subject, *, by_runs: bool = True) -> float:
    """Bytes per second of a copy of 19 streams that lie as those of the kernel do, with the same access width.

    Streams that lie apart are as many open pages of memory, and closer ones are fewer. Source: measured,
    `Calibration.runs_bytes_per_s`, `listed_bytes_per_s`; `displaced_bytes_per_s` where single elements lie together.
    """
    rates, access = subject.calibration.runs_bytes_per_s, subject.access_bytes
    run = subject.run_bytes if by_runs else 0
    by_list = _by_list(subject) if subject.config.indirect else 1.0
    if 0 < run < SECTOR_BYTES:
        return by_list * _of_structures(subject)
    known = numbered(tuple(rates), f"{access} of ")
    rate = rates[known[_nearest(known, run)] if run else str(access)]
    row = subject.config.block[0] * subject.config.cells_per_thread * subject.config.stored.bytes
    if by_runs and not subject.config.indirect and row < WARP * access and row in known:
        rate = min(rate, rates[known[row]])  # a warp takes several rows, each of which is a run for it
    return by_list * rate


def _of_structures(subject: Subject) -> float:
    """Of arrays of structures: each access of a warp touches all lines of its cells, as many as a cell has elements."""
    config, stencil, rates = subject.config, subject.case.stencil, subject.calibration.displaced_bytes_per_s
    name = f"{config.stored.bytes} of {config.stored.bytes} x "
    streams = _nearest({int(one.split()[4]) for one in rates if one.startswith(name)}, stencil.q)
    passes = [
        (len(phase.accesses), rates[f"{name}{streams} {_side(phase)} by {_WALKERS}{_walking(config)}"])
        for parity in range(config.propagation.period)
        for phase in config.propagation.passes(stencil, parity)
    ]
    return sum(moved for moved, _ in passes) / sum(moved / rate for moved, rate in passes)


def _side(phase: Phase) -> str:
    """Which sides of a pass lie in other cells."""
    loads = any(any(a.read.offset) for a in phase.accesses)
    stores = any(any(a.write.offset) for a in phase.accesses)
    return ("in place" if loads else "stores") if stores else "loads" if loads else "none"


def _sides(subject: Subject, parity: int) -> set[str]:
    """Of all passes of a step."""
    return {_side(phase) for phase in subject.config.propagation.passes(subject.case.stencil, parity)}


def _stays_at_home(subject: Subject) -> bool:
    """Whether there are steps in which no cell reaches for another one, so that all others reach the further."""
    return any(_sides(subject, parity) == {"none"} for parity in range(subject.config.propagation.period))


def _walking(config: CudaConfig) -> str:
    """What the name of a copy says of threads that take cells one after another."""
    return " walking" if config.march > 1 else ""


def _nearest(known: Iterable[int], wanted: float) -> int:
    """By ratio."""
    return min(known, key=lambda one: abs(log(one / wanted)))


def _by_list(subject: Subject) -> float:
    """How much faster, or slower, bytes go that are loaded more often than stored, and by a list."""
    return _listed(subject) / subject.calibration.runs_bytes_per_s[str(subject.config.stored.bytes)]


def _listed(subject: Subject, how: str = "") -> float:
    """Bytes per second of the copy by a list that is like a scheme: both places follow from it, or loads, or stores."""
    rates, scheme = subject.calibration.listed_bytes_per_s, subject.config.propagation
    side = "in place" if scheme.in_place else "stores" if "stores" in _sides(subject, 0) else "loads"
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
    """What sectors take that a warp touches but does not fill (`model.sectors`)."""
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
    if config.indirect and (side == "loads" or _stays_at_home(subject)):
        return _per_listed_sector_s(subject)
    if config.cells_per_thread > 1 and not config.indirect:
        return _longer_s(subject, _vectors(subject), side, _usual(side), _side_by_side(config)) / 2
    return _per_element_sector_s(subject, WORD_BYTES if config.indirect else config.stored.bytes, side)


def _per_element_sector_s(subject: Subject, width: int, side: str) -> float:
    """The same of accesses of single elements of so many bytes."""
    threads = _LISTED if subject.config.indirect else _side_by_side(subject.config)
    copies = _elements(subject, width, in_runs=subject.run_bytes == WARP * width)
    return _longer_s(subject, copies, side, _usual(side), threads) / 2


def _usual(side: str) -> str:
    """What displaced rows take in any case is not counted."""
    return "rows" if side == "in place" else "none"


def _stored(config: CudaConfig) -> str:
    """The side of a copy that stores as the scheme does."""
    return "in place" if config.propagation.in_place else "stores"


def _side_by_side(config: CudaConfig) -> int:
    """Threads whose cells lie in a row."""
    return WARP * max(1, config.block[0] // WARP)


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


def _longer_s(subject: Subject, copies: _Copies, side: str, usual: str, threads: int) -> float:
    """What an access of a warp takes longer that is displaced on a side, than usual; threads: of a block."""
    walking = _walking(subject.config)
    # of two as near, the larger
    known = sorted(numbered(tuple(copies.rates), f"{copies.name}{side} by ", walking), reverse=True)
    by = f"by {_nearest(known, threads)}{walking}"
    most = {one: copies.rates[f"{copies.name}{one} {by}"] for one in (side, usual, "in place")}
    # displaced by rows alone, small pieces of few threads are slower still than by rows and elements
    most["rows"] = max(most.get("rows", 0.0), most["in place"])
    there, usually = most[side], most[usual]
    streams = subject.machine.streams
    displaced = sum(q % 3 != 1 for q in range(streams))
    return max(0.0, 2 * copies.width * WARP * streams / displaced * (1 / there - 1 / usually))


def rows_in_place(subject: Subject) -> Term:
    """What it takes where populations go back to where they came from, in other rows than the cell's.

    What a warp accesses at once, and where that is less a run, is a piece; the smaller they are the more it matters.
    """
    config, stencil = subject.config, subject.case.stencil
    element, access = config.stored.bytes, WARP * subject.access_bytes
    piece = min(subject.run_bytes or access, access)
    found, seconds = 0.0, 0.0
    if config.propagation.in_place and not config.indirect and piece >= SECTOR_BYTES:
        period = config.propagation.period
        passes = [phase for parity in range(period) for phase in config.propagation.passes(stencil, parity)]
        found = sum(any(a.read.offset[1:]) for phase in passes for a in phase.accesses) / period
        width = _nearest(_WIDTHS, piece / WARP)
        copies = _elements(subject, width, in_runs=subject.run_bytes == piece)
        longer_s = _longer_s(subject, copies, "rows", "none", _side_by_side(config))
        seconds = found * longer_s * element / piece
    return Term(
        name=ROWS,
        seconds=seconds,
        sentence=f"{found:g} of other rows per update, {piece} bytes at once",
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


def local_memory(subject: Subject) -> Term:
    """What registers that were spilled take: to and from L1, or L2, or memory, where the threads in flight need more.

    Source: CUDA C++ Programming Guide, local memory; rates `Calibration.local_bytes_per_s`.
    """
    moved = spilled_bytes(subject)
    return Term(
        name=LOCAL,
        seconds=_local_s(subject, moved) if moved else 0.0,
        sentence=f"{moved:.3g} bytes of spilled registers per update",
        source="compiled code; micro-benchmark `local`",
    )


def _local_s(subject: Subject, moved: float) -> float:
    """As long as a copy with that access width takes longer whose threads keep as much of a multiprocessor in it.

    Stores go through L1 to L2, so that there is no step where L1 is full. Words of a list are kept from the first load
    to the last store; meanwhile all that the threads in flight update goes by the same caches.
    """
    config = subject.config
    updated = subject.threads * config.cells_per_thread if config.indirect else 0
    passing = updated * traffic(subject.case, config).populations
    return moved * _between(_of_local_bytes(subject), subject.threads * subject.resources.local_bytes + passing)


def _of_local_bytes(subject: Subject) -> list[tuple[int, float]]:
    """Bytes of a multiprocessor in local memory, and what one that is written or read takes longer than none."""
    access, walking = str(subject.access_bytes), bool(_walking(subject.config))
    taken = {}
    for name, rate in subject.calibration.spilled_bytes_per_s.items():
        words = name.split()
        if words[0] == access and (words[-1] == "walking") == walking:
            taken[int(words[2]), int(words[4])] = 2 * subject.machine.streams * int(access) / rate
    none = next(seconds for (_, local), seconds in taken.items() if not local)
    return [
        (threads * local, max(0.0, seconds - none) / (2 * local))
        for (threads, local), seconds in sorted(taken.items())
        if local
    ]


def spilled_bytes(subject: Subject) -> float:
    """Bytes per update that go to local memory and come back.

    What is known is the largest of all entries. Where the parities have entries of their own, the one that stays in
    its cells has no addresses of neighbours to keep.
    """
    config = subject.config
    if config.marches:
        cells = config.cells_per_thread * config.rows * config.steps * planes_together(subject.case, config)
        return subject.resources.spill_bytes / cells
    spilled = subject.resources.spill_bytes / config.cells_per_thread
    return (spilled + spilled * _of_other_entry(subject)) / 2 if _stays_at_home(subject) else spilled


def _of_other_entry(subject: Subject) -> float:
    """Share of what the entry spills that reaches for neighbours, of the one that does not."""
    config, local = subject.config, subject.resources.local_bytes
    pointers = len(listed_rows(subject.case, config).pointers) if config.indirect else 0
    kept = _OF_POINTER * pointers * config.cells_per_thread if config.indirect else _ADDRESSES[1] - _ADDRESSES[2]
    return max(0.0, 1 - WORD_BYTES * kept / local) if local else 0.0


def in_flight(subject: Subject, share: float = 1.0) -> float:
    """Share of the bandwidth that the loads in flight make use of: Little's law, as measured.

    share: of the multiprocessors that are at work.
    Source: Volkov 2016; `Calibration.threads_bytes_per_s`, for 19 loads of each thread.
    """
    access = subject.access_bytes
    measured = subject.calibration.threads_bytes_per_s
    curve = sorted((count, measured[name]) for count, name in numbered(tuple(measured), f"{access} by ").items())
    config = subject.config
    loads = config.kept.values(subject.case.stencil) * config.rows / subject.machine.streams * _at_once(config)
    return _between(curve, share * subject.threads * loads) / max(rate for _, rate in curve)


def _at_once(config: CudaConfig) -> float:
    """Share of its loads that a thread waits for at once.

    In a column warps may have lost threads, so that shuffles branch; loads after a branch wait for those before it.
    """
    if config.march == 1 or config.marches or config.indirect or config.cells_per_thread == 1 or config.prefetch:
        return 1.0
    batches = _BATCHES[config.stored.bytes < config.computed.bytes]
    return sum(n * n for n in batches) / sum(batches) ** 2


def walking(subject: Subject) -> float:
    """Share of the bandwidth that is left to threads that take cells one after another.

    Source: `Calibration.displaced_bytes_per_s`, copies that are not displaced.
    """
    found, config = subject.calibration, subject.config
    alone = 0 < subject.run_bytes < SECTOR_BYTES  # the copy of structures knows it already
    if config.march == 1 or config.marches or alone:
        return 1.0
    name = f"{subject.access_bytes} none by {_WALKERS}"
    return min(1.0, found.displaced_bytes_per_s[f"{name} walking"] / found.displaced_bytes_per_s[name])


def waves(subject: Subject) -> float:
    """Share of the bandwidth that is left where the last wave of blocks does not fill the device.

    What is left of them has more bandwidth each, as long as their loads in flight make use of it.
    """
    blocks = launched_blocks(subject)
    at_once = subject.machine.multiprocessors * max(1, subject.threads // prod(subject.config.block))
    full, rest = blocks // at_once, blocks % at_once / at_once
    last = min(1.0, rest * max(1.0, in_flight(subject) / in_flight(subject, rest))) if rest else 0.0
    return (full + rest) / (full + last)


def launch(subject: Subject) -> Term:
    """What a launch takes more than its bytes: starting, the tail, and less where they stay in the L2 cache.

    Source: copies of so many bytes, launch after launch, by the same way of launching (`Calibration.small_s`). Beyond
    the largest of them it is the same for all.
    """
    case, config, found = subject.case, subject.config, subject.calibration
    measured = numbered(tuple(found.small_s), f"{config.launch} ")
    curve = sorted((size, found.small_s[name]) for size, name in measured.items())
    moved = traffic(case, config).total * case.fluid_sites * config.fused_steps
    rate = found.runs_bytes_per_s[str(WORD_BYTES)]
    more = _more_than_bytes(curve, moved, rate)
    return Term(
        name=LAUNCH,
        seconds=more / (case.fluid_sites * config.fused_steps),
        sentence=f"{moved / 1e6:,.0f} MB, {more * 1e6:+.2g} us",
        source="micro-benchmark `small`",
    )


def _more_than_bytes(curve: list[tuple[int, float]], moved: float, rate: float) -> float:
    """Seconds beyond those of the bytes at that rate."""
    (least, shortest), (most, longest) = curve[0], curve[-1]
    if moved >= most:
        return longest - most / rate
    if moved <= least:
        return shortest - moved / rate
    return _between(curve, moved) - moved / rate


def first_and_last(subject: Subject) -> Term:
    """Instructions of a kernel of one step: hidden behind memory but for the first loads and the last collisions.

    Of so many waves of blocks one has nothing to hide behind. Counted are the collision on the printed text, a load, a
    store and their addresses for each value, and conversions.
    """
    from lbmtune.model.issue import rates, slots_of_doubles  # here: they print kernels, which needs SymPy
    from lbmtune.model.meeting import collision_slots

    case, config, machine = subject.case, subject.config, subject.machine
    found = rates(machine, subject.threads // WARP, meeting=False)
    each = slots_of_doubles(machine.environment.architecture) if config.compute == "fp64" else 1
    values = 2 * case.stencil.q
    converted = values if config.stored.bytes < config.computed.bytes else 0
    moved = converted + 2 * values / config.cells_per_thread
    slots = each * collision_slots(case.collision, case.lattice, case.forced) + moved
    at_once = machine.multiprocessors * max(1, subject.threads // prod(config.block))
    turns = max(1.0, launched_blocks(subject) / at_once)
    return Term(
        name=ISSUE,
        seconds=slots / WARP / found.issued / turns if found else 0.0,
        sentence=f"{slots:.0f} slots per update, hidden but for one of {turns:.3g} waves",
        source="counted on the text; micro-benchmark `instructions`",
    )


def rings(subject: Subject) -> Term:
    """Instructions of the kernel that refreshes the rings of ghost cells around blocks.

    Its threads go through all cells of a block with its ring, and in nearly every warp one of them belongs to the ring.
    """
    from lbmtune.model.issue import rates  # here: it prints kernels, which needs SymPy

    case, config = subject.case, subject.config
    cut = [cells for cells in frame(case.stencil, config).blocks or () if cells]
    found = rates(subject.machine, subject.threads // WARP, meeting=False) if cut else None
    turns = -(-prod(cells + 2 for cells in cut) // _RING_THREADS)
    slots = turns * _RING_THREADS / prod(cut) * _RING_SLOTS * (case.stencil.q - 1) if cut else 0.0
    return Term(
        name=RINGS,
        seconds=slots / WARP / found.issued if found else 0.0,
        sentence=f"{slots:.0f} slots per update to refresh ghost cells around blocks",
        source="as compiled; micro-benchmark `instructions`",
    )


def launched_blocks(subject: Subject) -> int:
    """Of a launch over all cells."""
    case, config = subject.case, subject.config
    if config.indirect:
        return -(-case.fluid_sites // (prod(config.block) * config.cells_per_thread * config.march))
    if config.marches:
        return prod(blocks(case, config))
    return prod(-(-n // cells) for n, cells in zip(case.domain, block_cells(case.stencil, config), strict=True))


def _between(curve: list[tuple[int, float]], at: float) -> float:
    """Linear between measured points, from nothing to the first, and as the last one beyond."""
    points = [(0, 0.0), *curve]
    after = bisect([x for x, _ in points], at)
    if after == len(points):
        return points[-1][1]
    (x0, y0), (x1, y1) = points[after - 1], points[after]
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)


SECONDS: Mapping[str, Callable[[Subject], Term]] = {
    RUNS: runs,
    SECTORS: partial,
    ROWS: rows_in_place,
    AHEAD: words_ahead,
    LOCAL: local_memory,
}
"""Terms that are added to the bytes."""
SHARES: Mapping[str, Callable[[Subject], float]] = {THREADS: in_flight, WALK: walking, WAVES: waves}
"""Of the bandwidth that is in use."""


def estimated(case: Case, config: CudaConfig) -> Resources:
    """What a kernel is likely to use, where nobody has compiled it."""
    if config.marches:
        from lbmtune.model.issue import registers  # here: it prints kernels, which needs SymPy

        wanted = registers(case, config)
    else:
        # with a list, few words are read ahead, and no populations; and what is copied takes none
        further = 0 if config.indirect or config.copies_ahead else config.prefetch
        words, sets = config.computed.bytes // 4, 1 + further
        wanted = _ADDRESSES[config.propagation.lattices] + words * sets * config.cells_per_thread * case.stencil.q
    allowed = config.max_registers or registers_allowed(prod(config.block) * max(1, config.min_blocks))
    spilled = 4 * max(0, round(wanted / _WITHIN) - allowed)
    return Resources(
        registers=min(wanted, allowed),
        spill_bytes=_TIMES_SPILLED * spilled,
        local_bytes=spilled,
        shared_bytes=_asked_bytes(case, config),
    )
