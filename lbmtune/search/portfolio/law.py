"""Laws of the time of kernels: sums of numbers that follow from the extents, with coefficients that measurements give.

Coefficients are not negative, since each number takes time. What measurements exceed that sum by is interpolated
between domains. Sources: Lawson, Hanson 1974 (non-negative least squares), by active sets; Rasmussen, Williams 2006,
chapter 2 (Gaussian processes), with a rational quadratic kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from lbmtune.records.best_json.law import weight
from lbmtune.search.regression.features import Array

_ROUNDS = 3
"""Times that a coefficient enters at most, on average."""
_SETTLED = 1e-9
"""Relative slope, and size of a coefficient, that count as 0."""
_EXPECTED = 0.02
"""Weight of a predicted time beside a measured one: a kernel that was measured on a few domains needs the others."""
_NOISE = 0.4
"""Share of the variance of what laws leave that no neighbour tells: noise, and what changes with every extent."""
LAW_ERROR, _COUNTS = 0.075, 4.0
"""Relative error of a law that nobody measured, and the domains that this counts as beside measured ones."""
FEW = 4
"""Measured domains below which predictions count more."""


class Times(NamedTuple):
    """Times of a kernel. numbers: (n, terms), of each domain; seconds: (n,); measured: (n,), not by the model."""

    numbers: Array
    seconds: Array
    measured: Array


def fitted(times: Times) -> Array:
    """Return the seconds of each number of a law, for the least squares of relative errors.

    Predictions are taken as they are: see `scale`.
    """
    known = times.measured.astype(bool)
    weights = np.where(known, 1.0, _EXPECTED if known.sum() >= FEW else 1.0 / FEW)
    relative = times.numbers / times.seconds[:, None]
    sizes = np.sqrt((relative**2).mean(axis=0))
    sizes[sizes == 0] = 1.0
    root = np.sqrt(weights)
    found: Array = nonnegative(relative / sizes * root[:, None], root) / sizes
    return found


def nonnegative(matrix: Array, target: Array) -> Array:
    """Return x, none of it negative, for the least squares of matrix @ x - target.

    Columns enter one by one, that with the steepest descent first, and leave if they would become negative.
    """
    gram, toward = matrix.T @ matrix, matrix.T @ target
    found, inside = np.zeros(len(gram)), np.zeros(len(gram), dtype=bool)
    for _ in range(_ROUNDS * len(gram)):
        slope = np.where(inside, 0.0, toward - gram @ found)
        if slope.max(initial=0.0) <= _SETTLED * np.abs(toward).max(initial=0.0):
            break
        inside[np.argmax(slope)] = True
        while (free := _solved(gram, toward, inside)).min(initial=0.0) < 0:
            shares = np.where(free < 0, found / np.where(free < 0, found - free, 1.0), 1.0)
            found += shares.min() * (free - found)
            inside &= found > _SETTLED * found.max(initial=0.0)
            found[~inside] = 0.0
        found = free
    return found


def _solved(gram: Array, toward: Array, inside: Array) -> Array:
    found = np.zeros(len(gram))
    found[inside] = np.linalg.lstsq(gram[np.ix_(inside, inside)], toward[inside], rcond=None)[0]
    return found


def scale(measured_s: Array, expected_s: Array) -> float:
    """Return the factor by which the model is wrong, the mean over domains where a kernel was measured; 1: unknown."""
    return float(np.exp(np.log(measured_s / expected_s).mean())) if len(measured_s) else 1.0


@dataclass(frozen=True)
class Excess:
    """Interpolate what measured times exceed a law by.

    domains: (n, 3), where it was measured; shares: (n,), of the time by the law, each with its `weight`;
    error: relative error of the law where nobody measured; inverse: (n, n), of the covariance.
    """

    domains: Array
    shares: Array
    error: float
    inverse: Array

    def factors(self, domains: Sequence[Sequence[int]]) -> Array:
        """Return the time on each domain over that by the law."""
        found: Array = 1 + self._weights(domains) @ self.shares
        return found

    def doubts(self, domains: Sequence[Sequence[int]]) -> Array:
        """Return the relative error that remains on each domain: the less, the nearer it is to measured ones."""
        near = self._weights(domains)
        found: Array = self.error * np.sqrt(np.maximum(1 - ((near @ self.inverse) * near).sum(axis=1), 0.0))
        return found

    def _weights(self, domains: Sequence[Sequence[int]]) -> Array:
        there = np.array(domains, dtype=float).reshape(-1, 3)
        found: Array = weight(there.T[:, :, None], self.domains.T[:, None, :])
        return found


def error_of(relative: Array, usual: float = LAW_ERROR) -> float:
    """Return the relative error of a law where nobody measured. relative: (n,), measured time over it, less 1.

    usual: error of such laws.
    """
    known = float((relative**2).sum()) + _COUNTS * usual**2
    return sqrt(known / (len(relative) + _COUNTS))


def excess_of(domains: Sequence[Sequence[int]], relative: Array, error: float) -> Excess:
    """Interpolate what a law leaves. domains: measured ones; relative: (n,), time over that by the law, less 1.

    error: of the law, relative, where nobody measured.
    """
    places = np.array(domains, dtype=float).reshape(-1, 3)
    covariance = weight(places.T[:, :, None], places.T[:, None, :]) + _NOISE * np.eye(len(places))
    inverse = np.linalg.inv(covariance)
    return Excess(places, inverse @ relative, error, inverse)
