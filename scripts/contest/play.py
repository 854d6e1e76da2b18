"""Play a strategy on a closed world: as a study does, with some configurations under way, answers in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from lbmtune.catalogue.config import KernelConfig
from lbmtune.search.choice import Choice
from scripts.contest.sets import Array, World

AHEAD = {"cuda": 16, "cpu": 2}
"""Configurations under way: of a machine of 16 cores with a GPU, and of a CPU."""


class Player(Protocol):
    """What a strategy has to do: see `search.choice.Choice`."""

    @property
    def remaining(self) -> int: ...
    def propose(self) -> int: ...
    def observe(self, index: int, mlups: float | None) -> None: ...


Maker = Callable[[Sequence[KernelConfig], Array, int, int], Player]
"""Makes a player of configurations, expected MLUPS, a seed, and the proposals of one look."""


def order_of(world: World, expected: Array, maker: Maker, seed: int, budget: int) -> list[int]:
    """Return the configurations in the order of their answers, up to the best one or the budget.

    The world is shuffled first: recorded sets lie in the order of their trials, which would tell the answer.
    """
    shuffled = np.random.default_rng([7, seed]).permutation(len(world.configs))
    measured, ahead = world.measured[shuffled], AHEAD[world.backend]
    player = maker([world.configs[i] for i in shuffled], expected[shuffled], seed, max(1, ahead // 4))
    best, order, under_way = int(np.nanargmax(measured)), list[int](), deque[int]()
    while len(order) < budget:
        while len(under_way) < ahead and player.remaining:
            under_way.append(player.propose())
        if not under_way:
            break
        index = under_way.popleft()
        value = measured[index]
        player.observe(index, None if np.isnan(value) else float(value))
        order.append(index)
        if index == best:
            break
    return [int(shuffled[i]) for i in order]


class Listed:
    """Goes down the model's list."""

    def __init__(self, configs: Sequence[KernelConfig], expected: Array, seed: int, batch: int) -> None:  # noqa: ARG002
        drawn = np.random.default_rng(seed).random(len(configs))
        self._order = deque(int(i) for i in np.lexsort((drawn, -expected)))

    @property
    def remaining(self) -> int:
        """Configurations that are left."""
        return len(self._order)

    def propose(self) -> int:
        """Return the next one."""
        return self._order.popleft()

    def observe(self, index: int, mlups: float | None) -> None:
        """Learn nothing."""


class Drawn(Listed):
    """Draws at random."""

    def __init__(self, configs: Sequence[KernelConfig], expected: Array, seed: int, batch: int) -> None:
        super().__init__(configs, np.zeros_like(expected), seed, batch)


def auto(configs: Sequence[KernelConfig], expected: Array, seed: int, batch: int) -> Player:
    """Return the search of `lbmtune study`."""
    return Choice(configs, list(expected), seed, None, batch)


def shares(world: World, order: Sequence[int], budget: int) -> Array:
    """Return the best share of the best of the set after each evaluation, up to the budget."""
    values = np.nan_to_num(world.measured[list(order)]) / world.best
    reached = np.maximum.accumulate(values)
    return np.concatenate([reached, np.full(max(0, budget - len(order)), reached[-1])])[:budget]
