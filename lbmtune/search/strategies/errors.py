"""What trials say of the model's errors: logarithms of measured over expected speed, at points of the unit cube."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lbmtune.search import surrogate
from lbmtune.search.features import Array, Features, Indices

_EFFECT, _OFFSET, _LACK = 0.1, 0.5, 0.03
"""Standard deviations of logarithms of speeds: effect of a knob that the model lacks, its error common to all, and what
no knob alone describes."""


@dataclass(frozen=True)
class Errors:
    """Errors at some of the points, and what they let expect at all others.

    rows, values, noise: of the trials; believed: rows of trials under way, taken as the process expects them; lack:
    standard deviation of what no knob alone describes.
    """

    points: Features
    rows: Indices
    values: Array
    noise: Array
    believed: Indices
    hyper: surrogate.Hyperparameters
    lack: float = _LACK
    _known: tuple[Array, Array] = field(init=False)

    def __post_init__(self) -> None:
        count = len(self.points.values)
        object.__setattr__(self, "_known", (np.full(count, np.nan), np.full(count, np.nan)))

    def by_effects(self, rows: Indices) -> tuple[Array, Array]:
        """Return the mean error at some points and its standard deviation, by main effects of the knobs."""
        return self._line.predict(self._columns(rows))

    def by_process(self, rows: Indices) -> tuple[Array, Array]:
        """Return the same, with a process of what main effects leave."""
        mean, deviation = self._known
        new = rows[np.isnan(mean[rows])]
        if len(new):
            trend, doubt = self.by_effects(new)
            left, spread = self._process.predict(self.points.values[new])
            mean[new], deviation[new] = trend + left, np.hypot(doubt, spread)
        return mean[rows], deviation[rows]

    def fitted(self) -> surrogate.Hyperparameters:
        """Return the hyperparameters of the process that these errors make most likely."""
        return surrogate.fit(self.points.at(self.rows), self._left, self.hyper, self._relative)

    @cached_property
    def _left(self) -> Array:
        left: Array = self.values - self.by_effects(self.rows)[0]
        return left

    @cached_property
    def _relative(self) -> Array:
        relative: Array = (self.noise / np.median(self.noise)) ** 2
        return relative

    @cached_property
    def _process(self) -> surrogate.Process:
        """A trial under way counts as it is expected, so that the next one differs (Ginsbourger 2010)."""
        process = surrogate.condition(self.points.at(self.rows), self._left, self.hyper, self._relative)
        if not len(self.believed):
            return process
        expected, _ = process.predict(self.points.values[self.believed])
        return surrogate.condition(
            self.points.at(np.append(self.rows, self.believed)),
            np.append(self._left, expected),
            self.hyper,
            np.append(self._relative, np.ones(len(self.believed))),
        )

    @cached_property
    def _line(self) -> surrogate.Linear:
        columns = self._columns(self.rows)
        spread = np.append(_OFFSET, np.full(columns.shape[1] - 1, _EFFECT))
        return surrogate.regress(columns, self.values, spread, np.hypot(self.noise, self.lack))

    def _columns(self, rows: Indices) -> Array:
        return np.column_stack([np.ones(len(rows)), self.points.values[rows] - self._centre])

    @cached_property
    def _centre(self) -> Array:
        centre: Array = self.points.values[self.rows].mean(0)
        return centre
