"""The laws of the contenders of a portfolio, and the speeds that follow from them on domains of its range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lbmtune.api.portfolios.contenders import Contenders, seconds_of, slower_than_default
from lbmtune.api.portfolios.numbers import numbers_of
from lbmtune.records.best_json.domain import evaluated
from lbmtune.records.best_json.kernel import Int3
from lbmtune.records.best_json.law import CHUNKS, Law, LawTerm, extents_of
from lbmtune.records.portfolio_store import MeasuredDomain
from lbmtune.search.portfolio.cover import Table
from lbmtune.search.portfolio.law import Times, doubt, fitted, scale
from lbmtune.search.regression.features import Array


@dataclass
class Laws:
    """Laws of contenders by their measurements, and by the model on other domains. others: these domains."""

    contenders: Contenders
    others: Sequence[Int3]
    _numbers: dict[tuple[Int3, str], tuple[int, ...]] = field(default_factory=dict)
    _formulas: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _fitted: dict[tuple[str, int], Array] = field(default_factory=dict)

    def law(self, key: str, measured: Sequence[MeasuredDomain]) -> Law:
        """Return the law of a kernel as a file holds it."""
        pairs = zip(self.formulas(key), self.coefficients(key, measured), strict=True)
        return tuple(LawTerm(picoseconds=float(f"{1e12 * value:.6g}"), count=one) for one, value in pairs if value)

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

    def coefficients(self, key: str, measured: Sequence[MeasuredDomain]) -> Array:
        """Return the seconds of each number of a kernel; none if it is known on no domain."""
        seen = self._seen_s(key, measured)
        if (key, len(seen)) not in self._fitted:
            legal = [one for one in self.others if one not in seen and self.contenders.takes(key, one)]
            if not seen and not legal:
                return np.zeros(0)
            expected = [self.contenders.expected_s(key, one) for one in (*seen, *legal)]
            known = np.arange(len(expected)) < len(seen)
            wrong = scale(np.array([*seen.values()]), np.array(expected[: len(seen)]))
            seconds = np.where(known, [*seen.values(), *([1.0] * len(legal))], wrong * np.array(expected))
            numbers = np.array([self.numbers(key, one) for one in (*seen, *legal)], dtype=float)
            self._fitted[key, len(seen)] = fitted(Times(numbers, seconds, known.astype(float)))
        return self._fitted[key, len(seen)]

    def _seen_s(self, key: str, measured: Sequence[MeasuredDomain]) -> dict[Int3, float]:
        """Return the seconds of a step of a kernel on the domains where it was measured."""
        found: dict[Int3, float] = {}
        for one in measured:
            there = self.contenders.named(key, one.domain)
            for trial in one.trials:
                if trial.key == there and trial.mlups:
                    found[one.domain] = seconds_of(one.domain, trial.mlups)
        return found

    def speeds(self, domain: Int3, measured: Sequence[MeasuredDomain]) -> Array:
        """Return MLUPS by the laws, in the order of the contenders; 0: illegal there."""
        found = np.zeros(len(self.contenders.keys))
        for n, key in enumerate(self.contenders.keys):
            by_law = self.coefficients(key, measured) if self.contenders.takes(key, domain) else np.zeros(0)
            if len(by_law):
                found[n] = seconds_of(domain, 1.0) / float(np.dot(self.numbers(key, domain), by_law))
        return found

    def doubts(self, measured: Sequence[MeasuredDomain]) -> Array:
        """Return the share by which the law of each contender may err."""
        return np.array([doubt(len(self._seen_s(key, measured))) for key in self.contenders.keys])

    def table(self, measured: Sequence[MeasuredDomain]) -> Table:
        """Return the speeds on domains that were measured, as far as they were, and by the laws on the others."""
        domains = [*(one.domain for one in measured), *self.others]
        speeds = np.array([self.speeds(domain, measured) for domain in domains])
        known, behind = np.zeros(speeds.shape, dtype=bool), np.zeros(speeds.shape, dtype=bool)
        for row, one in enumerate(measured):
            trials = {trial.key: trial for trial in one.trials}
            for column, key in enumerate(self.contenders.keys):
                if trial := trials.get(self.contenders.named(key, one.domain)):
                    speeds[row, column], known[row, column] = trial.mlups or 0.0, True
                    behind[row, column] = slower_than_default(one, trial)
        return Table(np.array(domains, dtype=float), speeds, known, behind)
