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

from lbmtune.backend.protocol import Compiler, PeerDevice
from lbmtune.measure.calibration.gpu_ends import ARRAY_BYTES, COPIES, FEW, End
from lbmtune.measure.calibration.gpu_exchanges import (
    NO_WAIT_S,
    busy_copy_s,
    call_s,
    copied,
    messages_s,
    packed,
    through_host,
)
from lbmtune.measure.calibration.microbench import check_moved, repeat
from lbmtune.measure.processes.worker import Progress
from lbmtune.measure.timing.state import all_true
from lbmtune.model.machine.description import Links

_ROUNDS = 5
_LAUNCHES, _HOPS = 5, 100
"""Launches of a sample, and launches on both devices in turn."""


class LinksBench:
    """Devices of a host, each with two arrays, a kernel and a queue."""

    def __init__(self, devices: Sequence[PeerDevice], compiler: Compiler, name: Callable[[int, int], str]) -> None:
        """Allocate the arrays. name: of the link of two devices, by their places. Raises OutOfMemoryError."""
        self._name = name
        self._ends = [End(device, compiler) for device in devices]

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
            met_wait_s=worst.met_wait_s,
            message_copy_s=_by_name(worst.message_copy_s),
            message_store_s=_by_name(worst.message_store_s),
            message_host_s=_by_name(worst.message_host_s),
            busy_copy_s=_by_name(worst.busy_copy_s),
            busy_message_copy_s=_by_name(worst.busy_message_copy_s),
            busy_message_store_s=_by_name(worst.busy_message_store_s),
            call_s=worst.call_s,
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
    met_wait_s: float
    message_copy_s: dict[int, float]
    message_store_s: dict[int, float]
    message_host_s: dict[int, float]
    busy_copy_s: dict[int, float]
    busy_message_copy_s: dict[int, float]
    busy_message_store_s: dict[int, float]
    call_s: dict[str, float]
    spread: dict[str, float]


@dataclass
class _Pair:
    """A device that sends, and one that receives; together they send to each other."""

    one: End
    other: End
    spread: dict[str, float] = field(default_factory=dict)

    def figures(self) -> _Figures:
        """Measure all figures. Raises RuntimeError if a copy did not move what it should."""
        one, other = self.one, self.other
        one.device.reaches(other.device)
        other.device.reaches(one.device)
        copy_s = {
            size: self._best(f"copy of {size} bytes", self._repeated(one.copies(other, size), times)) / times
            for size, times in COPIES.items()
        }
        largest, most = max(COPIES.items())
        self._check(largest)
        both_s = self._best("copies both ways", self._both(partial(End.copies, size=largest), most)) / most
        store_s = self._best("stores", self._repeated(self._stores(one, other), _LAUNCHES)) / _LAUNCHES
        self._check(ARRAY_BYTES)
        both_stores_s = self._best("stores both ways", self._both(self._stores, _LAUNCHES)) / _LAUNCHES
        loads = one.moves(other.source, one.target)
        load_s = self._best("loads", self._repeated(loads, _LAUNCHES)) / _LAUNCHES
        moved, wait_s = one.source.nbytes, self._wait_s()
        messages = partial(messages_s, one, other, wait_s=wait_s, best=self._best)
        return _Figures(
            copy_s=copy_s,
            both_ways_per_s=2 * largest / both_s,
            store_per_s=moved / store_s,
            store_both_ways_per_s=2 * moved / both_stores_s,
            load_per_s=moved / load_s,
            wait_s=wait_s,
            met_wait_s=self._met_wait_s(),
            message_copy_s=messages("copies", copied),
            message_store_s=messages("stores", packed),
            message_host_s=messages("copies through the host", through_host((one, other))),
            busy_copy_s=busy_copy_s(one, other),
            busy_message_copy_s=messages("copies", copied, busy=True),
            busy_message_store_s=messages("stores", packed, busy=True),
            call_s=call_s(one, other),
            spread=self.spread,
        )

    def _wait_s(self) -> float:
        """Return how much longer a launch waits for one of the other device than for one of its own."""
        own_s = self._best("launches", self._launches) / (2 * _HOPS)
        return max(self._best("waits", self._hops) / (2 * _HOPS) - own_s, NO_WAIT_S)

    def _met_wait_s(self) -> float:
        """Return how much longer a launch takes in a graph that waits for one of the other device which ended."""
        device, queue = self.one.device, self.one.queue
        waits, ahead = (
            self._best(what, device.recorded_in(queue, partial(self._behind, waits=waits)))
            for what, waits in (("waits that are over", True), ("launches behind others", False))
        )
        return max((waits - ahead) / (2 * _HOPS), NO_WAIT_S)

    @staticmethod
    def _small(end: End) -> Callable[[], None]:
        """Return a launch that takes no time."""
        return end.moves(end.source, end.target, FEW)

    def _launches(self) -> None:
        """Enqueue launches on one device."""
        self.one.queue.run(self._repeated(self._small(self.one), 2 * _HOPS))

    def _hops(self) -> None:
        """Enqueue launches on both devices, each of which waits for the one before."""
        small, answer = self._small(self.one), self._small(self.other)
        for _ in range(_HOPS):
            self.one.queue.run(small)
            self.other.queue.wait(self.one.queue.mark())
            self.other.queue.run(answer)
            self.one.queue.wait(self.other.queue.mark())

    def _behind(self, *, waits: bool) -> None:
        """Enqueue launches on both devices; those of one may wait for those of the other, which are ahead."""
        small, other, marks = self._small(self.one), self._small(self.other), list[Any]()
        self.other.queue.wait(self.one.queue.mark())
        for _ in range(3 * _HOPS):
            self.other.queue.run(other)
            marks.append(self.other.queue.mark())
        self.one.queue.wait(marks[_HOPS])
        for n in range(2 * _HOPS):
            self.one.queue.run(small)
            if waits:
                self.one.queue.wait(marks[n])
        self.one.queue.wait(marks[-1])

    def _best(self, what: str, run: Callable[[], None]) -> float:
        """Return the least time of some rounds, and note how far the median of them lies from it."""
        found = [self.one.seconds(run) for _ in range(_ROUNDS)]
        self.spread[what] = median(found) / min(found) - 1
        return min(found)

    def _both(self, sends: Callable[[End, End], Callable[[], None]], times: int) -> Callable[[], None]:
        """Return a run in which both devices send at once."""
        one, other = self.one, self.other

        def run() -> None:
            other.queue.wait(one.queue.mark())
            other.queue.run(partial(repeat, sends(other, one), times))
            repeat(sends(one, other), times)
            one.queue.wait(other.queue.mark())

        return run

    @staticmethod
    def _stores(source: End, target: End) -> Callable[[], None]:
        return source.moves(source.source, target.target)

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
