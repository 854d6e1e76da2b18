"""Tools of the micro-benchmarks of a GPU: two arrays, the speed of a kernel, and a check of what it moved."""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from lbmtune.backend.protocol import Array, Device
from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.probes import WORD_BYTES
from lbmtune.codegen.program import Program
from lbmtune.codegen.streams import STREAMS
from lbmtune.measure.calibration.microbench import Kernel, check_moved, rate
from lbmtune.measure.timing.state import all_true, fill_random

Figures = Iterator[tuple[str, float]]
"""Names and figures."""
CHECKED_EVERY = 99991
"""Elements from one check to the next."""
_STREAM_BYTES = 48 << 20
"""Bytes of a stream: all streams together are far larger than any cache."""
_BLOCK_BYTES = 1 << 10
"""Shared memory of a thread block that the system reserves."""
_SAMPLES, _SAMPLE_S, _WARMUP_S = 5, 0.004, 0.002
"""Fewer and shorter than for bandwidths, because there are many figures."""
LIMIT_S, _LATE_SAMPLES, _LATE_SAMPLE_S = 25.0, 2, 0.001
"""Seconds after which figures are less precise, and their samples then."""


class GpuBench:
    """A device with two arrays of `STREAMS` streams, a random one and one to copy to. stream_bytes: of one stream."""

    def __init__(self, device: Device, limit_s: float = LIMIT_S) -> None:
        """Allocate the arrays. limit_s: seconds after which figures are less precise. Raises OutOfMemoryError."""
        self.device, self.stream_bytes = device, _STREAM_BYTES
        self.source, self.target = (device.empty(STREAMS * _STREAM_BYTES // WORD_BYTES, "float32") for _ in range(2))
        fill_random(self.source, 1.0, device.xp)
        self._end = time.monotonic() + limit_s

    def per_s(self, run: Callable[[], None], moved: float) -> float:
        """Return what a run moves per second. moved: bytes, instructions or turns of a run."""
        samples, sample_s = (_LATE_SAMPLES, _LATE_SAMPLE_S) if self._is_late else (_SAMPLES, _SAMPLE_S)
        return rate(self.device, run, moved, samples, _WARMUP_S, sample_s).bytes_per_s

    def copied_per_s(self, run: Callable[[], None], moved: float) -> float:
        """Return what a copy to the target moves per second, after the target was cleared."""
        self.target.fill(0)
        return self.per_s(run, moved)

    def shortest_s(self, run: Callable[[], None]) -> float:
        """Return the shortest of a few times."""
        return min(self.device.time_s(run) for _ in range(_LATE_SAMPLES if self._is_late else _SAMPLES))

    @property
    def _is_late(self) -> bool:
        return time.monotonic() >= self._end

    def check(
        self, width: int, run_bytes: int, accesses: int, load: Array | None = None, store: Array | None = None
    ) -> None:
        """Raise RuntimeError unless samples of target and source agree, each stream rotated by its displacement.

        load, store: accesses by which loads and stores are displaced, (streams, 1); None: by none.
        """
        xp = self.device.xp
        none = np.zeros((STREAMS, 1), int)
        at = np.arange(0, accesses, CHECKED_EVERY)
        there, here = (
            xp.asarray(_places((at + by) % accesses, accesses, run_bytes // width))
            for by in (none if load is None else load, none if store is None else store)
        )
        source, target = (array.view("uint16").reshape(-1, width // 2) for array in (self.source, self.target))
        check_moved(all_true(target[here] == source[there]))


class Part(NamedTuple):
    """Figures of one table of `Calibration` by one kernel.

    entry: of the program; figures: measures them in order, each with its name, and raises RuntimeError if the kernel
    did not do what it should.
    """

    table: str
    program: Program
    entry: str
    figures: Callable[[GpuBench, Kernel], Figures]


def shared_bytes(limits: Limits, threads: int, block: int) -> int:
    """Return the shared memory with which that many threads share a multiprocessor; threads=0: as many as fit."""
    if not threads:
        return 0
    blocks = threads // block
    return min(limits.shared_bytes_per_block, limits.shared_bytes_per_multiprocessor // blocks - _BLOCK_BYTES)


def _places(at: Array, accesses: int, run: int) -> Array:
    """Return the places of accesses (streams, n). run: accesses of a stream that lie together; 0: all."""
    streams = len(at)
    stream = np.arange(streams)[:, None]
    length = run or accesses
    return ((at // length) * streams + stream) * length + at % length
