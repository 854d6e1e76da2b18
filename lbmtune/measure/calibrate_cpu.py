"""What bounds kernels on a CPU besides the bandwidth of copies, from micro-benchmarks without a lattice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Array, Compiler, Device
from lbmtune.codegen.program import Program
from lbmtune.codegen.streams import STREAMS, CpuAccess
from lbmtune.codegen.walks import APART, CHAINS, DIVIDE, MULTIPLY_ADD, WALK, WORKED, arithmetic, walk, walks_digest
from lbmtune.measure.microbench import Say
from lbmtune.measure.noise import fill_with_noise
from lbmtune.model.machine import CpuCalibration
from lbmtune.model.walks import SCALAR_BYTES, SHARES, Walk, calibrated

_REAL_BYTES = 4
_STREAM_BYTES, _TIMES_CACHE = 6 << 20, 4
"""Of a stream, and how much larger than the last cache all of one side are, at least."""
_CELLS, _LANES = 128, 16
"""Of a row; streams are displaced by an element at most, and rows start with a margin of this many."""
_PITCH, _SHIFTED_PITCH = _CELLS + 2 * _LANES, _CELLS + _LANES + 1
_ROWS = 64
"""Of a part: some hundred pages."""
_APART = 13 * _LANES
"""Elements between streams beyond whole pages: no two of them, and no two of a copy, share a set of the L1 cache."""
_PAGE = 4096 // _REAL_BYTES
_AHEAD = 64
_ROUNDS, _SAMPLES, _SAMPLE_S = 3, 2, 0.02
"""Through all walks: what disturbs a machine lasts longer than a sample."""
_CHAIN_TURNS = 100_000
_CACHED_SHARE, _CACHED_TURNS, _L2_BYTES = 1 / 2, 400, 256 << 10
"""Of the L2 cache what is gone through so often, and its size where it is not known."""
_BEYOND_L2 = 3
"""The same of what none is found in the L2 cache, if the last cache holds that of all cores."""
_NEIGHBOURS = 9
"""Rows that a group of streams comes from."""


def calibrate_cpu(device: Device, compiler: Compiler, caches_bytes: Mapping[str, int], say: Say) -> CpuCalibration:
    """Runs all of them: about a minute. Raises what the device raises."""
    bench = _Bench(device, compiler, caches_bytes)
    cores, walks = device.limits.cores, list(calibrated(bench.widths))
    plain = [one for one in walks if not (one.shifted or one.ahead or one.grouped)]
    found: dict[tuple[Walk, int], list[float]] = {}
    for number in range(_ROUNDS):
        say(f"streams in {len(walks)} ways, round {number + 1} of {_ROUNDS}")
        for one, threads in [*((each, cores) for each in walks), *((each, 1) for each in plain)]:
            found.setdefault((one, threads), []).append(bench.bytes_per_s(one, threads))
    say("arithmetic")
    operations = {
        name: {str(width): median(bench.per_s(name, width) for _ in range(_ROUNDS)) for width in bench.widths}
        for name in (MULTIPLY_ADD, DIVIDE)
    }
    say("streams that are worked on")
    hidden = {
        one.name: _hidden(one, median(found[one, cores]), bench.worked_s(one), operations[MULTIPLY_ADD], cores)
        for one in bench.workable
    }
    say("streams within the caches")
    near, far = bench.cached_lengths()
    within = [Walk("in place", width) for width in bench.widths]
    beyond = [*within, *(one._replace(ahead=True) for one in within if one.access_bytes > SCALAR_BYTES)] if far else []
    cached, last = (
        {one: median(bench.cached_bytes_per_s(one, length) for _ in range(_ROUNDS)) for one in ways}
        for ways, length in ((within, near), (beyond, far))
    )
    return CpuCalibration(
        walks_bytes_per_s={one.name: median(found[one, cores]) for one in walks},
        thread_walks_bytes_per_s={one.name: median(found[one, 1]) for one in plain},
        cached_bytes_per_s={str(one.access_bytes): rate for one, rate in cached.items()},
        multiply_add_per_s=operations[MULTIPLY_ADD],
        divide_per_s=operations[DIVIDE],
        refill_s=median(bench.refill_s() for _ in range(_ROUNDS)),
        last_cached_bytes_per_s={one.name: rate for one, rate in last.items()},
        hidden=hidden,
        digest=walks_digest(),
    )


def _hidden(one: Walk, bytes_per_s: float, both_s: float, multiply_add_per_s: Mapping[str, float], cores: int) -> float:
    """Share of the shorter of moving and working that a walk that does both hides. both_s: of a cell, of all cores."""
    lanes = one.access_bytes // _REAL_BYTES
    moving_s = SHARES[one.kind] * STREAMS * _REAL_BYTES / bytes_per_s
    working_s = WORKED / multiply_add_per_s[str(one.access_bytes)] / lanes / cores
    return min(1.0, max(0.0, (moving_s + working_s - both_s) / min(moving_s, working_s)))


class _Bench:
    def __init__(self, device: Device, compiler: Compiler, caches_bytes: Mapping[str, int]) -> None:
        self._device, self._compiler, self._caches = device, compiler, caches_bytes
        vectors = (bits // 8 for bits in (256, 512) if bits <= 2 * device.limits.vector_bits)
        self.widths = (SCALAR_BYTES, *vectors)
        stream_bytes = max(_STREAM_BYTES, _TIMES_CACHE * max(caches_bytes.values(), default=0) // STREAMS)
        self._parts = stream_bytes // (_REAL_BYTES * _PITCH * _ROWS)
        elements = STREAMS * self._stride(0) + 4 * _CELLS * STREAMS * _CELLS
        self._source, self._target = (device.empty(elements, "float32") for _ in range(2))
        fill_with_noise(self._source, 1.0, device.xp)
        self._target.fill(0)

    @property
    def workable(self) -> tuple[Walk, ...]:
        """Walks that are measured with work, too: those of vectors in place."""
        vectors = (width for width in self.widths if width > SCALAR_BYTES)
        return tuple(Walk("in place", width, ahead=ahead) for width in vectors for ahead in (False, True))

    def worked_s(self, one: Walk) -> float:
        """Of a cell, by all cores, of a walk that works on what it moves."""
        cores, where = self._device.limits.cores, self._apart(one, _APART)
        return 1 / median(self._cells_per_s(one, cores, *where, worked=True) for _ in range(_ROUNDS))

    def bytes_per_s(self, one: Walk, threads: int) -> float:
        """Of a walk by so many threads. What it moved is checked."""
        starts, pitch = self._grouped(one) if one.grouped else self._apart(one, _APART)
        return self._cells_per_s(one, threads, starts, pitch) * SHARES[one.kind] * STREAMS * _REAL_BYTES

    def cached_lengths(self) -> tuple[int, int]:
        """Elements of a stream of each core that stay in its L2 cache, and that stay in the last cache alone, or 0."""
        l2, cores = self._caches.get("L2", _L2_BYTES), self._device.limits.cores
        holds = cores * (_BEYOND_L2 + 1) * l2 <= self._caches.get("L3", 0)
        near, far = (int(share * l2) // (STREAMS * _REAL_BYTES) for share in (_CACHED_SHARE, _BEYOND_L2 * holds))
        return near // _PITCH * _PITCH, far // _PITCH * _PITCH

    def cached_bytes_per_s(self, one: Walk, length: int) -> float:
        """Of streams of so many elements that each core reads and writes in place, again and again."""
        cores = self._device.limits.cores
        starts, _ = self._apart(one, _APART)
        turns = max(1, _CACHED_TURNS * self.cached_lengths()[0] // length)
        numbers = cores, 2 * length, turns, 0, length, _AHEAD
        run = self._walk(one, cores, starts, numbers)
        return 2.0 * STREAMS * _REAL_BYTES * cores * turns * length / self._seconds(run)

    def refill_s(self) -> float:
        """One element after another of streams that all share a set of the L1 cache, against such that do not.

        Each of them finds its line gone, when it reads and when it writes.
        """
        one, threads = Walk("in place", SCALAR_BYTES), self._device.limits.cores
        apart, together = (self._cells_per_s(one, threads, *self._apart(one, more)) for more in (_APART, 0))
        return max(0.0, 1 / together - 1 / apart) * threads / (2 * STREAMS)

    def per_s(self, entry: str, width: int) -> float:
        """Operations of one core per second, while all are at work."""
        cores = self._device.limits.cores
        array = self._device.empty(cores * APART, "float32")
        array.fill(1)
        run = self._bound(arithmetic(_access(width), cores), entry, (array, np.float32(0.5), cores, _CHAIN_TURNS))
        return CHAINS * _CHAIN_TURNS / self._seconds(run)

    def _cells_per_s(self, one: Walk, threads: int, starts: list[int], pitch: int, *, worked: bool = False) -> float:
        between = STREAMS if one.grouped else 1
        numbers = self._parts, _ROWS * pitch, _ROWS, pitch, _CELLS * between, _AHEAD * between
        rate = self._parts * _ROWS * _CELLS / self._seconds(self._walk(one, threads, starts, numbers, worked=worked))
        self._check(self._written(one), starts, one.access_bytes // _REAL_BYTES)
        return rate

    def _walk(
        self, one: Walk, threads: int, starts: list[int], numbers: tuple[int, ...], *, worked: bool = False
    ) -> Callable[[], None]:
        access = _access(one.access_bytes, one.kind == "streaming")
        program = walk(access, threads, ahead=one.ahead, grouped=one.grouped, worked=worked)
        return self._bound(program, WALK, (self._source, self._written(one), np.array(starts, np.int64), *numbers))

    def _written(self, one: Walk) -> Array:
        return self._source if one.kind == "in place" else self._target

    def _apart(self, one: Walk, more: int) -> tuple[list[int], int]:
        """Starts of streams that lie apart, most of them displaced by one element as seen from where they go."""
        stride = self._stride(more)
        pitch, first = (_SHIFTED_PITCH, 1) if one.shifted else (_PITCH, _LANES)
        own = [first + _LANES + q * stride for q in range(STREAMS)]
        read = [place + (0, 1, -1)[q % 3] for q, place in enumerate(own)]
        return [*read, *(read if one.kind == "in place" else own)], pitch

    def _grouped(self, one: Walk) -> tuple[list[int], int]:
        """The same of streams in groups, which come from some neighbouring rows."""
        lanes = one.access_bytes // _REAL_BYTES
        pitch = (_CELLS + _LANES) * STREAMS
        rows = [q * _NEIGHBOURS // STREAMS for q in range(STREAMS)]
        own = [q * lanes for q in range(STREAMS)]
        read = [place + (row // 3 * _CELLS + row % 3) * pitch for place, row in zip(own, rows, strict=True)]
        return [*read, *(read if one.kind == "in place" else own)], pitch

    def _stride(self, more: int) -> int:
        """From one stream to the next: whole pages, and more."""
        return -(-self._parts * _ROWS * _PITCH // _PAGE + 1) * _PAGE + more

    def _bound(self, program: Program, entry: str, arguments: tuple[Any, ...]) -> Callable[[], None]:
        executable = self._device.load(program, self._compiler(program))
        launch = next(launch for launch in program.period[0] if launch.entry == entry)
        return partial(executable.launch, launch, (1, 1, 1), arguments)

    def _seconds(self, run: Callable[[], None]) -> float:
        run()
        times = max(1, round(_SAMPLE_S / max(self._device.time_s(run), 1e-9)))

        def several() -> None:
            for _ in range(times):
                run()

        return median(self._device.time_s(several) for _ in range(_SAMPLES)) / times

    def _check(self, target: Array, starts: list[int], lanes: int) -> None:
        """Whether the first access of each stream is where it should be."""
        for read, written in zip(starts[:STREAMS], starts[STREAMS:], strict=True):
            if not bool((target[written : written + lanes] == self._source[read : read + lanes]).all()):
                raise RuntimeError("a calibration kernel did not move what it should; its figure would mean nothing")


def _access(width: int, streaming: bool = False) -> CpuAccess:
    return CpuAccess("float32", width // _REAL_BYTES, streaming)
