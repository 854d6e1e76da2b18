"""The search of a Pareto set between speed and what is known of each kernel, such as its footprint."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from lbmtune.search.interfaces import Gain
from lbmtune.search.pareto import front
from lbmtune.search.regression import surrogate
from lbmtune.search.regression.features import Array, Indices
from lbmtune.search.strategies.auto import Auto
from lbmtune.search.strategies.ordered import Task

_MARGIN = 0.1
"""How far the reference point lies beyond the highest cost, relative to the range of costs: the fastest counts, too."""


@dataclass(frozen=True)
class Steps:
    """The best speed by cost: cells of a grid of costs, with the best of all that cost no more.

    low, high: corners of the cells (cells, costs); best: (cells,), zero if nothing costs so little.
    """

    low: Array
    high: Array
    best: Array

    def widths(self, costs: Array) -> Array:
        """Return how much of each cell (points, cells) costs at least as much as some points (points, costs)."""
        widths: Array = np.maximum(self.high - np.maximum(self.low, costs[:, None, :]), 0.0).prod(-1)
        return widths

    @property
    def volume(self) -> float:
        """Return what is dominated so far."""
        return float((self.high - self.low).prod(-1) @ self.best)


def steps(costs: Array, speeds: Array, end: Array) -> Steps:
    """Return the steps of points with costs (n, costs) and speeds (n,). end: the costs of the reference point."""
    kept = front(np.column_stack([costs, -speeds])) if len(costs) else np.zeros(0, dtype=np.intp)
    edges = [np.unique([0.0, *along[along < last], last]) for along, last in zip(costs[kept].T, end, strict=True)]
    low = np.array(list(product(*(edge[:-1] for edge in edges))))
    high = np.array(list(product(*(edge[1:] for edge in edges))))
    below = (costs[kept][None] <= low[:, None]).all(-1)
    return Steps(low, high, np.where(below, speeds[kept], 0.0).max(1, initial=0.0))


class Pareto(Auto):
    """`Auto`, to which a configuration is worth the hypervolume that it adds at its speed.

    As costs are known, that is exact: the speed beyond the best among those that cost no more, times how much of the
    range of costs it leads. Source: Emmerich et al. 2006.
    """

    _turns = (*["process"] * 5, "list")

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        assert task.costs is not None
        costs = np.asarray(task.costs, dtype=float)
        low, high = costs.min(0), costs.max(0)
        self._costs = costs / np.where(high > 0, high, 1.0)
        self._end = self._costs.max(0) + _MARGIN * np.where(high > low, np.ptp(self._costs, axis=0), 1.0)
        self._unit = float(self._log_expected.max())
        self._steps = steps(self._costs[:0], self._log_expected[:0], self._end)

    def gain(self) -> Gain | None:
        """Return the hypervolume that is expected of the best of those left, over that of what is measured."""
        left = self._rows[[i not in self._seen and i not in self._broken for i in self._rows]]
        if (found := super().gain()) is None or not len(left):
            return found
        self._steps, pool = self._known([]), self._pool(left)
        mean, deviation = self._expected(pool)
        mean, deviation = mean - self._unit, deviation * self._doubt()
        widths, volume = self._steps.widths(self._costs[pool]), self._steps.volume
        gains = (widths * _expected_beyond(mean, deviation, self._steps.best)).sum(1) / volume
        noise = max(self._seen.values(), key=lambda seen: seen.mlups or 0.0).noise
        enough = np.log(_speeds_that_add(noise * volume, widths, self._steps.best))
        return Gain(float(gains.max()), surrogate.any_beyond(mean, deviation, enough))

    def _pick(self, among: Indices, *, compiled: bool) -> int:
        self._expect()
        asked = self._under_way if compiled else np.flatnonzero(~self._free).tolist()
        self._steps = self._known([i for i in asked if i not in self._seen and i not in self._broken])
        return super()._pick(among, compiled=compiled)

    def _worth(self, indices: Indices, log_speeds: Array) -> Array:
        """Return the hypervolume that they add; if they add none, how far they are below what costs no more."""
        speeds, costs = np.exp(log_speeds - self._unit), self._costs[indices]
        added = (self._steps.widths(costs) * np.maximum(speeds[:, None] - self._steps.best, 0.0)).sum(1)
        worth: Array = np.where(added > 0.0, added, self._promise(indices, log_speeds))
        return worth

    def _improvement(self, indices: Indices, mean: Array, deviation: Array) -> Array:
        """Return what they are worth one standard deviation above their means, which is an improvement, too."""
        return self._worth(indices, mean + deviation)

    def _promise(self, indices: Indices, log_speeds: Array) -> Array:
        """Return how far they are above what costs no more, as logarithms of speeds."""
        return self._above(self._steps, indices, log_speeds)

    def _lead(self, indices: Indices, log_speeds: Array) -> Array:
        """Return by how much they lead what costs no more."""
        return self._promise(indices, log_speeds)

    def _behind(self, indices: Indices, log_speeds: Array) -> Array:
        """Return how far they are behind the best of those that cost no more."""
        behind: Array = np.maximum(-self._promise(indices, log_speeds), 0.0)
        return behind

    def _outlook(self) -> Array:
        """Return how near all configurations are to the set that the model expects."""
        expected = steps(self._costs, np.exp(self._log_expected - self._unit), self._end)
        return self._above(expected, np.arange(len(self._costs)), self._log_expected)

    def _above(self, reached: Steps, indices: Indices, log_speeds: Array) -> Array:
        at = (reached.low[None] <= self._costs[indices][:, None]).all(-1)
        best = np.where(at, reached.best, 0.0).max(1, initial=0.0)
        above: Array = log_speeds - self._unit - np.log(np.maximum(best, 1e-9))
        return above

    def _known(self, believed: list[int]) -> Steps:
        """Return the steps of what is measured, and of some as they are expected."""
        measured = [index for index, seen in self._seen.items() if seen.mlups]
        logs = [np.log(self._seen[i].mlups or 1.0) for i in measured]
        logs += [self._foretold[i][0] if i in self._foretold else self._log_expected[i] for i in believed]
        places = np.array([*measured, *believed], dtype=np.intp)
        return steps(self._costs[places], np.exp(np.array(logs, dtype=float) - self._unit), self._end)


def _expected_beyond(mean: Array, deviation: Array, best: Array) -> Array:
    """Return by how much speeds (points,) are expected beyond others (cells,); mean, deviation: of their logarithms."""
    apart = (mean[:, None] - np.log(np.maximum(best, 1e-9))) / deviation[:, None]
    above = surrogate.below((apart + deviation[:, None]).ravel()).reshape(apart.shape)
    reached = surrogate.below(apart.ravel()).reshape(apart.shape)
    beyond: Array = np.exp(mean + deviation**2 / 2)[:, None] * above - best * reached
    return np.maximum(beyond, 0.0)


def _speeds_that_add(volume: float, widths: Array, best: Array) -> Array:
    """Return the speed (points,) at which each point adds a volume: lines of which the lowest counts at each speed."""
    order = np.argsort(best, kind="stable")
    across = np.cumsum(widths[:, order], axis=1)
    below = np.cumsum(widths[:, order] * best[order], axis=1)
    found: Array = np.where(across > 0, (volume + below) / np.maximum(across, 1e-12), np.inf).min(1)
    return found
