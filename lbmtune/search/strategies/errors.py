"""The errors of the model by trials: logarithms of measured over expected speed, at points of the unit cube."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lbmtune.search.regression import surrogate
from lbmtune.search.regression.features import Array, Features, Indices


@dataclass(frozen=True)
class Errors:
    """Errors at some of the points, and what they let expect at all others.

    rows, values, noise: of the trials; believed: rows of trials under way, taken as they are expected; scales: how wide
    errors may be.
    """

    points: Features
    rows: Indices
    values: Array
    noise: Array
    believed: Indices
    scales: surrogate.Scales = surrogate.USUAL
    _known: tuple[Array, Array] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.points.values)
        object.__setattr__(self, "_known", (np.full(count, np.nan), np.full(count, np.nan)))

    def trend(self, rows: Indices) -> Array:
        """Return the mean error at some points by main effects of the knobs."""
        return self._regression.trend(self.points.values[rows])

    def expected(self, rows: Indices) -> tuple[Array, Array]:
        """Return the mean error at some points and its standard deviation."""
        mean, deviation = self._known
        new = rows[np.isnan(mean[rows])]
        if len(new):
            mean[new], deviation[new] = self._regression.predict(self.points.values[new])
        return mean[rows], deviation[rows]

    @cached_property
    def _regression(self) -> surrogate.Regression:
        values = self.points.values
        return surrogate.condition(values[self.rows], self.values, self.noise, values[self.believed], self.scales)
