"""The order of trials: the model's best first, then a sample if wanted, then the surrogate's expected improvement.

Works on indices into the legal set. No configuration is proposed twice. Pending ones count as seen at their expected
value (kriging believer), so that proposals in flight differ.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lbmtune.catalogue.config import KernelConfig
from lbmtune.search import surrogate
from lbmtune.search.features import Array, Features, features

SEEDS = 10
"""Candidates of the model that come first."""
SHAPES, _RIVALS = 8, 0.8
"""Shapes that come next of each group of kernels with several steps or moments, because the model predicts instructions
less well than bytes; and the share of the best expected speed that a group needs."""
_WIDTHS: Mapping[str, str] = {"cuda": "cells_per_thread", "cpu": "vector_bits"}
"""Knob of the width of an access, by backend."""
_RANDOM_EVERY = 10
_POOL, _TRAINING, _LEADERS = 1000, 200, 5

Indices = NDArray[np.intp]


class Choice:
    """The state of a search over configurations. expected: MLUPS by the model; tiers: lower ones are tried first.

    batch: proposals taken from one evaluation of the surrogate; sample: configurations spread over the whole space that
    come before the surrogate.
    """

    def __init__(
        self,
        configs: Sequence[KernelConfig],
        expected: Sequence[float],
        seed: int,
        tiers: Sequence[int] | None = None,
        batch: int = 1,
        sample: int = 0,
    ) -> None:
        self._space = features(configs)
        self._log_expected = np.log(np.maximum(np.asarray(expected, dtype=float), 1e-9))
        self._tiers = np.asarray(tiers if tiers is not None else np.zeros(len(configs)))
        self._random = np.random.default_rng(seed)
        self._hyper, self._fitted_at = surrogate.start(int(self._space.groups.max()) + 1), 0
        self._value: dict[int, float | None] = {}
        self._pending: list[int] = []
        lead, tiled = (
            [i for i in chosen if self._tiers[i] == self._tiers.min()]
            for chosen in (leaders(configs, expected, self._random), shapes(configs, expected))
        )
        self._seeds = [*lead[:SEEDS], *tiled]
        self._sample = spread(self._space.values, sample, self._random)
        self._proposed = 0
        self._batch, self._queue = batch, list[int]()
        self._distances: dict[int, Array] = {}

    @property
    def remaining(self) -> int:
        """Return the number of configurations that were neither proposed nor observed."""
        return len(self._log_expected) - len(self._value.keys() | set(self._pending))

    def observe(self, index: int, mlups: float | None) -> None:
        """Add a result. mlups: None if the configuration has no speed."""
        self._value[index] = mlups
        if index in self._pending:
            self._pending.remove(index)

    def propose(self) -> int:
        """Return the next configuration, pending from now on. `remaining` must not be zero."""
        self._proposed += 1
        index = self._next()
        self._pending.append(index)
        return index

    def _next(self) -> int:
        for seed in self._seeds:
            if seed not in self._value and seed not in self._pending:
                return seed
        while self._sample:
            drawn = self._sample.pop(0)
            if drawn not in self._value and drawn not in self._pending:
                return drawn
        unseen = self._unseen()
        measured = [i for i, value in self._value.items() if value]
        if len(measured) < 3 or self._proposed % _RANDOM_EVERY == 0:
            drawn = int(self._random.choice(unseen))
            self._queue = [i for i in self._queue if i != drawn]
            return drawn
        if not self._queue:
            pool = self._pool(unseen, measured)
            self._queue = [int(i) for i in pool[np.argsort(-self._gain(pool))[: self._batch]]]
        return self._queue.pop(0)

    def _unseen(self) -> Indices:
        free = np.ones(len(self._log_expected), dtype=bool)
        free[[*self._value, *self._pending]] = False
        lowest = self._tiers[free].min()
        return np.flatnonzero(free & (self._tiers == lowest))

    def _pool(self, unseen: Indices, measured: list[int]) -> Indices:
        """Return the unseen ones, of many a part: neighbours of the best, and a sample of the others."""
        if len(unseen) <= _POOL:
            return unseen
        best = sorted(measured, key=lambda i: -(self._value[i] or 0.0))[:_LEADERS]
        near = np.min([self._distances_from(i)[unseen] for i in best], axis=0)
        return np.union1d(
            unseen[np.argsort(near)[: _POOL // 2]], self._random.choice(unseen, _POOL // 2, replace=False)
        )

    def _distances_from(self, index: int) -> Array:
        """Return the distances of all points from one, cached because leaders stay for many proposals."""
        if index not in self._distances:
            self._distances[index] = np.abs(self._space.values - self._space.values[index]).sum(1)
        return self._distances[index]

    def _gain(self, pool: Indices) -> Array:
        """Return the expected improvement of log MLUPS; the process describes the error of the model."""
        seen, values = self._training()
        process = surrogate.condition(self._at(seen), values - self._log_expected[seen], self._refit(seen, values))
        if self._pending:
            pending = np.array(self._pending)
            believed, _ = process.predict(self._space.values[pending])
            seen, values = np.append(seen, pending), np.append(values, believed + self._log_expected[pending])
            process = surrogate.condition(self._at(seen), values - self._log_expected[seen], self._hyper)
        mean, deviation = process.predict(self._space.values[pool])
        return surrogate.expected_improvement(mean + self._log_expected[pool], deviation, float(values.max()))

    def _training(self) -> tuple[Indices, Array]:
        """Return indices and log MLUPS of what was seen, failures as the worst; of many the best and the latest."""
        worst = min(value for value in self._value.values() if value)
        seen = np.array(list(self._value))
        values = np.log([value or worst for value in self._value.values()])
        if len(seen) > _TRAINING:
            keep = np.union1d(np.argsort(-values)[: _TRAINING // 2], np.arange(len(seen) - _TRAINING // 2, len(seen)))
            seen, values = seen[keep], values[keep]
        return seen, values

    def _refit(self, seen: Indices, values: Array) -> surrogate.Hyperparameters:
        if len(self._value) >= 1.25 * self._fitted_at:
            self._hyper = surrogate.fit(self._at(seen), values - self._log_expected[seen], self._hyper)
            self._fitted_at = len(self._value)
        return self._hyper

    def _at(self, indices: Indices) -> Features:
        return Features(self._space.values[indices], self._space.groups)


def spread(points: Array, count: int, random: np.random.Generator) -> list[int]:
    """Return indices of `count` points that fill the space: each is the farthest from those before it.

    points: (n, features). The first one and ties are random. Source: Gonzalez 1985 (farthest-point clustering).
    """
    order = random.permutation(len(points))
    shuffled = points[order]
    nearest = np.full(len(points), np.inf)
    chosen: list[int] = []
    for _ in range(min(count, len(points))):
        farthest = int(np.argmax(nearest))
        chosen.append(farthest)
        nearest = np.minimum(nearest, ((shuffled - shuffled[farthest]) ** 2).sum(1))
        nearest[chosen] = -1.0
    return [int(order[i]) for i in chosen]


def leaders(configs: Sequence[KernelConfig], expected: Sequence[float], random: np.random.Generator) -> list[int]:
    """Return the indices of the best by the model of each group, best group first; wide access first, then by chance.

    expected: MLUPS. Groups are formed by scheme and access width; by representation and steps, if there are several
    steps per launch or moments; by planes of a tile, if the state stays on chip.
    """
    draw = random.permutation(len(configs))
    order = sorted(range(len(configs)), key=lambda i: (-expected[i], -_access_width(configs[i]), draw[i]))
    first: dict[Hashable, int] = {}
    for i in order:
        first.setdefault(_group(configs[i]), i)
    return list(first.values())


def shapes(configs: Sequence[KernelConfig], expected: Sequence[float]) -> list[int]:
    """Return the indices of the best by the model of each group of tiled GPU kernels, one for each length of chunks.

    expected: MLUPS. Groups whose best is expected below `_RIVALS` of the best of all are left out.
    """
    groups: dict[Hashable, dict[Hashable, int]] = {}
    for i in sorted(range(len(configs)), key=lambda i: -expected[i]):
        config = configs[i]
        if config.tiled and _is_fused(config):
            groups.setdefault(_group(config), {}).setdefault(_shape(config), i)
    return [
        i
        for group in groups.values()
        if expected[next(iter(group.values()))] >= _RIVALS * max(expected)
        for i in list(group.values())[:SHAPES]
    ]


def _is_fused(config: KernelConfig) -> bool:
    return config.kept.name != "populations" or config.fused_steps > 1


def _group(config: KernelConfig) -> Hashable:
    if _is_fused(config):
        return config.kept.name, config.fused_steps
    if config.length_knob:
        return config.family, getattr(config, config.length_knob)
    return config.scheme, _access_width(config)


def _shape(config: KernelConfig) -> Hashable:
    """Return a tiled configuration without the length of its chunks or tiles."""
    return tuple((name, value) for name, value in config.flat().items() if name != config.length_knob)


def _access_width(config: KernelConfig) -> int:
    width: int = getattr(config, _WIDTHS[config.backend], 1)
    return width
