"""The term of lines that L1 has lost at their next access, because too many streams share a set (conflict misses)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain

from lbmtune.catalogue.layouts.layout import Extents, Layout, index
from lbmtune.catalogue.schemes.scheme import Place
from lbmtune.model.cpu.inputs import CpuInputs
from lbmtune.model.machine.curves import closest, enclosed
from lbmtune.model.machine.memory_walks import LINE_BYTES, SCALAR_BYTES, crowds
from lbmtune.model.roofline import CALIBRATED
from lbmtune.records import Term
from lbmtune.records.terms import REFILLS

_SETS, _PAGE_BYTES = 64, 4096
"""Of an L1 cache that is indexed by the part of an address within a page: its size in pages is its ways."""


def l1_refills(inputs: CpuInputs) -> Term:
    """Return the time of lines that L1 has lost at their next access."""
    sets = _shared_sets(inputs)
    crowded_s = _crowded_s(inputs, sets)
    if crowded_s is not None:
        most = max((count for one in sets for count in one), default=1)
        return Term(REFILLS, crowded_s, f"up to {most} lines that share a set of the L1 cache", CALIBRATED)
    lost = lost_lines(inputs)
    seconds = lost * inputs.calibration.refill_s / inputs.threads
    return Term(REFILLS, seconds, f"{lost:.1f} lines per update that the L1 cache has lost", CALIBRATED)


def _crowded_s(inputs: CpuInputs, sets: Sequence[tuple[int, ...]]) -> float | None:
    """Return the cost of lines that share a set for vectors, from walks whose lines do; None without a measurement.

    A core loads several of them at once, and does not always evict the line that it needs next: the cost of a scalar
    that waits for each line would be too high.
    """
    config, cores = inputs.config, inputs.machine.environment.cores
    found = inputs.calibration.refills_s
    measured = [one for one in crowds(inputs.widths) if one.walk.kind == inputs.kind and one.name in found]
    if config.lanes == 1 or not measured:
        return None
    width = closest((one.walk.access_bytes for one in measured), inputs.access_bytes)
    known = {one.lines: found[one.name] for one in measured if one.walk.access_bytes == width}
    lines = Counter(chain.from_iterable(sets))
    longer_s = sum(often * _longer_s(known, _ways(inputs), count) for count, often in lines.items()) / len(sets)
    accesses = width / SCALAR_BYTES / config.lanes  # of an update, relative to those of the walk
    return accesses * longer_s * cores / inputs.threads


def _longer_s(known: Mapping[int, float], ways: int, lines: int) -> float:
    """Return the additional seconds of lines of a set, interpolated and extrapolated; 0 up to the ways.

    known: seconds by lines.
    """
    points = [(float(ways), 0.0), *((float(count), known[count]) for count in sorted(known) if count > ways)]
    if lines <= ways or len(points) == 1:
        return 0.0
    most, longest_s = points[-1]
    return enclosed(points, lines) if lines <= most else longest_s * (lines - ways) / (most - ways)


def lost_lines(inputs: CpuInputs) -> float:
    """Return the lines per update that others of the same set have evicted from L1 while they were needed.

    Streams advance together, so their distances decide: of more lines in a set than it has ways, none stays until its
    next access (least recently used).
    """
    config = inputs.config
    per_line = LINE_BYTES // config.stored.bytes
    accesses = LINE_BYTES / inputs.access_bytes  # of a line, one after another
    repeated = max(0.0, accesses - 1) / per_line
    both = 2 if config.propagation.in_place else 1  # read, and written after others have been read
    sets, ways = _shared_sets(inputs), _ways(inputs)
    lost = sum(count for one in sets for count in one if count > ways)
    return both * repeated * lost / len(sets)


def _ways(inputs: CpuInputs) -> int:
    return inputs.machine.caches_bytes.get("L1", _PAGE_BYTES * 8) // _PAGE_BYTES


def _shared_sets(inputs: CpuInputs) -> list[tuple[int, ...]]:
    """Return the lines of sets of L1 with several, at every place in a line of the rows of each parity.

    Non-temporal stores take no place there.
    """
    if not inputs.has_streams:
        return [()]
    config, extents = inputs.config, inputs.config.stored_extents(inputs.case)
    found: list[tuple[int, ...]] = []
    for phase in inputs.phases:
        read, written = ({getattr(access, way) for access in phase.accesses} for way in ("read", "write"))
        cached = set[Place]() if config.streaming_stores else written
        places = read | written if phase.in_place else [*read, *cached]
        found += _sets(_starts(config.memory, extents, config.stored.bytes, tuple(sorted(places))))
    return found


@lru_cache(maxsize=4096)
def _starts(layout: Layout, extents: Extents, element_bytes: int, places: tuple[Place, ...]) -> tuple[int, ...]:
    """Return the bytes within a page at which the rows of some places start, for a row in the middle, sorted."""
    found = ((place.slot, *(1 + c for c in place.offset)) for place in places)
    return tuple(sorted(index(layout, extents, x, y, z, k) * element_bytes % _PAGE_BYTES for k, x, y, z in found))


@lru_cache(maxsize=4096)
def _sets(starts: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the lines of each set with several streams, at every place in a line."""
    moved = range(0, LINE_BYTES, SCALAR_BYTES)
    places = (Counter((start + place) // LINE_BYTES % _SETS for start in starts) for place in moved)
    return tuple(tuple(count for count in one.values() if count > 1) for one in places)
