"""What the micro-benchmarks of a GPU share: two arrays, how fast a kernel is, and whether it moved what it should."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lbmtune.backend.protocol import Array, Device, Executable
from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.probes import WORD_BYTES
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.streams import STREAMS
from lbmtune.measure.calibration.microbench import rate
from lbmtune.measure.timing.random_fill import fill_random

Figures = Iterator[tuple[str, float]]
"""Names and what was measured."""
CHECKED_EVERY = 99991
"""From one place that is checked to the next."""
_STREAM_BYTES = 48 << 20
"""Of a stream: all of them together are far larger than any cache."""
_BLOCK_BYTES = 1 << 10
"""What the system keeps of the shared memory of each block."""
_SAMPLES, _SAMPLE_S, _WARMUP_S = 5, 0.004, 0.002
"""Fewer than of the bandwidths that kernels are held against: there are many figures."""
_SHORT_SAMPLES = 5


class Kernel(NamedTuple):
    """What is measured: a launch of a loaded text."""

    executable: Executable
    launch: Launch

    def by(self, blocks: int, *arguments: Any) -> Callable[[], None]:
        """What enqueues it once, by so many blocks."""
        return partial(self.executable.launch, self.launch, (blocks, 1, 1), arguments)


class Bench:
    """A device with two arrays of `STREAMS` streams, one of noise and one to copy to. stream_bytes: of a stream."""

    def __init__(self, device: Device) -> None:
        """Raises OutOfMemoryError."""
        self.device, self.stream_bytes = device, _STREAM_BYTES
        self.source, self.target = (device.empty(STREAMS * _STREAM_BYTES // WORD_BYTES, "float32") for _ in range(2))
        fill_random(self.source, 1.0, device.xp)

    def per_s(self, run: Callable[[], None], moved: float) -> float:
        """What moves so much each time moves this per second; so do instructions, or turns."""
        return rate(self.device, run, moved, _SAMPLES, _WARMUP_S, _SAMPLE_S).bytes_per_s

    def copied_per_s(self, run: Callable[[], None], moved: float) -> float:
        """The same of what copies to the target, where nothing is left of the copy before."""
        self.target.fill(0)
        return self.per_s(run, moved)

    def shortest_s(self, run: Callable[[], None]) -> float:
        """Of a few times."""
        return min(self.device.time_s(run) for _ in range(_SHORT_SAMPLES))

    def check(
        self, width: int, run_bytes: int, accesses: int, load: Array | None = None, store: Array | None = None
    ) -> None:
        """Whether target and source agree at some places, each stream being rotated by what its sides are displaced.

        load, store: accesses by which they are, (streams, 1); None: none. Raises RuntimeError.
        """
        xp = self.device.xp
        none = np.zeros((STREAMS, 1), int)
        at = np.arange(0, accesses, CHECKED_EVERY)
        there, here = (
            xp.asarray(_places((at + by) % accesses, accesses, run_bytes // width))
            for by in (none if load is None else load, none if store is None else store)
        )
        source, target = (array.view("uint16").reshape(-1, width // 2) for array in (self.source, self.target))
        insist(bool((target[here] == source[there]).all()))


class Part(NamedTuple):
    """Figures of one table of `Calibration` by one kernel.

    entry: of the program; figures: measures them one after another, each with its name. It raises RuntimeError where
    the kernel did not do what it should.
    """

    table: str
    program: Program
    entry: str
    figures: Callable[[Bench, Kernel], Figures]


def insist(right: bool) -> None:
    """Raises RuntimeError unless it is."""
    if not right:
        raise RuntimeError("a calibration kernel did not move what it should; its figure would mean nothing")


def shared_bytes(limits: Limits, threads: int, block: int) -> int:
    """What a block asks for so that so many threads share a multiprocessor, and no more; 0: as many as fit."""
    if not threads:
        return 0
    blocks = threads // block
    return min(limits.shared_bytes_per_block, limits.shared_bytes_per_multiprocessor // blocks - _BLOCK_BYTES)


def _places(at: Array, accesses: int, run: int) -> Array:
    """Where accesses of all streams, (streams, n), lie: as many together as a run has, 0: all of them."""
    streams = len(at)
    stream = np.arange(streams)[:, None]
    length = run or accesses
    return ((at // length) * streams + stream) * length + at % length
