"""Devices of a host with what is measured between them: arrays, kernels that copy, and a queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise

import numpy as np

from lbmtune.backend.protocol import Array, Compiler, PeerDevice, Queue
from lbmtune.catalogue.families.cuda.direct import Direct
from lbmtune.codegen.cuda.exchange import MOVER, blocks_of, mover, pieces_of
from lbmtune.codegen.streams import CASE, COPY, cuda_streams
from lbmtune.measure.calibration.microbench import Kernel, loaded, repeat

COPIES: Mapping[int, int] = {
    **{size << 10: 200 for size in (64, 256)},
    **{size << 20: 100 for size in (1, 2)},
    **{size << 20: 50 for size in (5, 6, 12)},
    32 << 20: 40,
}
"""Bytes of a copy, and copies of a sample."""
ARRAY_BYTES = 128 << 20
"""Bytes that a launch moves."""
BEFORE = 150
"""Launches that keep a device busy for ten milliseconds and more, while a sample is enqueued."""
_ACCESS_BYTES, _THREADS, FEW = 16, 256, 256
"""Bytes of an access, threads of a block, and accesses of a launch that takes no time."""
MESSAGES, _RUNS = 2, 5
"""Messages of a device in an exchange, and runs of a message that a kernel stores, as of a face of D3Q19."""


class End:
    """A device with arrays of the same content on all of them, and a kernel that copies."""

    def __init__(self, device: PeerDevice, compiler: Compiler) -> None:
        """Allocate the arrays and load the kernels. Raises OutOfMemoryError."""
        self.device, elements = device, ARRAY_BYTES // 4
        with device.current():
            self.source, self.target = (device.empty(elements, "uint32") for _ in range(2))
            self.source[...] = device.xp.arange(elements, dtype="uint32")
            self.kernel: Kernel = loaded(device, compiler, cuda_streams(1, _ACCESS_BYTES, _THREADS), COPY)
            self.mover: Kernel = loaded(device, compiler, mover(CASE, Direct(), _ACCESS_BYTES), MOVER)
        self.queue: Queue = device.queue()

    def moves(self, source: Array, target: Array, accesses: int = 0) -> Callable[[], None]:
        """Return a launch of this device that copies, maybe from or to another device."""
        count = accesses or source.nbytes // _ACCESS_BYTES
        return self.kernel.by(-(-count // _THREADS), source, target, np.int32(count))

    def packs(self, target: Array, size: int, number: int) -> Callable[[], None]:
        """Return a launch that stores some bytes into an array of another device, as those that send messages do.

        They lie in runs apart, as populations of a face do. number: of the message, which has places of its own.
        """
        accesses, apart = size // _ACCESS_BYTES, self.source.nbytes // _ACCESS_BYTES // (MESSAGES * _RUNS)
        ends = [accesses * n // _RUNS for n in range(_RUNS + 1)]
        places = [(number * _RUNS + n) * apart for n in range(_RUNS)]
        runs = [[place, place, end - begin] for place, (begin, end) in zip(places, pairwise(ends), strict=True)]
        pieces = pieces_of(np.array(runs))
        with self.device.current():
            along = self.device.xp.asarray(pieces.ravel())
        return self.mover.by(blocks_of(len(pieces)), self.source, target, along, np.int32(len(pieces)))

    def seconds(self, run: Callable[[], None]) -> float:
        """Return the seconds of what a run enqueues, on the device."""
        found: list[float] = []

        def timed() -> None:
            repeat(self.moves(self.source, self.target), BEFORE)
            found.append(self.device.time_s(run))

        self.queue.run(timed)
        return found[0]

    def copies(self, other: End, size: int) -> Callable[[], None]:
        """Return a copy of some bytes to another device."""
        count = size // self.source.itemsize
        return partial(self.device.copy, other.target[:count], self.source[:count])
