"""Measure bandwidths with the number of streams and the access widths of kernels.

Bytes are those read and written; on a CPU also the line that an ordinary store loads first (write-allocate).
Arrays are far larger than the last-level cache and hold random values. The moved data is checked.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from lbmtune.backend.protocol import Array, Compiler, Device, Executable
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.streams import COPY, SCALE, STREAMS, CpuAccess, cpu_streams, cuda_streams
from lbmtune.errors import DeviceUnavailableError
from lbmtune.measure.processes.worker import Progress
from lbmtune.measure.timing.state import all_true, fill_random
from lbmtune.records.comparison.statistics import median_interval

_SAMPLES = 9
_SAMPLE_S = 0.01
_WARMUP_S = 0.05
_SCAN_S = 0.003
"""Seconds of a sample, and of warming up, of kernels of which only the fastest is measured."""
_CUDA_BLOCKS = (64, 128, 256, 512)
_CUDA_ELEMENTS = 256**3
"""Elements of a stream, four bytes each: the size of the usual benchmark domain."""
_CPU_ROW_ELEMENTS = 4096 + 16
"""Elements of a row: whole cache lines, but no power of two, so that streams map to different cache sets."""
_CPU_STREAM_BYTES = 12 << 20
_TIMES_CACHE = 4
"""Least size of the arrays of one side, in multiples of the last-level cache."""
_FEWEST, _LIMIT_S = 3, 0.5
"""Samples that are taken of a figure in any case; seconds after which no more are taken."""
_MEMORY_SHARE = 1 / 4


class Rate(NamedTuple):
    """Bytes per second, and the relative half-width of the confidence interval."""

    bytes_per_s: float
    spread: float


@dataclass(frozen=True, kw_only=True)
class Bandwidths:
    """Measured bandwidths (`model.machine.description.Machine`)."""

    copy: Rate
    in_place: Rate
    streams: Mapping[str, Rate]
    thread: Rate | None = None


def measure_bandwidths(device: Device, compiler: Compiler, last_cache_bytes: int, progress: Progress) -> Bandwidths:
    """Measure a two-array copy, an in-place update, and copies of 19 streams by access width."""
    bench = _BENCHES[device.environment.backend](device, compiler, last_cache_bytes)
    streams = {}
    for name in bench.widths:
        progress(f"copy of {STREAMS} streams, {name} bytes at once")
        streams[name] = bench.copy(name, STREAMS)
    progress("copy of one array, update in place")
    copy, in_place, thread = bench.copy(bench.widths[-1], 1), bench.in_place(), bench.thread()
    # one thread may be faster than all, if few cores saturate the memory
    in_place = max(in_place, thread) if thread else in_place
    return Bandwidths(copy=copy, in_place=in_place, streams=streams, thread=thread)


def measure_copy(device: Device, compiler: Compiler, last_cache_bytes: int) -> Rate:
    """Measure the copy of one array by the widest accesses."""
    bench = _BENCHES[device.environment.backend](device, compiler, last_cache_bytes)
    return bench.copy(bench.widths[-1], 1)


class Kernel(NamedTuple):
    """A launch of a loaded program."""

    executable: Executable
    launch: Launch

    def by(self, blocks: int, *arguments: Any) -> Callable[[], None]:
        """Return a function that enqueues it once, with `blocks` thread blocks."""
        return partial(self.executable.launch, self.launch, (blocks, 1, 1), arguments)


def loaded(device: Device, compiler: Compiler, program: Program, entry: str) -> Kernel:
    """Compile and load a program for launches of one of its entries. Raises what both raise."""
    launch = next(launch for launch in program.period[0] if launch.entry == entry)
    return Kernel(device.load(program, compiler(program)), launch)


def check_moved(right: bool) -> None:
    """Raise RuntimeError if the result of a benchmark is wrong."""
    if not right:
        raise RuntimeError("a calibration kernel did not move what it should; its figure would mean nothing")


def rate(
    device: Device,
    run: Callable[[], None],
    moved_bytes: float,
    samples: int = _SAMPLES,
    warmup_s: float | None = None,
    sample_s: float = _SAMPLE_S,
) -> Rate:
    """Warm up, then return the median of samples of at least sample_s each."""
    spent_s, once_s = 0.0, 0.0
    while spent_s < (_WARMUP_S if warmup_s is None else warmup_s):
        once_s = device.time_s(run)
        spent_s += max(once_s, 1e-6)
    times = max(1, ceil(sample_s / once_s))
    end, taken = time.monotonic() + _LIMIT_S, list[float]()
    while len(taken) < samples and (len(taken) < _FEWEST or time.monotonic() < end):
        taken.append(device.time_s(partial(repeat, run, times)) / times)
    seconds = median_interval(taken)
    return Rate(moved_bytes / seconds.median, seconds.half_width)


def repeat(run: Callable[[], None], times: int) -> None:
    """Run several times."""
    for _ in range(times):
        run()


class _CudaBench:
    widths = ("2", "4", "8", "16")

    def __init__(self, device: Device, compiler: Compiler, last_cache_bytes: int) -> None:
        self._device, self._compiler = device, compiler
        room = int(device.limits.memory_bytes * _MEMORY_SHARE) // (2 * STREAMS * 4)
        # whole blocks of the widest access
        self._elements = min(_CUDA_ELEMENTS, room) // 8192 * 8192
        if self._elements * STREAMS * 4 < _TIMES_CACHE * last_cache_bytes:
            raise DeviceUnavailableError(
                f"only {device.limits.memory_bytes} bytes of the GPU's memory are free, too few to measure its "
                "bandwidth; end the programs that use it."
            )

    def copy(self, width: str, streams: int) -> Rate:
        """Return the best over block sizes, with loads and stores mixed or not."""
        source, target = (self._array() for _ in range(2))
        accesses = STREAMS // streams * self._elements * 4 // int(width)
        programs = (
            cuda_streams(streams, int(width), block, apart=apart)
            for block, apart in product(_CUDA_BLOCKS, (True, False))
        )
        runs = [self._bound(program, COPY, accesses, source, target, np.int32(accesses)) for program in programs]
        return _checked_copy(self._device, self._fastest(runs), (source, target), 2)

    def in_place(self) -> Rate:
        """Return the best over block sizes."""
        array = self._array()
        accesses = STREAMS * self._elements // 4
        arguments = accesses, array, np.float32(-1), np.int32(accesses)
        runs = [self._bound(cuda_streams(1, 16, block), SCALE, *arguments) for block in _CUDA_BLOCKS]
        return _checked_scale(self._device, self._fastest(runs), array)

    def _fastest(self, runs: Sequence[Callable[[], None]]) -> Callable[[], None]:
        """Return the fastest by a few short samples of each: those of all at full length take ten seconds."""
        return max(runs, key=lambda run: rate(self._device, run, 1.0, _FEWEST, _SCAN_S, _SCAN_S).bytes_per_s)

    def _array(self) -> Array:
        array = self._device.empty(STREAMS * self._elements, "float32")
        fill_random(array, 1.0, self._device.xp)
        return array

    def thread(self) -> None:
        """Return nothing: a single thread of a GPU is of no interest."""

    def _bound(self, program: Program, entry: str, accesses: int, *arguments: Any) -> Callable[[], None]:
        kernel = loaded(self._device, self._compiler, program, entry)
        return kernel.by(ceil(accesses / kernel.launch.block[0]), *arguments)


class _CpuBench:
    def __init__(self, device: Device, compiler: Compiler, last_cache_bytes: int) -> None:
        self._device, self._compiler, self._threads = device, compiler, device.limits.cores
        self._accesses = {_name(access): access for access in _cpu_accesses(device.limits.vector_bits)}
        self.widths = tuple(self._accesses)
        room = int(device.limits.memory_bytes * _MEMORY_SHARE) // (2 * STREAMS)
        row_per_thread_bytes = self._threads * _CPU_ROW_ELEMENTS * 8
        wanted = max(_CPU_STREAM_BYTES, _TIMES_CACHE * last_cache_bytes // STREAMS)
        self._stream_bytes = max(min(room, wanted), row_per_thread_bytes)
        self._source, self._target = (device.empty(STREAMS * self._stream_bytes, "uint8") for _ in range(2))

    def copy(self, width: str, streams: int) -> Rate:
        """Measure a copy; an ordinary store moves its line twice."""
        access = self._accesses[width]
        rows, length = self._rows(access, STREAMS // streams)
        size = streams * rows * length * np.dtype(access.real).itemsize
        source, target = (array[:size].view(access.real) for array in (self._source, self._target))
        fill_random(source, 1.0, self._device.xp)
        kernel = loaded(self._device, self._compiler, cpu_streams(streams, access, self._threads), COPY)
        run = kernel.by(1, source, target, rows, length)
        return _checked_copy(self._device, run, (source, target), 2 if access.streaming else 3)

    def thread(self) -> Rate:
        """Measure an update in place by one thread."""
        return self.in_place(1)

    def in_place(self, threads: int = 0) -> Rate:
        """Measure an update in place with the widest vectors. threads: 0 for all."""
        access = list(self._accesses.values())[-1]
        rows, length = self._rows(access, STREAMS)
        array = self._source[: rows * length * np.dtype(access.real).itemsize].view(access.real)
        fill_random(array, 1.0, self._device.xp)
        kernel = loaded(self._device, self._compiler, cpu_streams(1, access, threads or self._threads), SCALE)
        return _checked_scale(self._device, kernel.by(1, array, np.dtype(access.real).type(-1), rows, length), array)

    def _rows(self, access: CpuAccess, times: int) -> tuple[int, int]:
        """Return the rows of an array `times` as long as a stream, a multiple of the threads, and their length."""
        length = _CPU_ROW_ELEMENTS
        rows = times * self._stream_bytes // (length * np.dtype(access.real).itemsize)
        return rows // self._threads * self._threads, length


_BENCHES: Mapping[str, type[_CudaBench | _CpuBench]] = {"cuda": _CudaBench, "cpu": _CpuBench}


def _cpu_accesses(vector_bits: int) -> Iterator[CpuAccess]:
    yield CpuAccess("float32", 1, streaming=False)
    yield CpuAccess("float64", 1, streaming=False)
    for bits in (128, 256, 512):
        if bits <= max(128, 2 * vector_bits):
            yield CpuAccess("float32", bits // 32, streaming=False)
    if vector_bits >= 256:
        # a whole line per access, in two registers if one is too short
        yield CpuAccess("float32", 16, streaming=True)


def _name(access: CpuAccess) -> str:
    return f"{access.bytes} streaming" if access.streaming else str(access.bytes)


def _checked_copy(device: Device, run: Callable[[], None], arrays: tuple[Array, Array], shares: int) -> Rate:
    source, target = arrays
    target.fill(0)
    found = rate(device, run, shares * source.nbytes)
    check_moved(all_true(target[:: _stride(source)] == source[:: _stride(source)]))
    return found


def _checked_scale(device: Device, run: Callable[[], None], array: Array) -> Rate:
    before = array[:: _stride(array)].copy()
    run()
    device.synchronize()
    check_moved(all_true(array[:: _stride(array)] == -before))
    return rate(device, run, 2 * array.nbytes)


def _stride(array: Array) -> int:
    return max(1, int(array.size) // 99991)
