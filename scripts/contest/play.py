"""Play a strategy on a closed world: as a study does, compiling ahead, one configuration chosen while another runs."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lbmtune.search.interfaces import Seen, Strategy
from lbmtune.search.strategies.ordered import Task
from scripts.contest.sets import Array, World


@dataclass(frozen=True)
class Pace:
    """How a machine works. Times are in units of a measurement.

    workers, compile_time: of compilation; beside: whether they compile while the measurer works, else once nothing is
    left to measure; head_start: compiled before the first trial; buffer: most that wait compiled; under_way: given to
    the measurer, answered or not.
    """

    workers: int
    compile_time: float
    beside: bool
    head_start: int
    buffer: int
    under_way: int


PACES = {"cuda": Pace(14, 10.0, True, 28, 256, 2), "cpu": Pace(2, 1.0, False, 2, 2, 1)}
"""Of a machine of 16 cores with a GPU, and of a CPU of two cores."""

Maker = Callable[[Task], Strategy]


def order_of(
    world: World,
    maker: Maker,
    seed: int,
    budget: int,
    *,
    calibrated: bool = True,
    pace: Pace | None = None,
    beyond: bool = False,
) -> list[int]:
    """Return the configurations in the order of their answers, up to the best one or the budget.

    beyond: go on once the best one is found. The world is shuffled first: recorded sets lie in the order of their
    trials, which would tell the answer.
    """
    shuffled = np.random.default_rng([7, seed]).permutation(len(world.configs))
    measured, pace = world.measured[shuffled], pace or PACES[world.backend]
    expected = (world.estimated if calibrated else world.cold)[shuffled]
    refined = world.compiled[shuffled] if calibrated and world.backend == "cuda" else expected
    noise = world.noise[shuffled]
    player = maker(Task(configs=[world.configs[i] for i in shuffled], expected=list(expected), seed=seed))
    best, order, under_way = int(np.nanargmax(measured)), list[int](), deque[int]()
    ready, compiling, now = set[int](), list[tuple[float, int]](), 0.0
    lanes = [0.0] * pace.workers
    while len(order) < budget:
        if pace.beside:
            room = min(pace.workers + 4 - len(compiling), pace.buffer - len(ready) - len(compiling))
        else:
            room = 0 if ready or compiling or under_way else pace.workers
        for index in player.wanted(room) if room > 0 else ():
            end = max(heapq.heappop(lanes), now) + pace.compile_time
            heapq.heappush(lanes, end)
            heapq.heappush(compiling, (end, index))
        while compiling and (compiling[0][0] <= now or not ready):
            end, index = heapq.heappop(compiling)
            now = max(now, end)
            player.refine(index, float(refined[index]))
            ready.add(index)
        if not order and len(ready) < min(pace.head_start, len(measured)) and compiling:
            now = compiling[0][0]
            continue
        if not ready and not under_way:
            break
        while ready and len(under_way) < pace.under_way:
            index = player.next(ready)
            ready.discard(index)
            under_way.append(index)
        index = under_way.popleft()
        now += 1.0
        player.observe(index, _seen(float(measured[index]), float(noise[index])))
        order.append(index)
        if index == best and not beyond:
            break
    return [int(shuffled[i]) for i in order]


def _seen(mlups: float, half_width: float) -> Seen:
    return Seen(None) if np.isnan(mlups) else Seen(mlups, max(half_width / 1.96, 1e-4))


def shares(world: World, order: Sequence[int], budget: int) -> Array:
    """Return the best share of the best of the set after each evaluation, up to the budget."""
    values = np.nan_to_num(world.measured[list(order)]) / world.best
    reached = np.maximum.accumulate(values)
    return np.concatenate([reached, np.full(max(0, budget - len(order)), reached[-1])])[:budget]
