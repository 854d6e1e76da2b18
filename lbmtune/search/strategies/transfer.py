"""The errors of the model by earlier studies: a prior of a search, trusted as far as its own trials agree.

Studies of other sizes, precisions and devices: their speeds are never compared, only logarithms of measured over
predicted speed. A factor and an offset carry them over (Kennedy, O'Hagan 2000).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lbmtune.catalogue.config import KernelConfig
from lbmtune.search.regression.features import Array, Features, Indices, features
from lbmtune.search.regression.surrogate import Scales
from lbmtune.search.strategies.errors import Errors

MOST_TRIALS = 200
"""Trials of an earlier study that a search learns from."""
_LEADING = 0.2
"""Share of the trials that lead."""
_RANGE = 0.1
"""Largest distance of an error from that of the leaders: how slow a slow kernel is says nothing of the fast ones.
No lesson is more uncertain either."""
_TRUST = 0.7
"""Share of the errors that an earlier study explains as long as nothing was measured."""
_BEGINNING = 4.0
"""Trials that count for that trust."""
_CAUTION = 0.7
"""Standard deviations by which an uncertain lesson counts less, so that those tried there come first."""
_SCALES = Scales(slopes=(0.1,), rests=(0.003, 0.01, 0.03))
"""Scales of bounded errors: a knob that a study did not vary may have an effect, however small those of others are."""
_NOBODY = np.array([], dtype=np.intp)


@dataclass(frozen=True)
class Source:
    """Trials of an earlier study. errors: logarithms of measured over predicted speed; noise: their deviations."""

    configs: tuple[KernelConfig, ...]
    errors: Array
    noise: Array


def source(configs: Sequence[KernelConfig], measured: Array, predicted: Callable[[int], float], noise: Array) -> Source:
    """Return what a search learns from measured configurations: the fastest, and as many of the others by chance.

    measured: MLUPS; predicted: of one of them, MLUPS, by its place; noise: standard deviations of log MLUPS.
    """
    order = np.argsort(-measured, kind="stable")
    if len(order) > MOST_TRIALS:
        others = np.random.default_rng(0).permutation(order[MOST_TRIALS // 2 :])
        order = np.concatenate([order[: MOST_TRIALS // 2], others[: MOST_TRIALS // 2]])
    errors = np.log(measured[order]) - np.log([predicted(int(i)) for i in order])
    return Source(tuple(configs[i] for i in order), _bounded(errors, measured[order]), noise[order])


def _bounded(errors: Array, speeds: Array) -> Array:
    """Return errors, none far from those of the fastest."""
    leading = np.argsort(-speeds, kind="stable")[: max(1, round(_LEADING * len(speeds)))]
    middle = float(np.median(errors[leading]))
    found: Array = np.clip(errors, middle - _RANGE, middle + _RANGE)
    return found


@dataclass(frozen=True)
class _Lesson:
    """Expected errors of the model by a source: mean of each configuration, none of an unknown one, and deviation.

    variance: of the errors of the source.
    """

    mean: Array
    deviation: Array
    variance: float

    def holds(self, rows: Indices, errors: Array) -> tuple[float, float]:
        """Return the share of the variance of errors that the lesson explains, and the variance that it leaves.

        The offset of the lesson is free. A lesson that leaves as much as there was is not believed at all.
        """
        before = _BEGINNING * self.variance
        count = _BEGINNING + len(rows)
        plain = (before + _scatter(errors)) / count
        left = ((1 - _TRUST) * before + _scatter(errors - self.mean[rows])) / count
        return max(0.0, 1.0 - left / plain), left


def _scatter(values: Array) -> float:
    return float(np.sum((values - values.mean()) ** 2)) if len(values) else 0.0


class Prior:
    """The expectations of configurations that sources give. features: of the configurations."""

    def __init__(self, sources: Sequence[Source], configs: Sequence[KernelConfig]) -> None:
        every = features([*configs, *(config for one in sources for config in one.configs)])
        here = np.arange(len(configs))
        self.features = every.at(here)
        ends = np.cumsum([len(configs), *(len(one.configs) for one in sources)])
        self._lessons = [
            _lesson(every, here, np.arange(begin, end), one)
            for one, begin, end in zip(sources, ends, ends[1:], strict=False)
        ]

    def shift(self, rows: Indices, errors: Array, speeds: Array) -> Array:
        """Return what to add to the logarithm of the expected speed of each configuration.

        rows, errors, speeds: of trials of this search; errors: logarithms of measured over predicted speed.
        """
        weights, total = np.full(len(self.features.values), 1e-12), np.zeros(len(self.features.values))
        errors = _bounded(errors, speeds) if len(rows) else errors
        for lesson in self._lessons:
            trust, left = lesson.holds(rows, errors)
            weight = trust / (left + lesson.deviation**2)
            weights += weight
            total += weight * trust * (lesson.mean - _CAUTION * lesson.deviation)
        found: Array = total / weights
        return found


def _lesson(every: Features, here: Indices, there: Indices, one: Source) -> _Lesson:
    points = _varying(every, here, there)
    variance = max(float(np.var(one.errors)), 1e-6)
    found = Errors(points, there, one.errors - one.errors.mean(), one.noise, _NOBODY, _SCALES)
    mean, deviation = found.expected(here)
    deviation = np.minimum(deviation, _RANGE)
    return _Lesson(mean * (1.0 - (deviation / _RANGE) ** 2), deviation, variance)


def _varying(every: Features, here: Indices, there: Indices) -> Features:
    """Return the features that vary in either: what all differ in, such as the precision, is the offset."""
    varies = [np.ptp(every.values[rows], axis=0) > 0 for rows in (here, there)]
    columns = np.flatnonzero(varies[0] | varies[1])
    if not len(columns):
        return Features(every.values[:, :1], np.zeros(1, dtype=np.intp))
    groups = np.unique(every.groups[columns], return_inverse=True)[1]
    return Features(every.values[:, columns], groups.astype(np.intp))
