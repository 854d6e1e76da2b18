"""Play a strategy on a closed world: as a study does, compiling ahead, one configuration chosen while another runs."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from lbmtune.search.interfaces import Gain, Strategy
from lbmtune.search.stopping import Looks
from lbmtune.search.strategies.ordered import Task
from scripts.contest.sets import Start, World


@dataclass(frozen=True)
class Pace:
    """How a machine works.

    workers: processes that compile; beside: whether they do while the measurer works, else once nothing is left to
    measure; head_start: compiled before the first trial; buffer: most that wait compiled; under_way: given to the
    measurer, answered or not.
    """

    workers: int
    beside: bool
    head_start: int
    buffer: int
    under_way: int


PACES = {"cuda": Pace(14, True, 28, 256, 2), "cpu": Pace(2, False, 2, 2, 1)}
"""Of a machine of 16 cores with a GPU, and of a CPU of two cores."""
IN_TURN = Pace(1, False, 1, 1, 1)
"""Each configuration is compiled, measured and told before the next is asked for."""

Maker = Callable[[Task], Strategy]


@dataclass(frozen=True)
class Run:
    """What a strategy tried, in the order of the answers, and after how many it would have stopped, if at all."""

    order: tuple[int, ...]
    stopped: int | None


def played(
    world: World,
    maker: Maker,
    seed: int,
    budget: int,
    *,
    start: Start = "calibrated",
    pace: Pace | None = None,
    beyond: bool = False,
    goal: float = 2.0,
) -> Run:
    """Return the run of a strategy that ends with the budget, or once it found the best and would have stopped.

    beyond: go on to the budget; goal: share of the best with which it ends at once. The world is shuffled first:
    recorded sets lie in the order of their trials, which would tell the answer.
    """
    shuffled = np.random.default_rng([7, seed]).permutation(len(world.configs))
    order, stopped, looks = list[int](), None, Looks()
    best = int(np.argmax(world.share))
    for index, gain in _answers(_shuffled(world, shuffled), maker, seed, start, pace or PACES[world.backend]):
        order.append(int(shuffled[index]))
        if world.share[order[-1]] >= goal:
            break
        if stopped is None:
            expected = gain()
            agreed = expected is not None and looks.agree(expected, world.finals_noise, len(order))
            stopped = len(order) if agreed else None
        ends = stopped is not None or expected is None
        if len(order) == budget or (best in order and ends and not beyond):
            break
    return Run(tuple(order), stopped)


def _shuffled(world: World, order: np.ndarray[tuple[int], np.dtype[np.intp]]) -> World:
    moved = {name: value[order] for name, value in vars(world).items() if isinstance(value, np.ndarray)}
    return replace(
        world, configs=tuple(world.configs[i] for i in order), seen=tuple(world.seen[i] for i in order), **moved
    )


def _answers(
    world: World, maker: Maker, seed: int, start: Start, pace: Pace
) -> Iterator[tuple[int, Callable[[], Gain | None]]]:
    """Yield each answer as it was told, with what asks the strategy for the gain that is left."""
    expected, refined = world.expected(start).T
    player = maker(Task(configs=world.configs, expected=list(expected), seed=seed))
    under_way, answered, now = deque[int](), 0, 0.0
    ready, compiling, lanes = set[int](), list[tuple[float, int]](), [0.0] * pace.workers
    while True:
        if pace.beside:
            room = min(pace.workers + 4 - len(compiling), pace.buffer - len(ready) - len(compiling))
        else:
            room = 0 if ready or compiling or under_way else pace.workers
        for index in player.wanted(room) if room > 0 else ():
            end = max(heapq.heappop(lanes), now) + float(world.compile_s[index])
            heapq.heappush(lanes, end)
            heapq.heappush(compiling, (end, index))
        while compiling and (compiling[0][0] <= now or not ready):
            end, index = heapq.heappop(compiling)
            now = max(now, end)
            player.refine(index, float(refined[index]))
            ready.add(index)
        if not answered and len(ready) < min(pace.head_start, len(world.configs)) and compiling:
            now = compiling[0][0]
            continue
        if not ready and not under_way:
            return
        while ready and len(under_way) < pace.under_way:
            index = player.next(ready)
            ready.discard(index)
            under_way.append(index)
        index = under_way.popleft()
        now += float(world.device_s[index])
        player.observe(index, world.seen[index])
        answered += 1
        yield index, player.gain
