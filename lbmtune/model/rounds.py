"""Simulate the blocks of launches that share the multiprocessors of a device, round after round of an exchange.

A launch starts as many blocks as there is room for, those of a higher priority first, in the order in which launches
became ready. With few blocks on each multiprocessor the last ones of a launch run alone, and a launch that waits for
messages finds the room taken by one that does not: neither follows from the times of launches by themselves. Blocks
share the bandwidth of memory: the last ones of a launch are faster than those that fill the device.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

_ROUNDS, _COUNTED = 10, 6
"""Rounds that are simulated, and those that count: not the first ones, nor the last one, beside which no other runs."""


@dataclass(frozen=True)
class Blocks:
    """Blocks of a launch, which start in order: how many take how long, in seconds."""

    groups: tuple[tuple[int, float], ...]

    @property
    def filled(self) -> tuple[tuple[int, float], ...]:
        """Return the groups that have blocks; a launch without any takes no time."""
        return tuple(group for group in self.groups if group[0])

    @property
    def seconds(self) -> float:
        """Return the time of all, one after another."""
        return sum(count * each for count, each in self.groups)


@dataclass
class _Task:
    """A launch, or a copy (no blocks) that takes some time.

    urgent: its blocks start before others; shares: they share the device with others, and are faster if these are few;
    late_s: how much later than others it is ready.
    """

    after: list[_Task]
    blocks: Blocks
    urgent: bool = False
    shares: bool = True
    copy_s: float = 0.0
    late_s: float = 0.0
    left: list[tuple[int, float]] = field(default_factory=list)
    running: int = 0
    end_s: float | None = None


def round_s(
    room: int,
    chain: Sequence[Blocks],
    inner: Blocks | None,
    *,
    edges: int,
    first: bool,
    exchange_s: float,
    packs: Blocks | None,
    wait_s: float,
    start_s: float,
    pace: Callable[[int], float] = lambda _: 1.0,
) -> float:
    """Return the seconds of a round in the long run.

    room: blocks that a device holds at once; chain: launches one after another, the last ones (`edges`) on edges;
    inner: the launch beside those on edges, or behind them (`first`); packs: of the kernel that sends, if it needs the
    same room; exchange_s: of the exchange beside that; wait_s: how much later a kernel that sends starts, which waits
    for the other device; start_s: from the end of a launch to the start of one that waits; pace: how fast so many
    blocks get on that run at once, over those that fill the room.
    """
    tasks, ends = list[_Task](), list[list[_Task]]()
    sent: list[_Task] = []
    inside: list[_Task] = []
    edge: list[_Task] = []
    for _ in range(_ROUNDS):
        previous, behind = [*sent, *inside], edge
        for number, blocks in enumerate(chain):
            # behind launches of the same round these wait for the other device, too, and the interior does not
            later = start_s if inner and number and number == len(chain) - edges else 0.0
            previous = [_Task(previous, blocks, urgent=inner is not None, late_s=later)]
            tasks += previous
            if number < len(chain) - edges:
                behind = previous
        edge = previous
        if inner:
            inside = [_Task([*(edge if first else behind), *inside], inner)]
            tasks += inside
        sent = edge
        if packs:
            sent = [_Task(sent, packs, urgent=True, shares=False, late_s=wait_s)]
            tasks += sent
        sent = [_Task(sent, Blocks(()), copy_s=exchange_s)]
        tasks += sent
        ends.append([*sent, *inside])
    _Run(tasks, room, start_s, pace).run()
    times = [max(one.end_s or 0.0 for one in end) for end in ends]
    return (times[-2] - times[-2 - _COUNTED]) / _COUNTED


class _Run:
    """A simulation of tasks on one device.

    done_s: work of a block that runs since the beginning, in seconds at the pace of a full device; all blocks that run
    get on at the same pace. timed, worked: what ends at a time, and after that work: end, task, and number.
    """

    def __init__(self, tasks: Sequence[_Task], room: int, start_s: float, pace: Callable[[int], float]) -> None:
        self._room, self._start_s, self._pace = room, start_s, pace
        self._now, self._done_s, self._sharing = 0.0, 0.0, 0
        self._order = {id(one): n for n, one in enumerate(tasks)}
        self._tasks, self._missing = tasks, [len(one.after) for one in tasks]
        self._followers: dict[int, list[int]] = {}
        for n, one in enumerate(tasks):
            for other in one.after:
                self._followers.setdefault(self._order[id(other)], []).append(n)
        self._coming = [(0.0, n) for n, one in enumerate(tasks) if not one.after]
        heapq.heapify(self._coming)
        self._timed: list[tuple[float, int, int]] = []
        self._worked: list[tuple[float, int, int]] = []
        self._ready: list[_Task] = []

    def run(self) -> None:
        """Set the end of each task."""
        while self._coming or self._timed or self._worked:
            self._go_on()
            self._end()
            while self._coming and self._coming[0][0] <= self._now:
                self._arrive(heapq.heappop(self._coming)[1])
            for one in sorted(self._ready, key=lambda one: not one.urgent):
                while one.left and self._room:
                    self._start(one)
            self._ready = [one for one in self._ready if one.left]

    def _go_on(self) -> None:
        """Go on to the next time at which something begins or ends."""
        pace = self._pace(self._sharing) if self._sharing else 1.0
        times = [queue[0][0] for queue in (self._coming, self._timed) if queue]
        if not self._worked:
            self._now = min(times)
            return
        end_s = self._now + (self._worked[0][0] - self._done_s) / pace
        if end_s <= min(times, default=inf):
            self._now, self._done_s = end_s, self._worked[0][0]
        else:
            self._done_s += (min(times) - self._now) * pace
            self._now = min(times)

    def _end(self) -> None:
        """End what has come to its end."""
        for queue, until in ((self._timed, self._now), (self._worked, self._done_s)):
            while queue and queue[0][0] <= until:
                _, n, count = heapq.heappop(queue)
                one = self._tasks[n]
                one.running -= count
                self._sharing -= count if queue is self._worked else 0
                self._room += count if one.blocks.filled else 0
                if not one.running and not one.left:
                    one.end_s = self._now
                    for follower in self._followers.get(n, ()):
                        self._await(follower)

    def _await(self, n: int) -> None:
        """Note that one of those ended that a task waits for."""
        self._missing[n] -= 1
        if not self._missing[n]:
            one = self._tasks[n]
            starts_s = self._start_s if one.blocks.filled else 0.0
            heapq.heappush(self._coming, (self._now + starts_s + one.late_s, n))

    def _arrive(self, n: int) -> None:
        one = self._tasks[n]
        if one.blocks.filled:
            one.left = [*one.blocks.filled]
            self._ready.append(one)
        else:
            one.running = 1
            heapq.heappush(self._timed, (self._now + one.copy_s, n, 1))

    def _start(self, one: _Task) -> None:
        """Start as many of the next blocks of a task as there is room for."""
        (count, each), *others = one.left
        started = min(count, self._room)
        self._room -= started
        one.running += started
        queue, now = (self._worked, self._done_s) if one.shares else (self._timed, self._now)
        self._sharing += started if one.shares else 0
        heapq.heappush(queue, (now + each, self._order[id(one)], started))
        one.left = [*([(count - started, each)] if count > started else []), *others]
