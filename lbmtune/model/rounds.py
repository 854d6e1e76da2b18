"""Simulate the blocks of launches that share the multiprocessors of a device, round after round of an exchange.

A launch starts as many blocks as there is room for, those of a higher priority first, in the order in which launches
became ready. With few blocks on each multiprocessor the last ones of a launch run alone, and a launch that waits for
messages finds the room taken by one that does not: neither follows from the times of launches by themselves.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

_ROUNDS = 8
"""Rounds that are simulated; the first half of them is left out."""


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

    urgent: its blocks start before others; late_s: how much later than others it is ready.
    """

    after: list[_Task]
    blocks: Blocks
    urgent: bool = False
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
) -> float:
    """Return the seconds of a round in the long run.

    room: blocks that a device holds at once; chain: launches one after another, the last ones (`edges`) on edges;
    inner: the launch beside those on edges, or behind them (`first`); packs: of the kernel that sends, if it needs the
    same room; exchange_s: of the exchange beside that; wait_s: how much later a kernel that sends starts, which waits
    for the other device; start_s: from the end of a launch to the start of one that waits.
    """
    tasks, ends = list[_Task](), list[list[_Task]]()
    sent: list[_Task] = []
    inside: list[_Task] = []
    edge: list[_Task] = []
    for _ in range(_ROUNDS):
        previous, behind = [*sent, *inside], edge
        for number, blocks in enumerate(chain):
            previous = [_Task(previous, blocks, urgent=inner is not None)]
            tasks += previous
            if number < len(chain) - edges:
                behind = previous
        edge = previous
        if inner:
            inside = [_Task([*(edge if first else behind), *inside], inner)]
            tasks += inside
        sent = edge
        if packs:
            sent = [_Task(sent, packs, urgent=True, late_s=wait_s)]
            tasks += sent
        sent = [_Task(sent, Blocks(()), copy_s=exchange_s)]
        tasks += sent
        ends.append([*sent, *inside])
    _run(tasks, room, start_s)
    times = [max(one.end_s or 0.0 for one in end) for end in ends]
    half = _ROUNDS // 2
    return (times[-1] - times[half - 1]) / half


def _run(tasks: list[_Task], room: int, start_s: float) -> None:
    """Set the end of each task."""
    now, ready, running = 0.0, list[_Task](), list[tuple[float, int, int]]()
    coming = [(0.0, n) for n, one in enumerate(tasks) if not one.after]
    followers: dict[int, list[int]] = {}
    missing = [len(one.after) for one in tasks]
    place = {id(one): n for n, one in enumerate(tasks)}
    for n, one in enumerate(tasks):
        for other in one.after:
            followers.setdefault(place[id(other)], []).append(n)
    heapq.heapify(coming)
    while coming or running:
        now = min(queue[0][0] for queue in (coming, running) if queue)
        while running and running[0][0] <= now:
            _, n, count = heapq.heappop(running)
            one = tasks[n]
            room += count if one.blocks.filled else 0
            one.running -= count
            if not one.running and not one.left:
                one.end_s = now
                for follower in followers.get(n, ()):
                    missing[follower] -= 1
                    if not missing[follower]:
                        next_one = tasks[follower]
                        starts_s = start_s if next_one.blocks.filled else 0.0
                        heapq.heappush(coming, (now + starts_s + next_one.late_s, follower))
        while coming and coming[0][0] <= now:
            _, n = heapq.heappop(coming)
            one = tasks[n]
            if one.blocks.filled:
                one.left = [*one.blocks.filled]
                ready.append(one)
            else:
                one.running = 1
                heapq.heappush(running, (now + one.copy_s, n, 1))
        for one in sorted(ready, key=lambda one: not one.urgent):
            while one.left and room:
                count, each = one.left[0]
                started = min(count, room)
                room -= started
                one.running += started
                heapq.heappush(running, (now + each, place[id(one)], started))
                one.left[0] = (count - started, each)
                if count == started:
                    one.left.pop(0)
        ready = [one for one in ready if one.left]
