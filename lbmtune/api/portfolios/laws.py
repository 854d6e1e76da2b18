"""The laws of the contenders of a portfolio, and the speeds that follow from them on domains of its range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from lbmtune.api.portfolios.contenders import Contenders, seconds_of, slower_than_default
from lbmtune.api.portfolios.numbers import numbers_of
from lbmtune.records.best_json.domain import evaluated
from lbmtune.records.best_json.kernel import Int3
from lbmtune.records.best_json.law import CHUNKS, Correction, Corrections, Law, LawTerm, extents_of
from lbmtune.records.portfolio_store import MeasuredDomain
from lbmtune.search.portfolio.cover import Table
from lbmtune.search.portfolio.law import Excess, Times, error_of, excess_of, fitted, scale
from lbmtune.search.regression.features import Array

_CAUTION = 2.5
"""Errors of a law by which a kernel counts as slower where nobody measured."""


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
    _numbers: dict[tuple[Int3, str], tuple[int, ...]] = field(default_factory=dict)
    _formulas: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _fitted: dict[tuple[str, tuple[Int3, ...]], Fit] = field(default_factory=dict)
    _seen: dict[tuple[tuple[Int3, int], ...], dict[str, dict[Int3, float]]] = field(default_factory=dict)

    def law(self, key: str, measured: Sequence[MeasuredDomain]) -> Law:
        """Return the law of a kernel as a file holds it."""
        found = self._fit(key, self._seen_s(measured).get(key, {}))
        pairs = zip(self.formulas(key), found.coefficients, strict=True)
        return tuple(LawTerm(picoseconds=_rounded(1e12 * value), count=one) for one, value in pairs if value)

    def corrections(self, key: str, measured: Sequence[MeasuredDomain]) -> Corrections:
        """Return the corrections of that law as a file holds them."""
        seen = self._seen_s(measured).get(key, {})
        pairs = zip(seen, self._fit(key, seen).excess.shares, strict=True)
        return tuple(Correction(domain=domain, share=_rounded(share)) for domain, share in pairs)

    def formulas(self, key: str) -> tuple[str, ...]:
        """Return the formulas of the numbers that the time of a kernel follows from."""
        if key not in self._formulas:
            known = self.contenders
            resources, chunks = known.resources.get(key), known.chunks.get(key)
            self._formulas[key] = numbers_of(known.spec.case, known.configs[key], known.machine, resources, chunks)
        return self._formulas[key]

    def numbers(self, key: str, domain: Int3) -> tuple[int, ...]:
        """Return these numbers for a domain."""
        if (domain, key) not in self._numbers:
            chunks = self.contenders.chunks.get(key)
            known = {**extents_of(domain), CHUNKS: chunks.count(domain) if chunks else 1}
            self._numbers[domain, key] = tuple(evaluated(one, known) for one in self.formulas(key))
        return self._numbers[domain, key]

    def _fit(self, key: str, seen: Mapping[Int3, float]) -> Fit:
        """Return the law of a kernel by seconds that were measured, and by the model on other domains."""
        if (key, (*seen,)) not in self._fitted:
            legal = [one for one in self.others if one not in seen and self.contenders.takes(key, one)]
            if not seen and not legal:
                return Fit(np.zeros(0), excess_of((), np.zeros(0), error_of(np.zeros(0))))
            expected = [self.contenders.expected_s(key, one) for one in (*seen, *legal)]
            known = np.arange(len(expected)) < len(seen)
            wrong = scale(np.array([*seen.values()]), np.array(expected[: len(seen)]))
            seconds = np.where(known, [*seen.values(), *([1.0] * len(legal))], wrong * np.array(expected))
            numbers = np.array([self.numbers(key, one) for one in (*seen, *legal)], dtype=float)
            by_law = fitted(Times(numbers, seconds, known.astype(float)))
            error = error_of(seconds[known] / (numbers[known] @ by_law) - 1)
            found = by_law * (1 + _CAUTION * error)  # else kernels are chosen whose few measurements promise most
            relative = seconds[known] / (numbers[known] @ found) - 1
            self._fitted[key, (*seen,)] = Fit(found, excess_of((*seen,), relative, error))
        return self._fitted[key, (*seen,)]

    def _seen_s(self, measured: Sequence[MeasuredDomain]) -> dict[str, dict[Int3, float]]:
        """Return the seconds of a step of each kernel on the domains where it was measured."""
        which = tuple((one.domain, one.visit) for one in measured)
        if which not in self._seen:
            found: dict[str, dict[Int3, float]] = {}
            for one in measured:
                speeds = {trial.key: trial.mlups for trial in one.trials if trial.mlups}
                for key in self.contenders.keys:
                    if mlups := speeds.get(self.contenders.named(key, one.domain)):
                        found.setdefault(key, {})[one.domain] = seconds_of(one.domain, mlups)
            self._seen = {which: found}
        return self._seen[which]

    def speeds(self, domain: Int3, measured: Sequence[MeasuredDomain]) -> Array:
        """Return MLUPS by the laws, in the order of the contenders; 0: illegal there."""
        found, seen = np.zeros(len(self.contenders.keys)), self._seen_s(measured)
        for n, key in enumerate(self.contenders.keys):
            fit = self._fit(key, seen.get(key, {}))
            if len(fit.coefficients) and self.contenders.takes(key, domain):
                by_law = float(np.dot(self.numbers(key, domain), fit.coefficients))
                found[n] = seconds_of(domain, 1.0) / (by_law * fit.excess.factor(domain))
        return found

    def doubts(self, domain: Int3, measured: Sequence[MeasuredDomain]) -> Array:
        """Return the share by which each of these speeds may err."""
        seen = self._seen_s(measured)
        return np.array([self._fit(key, seen.get(key, {})).excess.doubt(domain) for key in self.contenders.keys])

    def table(self, measured: Sequence[MeasuredDomain]) -> Table:
        """Return the speeds on domains that were measured, as far as they were, and by the laws on the others."""
        there = [one.domain for one in measured]
        domains = [*there, *(one for one in dict.fromkeys((*self.others, *self.imagined)) if one not in there)]
        speeds = np.array([self.speeds(domain, measured) for domain in domains])
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
