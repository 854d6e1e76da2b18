"""Micro-benchmarks of a CPU: streams in memory and caches, and arithmetic, without a lattice."""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from itertools import count
from math import ceil
from typing import NamedTuple

import numpy as np

from lbmtune.backend.protocol import Array, Compiler, Device
from lbmtune.codegen.probes.walks import APART, OPERATIONS, WALK, WORKED, arithmetic, chains_of, walk
from lbmtune.codegen.streams import STREAMS, CpuAccess
from lbmtune.measure.calibration.microbench import check_moved, loaded, repeat
from lbmtune.measure.timing.processor_time import cpu_share, usage
from lbmtune.measure.timing.state import fill_random
from lbmtune.model.machine.memory_walks import GLANCED, SCALAR_BYTES, TRANSFERS, Crowd, Walk, glance

_REAL_BYTES = 4
_STREAM_BYTES, _TIMES_CACHE = 6 << 20, 4
"""Least bytes of a stream, and of all streams of one side in multiples of the last cache."""
_CELLS, _LANES = 256, 16
"""Cells of a row, and its margin: streams are displaced by one element at most.

Rows lie close together, as in a kernel, because lines that a prefetcher fetches between them are lost.
"""
_PITCH, _SHIFTED_PITCH = _CELLS + _LANES, _CELLS + _LANES + 1
_ROWS = 64
"""Rows of a part: some hundred pages."""
_WINDOW = 32
"""Parts per thread that a run walks through: milliseconds. The next run goes on behind them, so that no cache has them.

Without that bound a run of one thread takes as long as the last cache is large."""
_APART = 13 * _LANES
"""Elements between streams beyond whole pages, so that no two of a copy share a set of the L1 cache."""
_PAGE = 4096 // _REAL_BYTES
_AHEAD = 64
_SAMPLE_S = 0.02
_ALONE, _TRIES = 0.95, 3
"""Least CPU share of an undisturbed sample, and tries for one: the rounds of a calibration are further tries."""
_CHAIN_TURNS = 100_000
_CACHED_SHARE, _CACHED_TURNS, _L2_BYTES = 1 / 2, 400, 256 << 10
"""Share of the L2 cache that is walked through, turns of it, and its size if unknown."""
_BEYOND_L2 = 3
"""Data that no L2 cache holds, in multiples of it, if the last cache holds that of all cores."""
_WITHIN_L1 = 128
"""Elements of a stream if all streams fit in the L1 cache."""
_NEIGHBOURS = 9
"""Rows from which the streams of a group come."""


class Probe(NamedTuple):
    """A short run that tells the present speed of a machine. amount: bytes or operations of a run.

    cached: if it depends on the data that its last run left in a cache.
    """

    run: Callable[[], None]
    amount: float
    cached: bool


class CpuBench:
    """Micro-benchmarks on a processor; each method measures one figure."""

    def __init__(self, device: Device, compiler: Compiler, caches_bytes: Mapping[str, int]) -> None:
        self._device, self._compiler, self._caches = device, compiler, caches_bytes
        self._cores = device.limits.cores
        vectors = (bits // 8 for bits in (256, 512) if bits <= 2 * device.limits.vector_bits)
        self.widths = (SCALAR_BYTES, *vectors)
        stream_bytes = max(_STREAM_BYTES, _TIMES_CACHE * max(caches_bytes.values(), default=0) // STREAMS)
        self._parts = stream_bytes // (_REAL_BYTES * _SHIFTED_PITCH * _ROWS)
        self._stream = (-(-self._parts * _ROWS * _SHIFTED_PITCH // _PAGE) + 1) * _PAGE  # whole pages
        elements = STREAMS * self._stream + 4 * _CELLS * STREAMS * _CELLS
        self._source = device.empty(elements, "float32")
        fill_random(self._source, 1.0, device.xp)

    @cached_property
    def _target(self) -> Array:
        """The array for streams that go to a second one."""
        target = self._device.empty(self._source.size, "float32")
        target.fill(0)
        return target

    @property
    def workable(self) -> tuple[Walk, ...]:
        """Return the walks that are also measured with arithmetic: those of vectors in place."""
        vectors = (width for width in self.widths if width > SCALAR_BYTES)
        return tuple(Walk("in place", width, ahead=ahead) for width in vectors for ahead in (False, True))

    def hidden(self, one: Walk) -> float:
        """Return the share of the shorter of moving streams in place and working on them that is hidden."""
        where = self._apart(one)
        moving, both = (self._cells_per_s(one, self._cores, *where, worked=worked) for worked in (False, True))
        return hidden_share(1 / moving, self._working_s(one), 1 / both)

    def cached_hidden(self, one: Walk, length: int) -> float:
        """Return the hidden share (`hidden`) for streams of a length that stays in a cache."""
        moving, both = (self._cached_cells_per_s(one, length, worked=worked) for worked in (False, True))
        return hidden_share(1 / moving, self._working_s(one), 1 / both)

    def worked_per_s(self, width: int) -> float:
        """Return the operations of one core per second on as many values as streams, in its L1 cache.

        Values that do not fit in registers are spilled to that cache.
        """
        each = self._cached_cells_per_s(Walk("in place", width), _WITHIN_L1, worked=True)
        return WORKED * each / (width // _REAL_BYTES) / self._cores

    def _working_s(self, one: Walk) -> float:
        """Return the seconds of all cores to work on a cell."""
        return 1 / self._cached_cells_per_s(one._replace(ahead=False), _WITHIN_L1, worked=True)

    def bytes_per_s(self, one: Walk, threads: int) -> float:
        """Return the bytes per second of a walk. Raises RuntimeError if it did not move its data."""
        starts, pitch = self._grouped(one) if one.grouped else self._apart(one)
        return self._cells_per_s(one, threads, starts, pitch) * TRANSFERS[one.kind] * STREAMS * _REAL_BYTES

    def cached_lengths(self) -> tuple[int, int]:
        """Return the elements of a stream per core that stay in L2, and in the last cache only (or 0)."""
        l2 = self._caches.get("L2", _L2_BYTES)
        holds = self._cores * (_BEYOND_L2 + 1) * l2 <= self._caches.get("L3", 0)
        near, far = (int(share * l2) // (STREAMS * _REAL_BYTES) for share in (_CACHED_SHARE, _BEYOND_L2 * holds))
        return near // _PITCH * _PITCH, far // _PITCH * _PITCH

    def probes(self) -> dict[str, Probe]:
        """Return probes of some milliseconds by the fields of `Conditions` (`memory_walks.glance`).

        The last cache is left out if calibration leaves it out.
        """
        one, cores = glance(self._device.limits.vector_bits), self._cores
        cell_bytes, lanes = 2 * STREAMS * _REAL_BYTES, one.access_bytes // _REAL_BYTES
        cells, memory = self._rows(one, cores, *self._apart(one))
        turns = max(1, self._cells // (4 * cores * _WITHIN_L1))
        work = self._turns(one, _WITHIN_L1, turns, worked=True)
        found = {
            "memory_bytes_per_s": Probe(memory, cells * cell_bytes, cached=False),
            "work_per_s": Probe(work, turns * _WITHIN_L1 * WORKED / lanes, cached=True),
        }
        if self.cached_lengths()[1]:
            length = self.filling(GLANCED)
            turns = max(1, self._cells // (2 * cores * length))
            last = self._turns(one, length, turns)
            found["last_cache_bytes_per_s"] = Probe(last, cores * turns * length * cell_bytes, cached=True)
        return found

    def filling(self, share: float) -> int:
        """Return the elements of a stream per core with which all streams fill a share of the last cache."""
        length = int(share * self._caches.get("L3", 0) / self._cores) // (STREAMS * _REAL_BYTES)
        return length // _PITCH * _PITCH

    def cached_bytes_per_s(self, one: Walk, length: int) -> float:
        """Return the bytes per second of streams that each core updates in place repeatedly."""
        return 2 * STREAMS * _REAL_BYTES * self._cached_cells_per_s(one, length)

    def refill_s(self) -> float:
        """Return the seconds of a core to refill a line, by streams that all share a set of the L1 cache.

        Each element misses its line when it is read and when it is written.
        """
        longer_s = self.together_s(Crowd(Walk("in place", SCALAR_BYTES), STREAMS))
        return max(0.0, longer_s) * self._cores / (2 * STREAMS)

    def together_s(self, crowd: Crowd) -> float:
        """Return the extra seconds of all cores per element if some streams share a set of the L1 cache."""
        starts = (self._apart(crowd.walk, together) for together in (0, crowd.streams))
        apart, together = (self._cells_per_s(crowd.walk, self._cores, *where) for where in starts)
        return 1 / together - 1 / apart

    def per_s(self, entry: str, width: int) -> float:
        """Return the operations of one core per second while all work. entry: of `OPERATIONS`."""
        array, access = self._device.empty(self._cores * APART, "float32"), _access(width)
        array.fill(1)
        count = chains_of(access, self._device.limits.vector_bits)
        kernel = loaded(self._device, self._compiler, arithmetic(access, self._cores, count), entry)
        run = kernel.by(1, array, np.float32(0.5), self._cores, _CHAIN_TURNS)
        return OPERATIONS[entry] * count * _CHAIN_TURNS / self._seconds(run)

    def _cells_per_s(self, one: Walk, threads: int, starts: list[int], pitch: int, *, worked: bool = False) -> float:
        cells, run = self._rows(one, threads, starts, pitch, worked=worked)
        rate = cells / self._seconds(run)
        self._check(self._written(one), starts, one.access_bytes // _REAL_BYTES)
        return rate

    @property
    def _cells(self) -> int:
        """The elements of a stream in memory."""
        return self._parts * _ROWS * _CELLS

    def _rows(
        self, one: Walk, threads: int, starts: list[int], pitch: int, *, worked: bool = False
    ) -> tuple[int, Callable[[], None]]:
        """Return the elements of a stream that a run walks through, and the run, which goes on where the last ended."""
        between = STREAMS if one.grouped else 1
        windows = ceil(self._parts / (_WINDOW * threads))
        parts = max(1, self._parts // windows // threads * threads or self._parts // windows)
        numbers = parts, _ROWS * pitch, _ROWS, pitch, _CELLS * between, _AHEAD * between
        places = np.array(starts, np.int64)
        run, turn = self._walk(one, threads, places, numbers, worked=worked), count()

        def walk_on() -> None:
            np.add(starts, next(turn) % windows * parts * _ROWS * pitch, out=places)
            run()

        return parts * _ROWS * _CELLS, walk_on

    def _cached_cells_per_s(self, one: Walk, length: int, *, worked: bool = False) -> float:
        turns = max(1, _CACHED_TURNS * self.cached_lengths()[0] // length)
        run = self._turns(one, length, turns, worked=worked)
        return self._cores * turns * length / self._seconds(run)

    def _turns(self, one: Walk, length: int, turns: int, *, worked: bool = False) -> Callable[[], None]:
        """Return a run in which each core walks through its streams repeatedly."""
        numbers = self._cores, 2 * length, turns, 0, length, _AHEAD
        return self._walk(one, self._cores, np.array(self._apart(one)[0], np.int64), numbers, worked=worked)

    def _walk(
        self, one: Walk, threads: int, starts: Array, numbers: tuple[int, ...], *, worked: bool = False
    ) -> Callable[[], None]:
        access = _access(one.access_bytes, one.kind == "streaming")
        program = walk(access, threads, ahead=one.ahead, grouped=one.grouped, worked=worked)
        kernel = loaded(self._device, self._compiler, program, WALK)
        return kernel.by(1, self._source, self._written(one), starts, *numbers)

    def _written(self, one: Walk) -> Array:
        return self._source if one.kind == "in place" else self._target

    def _apart(self, one: Walk, together: int = 0) -> tuple[list[int], int]:
        """Return the starts of separate streams, two thirds of them displaced by one element, and the row pitch.

        together: number of first streams that are whole pages apart.
        """
        pitch, first = (_SHIFTED_PITCH, 1) if one.shifted else (_PITCH, _LANES)
        own = [first + _LANES + q * (self._stream + _APART * (q >= together)) for q in range(STREAMS)]
        read = [place + (0, 1, -1)[q % 3] for q, place in enumerate(own)]
        return [*read, *(read if one.kind == "in place" else own)], pitch

    def _grouped(self, one: Walk) -> tuple[list[int], int]:
        """Return the starts and the row pitch of streams in groups, which come from neighbouring rows."""
        lanes = one.access_bytes // _REAL_BYTES
        pitch = (_CELLS + _LANES) * STREAMS
        rows = [q * _NEIGHBOURS // STREAMS for q in range(STREAMS)]
        own = [q * lanes for q in range(STREAMS)]
        read = [place + (row // 3 * _CELLS + row % 3) * pitch for place, row in zip(own, rows, strict=True)]
        return [*read, *(read if one.kind == "in place" else own)], pitch

    def _seconds(self, run: Callable[[], None]) -> float:
        run()
        times = max(1, round(_SAMPLE_S / max(self._device.time_s(run), 1e-9)))
        return self._sample_s(partial(repeat, run, times)) / times

    def _sample_s(self, run: Callable[[], None]) -> float:
        """Return the seconds of the try with the highest CPU share: the first undisturbed one, if there is any."""
        tries: list[tuple[float, float]] = []
        while len(tries) < _TRIES and not (tries and tries[-1][0] >= _ALONE):
            before = usage()
            seconds = self._device.time_s(run)
            # not process time over wall time, by which threads that wait for the last one of a loop look disturbed
            tries.append((cpu_share(before, usage(), self._cores), seconds))
        return max(tries)[1]

    def _check(self, target: Array, starts: list[int], lanes: int) -> None:
        """Raise RuntimeError unless the first access of each stream was moved."""
        for read, written in zip(starts[:STREAMS], starts[STREAMS:], strict=True):
            check_moved(bool((target[written : written + lanes] == self._source[read : read + lanes]).all()))


def _access(width: int, streaming: bool = False) -> CpuAccess:
    return CpuAccess("float32", width // _REAL_BYTES, streaming)


def hidden_share(moving_s: float, working_s: float, both_s: float) -> float:
    """Return the share of the shorter of moving and working that is hidden when both are done."""
    return min(1.0, max(0.0, (moving_s + working_s - both_s) / min(moving_s, working_s)))
