"""Micro-benchmarks of the links between GPUs of a host: copies, accesses of kernels, and waits for each other.

All work of a sample is enqueued while the device is still busy with something else, so that the host takes no part in
its time. A figure is the best of a few rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from lbmtune.backend.protocol import Array, Compiler, PeerDevice, Queue
from lbmtune.catalogue.families.cuda.direct import Direct
from lbmtune.codegen.cuda.exchange import MOVER, blocks_of, mover, pieces_of
from lbmtune.codegen.streams import CASE, COPY, cuda_streams
from lbmtune.measure.calibration.microbench import Kernel, check_moved, loaded, repeat
from lbmtune.measure.processes.worker import Progress
from lbmtune.measure.timing.state import all_true
from lbmtune.model.machine.description import Links

COPIES: Mapping[int, int] = {
    **{size << 10: 200 for size in (64, 256)},
    **{size << 20: 100 for size in (1, 2)},
    **{size << 20: 50 for size in (5, 6, 12)},
    32 << 20: 40,
}
"""Bytes of a copy, and copies of a sample."""
_ARRAY_BYTES = 128 << 20
"""Bytes that a launch moves."""
_ROUNDS = 5
_LAUNCHES, _HOPS, _EXCHANGES = 5, 100, 24
"""Launches of a sample, launches on both devices in turn, and exchanges."""
_BEFORE = 150
"""Launches that keep a device busy for ten milliseconds and more, while a sample is enqueued."""
_ACCESS_BYTES, _THREADS, _FEW = 16, 256, 256
"""Bytes of an access, threads of a block, and accesses of a launch that takes no time."""
_NO_WAIT_S = 1e-9
"""Seconds of a wait, or of a start, that is too short to be measured."""


class LinksBench:
    """Devices of a host, each with two arrays, a kernel and a queue."""

    def __init__(self, devices: Sequence[PeerDevice], compiler: Compiler, name: Callable[[int, int], str]) -> None:
        """Allocate the arrays. name: of the link of two devices, by their places. Raises OutOfMemoryError."""
        self._name = name
        self._ends = [_End(device, compiler) for device in devices]

    def measure(self, progress: Progress) -> list[Links]:
        """Return the links of each device: its figures are those of the peer that takes longest."""
        pairs = {}
        for one, other in permutations(range(len(self._ends)), 2):
            progress(f"link {one + 1} of {len(self._ends)} to {other + 1}: {self._name(one, other)}")
            pairs[one, other] = _Pair(self._ends[one], self._ends[other]).figures()
        ids = [end.device.environment.device_id for end in self._ends]
        return [
            self._links(one, {m: pairs[one, m] for m in range(len(ids)) if m != one}, ids) for one in range(len(ids))
        ]

    def _links(self, one: int, figures: Mapping[int, _Figures], ids: Sequence[str]) -> Links:
        slowest = max(figures, key=lambda other: figures[other].copy_s[max(COPIES)])
        worst, device = figures[slowest], self._ends[one].device
        others = (*device.conditions().others, *self._ends[slowest].device.conditions().others)
        return Links(
            name=self._name(one, slowest),
            copy_s=_by_name(worst.copy_s),
            both_ways_bytes_per_s=worst.both_ways_per_s,
            store_bytes_per_s=worst.store_per_s,
            store_both_ways_bytes_per_s=worst.store_both_ways_per_s,
            load_bytes_per_s=worst.load_per_s,
            wait_s=worst.wait_s,
            message_copy_s=_by_name(worst.message_copy_s),
            message_store_s=_by_name(worst.message_store_s),
            source=f"{len(ids)} {device.environment.device} of one host, best of {_ROUNDS} rounds",
            spread=max(spread for found in figures.values() for spread in found.spread.values()),
            others=tuple(dict.fromkeys(others)),
            peers={ids[other]: self._name(one, other) for other in figures},
            peer_copy_bytes_per_s={ids[m]: max(COPIES) / found.copy_s[max(COPIES)] for m, found in figures.items()},
            peer_both_ways_bytes_per_s={ids[m]: found.both_ways_per_s for m, found in figures.items()},
            peer_small_s={ids[m]: found.copy_s[min(COPIES)] for m, found in figures.items()},
            peer_wait_s={ids[m]: found.wait_s for m, found in figures.items()},
        )


def _by_name(figures: Mapping[int, float]) -> dict[str, float]:
    return {str(size): seconds for size, seconds in figures.items()}


class _Figures(NamedTuple):
    copy_s: dict[int, float]
    both_ways_per_s: float
    store_per_s: float
    store_both_ways_per_s: float
    load_per_s: float
    wait_s: float
    message_copy_s: dict[int, float]
    message_store_s: dict[int, float]
    spread: dict[str, float]


class _End:
    """A device with arrays of the same content on all of them, and a kernel that copies."""

    def __init__(self, device: PeerDevice, compiler: Compiler) -> None:
        self.device, elements = device, _ARRAY_BYTES // 4
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

    def packs(self, target: Array, size: int) -> Callable[[], None]:
        """Return a launch that stores some bytes into an array of another device, as those that send messages do."""
        pieces = pieces_of(np.array([[0, 0, size // _ACCESS_BYTES]]))
        with self.device.current():
            along = self.device.xp.asarray(pieces.ravel())
        return self.mover.by(blocks_of(len(pieces)), self.source, target, along, np.int32(len(pieces)))

    def seconds(self, run: Callable[[], None]) -> float:
        """Return the seconds of what a run enqueues, on the device."""
        found: list[float] = []

        def timed() -> None:
            repeat(self.moves(self.source, self.target), _BEFORE)
            found.append(self.device.time_s(run))

        self.queue.run(timed)
        return found[0]


@dataclass
class _Pair:
    """A device that sends, and one that receives; together they send to each other."""

    one: _End
    other: _End
    spread: dict[str, float] = field(default_factory=dict)

    def figures(self) -> _Figures:
        """Measure all figures. Raises RuntimeError if a copy did not move what it should."""
        one, other = self.one, self.other
        one.device.reaches(other.device)
        other.device.reaches(one.device)
        copy_s = {
            size: self._best(f"copy of {size} bytes", self._repeated(self._copies(one, other, size), times)) / times
            for size, times in COPIES.items()
        }
        largest, most = max(COPIES.items())
        self._check(largest)
        copies = partial(self._copies, size=largest)
        both_s = self._best("copies both ways", self._both(copies, most)) / most
        store_s = self._best("stores", self._repeated(self._stores(one, other), _LAUNCHES)) / _LAUNCHES
        self._check(_ARRAY_BYTES)
        both_stores_s = self._best("stores both ways", self._both(self._stores, _LAUNCHES)) / _LAUNCHES
        loads = one.moves(other.source, one.target)
        load_s = self._best("loads", self._repeated(loads, _LAUNCHES)) / _LAUNCHES
        moved, wait_s = one.source.nbytes, self._wait_s()
        return _Figures(
            copy_s=copy_s,
            both_ways_per_s=2 * largest / both_s,
            store_per_s=moved / store_s,
            store_both_ways_per_s=2 * moved / both_stores_s,
            load_per_s=moved / load_s,
            wait_s=wait_s,
            message_copy_s=self._messages_s("copies", self._copies, wait_s),
            message_store_s=self._messages_s("stores", self._packed, wait_s),
            spread=self.spread,
        )

    def _wait_s(self) -> float:
        """Return how much longer a launch waits for one of the other device than for one of its own."""
        small, answer = (end.moves(end.source, end.target, _FEW) for end in (self.one, self.other))
        own_s = self._best("launches", self._repeated(small, 2 * _HOPS)) / (2 * _HOPS)

        def hops() -> None:
            for _ in range(_HOPS):
                self.one.queue.run(small)
                self.other.queue.wait(self.one.queue.mark())
                self.other.queue.run(answer)
                self.one.queue.wait(self.other.queue.mark())

        return max(self._best("waits", hops) / (2 * _HOPS) - own_s, _NO_WAIT_S)

    def _messages_s(
        self, what: str, sends: Callable[[_End, _End, int], Callable[[], None]], wait_s: float
    ) -> dict[int, float]:
        """Return the seconds of a message by its bytes, if both devices send two and wait for each other.

        As parts with two neighbours do: messages have queues of their own, which wait for one queue of both devices,
        and those for all messages. wait_s: of each of the two waits, which do not count.
        """
        ends = ((self.one, self.other), (self.other, self.one))
        queues = [source.device.queue(first=True) for source, _ in ends * 2]
        found = {}
        for size in COPIES:
            sending = [(queue, sends(*pair, size)) for queue, pair in zip(queues, ends * 2, strict=True)]
            round_s = self._best(f"{what} of {size} bytes in exchanges", self._exchanges(sending)) / _EXCHANGES
            found[size] = max(round_s - 2 * wait_s, _NO_WAIT_S) / 2
        return found

    def _exchanges(self, sending: Sequence[tuple[Queue, Callable[[], None]]]) -> Callable[[], None]:
        """Return a run of exchanges, each of all messages."""

        def rounds() -> None:
            sent: list[Any] = []
            for _ in range(_EXCHANGES):
                for end in (self.one, self.other):
                    for mark in sent:
                        end.queue.wait(mark)
                ready = [end.queue.mark() for end in (self.one, self.other)]
                sent.clear()
                for queue, send in sending:
                    for mark in ready:
                        queue.wait(mark)
                    queue.run(send)
                    sent.append(queue.mark())
            for mark in sent:
                self.one.queue.wait(mark)

        return rounds

    def _best(self, what: str, run: Callable[[], None]) -> float:
        """Return the least time of some rounds, and note how far the median of them lies from it."""
        found = [self.one.seconds(run) for _ in range(_ROUNDS)]
        self.spread[what] = median(found) / min(found) - 1
        return min(found)

    def _both(self, sends: Callable[[_End, _End], Callable[[], None]], times: int) -> Callable[[], None]:
        """Return a run in which both devices send at once."""
        one, other = self.one, self.other

        def run() -> None:
            other.queue.wait(one.queue.mark())
            other.queue.run(partial(repeat, sends(other, one), times))
            repeat(sends(one, other), times)
            one.queue.wait(other.queue.mark())

        return run

    @staticmethod
    def _copies(source: _End, target: _End, size: int) -> Callable[[], None]:
        count = size // source.source.itemsize
        return partial(source.device.copy, target.target[:count], source.source[:count])

    @staticmethod
    def _stores(source: _End, target: _End) -> Callable[[], None]:
        return source.moves(source.source, target.target)

    @staticmethod
    def _packed(source: _End, target: _End, size: int) -> Callable[[], None]:
        return source.packs(target.target, size)

    @staticmethod
    def _repeated(run: Callable[[], None], times: int) -> Callable[[], None]:
        return partial(repeat, run, times)

    def _check(self, size: int) -> None:
        """Check what came from the other device, and clear it."""
        device, count = self.other.device, size // self.other.source.itemsize
        self.one.device.synchronize()
        with device.current():
            check_moved(all_true(self.other.target[:count] == self.other.source[:count]))
            self.other.target.fill(0)
            device.synchronize()
