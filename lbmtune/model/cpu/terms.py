"""The terms of the model of CPU kernels: seconds that an update takes of the whole device.

In the way of the ECM model (Treibig and Hager 2010) a kernel is what its arithmetic takes in registers and what its
loads and stores take, from the L1 cache to memory. The second is measured as a walk (`model.cpu.memory_walks`):
streams that are read and written with the same width, in the same place or in another one, starting in lines as rows
of the kernel do.
Parameters come from micro-benchmarks alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.families.cpu.moments_wavefront import blocks, computed, thread_values
from lbmtune.catalogue.families.cpu.wavefront import slabs
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.layouts.layout import index
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Phase, Place
from lbmtune.catalogue.storage import stored_extents
from lbmtune.codegen.streams import STREAMS
from lbmtune.model.cpu.memory_walks import LINE_BYTES, SCALAR_BYTES, SHARES, Kind, Walk, crowds, fillings
from lbmtune.model.instructions import by_kind, products
from lbmtune.model.machine.description import CpuCalibration, Machine
from lbmtune.records import MEMORY_TERM, Term
from lbmtune.units import format_rate

MEMORY, ARITHMETIC, REFILLS, CACHE = MEMORY_TERM, "arithmetic", "refills", "cache"
SHIFTED, AHEAD, GROUPED = "shifted rows", "prefetch", "groups"
CPU_TERMS = (ARITHMETIC, REFILLS, CACHE, SHIFTED, AHEAD, GROUPED)
"""What can be left out to see what it is worth; the last three tell walks apart."""
CALIBRATED = "calibrated by micro-benchmarks"
ESTIMATED = "estimated by the clock, not measured"
_SETS, _PAGE_BYTES = 64, 4096
"""Of an L1 cache that is indexed by the part of an address within a page: its size in pages is its ways."""
_PORTS = 2
"""Operations that a core begins in a cycle."""
_DIVIDE_CYCLES = {4: 3, 32: 5, 64: 10}
"""Cycles from one division in single precision to the next, by the bytes of a register.

Both of Intel processors from Skylake on. Source: Fog, Instruction tables.
"""


class CpuSubject(NamedTuple):
    """What is predicted: a configuration of a case on a calibrated machine."""

    case: Case
    config: CpuConfig
    machine: Machine
    calibration: CpuCalibration

    @property
    def access_bytes(self) -> int:
        """What a load or store of populations moves."""
        config = self.config
        lanes = config.lanes
        return lanes * config.stored.bytes

    @property
    def phases(self) -> list[Phase]:
        """Of all parities."""
        scheme = self.config.propagation
        return [scheme.phase(self.case.stencil, parity) for parity in range(scheme.period)]

    @property
    def threads(self) -> float:
        """How many work, as the mean over a launch."""
        case, config = self.case, self.config
        if config.of_moments:
            shares = blocks(case, config)
            return shares / ceil(shares / config.threads)
        return slabs(case, config) if config.steps > 1 else config.threads

    @property
    def repeated(self) -> float:
        """How often a cell takes a step: more than once where halos are computed, too."""
        return computed(self.case, self.config) if self.config.of_moments else 1.0


def cpu_terms(subject: CpuSubject, without: Collection[str] = ()) -> list[Term]:
    """Memory, arithmetic, lines that the L1 cache loses, and caches where several steps go through them.

    What a core can look ahead is about one turn of the loop of such a kernel: some tens of nanoseconds, in which caches
    answer and memory does not. So memory adds up with all else, and caches count for what they take beyond arithmetic.
    """
    memory, arithmetic = _memory(subject, without), _arithmetic(subject)
    terms = [memory]
    if ARITHMETIC not in without:
        hidden = _hidden(subject, without) * min(memory.seconds, arithmetic.seconds / subject.config.steps)
        terms.append(replace(arithmetic, seconds=arithmetic.seconds - hidden))
    if REFILLS not in without:
        terms.append(_refills(subject))
    if CACHE not in without and (subject.config.steps > 1 or subject.config.of_moments):
        terms.append(_cached(subject, 0.0 if ARITHMETIC in without else arithmetic.seconds))
    return terms


def _hidden(subject: CpuSubject, without: Collection[str]) -> float:
    """Share that hides of the shorter of two: what memory takes, and the arithmetic of the step that meanwhile runs."""
    shares, one = subject.calibration.hidden, walk(subject, without)
    share = 0.0 if AHEAD in without else asked(subject)
    known = {ahead: shares.get(Walk("in place", one.access_bytes, ahead=ahead).name, 0.0) for ahead in (True, False)}
    return share * known[True] + (1 - share) * known[False]


def estimated(machine: Machine) -> CpuCalibration | None:
    """What the cores of a machine do by their clock alone, where nobody has measured it; None where it tells none.

    Nothing is known of walks and caches, so that only terms of arithmetic can be asked of it.
    """
    if not machine.core_clock_hz:
        return None
    return CpuCalibration(
        walks_bytes_per_s={},
        thread_walks_bytes_per_s={},
        cached_bytes_per_s={},
        multiply_add_per_s={str(width): _PORTS * machine.core_clock_hz for width in _DIVIDE_CYCLES},
        divide_per_s={str(width): machine.core_clock_hz / cycles for width, cycles in _DIVIDE_CYCLES.items()},
        refill_s=0.0,
    )


def estimated_arithmetic(case: Case, config: CpuConfig, machine: Machine) -> list[Term]:
    """The term of arithmetic on a machine that is not calibrated; none where its clock is not known."""
    rates = estimated(machine)
    if rates is None:
        return []
    return [replace(_arithmetic(CpuSubject(case, config, machine, rates)), source=ESTIMATED)]


def _widths(subject: CpuSubject) -> tuple[int, ...]:
    """Bytes of accesses that were measured."""
    return tuple(map(int, subject.calibration.multiply_add_per_s))


def _memory(subject: CpuSubject, without: Collection[str]) -> Term:
    """Bytes of an update over the rate of such walks; what asks ahead for some of its streams has a share of both."""
    moved = traffic(subject.case, subject.config).total
    one, share = walk(subject, without), 0.0 if AHEAD in without else asked(subject)
    seconds = sum(
        part * moved / rate(subject, one._replace(ahead=ahead))
        for ahead, part in ((True, share), (False, 1 - share))
        if part
    )
    told = f", {share:.0%} of the streams asked for ahead" if share else ""
    sentence = f"{moved:g} bytes per update at {format_rate(moved / seconds)}, {one.name}{told}"
    return Term(name=MEMORY, seconds=seconds, sentence=sentence, source=CALIBRATED)


def walk(subject: CpuSubject, without: Collection[str] = ()) -> Walk:
    """The walk that is most like what the kernel does with memory."""
    config, memory = subject.config, subject.config.memory
    width = min(_widths(subject), key=lambda known: abs(known - subject.access_bytes))
    if config.streaming_stores:
        return Walk("streaming", LINE_BYTES)
    grouped = memory.run > 0 and not config.indirect
    return Walk(
        _kind(config),
        width,
        shifted=shifted(subject) and not grouped and SHIFTED not in without,
        grouped=grouped and GROUPED not in without,
    )


def _kind(config: CpuConfig) -> Kind:
    if config.streaming_stores:
        return "streaming"
    return "in place" if config.propagation.in_place else "copy"


def shifted(subject: CpuSubject) -> bool:
    """Whether rows start anywhere in a line, and not all in the same place of one."""
    config, extents = subject.config, stored_extents(subject.case, subject.config)
    starts = (
        config.memory.along_x(config.row_offset, extents),
        config.memory.along_y(1, extents),
        config.memory.component(1, extents),
    )
    return any(start * config.stored.bytes % LINE_BYTES for start in starts)


def asked(subject: CpuSubject) -> float:
    """Share of the streams for whose lines in memory the kernel asks ahead: of all, if for rows that come next."""
    return 1.0 if subject.config.prefetch_rows else _asked_each_step(subject)


def _asked_each_step(subject: CpuSubject) -> float:
    config, accesses = subject.config, [access for phase in subject.phases for access in phase.accesses]
    ahead = [config.prefetch_propagated if any(access.read.offset) else config.prefetch_local for access in accesses]
    return sum(map(bool, ahead)) / len(ahead)


def rate(subject: CpuSubject, one: Walk) -> float:
    """Bytes per second of a walk by the threads of the kernel: so many times one thread, at most what all reach."""
    found, threads = subject.calibration, subject.threads
    plain = Walk(one.kind, one.access_bytes).name
    everybody = found.walks_bytes_per_s[_known(one, found.walks_bytes_per_s).name]
    alone = found.thread_walks_bytes_per_s[plain] * everybody / found.walks_bytes_per_s[plain]
    return everybody if threads >= subject.machine.environment.cores else min(everybody, threads * alone)


def _known(one: Walk, rates: Mapping[str, float]) -> Walk:
    """The walk itself; scalars ask for nothing ahead, and were not measured so."""
    return one if one.name in rates else one._replace(ahead=False)


def _arithmetic(subject: CpuSubject) -> Term:
    """Operations of the collision and of moving lanes over what a core does in registers of that width."""
    config, found = subject.config, subject.calibration
    lanes = config.lanes
    width = min(map(int, found.multiply_add_per_s), key=lambda known: abs(known - lanes * config.computed.bytes))
    counted = operations(subject.case, config.collision_passes, config.of_moments)
    each = counted.plain + _moves(subject) * (lanes > 1) + _conversions(subject)
    plain_s = _plain_s(subject, str(width), each, counted.products)
    vector_s = (plain_s + counted.quotients / found.divide_per_s[str(width)]) * subject.repeated
    again = f", {subject.repeated:.2f} times" if subject.repeated > 1 else ""
    quotients = f"{counted.quotients} quotient{'s' * (counted.quotients != 1)}"
    sentence = f"{each:.0f} operations and {quotients} per update{again}, {lanes} cells at once"
    return Term(name=ARITHMETIC, seconds=vector_s / lanes / subject.threads, sentence=sentence, source=CALIBRATED)


def _plain_s(subject: CpuSubject, width: str, each: float, with_product: int) -> float:
    """What so many operations take a core.

    In registers some cores add beside what multiplies: Zen, for one. On more values than registers hold no operation
    is faster than was measured with so many: nearly half of the instructions move values there, whatever they add.
    Where that was not measured, nothing is gained by sums beside products.
    """
    found = subject.calibration
    alone, many = found.multiply_add_per_s[width], subject.case.stencil.q >= STREAMS
    limits_s = [max(with_product, each - with_product) / alone, each / found.mixed_per_s.get(width, alone)]
    if many:
        limits_s.append(each / found.worked_per_s.get(width, alone))
    return max(limits_s)


class Operations(NamedTuple):
    """Of a cell: quotients, and all others, a product that is added to something being one with it.

    products: how many of the others have one.
    """

    plain: int
    quotients: int
    products: int


@lru_cache(maxsize=64)
def operations(case: Case, passes: str = "one", of_moments: bool = False) -> Operations:
    """Of the collision of a case, as printed; of moments, with what they are made of and what is made of them."""
    from lbmtune.codegen.cpu import cell_text, relaxation_text  # here: they need SymPy

    text = cell_text(case) if of_moments else relaxation_text(case, passes)
    return Operations(*by_kind(text), products(text))


_TO_MOVE = 3
"""Instructions to take a lane from or to another group: the lane itself, its place, and the others' places."""
_TO_CONVERT = {"fp16": 2, "fp16s": 2, "bf16": 6, "fp16c": 13}
"""Instructions of a vector from or to 16 bits, the mean of both ways, as `backend.cpu.simd` prints them."""


def _moves(subject: CpuSubject) -> float:
    """Of a cell: instructions for lanes that come from or go to the group beside."""
    if subject.config.memory.run <= 1:
        return 0.0
    places = [place for phase in subject.phases for access in phase.accesses for place in (access.read, access.write)]
    return _TO_MOVE * sum(bool(place.offset[0]) for place in places) / len(subject.phases)


def _conversions(subject: CpuSubject) -> int:
    config = subject.config
    narrow = config.stored.bytes < config.computed.bytes
    return 2 * subject.case.stencil.q * _TO_CONVERT.get(config.storage, 2) if narrow else 0


def _refills(subject: CpuSubject) -> Term:
    """Lines that the L1 cache has lost when they are accessed again."""
    crowded = _crowded_s(subject)
    if crowded is None:
        lost = refills(subject)
        sentence = f"{lost:.1f} lines per update that the L1 cache has lost"
        crowded = lost * subject.calibration.refill_s / subject.threads
    else:
        most = max((count for one in _shared_sets(subject) for count in one), default=1)
        sentence = f"up to {most} lines that share a set of the L1 cache"
    return Term(name=REFILLS, seconds=crowded, sentence=sentence, source=CALIBRATED)


def _crowded_s(subject: CpuSubject) -> float | None:
    """What lines that share a set cost vectors, from walks whose lines do; None where that has not been measured.

    A core asks for several of them at once, and does not drive out the one that it needs next each time: what a scalar
    that waits for each would be too much.
    """
    config, sets, cores = subject.config, _shared_sets(subject), subject.machine.environment.cores
    kind, found = _kind(config), subject.calibration.refills_s
    measured = [one for one in crowds(_widths(subject)) if one.walk.kind == kind and one.name in found]
    if config.lanes == 1 or not measured:
        return None
    width = min((one.walk.access_bytes for one in measured), key=lambda known: abs(known - subject.access_bytes))
    known = {one.lines: found[one.name] for one in measured if one.walk.access_bytes == width}
    longer_s = sum(_longer_s(known, _ways(subject), count) for one in sets for count in one) / len(sets)
    accesses = width / SCALAR_BYTES / config.lanes  # of an update, as many times those of the walk
    return accesses * longer_s * cores / subject.threads


def _longer_s(known: Mapping[int, float], ways: int, lines: int) -> float:
    """What so many lines of a set take longer, between and beyond those of which it is known; nothing up to the ways.

    known: seconds by lines.
    """
    points = [(float(ways), 0.0), *((float(count), known[count]) for count in sorted(known) if count > ways)]
    if lines <= ways or len(points) == 1:
        return 0.0
    most, longest_s = points[-1]
    return _between(points, lines) if lines <= most else longest_s * (lines - ways) / (most - ways)


def refills(subject: CpuSubject) -> float:
    """Lines per update that others of the same set have driven out of the L1 cache while they were still needed.

    Streams move on together, so their distances decide: of more lines in a set than it has ways, none stays until it is
    accessed again (least recently used).
    """
    config = subject.config
    per_line = LINE_BYTES // config.stored.bytes
    accesses = LINE_BYTES / subject.access_bytes  # of a line, one after another
    again = max(0.0, accesses - 1) / per_line
    both = 2 if config.propagation.in_place else 1  # read, and written when others have been read
    sets, ways = _shared_sets(subject), _ways(subject)
    lost = sum(count for one in sets for count in one if count > ways)
    return both * again * lost / len(sets)


def _ways(subject: CpuSubject) -> int:
    """Lines of a set of the L1 cache."""
    return subject.machine.caches_bytes.get("L1", _PAGE_BYTES * 8) // _PAGE_BYTES


def _shared_sets(subject: CpuSubject) -> list[tuple[int, ...]]:
    """Lines of sets of the L1 cache, of those that have several, at every place in a line of each parity's rows.

    Those that are stored past the cache have no place there.
    """
    config = subject.config
    if config.memory.run or config.indirect or config.of_moments:
        return [()]
    found: list[tuple[int, ...]] = []
    for phase in subject.phases:
        read, written = ({getattr(access, way) for access in phase.accesses} for way in ("read", "write"))
        places = [*(read | written)] if phase.in_place else [*read, *(() if config.streaming_stores else written)]
        found += _sets(tuple(sorted(_starts(subject, places))))
    return found


def _starts(subject: CpuSubject, places: Iterable[Place]) -> list[int]:
    """Bytes within a page at which the rows of some places start, of a row in the middle."""
    config, extents = subject.config, stored_extents(subject.case, subject.config)
    found = ((place.slot, *(1 + c for c in place.offset)) for place in places)
    return [index(config.memory, extents, x, y, z, k) * config.stored.bytes % _PAGE_BYTES for k, x, y, z in found]


@lru_cache(maxsize=4096)
def _sets(starts: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """How many lines of streams each set has that has several, at every place in a line."""
    moved = range(0, LINE_BYTES, SCALAR_BYTES)
    places = (Counter((start + place) // LINE_BYTES % _SETS for start in starts) for place in moved)
    return tuple(tuple(count for count in one.values() if count > 1) for one in places)


def _cached(subject: CpuSubject, meanwhile_s: float) -> Term:
    """What steps of a launch read and write within a cache, beyond the time of what hides it.

    Populations that the first of them reads and the last one leaves are what memory moves; where moments are kept, each
    step sends its populations through a cache, to where others were read long ago: that store fetches its line, too.
    """
    case, config = subject.case, subject.config
    stays = kept_bytes(subject) <= subject.machine.caches_bytes.get("L2", 0)
    passes = config.steps - (not config.of_moments)
    shares = SHARES["copy" if config.of_moments else "in place"]
    moved = subject.repeated * shares * case.stencil.q * _waiting_bytes(config) * passes / config.steps
    within = _cached_rate(subject, stays) * subject.threads / subject.machine.environment.cores
    which = "the L2 cache" if stays else "the last cache"
    sentence = f"{moved:g} bytes per update within {which} at {format_rate(within)}, while it computes"
    hidden_s = _hidden_in_cache(subject) * min(moved / within, meanwhile_s)
    return Term(name=CACHE, seconds=moved / within - hidden_s, sentence=sentence, source=CALIBRATED)


def _hidden_in_cache(subject: CpuSubject) -> float:
    """Share that hides of the shorter of two, of what caches take and of arithmetic: all where nobody measured it."""
    shares, access = subject.calibration.cached_hidden, subject.config.lanes * _waiting_bytes(subject.config)
    known = {width: Walk("in place", width).name for width in _widths(subject)}
    measured = {width: shares[name] for width, name in known.items() if name in shares}
    return measured[min(measured, key=lambda width: abs(width - access))] if measured else 1.0


def _waiting_bytes(config: CpuConfig) -> int:
    """Of a population between two steps of a launch."""
    return (config.computed if config.of_moments else config.stored).bytes


def kept_bytes(subject: CpuSubject) -> int:
    """What a thread goes through from one step of a row to the next."""
    case, config = subject.case, subject.config
    if config.of_moments:
        return thread_values(case, config) * _waiting_bytes(config)
    rows = config.tile_y * (config.tile_z + config.steps)
    return rows * int(stored_extents(case, config).x) * case.stencil.q * config.stored.bytes


def _cached_rate(subject: CpuSubject, stays: bool) -> float:
    """Bytes per second of all cores, within their L2 caches, or within the last one where that has been measured."""
    found = subject.calibration
    access = subject.config.lanes * _waiting_bytes(subject.config)
    width = min(map(int, found.cached_bytes_per_s), key=lambda known: abs(known - access))
    one, rates = Walk("in place", width), found.last_cached_bytes_per_s
    if stays or one.name not in rates:
        return found.cached_bytes_per_s[str(width)]
    share = _asked_each_step(subject)
    ways = (_known(one._replace(ahead=True), rates), share), (one, 1 - share)
    return 1 / sum(part / _filled_rate(subject, way) for way, part in ways if part)


def _filled_rate(subject: CpuSubject, one: Walk) -> float:
    """Bytes per second of a walk through as much of the last cache as the kernel goes through.

    Between what was measured by the time that a byte takes. Beyond it the cache still has as many bytes of what is gone
    through, and memory has the rest.
    """
    found, last_bytes = subject.calibration, subject.machine.caches_bytes.get("L3", 0)
    inside, rates = found.last_cached_bytes_per_s[one.name], found.filled_bytes_per_s
    points = [(filling.share, 1 / rates[filling.name]) for filling in fillings(one) if filling.name in rates]
    if not points or not last_bytes:
        return inside
    share, (most, most_s) = kept_bytes(subject) * subject.threads / last_bytes, points[-1]
    if share <= most:
        return 1 / _between([(0.0, 1 / inside), *points], share)
    kept = most / share
    return 1 / (kept * most_s + (1 - kept) / found.walks_bytes_per_s[one.name])


def _between(points: Sequence[tuple[float, float]], at: float) -> float:
    """Linear between two of some points that are sorted and enclose the place."""
    left, right = next((left, right) for left, right in pairwise(points) if at <= right[0])
    return left[1] + (right[1] - left[1]) * (at - left[0]) / (right[0] - left[0])
