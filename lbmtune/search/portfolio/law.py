"""Laws of the time of kernels: sums of numbers that follow from the extents, with coefficients that measurements give.

Coefficients are not negative, since each number takes time. Source: Lawson, Hanson 1974 (non-negative least squares),
by active sets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lbmtune.search.regression.features import Array

_ROUNDS = 3
"""Times that a coefficient enters at most, on average."""
_SETTLED = 1e-9
"""Relative slope, and size of a coefficient, that count as 0."""
_EXPECTED = 0.02
"""Weight of a predicted time beside a measured one: a kernel that was measured on a few domains needs the others."""
_DOUBT = 0.3
"""Share by which a law may err, times the domains that it is known by."""
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


def doubt(domains: int) -> float:
    """Return the share by which the law of a kernel may err that was measured on so many domains."""
    return _DOUBT / (domains + FEW)  # predictions are as good as a few
