"""The laws of the contenders of a portfolio, and the speeds that follow from them on domains of its range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from lbmtune.api.portfolios.contenders import Contenders, seconds_of, slower_than_default
from lbmtune.api.portfolios.numbers import numbers_of
from lbmtune.records.best_json.domain import each_evaluated
from lbmtune.records.best_json.kernel import Int3
from lbmtune.records.best_json.law import CHUNKS, Correction, Corrections, Law, LawTerm, extents_of
from lbmtune.records.portfolio_store import MeasuredDomain
from lbmtune.search.portfolio.cover import Table
from lbmtune.search.portfolio.law import LAW_ERROR, Excess, Times, error_of, excess_of, fitted, scale
from lbmtune.search.regression.features import Array

_CAUTION = 1.0
"""Errors of a law by which a kernel counts as slower where nobody measured."""
_DOUBT = 2.0
"""Errors of a law by which a file says that it may err. Of 425 left-out domains of seven runs, the best of the kernels
that are possible loses more than 3 % on 25 with 1, on 23 with 2, and on 23 if all six are possible."""
_LEADER_ERROR = 0.03
"""Relative error, where nobody measured, of the law of a kernel like another one that is better known."""


class _Known(NamedTuple):
    """Times that were measured of kernels on domains. seconds: of a step, by kernel and domain.

    leaders: of kernels whose times follow from the same numbers the best known one, by the formulas of these.
    """

    seconds: Mapping[str, Mapping[Int3, float]]
    leaders: Mapping[tuple[str, ...], str]


class Fit(NamedTuple):
    """The law of a kernel, as slow as it may be where nobody measured.

    coefficients: seconds of each number, none if it is known nowhere; excess: beside these.
    """

    coefficients: Array
    excess: Excess


@dataclass
class Laws:
    """Laws of contenders by their measurements, and by the model on other domains.

    others: these domains; imagined: domains that kernels are chosen for by laws alone.
    """

    contenders: Contenders
    others: Sequence[Int3]
    imagined: Sequence[Int3] = ()
    _numbers: dict[tuple[Int3, str], Array] = field(default_factory=dict)
    _formulas: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _fitted: dict[tuple[str, tuple[Int3, ...], str, int], Fit] = field(default_factory=dict)
    _seen: dict[tuple[tuple[Int3, int], ...], _Known] = field(default_factory=dict)

    def law(self, key: str, measured: Sequence[MeasuredDomain]) -> Law:
        """Return the law of a kernel as a file holds it."""
        found = self._fit(key, self._known(measured))
        pairs = zip(self.formulas(key), found.coefficients, strict=True)
        return tuple(LawTerm(picoseconds=_rounded(1e12 * value), count=one) for one, value in pairs if value)

    def corrections(self, key: str, measured: Sequence[MeasuredDomain]) -> Corrections:
        """Return the corrections of that law as a file holds them."""
        known = self._known(measured)
        pairs = zip(known.seconds.get(key, {}), self._fit(key, known).excess.shares, strict=True)
        return tuple(Correction(domain=domain, share=_rounded(share)) for domain, share in pairs)

    def doubt(self, key: str, measured: Sequence[MeasuredDomain]) -> float:
        """Return the share of the time by that law by which it may err, as a file holds it."""
        return _rounded(_DOUBT * self._fit(key, self._known(measured)).excess.error)

    def formulas(self, key: str) -> tuple[str, ...]:
        """Return the formulas of the numbers that the time of a kernel follows from."""
        if key not in self._formulas:
            known = self.contenders
            resources, chunks = known.resources.get(key), known.chunks.get(key)
            self._formulas[key] = numbers_of(known.spec.case, known.configs[key], known.machine, resources, chunks)
        return self._formulas[key]

    def numbers(self, key: str, domains: Sequence[Int3]) -> Array:
        """Return these numbers for domains. Shape (domains, numbers)."""
        formulas = self.formulas(key)
        if new := [one for one in domains if (one, key) not in self._numbers]:
            counts = [self.contenders.count(key, one) for one in new]
            known = {**extents_of(tuple(np.array(new).T)), CHUNKS: np.array(counts)}
            rows = [np.broadcast_to(each_evaluated(one, known), len(new)) for one in formulas]
            self._numbers |= {(one, key): row for one, row in zip(new, np.array(rows, dtype=float).T, strict=True)}
        return np.array([self._numbers[one, key] for one in domains]).reshape(-1, len(formulas))

    def _fit(self, key: str, known: _Known) -> Fit:
        """Return the law of a kernel by seconds that were measured, and by what is expected on other domains."""
        seen, leader = known.seconds.get(key, {}), known.leaders.get(self.formulas(key), key)
        place = (key, (*seen,), leader, len(known.seconds.get(leader, {})))
        if place not in self._fitted:
            legal = [one for one in self.others if one not in seen and self.contenders.takes(key, one)]
            usual_error = LAW_ERROR if leader == key else _LEADER_ERROR
            if not seen and not legal:
                return Fit(np.zeros(0), excess_of((), np.zeros(0), error_of(np.zeros(0), usual_error)))
            expected = self._expected_s(key, leader, (*seen, *legal), known)
            here = np.arange(len(expected)) < len(seen)
            wrong = scale(np.array([*seen.values()]), expected[here])
            seconds = np.where(here, [*seen.values(), *([1.0] * len(legal))], wrong * expected)
            numbers = self.numbers(key, (*seen, *legal))
            by_law = fitted(Times(numbers, seconds, here.astype(float)))
            error = error_of(seconds[here] / (numbers[here] @ by_law) - 1, usual_error)
            found = by_law * (1 + _CAUTION * error)  # else kernels are chosen whose few measurements promise most
            relative = seconds[here] / (numbers[here] @ found) - 1
            self._fitted[place] = Fit(found, excess_of((*seen,), relative, error))
        return self._fitted[place]

    def _expected_s(self, key: str, leader: str, domains: Sequence[Int3], known: _Known) -> Array:
        """Return the seconds of a kernel, but for a factor: by the law of a kernel like it, or by the model."""
        if leader != key:
            found: Array = self.numbers(key, domains) @ self._fit(leader, known).coefficients
            return found
        return np.array([self.contenders.expected_s(key, one) for one in domains])

    def _known(self, measured: Sequence[MeasuredDomain]) -> _Known:
        """Return the seconds of each kernel on the domains where it was measured, and the best known of each kind."""
        which = tuple((one.domain, one.visit) for one in measured)
        if which not in self._seen:
            found: dict[str, dict[Int3, float]] = {}
            for one in measured:
                speeds = {trial.key: trial.mlups for trial in one.trials if trial.mlups}
                for key in self.contenders.keys:
                    if mlups := speeds.get(self.contenders.named(key, one.domain)):
                        found.setdefault(key, {})[one.domain] = seconds_of(one.domain, mlups)
            ranked = sorted(found, key=lambda key: len(found[key]))
            self._seen = {which: _Known(found, {self.formulas(key): key for key in ranked})}
        return self._seen[which]

    def speeds(self, domains: Sequence[Int3], measured: Sequence[MeasuredDomain]) -> Array:
        """Return MLUPS by the laws. Shape (domains, contenders), in their order; 0: illegal there."""
        found, known = np.zeros((len(domains), len(self.contenders.keys))), self._known(measured)
        for n, key in enumerate(self.contenders.keys):
            fit = self._fit(key, known)
            rows = [row for row, one in enumerate(domains) if self.contenders.takes(key, one)]
            if len(fit.coefficients) and rows:
                legal = [domains[row] for row in rows]
                by_law = self.numbers(key, legal) @ fit.coefficients * fit.excess.factors(legal)
                found[rows, n] = [seconds_of(one, 1.0) for one in legal] / by_law
        return found

    def doubts(self, domains: Sequence[Int3], measured: Sequence[MeasuredDomain]) -> Array:
        """Return the share by which each of these speeds may err."""
        known = self._known(measured)
        fits = (self._fit(key, known) for key in self.contenders.keys)
        return np.stack([fit.excess.doubts(domains) for fit in fits], axis=1)

    def hopes(self, domain: Int3, measured: Sequence[MeasuredDomain]) -> Array:
        """Return the speeds on a domain if laws err the other way: kernels that nobody measured there may be fast."""
        speeds, doubts = (one([domain], measured)[0] for one in (self.speeds, self.doubts))
        found: Array = speeds * (1 + (1 + _CAUTION) * doubts)
        return found

    def table(self, measured: Sequence[MeasuredDomain]) -> Table:
        """Return the speeds on domains that were measured, as far as they were, and by the laws on the others."""
        there = [one.domain for one in measured]
        domains = [*there, *(one for one in dict.fromkeys((*self.others, *self.imagined)) if one not in there)]
        speeds = self.speeds(domains, measured)
        known, behind = np.zeros(speeds.shape, dtype=bool), np.zeros(speeds.shape, dtype=bool)
        for row, one in enumerate(measured):
            trials = {trial.key: trial for trial in one.trials}
            for column, key in enumerate(self.contenders.keys):
                if trial := trials.get(self.contenders.named(key, one.domain)):
                    speeds[row, column], known[row, column] = trial.mlups or 0.0, True
                    behind[row, column] = slower_than_default(one, trial)
        return Table(np.array(domains, dtype=float), speeds, known, behind)


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
