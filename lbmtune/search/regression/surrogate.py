"""Regression over points of a unit cube, averaged over how steep, how curved and how scattered the values may be.

A value is an offset, a slope along each axis, a smooth function (Matern 5/2) and what is the point's own. Each
combination of their standard deviations counts by how likely it makes the values.
Source: Rasmussen, Williams 2006, chapters 2, 4, 5; expected improvement: Jones, Schonlau, Welch 1998.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, product
from math import erf, log, pi, sqrt

import numpy as np

from lbmtune.search.regression.features import Array

_OFFSET = 0.5
"""Standard deviation of the offset; values are logarithms of speeds, measured over predicted."""
_USUAL = 0.05
"""The likeliest slope and function before anything is seen; others are less likely by their ratio to it, log-normal."""
_LENGTH = 1.5
"""Length of the function, in units of the cube: points that differ in two names lie as far apart."""
_SAME = 1e-9
"""Square of the distance below which two points are the same one."""
_LEAST = 0.02
"""Share of the likelihood below which a combination is left out."""
_FAR, _FINE = 8.0, 1e-4
"""Standard deviations beyond which nothing lies, and how exact a gain is looked for."""
_TAIL = 5.0
"""Standard deviations below the best from which on the improvement is that of the tail of a normal distribution."""
_ROOT5 = sqrt(5.0)


@dataclass(frozen=True)
class Scales:
    """Standard deviations of a slope, of the function, and of what is left, each of which may be the right one."""

    slopes: Sequence[float] = (0.02, 0.1, 0.4)
    curves: Sequence[float] = (0.02, 0.1, 0.4)
    rests: Sequence[float] = (0.01, 0.04, 0.16)


USUAL = Scales()


@dataclass(frozen=True)
class _Member:
    """One combination: share, standard deviations, weights of the values, and inverse covariance of the points."""

    share: float
    slope: float
    curve: float
    rest: float
    weights: Array
    inverse: Array


@dataclass(frozen=True)
class Regression:
    """Predicts what values at some points let expect at others. points: those of values, then those believed."""

    points: Array
    centre: Array
    members: tuple[_Member, ...]

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of values at points, shape (n,) each."""
        apart, seen = _squares(points, self.points), slice(len(self.members[0].weights))
        along, near = (points - self.centre) @ (self.points - self.centre).T, _matern(apart)
        same = np.zeros_like(apart)  # a point that is believed keeps what is its own
        same[:, seen] = apart[:, seen] < _SAME
        steep = np.sum((points - self.centre) ** 2, axis=1)
        mean, square = np.zeros(len(points)), np.zeros(len(points))
        for one in self.members:
            cross = _OFFSET**2 + one.slope**2 * along + one.curve**2 * near + one.rest**2 * same
            own = cross[:, seen] @ one.weights
            before = _OFFSET**2 + one.slope**2 * steep + one.curve**2 + one.rest**2
            left = np.maximum(before - np.sum(cross @ one.inverse * cross, axis=1), 1e-12)
            mean += one.share * own
            square += one.share * (left + own**2)
        return mean, np.sqrt(np.maximum(square - mean**2, 1e-12))

    def trend(self, points: Array) -> Array:
        """Return the mean at points by offset and slopes alone."""
        known = self.points[: len(self.members[0].weights)] - self.centre
        offset = sum(one.share * _OFFSET**2 * float(np.sum(one.weights)) for one in self.members)
        slopes = sum(one.share * one.slope**2 * (one.weights @ known) for one in self.members)
        found: Array = offset - self.centre @ slopes + points @ slopes
        return found


def condition(
    points: Array, values: Array, noise: Array, believed: Array | None = None, scales: Scales = USUAL
) -> Regression:
    """Return the regression of values (n,) at points (n, axes). noise: standard deviation of each value.

    believed: points that count as if the values expected there had been seen (Ginsbourger 2010).
    """
    every = points if believed is None else np.concatenate([points, believed])
    own = np.append(noise, np.zeros(len(every) - len(points))) ** 2
    centre, seen = points.mean(0), slice(len(points))
    along, near = (every - centre) @ (every - centre).T, _matern(_squares(every, every))
    found = []
    for slope, curve in product(scales.slopes, scales.curves):
        smooth = _OFFSET**2 + slope**2 * along + curve**2 * near
        usual = -0.5 * (log(slope / _USUAL) ** 2 + log(curve / _USUAL) ** 2)
        likely = _log_likelihoods(smooth[seen, seen], values, [own[seen] + rest**2 for rest in scales.rests])
        found += [(usual + one, slope, curve, rest) for one, rest in zip(likely, scales.rests, strict=True)]
    best = max(likely for likely, *_ in found)
    shares = np.exp([likely - best for likely, *_ in found])
    kept = shares >= _LEAST * shares.sum()
    total = float(shares[kept].sum())
    members = []
    for share, (_, slope, curve, rest) in compress(zip(shares, found, strict=True), kept):
        kernel = _OFFSET**2 + slope**2 * along + curve**2 * near + np.diag(own + rest**2)
        weights, inverse = np.linalg.solve(kernel[seen, seen], values), np.linalg.inv(kernel)
        members.append(_Member(float(share) / total, slope, curve, rest, weights, inverse))
    return Regression(every, centre, tuple(members))


def _log_likelihoods(smooth: Array, values: Array, scatters: Sequence[Array]) -> list[float]:
    """Return the logarithm of the density of values for each scatter (n,) of them, but for a constant.

    Their covariance is the smooth one (n, n) with the scatter on its diagonal, which no eigenvalue is below:
    values . K^-1 values <= values . values / min(scatter). The last row of the Cholesky factor of the covariance with
    the values as one more row is L^-1 values.
    """
    n = len(values)
    wider = np.empty((n + 1, n + 1))
    wider[:n, :n], wider[n, :n], wider[:n, n] = smooth, values, values
    diagonal, found = wider.reshape(-1)[:: n + 2], list[float]()
    variance, length = smooth.diagonal(), values @ values
    for scatter in scatters:
        diagonal[:n], diagonal[n] = variance + scatter, 1 + length / scatter.min()
        lower = np.linalg.cholesky(wider)
        white = lower[n, :n]
        found.append(-0.5 * float(white @ white) - float(np.log(lower.diagonal()[:n]).sum()))
    return found


def log_improvement(mean: Array, deviation: Array, best: float) -> Array:
    """Return logarithms of the expected improvement over `best`, which rank points far below it, too."""
    z = (mean - best) / deviation
    tail, density = np.minimum(z, -_TAIL), np.exp(-0.5 * z**2) / sqrt(2.0 * pi)
    far = -0.5 * tail**2 - 0.5 * log(2.0 * pi) - np.log(tail**2 + 3.0)
    near = np.log(np.maximum(density + z * below(z), 1e-300))
    found: Array = np.log(deviation) + np.where(z < -_TAIL, far, near)
    return found


def any_beyond(mean: Array, deviation: Array, bound: Array | float) -> float:
    """Return the probability that a value of any point exceeds a bound, as if points erred independently.

    Errors of neighbours agree, so that it is an upper bound of what the regression says.
    """
    z = (mean - bound) / deviation
    each = np.minimum(below(z[z > -_FAR]), 1 - 1e-15)
    return float(-np.expm1(np.log1p(-each).sum()))


def most_gained(mean: Array, deviation: Array, best: float, doubt: float) -> float:
    """Return by how much the largest value exceeds `best` at most, but for a probability of `doubt`."""
    low, high = 0.0, max(0.0, float((mean + _FAR * deviation).max()) - best)
    if any_beyond(mean, deviation, best) <= doubt:
        return 0.0
    while high - low > _FINE:
        middle = (low + high) / 2
        low, high = (middle, high) if any_beyond(mean, deviation, best + middle) > doubt else (low, middle)
    return high


def below(z: Array) -> Array:
    """Return the distribution function of the normal distribution."""
    return np.array([0.5 * (1.0 + erf(v / sqrt(2.0))) for v in z])


def _squares(a: Array, b: Array) -> Array:
    found: Array = np.maximum((a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2.0 * a @ b.T, 0.0)
    return found


def _matern(squares: Array) -> Array:
    root = _ROOT5 / _LENGTH * np.sqrt(squares)
    result: Array = (1.0 + root + root**2 / 3.0) * np.exp(-root)
    return result
