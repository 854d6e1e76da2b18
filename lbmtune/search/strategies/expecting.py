"""The speed that a search expects of each configuration: by model, compiler, trials and earlier studies."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from functools import cached_property

import numpy as np

from lbmtune.search.interfaces import Seen
from lbmtune.search.kinds import kind_of
from lbmtune.search.regression.features import Array, Features, Indices
from lbmtune.search.strategies.errors import Errors
from lbmtune.search.strategies.ordered import Listed, Task
from lbmtune.search.strategies.transfer import Prior

FEWEST = 3
"""Measured configurations from which on something is learned."""
_SCALED = 0.3
"""Logarithm of the expected speed behind the best within which the model's scale is learned: who leads by an error is
expected to be too fast, and the model may tell kernels less or more apart than they are."""
_LEADING, _DRAWN = 20_000, 2_000
"""Configurations with features: the best of the model's list, and some of the others."""
_POOL, _TRAINING = 2000, 200
"""Configurations that the process looks at, and trials that it learns from."""
_GROWTH = 1.25
"""Growth of the number of compiled configurations after which they are learned from anew."""
_TRUST = 4
"""Forecasts that count as erring as foretold before any was made."""
_USUAL = 2
"""Trials without a failure that count for each kind before any was made."""
HOPE = 2.0
"""Standard deviations above what it is expected to say of another one that count as the best that it may say."""
_EXACT = 0.01
"""Noise of what the compiler says of a configuration."""
_FAILED = 0.05
"""The same, of what a failure tells of the speed of its neighbours."""
_SLOW = 1.0
"""The same, of a configuration that is behind the best by one, growing with the square: how slow a slow kernel is says
little of the fast ones."""


class Expecting(Listed):
    """Keeps the expected speed of every configuration up to date, and learns the error of that. A subclass chooses."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._configs = task.configs
        self._estimated: Array = self._log_expected.copy()
        self._told: dict[int, float] = {}
        self._told_at = 0
        self._hope: Array = np.zeros(len(self._free))
        self._best = 0.0
        self._foretold: dict[int, tuple[float, float]] = {}
        self._learned: Errors | None = None
        self._pooled: Indices | None = None
        self._sources, self._shift, self._stale = task.sources, np.zeros(len(self._free)), bool(task.sources)

    def wanted(self, count: int) -> list[int]:
        """Return what to compile next, after the compiler's word on some has been believed of those like them."""
        if len(self._told) >= max(FEWEST, _GROWTH * self._told_at):
            self._told_at = len(self._told)
            self._generalise()
        return super().wanted(count)

    def _generalise(self) -> None:
        """Expect of what is not compiled what registers and spills of its neighbours let expect."""
        told = np.array([i for i in self._told if self._row[i] >= 0][-(_TRAINING // 2) :], dtype=np.intp)
        rest = self._rows[self._free[self._rows]]
        changes = np.array([self._told[i] for i in told])
        if len(told) < FEWEST or not len(rest) or not np.ptp(changes):
            return
        found = Errors(self._features, self._row[told], changes, np.full(len(told), _EXACT), rest[:0])
        change, deviation = found.expected(self._row[rest])
        expected, best = np.minimum(change, 0.0), np.minimum(change + HOPE * deviation, 0.0)
        self._log_expected[rest] = self._estimated[rest] + expected + self._shift[rest]
        self._hope[rest] = best - expected

    def observe(self, index: int, seen: Seen) -> None:
        """Note a result, of which the model's errors are learned anew when they are needed."""
        super().observe(index, seen)
        self._hope[index] = 0.0
        self._learned = self._pooled = None
        self._stale = bool(self._sources)

    def refine(self, index: int, mlups: float | None) -> None:
        """Replace what the model predicts of a configuration; what earlier studies say of its error stays."""
        super().refine(index, mlups)
        self._hope[index] = 0.0
        if mlups is not None:
            self._told[index] = float(self._log_expected[index] - self._estimated[index])
            self._log_expected[index] += self._shift[index]

    def next(self, ready: Collection[int]) -> int:
        """Return what to measure now, and remember what is expected of it."""
        index = super().next(ready)
        if len(self._measured) >= FEWEST and self._row[index] >= 0:
            mean, deviation = self._expected(np.array([index]))
            self._foretold[index] = float(mean[0]), float(deviation[0])
        return index

    def _expect(self) -> None:
        """Add to the predictions the errors that earlier studies foretell, as far as they did so until now."""
        if not self._stale:
            return
        tried = np.array(self._measured, dtype=np.intp)
        speeds = np.log([self._seen[i].mlups or 1.0 for i in tried])
        known = self._prior.shift(self._row[tried], speeds - self._predicted(tried), speeds)
        shift = np.full(len(self._free), known.min())
        shift[self._rows] = known
        self._log_expected += shift - self._shift
        self._shift, self._stale = shift, False

    def _predicted(self, indices: Indices) -> Array:
        """Return logarithms of what the model alone predicts."""
        found: Array = self._log_expected[indices] - self._shift[indices]
        return found

    def _expected(self, indices: Indices) -> tuple[Array, Array]:
        """Return mean and standard deviation of the logarithms of MLUPS."""
        mean, deviation = self._errors().expected(self._row[indices])
        return mean + self._log_expected[indices], deviation

    def _doubt(self) -> float:
        """Return how much larger than foretold the errors of forecasts were: root of the mean square, one at first."""
        errors = [
            (np.log(self._seen[i].mlups or 1.0) - mean) / deviation
            for i, (mean, deviation) in self._foretold.items()
            if i in self._seen and self._seen[i].mlups
        ]
        return float(np.sqrt((_TRUST + np.sum(np.square(errors))) / (_TRUST + len(errors)))) if errors else 1.0

    def _log_works(self, indices: Indices) -> Array:
        """Return logarithms of the shares of the trials of their kinds that did not fail."""
        tried = np.array([i for i in self._seen if self._row[i] >= 0 and self._seen[i].known], dtype=np.intp)
        kinds = int(self._kind.max()) + 1
        made = np.bincount(self._kind[self._row[tried]], minlength=kinds)
        well = np.array([i for i in tried if self._seen[i].mlups], dtype=np.intp)
        good = np.bincount(self._kind[self._row[well]], minlength=kinds)
        found: Array = np.log((good + _USUAL) / (made + _USUAL))[self._kind[self._row[indices]]]
        return found

    def _errors(self) -> Errors:
        """Return what the trials say so far; the same until the next result."""
        if self._learned is None:
            seen, values, noise = self._training()
            errors = values - self._log_expected[seen]
            under_way = self._row[np.array(self._under_way, dtype=np.intp)]
            expected = self._log_expected[self._rows]
            self._points.values[:, -1] = np.clip((expected - expected.max()) / _SCALED, -1.0, 0.0) + 1.0
            self._learned = Errors(self._points, self._row[seen], errors, noise, under_way[under_way >= 0])
            self._best = float(values.max())
        return self._learned

    def _training(self) -> tuple[Indices, Array, Array]:
        """Return what was seen: indices, logarithms of MLUPS, failures as the worst, and their noise."""
        seen = np.array([i for i in self._seen if self._seen[i].known and self._row[i] >= 0], dtype=np.intp)
        worst = min(self._seen[i].mlups or np.inf for i in seen)
        values = np.log([self._seen[i].mlups or worst for i in seen])
        noise = np.hypot([self._seen[i].noise for i in seen], _SLOW * self._behind(seen, values) ** 2)
        noise = np.where([self._seen[i].mlups is not None for i in seen], noise, _FAILED)
        if len(seen) > _TRAINING:
            keep = np.union1d(np.argsort(-values)[: _TRAINING // 2], np.arange(len(seen) - _TRAINING // 2, len(seen)))
            seen, values, noise = seen[keep], values[keep], noise[keep]
        return seen, values, noise

    def _pool(self, among: Indices) -> Indices:
        """Return those of many that lead by main effects, and a draw of the others; the same until the next result."""
        if len(among) <= _POOL:
            return among
        if self._pooled is None:
            promise = self._promise(among, self._errors().trend(self._row[among]) + self._log_expected[among])
            best = among[np.argpartition(-promise, _POOL // 2)[: _POOL // 2]]
            self._pooled = np.union1d(best, self._random.choice(among, _POOL // 2, replace=False))
        here = np.zeros(len(self._free), dtype=bool)
        here[among] = True
        kept = self._pooled[here[self._pooled]]
        return kept if len(kept) else among[:_POOL]

    def _promise(self, indices: Indices, log_speeds: Array) -> Array:  # noqa: ARG002
        """Return by what the configurations are chosen that are looked at more closely."""
        return log_speeds

    def _behind(self, indices: Indices, log_speeds: Array) -> Array:  # noqa: ARG002
        """Return how far configurations are behind the best, as logarithms of speeds."""
        found: Array = log_speeds.max() - log_speeds
        return found

    def _outlook(self) -> Array:
        """Return what all configurations promise before any is measured."""
        expected: Array = self._log_expected
        return expected

    @property
    def _measured(self) -> list[int]:
        return [index for index, seen in self._seen.items() if seen.mlups and self._row[index] >= 0]

    @cached_property
    def _rows(self) -> Indices:
        """Configurations with features."""
        order = np.argsort(-self._outlook(), kind="stable")
        rest = order[_LEADING:]
        drawn = self._random.choice(rest, min(_DRAWN, len(rest)), replace=False)
        return np.union1d(np.union1d(order[:_LEADING], drawn), np.array(list(self._seen), dtype=np.intp))

    @cached_property
    def _row(self) -> Indices:
        """The row of a configuration among those with features, or -1."""
        row = np.full(len(self._free), -1)
        row[self._rows] = np.arange(len(self._rows))
        return row

    @cached_property
    def _prior(self) -> Prior:
        return Prior(self._sources, [self._configs[i] for i in self._rows])

    @property
    def _features(self) -> Features:
        return self._prior.features

    @cached_property
    def _points(self) -> Features:
        """The features, and a last one that says how far a configuration is behind the first of the list."""
        values, groups = self._features.values, self._features.groups
        return Features(np.column_stack([values, np.zeros(len(values))]), np.append(groups, groups.max() + 1))

    @cached_property
    def _kind(self) -> Indices:
        """The kind of each row."""
        return _numbered([kind_of(self._configs[i]) for i in self._rows])

    @cached_property
    def _requirements(self) -> Indices:
        """The number of the values that a solver provides, for each row."""
        return _numbered([kind_of(self._configs[i]).requirements for i in self._rows])


def _numbered(names: Sequence[Hashable]) -> Indices:
    place: dict[Hashable, int] = {}
    return np.array([place.setdefault(name, len(place)) for name in names], dtype=np.intp)
