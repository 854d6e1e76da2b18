"""The search of a study: the model first, then what the trials say of its errors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import sqrt

import numpy as np

from lbmtune.search.interfaces import DOUBT, Gain
from lbmtune.search.regression import surrogate
from lbmtune.search.regression.features import Array, Indices, spread
from lbmtune.search.strategies.expecting import FEWEST, HOPE, Expecting
from lbmtune.search.strategies.ordered import Task

_LED = {"cuda": (5, 5), "cpu": (3, 10)}
"""Trials that follow the model's list alone, and trials that follow it at all. Between them what was learned orders
those that are expected alike: the first measurements of a processor, which others share, teach no more.
After earlier studies twice as many, of which every second one follows the model alone: a study that misleads takes as
many again at most."""
_ALIKE = 1e-6
"""Difference of logarithms up to which the model tells kernels apart by rounding alone."""
_KINDS, _NEAR = 3, 0.85
"""Trials behind them among which each kind has a place whose best is expected at this share of the best, so that it has
a final."""
_OF_ROOT = 2.0
"""Trials before anything is said of what is left to gain, over the square root of all that are expected as near. Of
25,600 kernels on an H100 29 trials erred by less than 3 %, and one that was not among them by 12 %."""
_TURNS = ("process", "process", "list")
_NEXT = 256
"""Configurations of the list among which one is looked for that the trials leave a chance."""
_DRAWN_EVERY, _IMPROVING_EVERY = 8, 2
"""Looks of the process of which one draws, so that no search stays where a wrong lesson put it, and of which one asks
for the improvement over the best."""
_HOPEFUL_EVERY = 4
"""Kernels to compile of which one is chosen by what the compiler may say at best: one spills where another that differs
in a knob does not."""


class Auto(Expecting):
    """The first of the list; then turns of a process of the model's error, and of the list in case that one errs."""

    _turns: Sequence[str] = _TURNS

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._spread, (self._alone, self._led) = task.sample, _LED[task.configs[0].backend]
        self._asked = {True: 0, False: 0}
        self._looks = 0

    @property
    def _first(self) -> int:
        """Return the trials before each kind had its place."""
        return self._led + _KINDS

    def _pick(self, among: Indices, *, compiled: bool) -> int:
        self._expect()
        turn = self._asked[compiled]
        self._asked[compiled] += 1
        if compiled or turn % _HOPEFUL_EVERY:
            return self._chosen(among, turn, compiled=compiled)
        expected = self._log_expected
        self._log_expected = expected + self._hope
        try:
            return self._chosen(among, turn, compiled=compiled)
        finally:
            self._log_expected = expected

    def _chosen(self, among: Indices, turn: int, *, compiled: bool) -> int:
        known = among[self._row[among] >= 0]
        if len(known) and self._sources and turn % 2 and (turn < 2 * self._led or not compiled):
            return int(known[np.argmax(self._worth(known, self._predicted(known)) + self._tie[known])])
        if not len(known):
            return super()._pick(among, compiled=compiled)
        if turn < self._led:
            return self._first_of(known)
        if turn < self._first and (new := self._of_new_kind(known, compiled=compiled)) is not None:
            return new
        if turn >= self._first and self._spread and len(drawn := known[np.isin(known, self._sample)]):
            return int(drawn[0])
        if len(self._measured) < FEWEST:
            return self._by_list(known)
        if self._turns[turn % len(self._turns)] == "list":
            return self._by_list(known)
        return self._by_process(known)

    def gain(self) -> Gain | None:
        """Return what those left may gain at most, but for a doubt; None before each kind had its place.

        And None before the trials are many enough to judge all that are expected near the best.
        """
        self._expect()
        left = self._rows[[i not in self._seen and i not in self._broken for i in self._rows]]
        if not len(left):
            return Gain(0.0, 0.0)
        expected = self._log_expected[self._rows]
        near = int(np.sum(expected >= expected.max() + np.log(_NEAR)))
        if len(self._measured) < max(self._first, _OF_ROOT * sqrt(near)):
            return None
        pool = self._pool(left)
        mean, deviation = self._expected(pool)
        deviation = np.hypot(deviation * self._doubt(), self._hope[pool] / HOPE)
        noise = max(self._seen.values(), key=lambda seen: seen.mlups or 0.0).noise
        gained = surrogate.most_gained(mean, deviation, self._best, DOUBT)
        return Gain(gained, surrogate.any_beyond(mean, deviation, self._best + noise))

    def _first_of(self, among: Indices) -> int:
        """Return the first of the list; of those that are expected alike the one that trials speak for."""
        worth = self._worth(among, self._log_expected[among])
        alike = among[worth >= worth.max() - _ALIKE]
        learned = len(alike) > 1 and len(self._measured) >= self._alone
        return int(alike[np.argmax((self._expected(alike)[0] if learned else 0.0) + self._tie[alike])])

    def _of_new_kind(self, among: Indices, *, compiled: bool) -> int | None:
        """Return the first of the list that is of another kind than those before it and comes near the best."""
        before = [*self._seen, *self._under_way] if compiled else np.flatnonzero(~self._free)
        rows = self._row[before]
        new = among[~np.isin(self._requirements[self._row[among]], self._requirements[rows[rows >= 0]])]
        if not len(new):
            return None
        first = super()._pick(new, compiled=compiled)
        near = self._log_expected[first] >= self._log_expected[self._rows].max() + np.log(_NEAR)
        return first if near else None

    def _by_list(self, among: Indices) -> int:
        """Return the first of the model's list that may lead, or comes nearest to that by what was learned.

        A share of failures of its kind counts as such a loss.
        """
        speeds = self._predicted(among) + self._log_works(among)
        order = among[np.argsort(-(self._worth(among, speeds) + self._tie[among]), kind="stable")][:_NEXT]
        if len(self._measured) < FEWEST:
            return int(order[0])
        mean, deviation = self._expected(order)
        lead = self._lead(order, mean + self._doubt() * deviation)
        return int(order[np.argmax(np.minimum(lead, 0.0))])

    def _lead(self, indices: Indices, log_speeds: Array) -> Array:  # noqa: ARG002
        """Return by how much configurations of these speeds lead all that were measured, as logarithms."""
        found: Array = log_speeds - self._best
        return found

    @cached_property
    def _sample(self) -> Indices:
        return self._rows[spread(self._features.values, self._spread, self._random)]

    def _by_process(self, among: Indices) -> int:
        """Return the one that may be the fastest: one standard deviation above its mean (Srinivas 2010).

        In turns with the one that is expected to improve most on the best: of those that are sure to be a little slower
        none is worth a trial, a doubtful one is. Now and then speeds are drawn instead (Thompson 1933), with deviations
        as wide as forecasts erred.
        """
        pool = self._pool(among)
        mean, deviation = self._expected(pool)
        self._looks += 1
        if self._looks % _DRAWN_EVERY == 0:
            drawn = mean + self._doubt() * deviation * self._random.normal(size=len(pool))
            return int(pool[np.argmax(self._worth(pool, drawn))])
        if self._looks % _IMPROVING_EVERY == 0:
            return int(pool[np.argmax(self._improvement(pool, mean, deviation) + self._tie[pool])])
        return int(pool[np.argmax(self._worth(pool, mean + deviation) + self._tie[pool])])

    def _improvement(self, indices: Indices, mean: Array, deviation: Array) -> Array:
        """Return logarithms of the improvement over the best that is expected of configurations, if they work."""
        return surrogate.log_improvement(mean, deviation, self._best) + self._log_works(indices)


class Learned(Auto):
    """The process alone, after the first of the list."""

    _turns = ("process",)
