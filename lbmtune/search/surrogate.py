"""A Gaussian process and a linear model over configurations as points of a unit cube.

Matern 5/2 kernel with one length per axis; lengths and noise maximise the posterior density (Rprop).
Source: Rasmussen, Williams 2006, chapters 2, 4, 5; expected improvement: Jones, Schonlau, Welch 1998.
"""

from dataclasses import dataclass
from math import erf, log, sqrt

import numpy as np

from lbmtune.search.features import Array, Features

_ROOT5 = sqrt(5.0)
_NOISE_CENTRE = log(1e-3)


@dataclass(frozen=True)
class Hyperparameters:
    """Natural logarithms of the lengths of the axes, in units of the cube, and of noise over signal variance."""

    lengths: Array
    noise: float


@dataclass(frozen=True)
class Process:
    """A fitted process."""

    points: Array
    scale: Array
    inverse: Array
    weights: Array
    mean: float
    variance: float

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation at points, shape (n,) each."""
        cross = _matern(_distances2(points * self.scale, self.points))
        left = np.maximum(1.0 - np.sum(cross @ self.inverse * cross, axis=1), 1e-12)
        return self.mean + cross @ self.weights, np.sqrt(self.variance * left)


def start(axes: int) -> Hyperparameters:
    """Return hyperparameters to start from: lengths of one, little noise."""
    return Hyperparameters(np.zeros(axes), _NOISE_CENTRE)


def condition(points: Features, values: Array, hyper: Hyperparameters, noise: Array | None = None) -> Process:
    """Return the process conditioned on values (n,) at points (n, features). noise: variances, of a usual value one."""
    scale = np.exp(-hyper.lengths)[points.groups]
    scaled = points.values * scale
    kernel = _matern(_distances2(scaled, scaled)) + np.diag(np.exp(hyper.noise) * _noises(values, noise) + 1e-9)
    return Process(scaled, scale, *_solved(kernel, values))


def fit(
    points: Features, values: Array, hyper: Hyperparameters, noise: Array | None = None, steps: int = 25
) -> Hyperparameters:
    """Return hyperparameters of highest posterior density from a starting point: Rprop on the exact gradient."""
    axes = len(hyper.lengths)
    by_axis = np.stack([_distances2(one, one) for one in (points.values[:, points.groups == g] for g in range(axes))])
    theta, step = np.append(hyper.lengths, hyper.noise), np.full(axes + 1, 0.3)
    last, each = np.zeros(axes + 1), _noises(values, noise)
    for _ in range(steps):
        sign = np.sign(_gradient(theta, by_axis, values, each))
        step = np.clip(np.where(sign * last > 0, 1.2, np.where(sign * last < 0, 0.5, 1.0)) * step, 1e-3, 1.0)
        theta = np.clip(theta - sign * step, -8.0, 6.0)
        last = sign
    return Hyperparameters(theta[:-1], float(theta[-1]))


def expected_improvement(mean: Array, deviation: Array, best: float) -> Array:
    """Return the expected improvement over `best`."""
    z = (mean - best) / deviation
    return (mean - best) * below(z) + deviation * np.exp(-0.5 * z**2) / sqrt(2.0 * np.pi)


def below(z: Array) -> Array:
    """Return the distribution function of the normal distribution."""
    return np.array([0.5 * (1.0 + erf(v / sqrt(2.0))) for v in z])


def _gradient(theta: Array, by_axis: Array, values: Array, each: Array) -> Array:
    """Return the gradient of the negative log posterior density by log lengths and log noise."""
    shrink, noise = np.exp(-2.0 * theta[:-1]), np.exp(theta[-1])
    root = _ROOT5 * np.sqrt(np.tensordot(shrink, by_axis, 1))
    decay = np.exp(-root)
    kernel = (1.0 + root + root**2 / 3.0) * decay + np.diag(noise * each + 1e-9)
    inverse, weights, _, variance = _solved(kernel, values)
    pull = inverse - np.outer(weights, weights) / variance
    slope = pull * (5.0 / 3.0) * (1.0 + root) * decay
    by_length = 0.5 * shrink * np.tensordot(by_axis, slope, 2) + theta[:-1]
    by_noise = 0.5 * noise * float(np.diag(pull) @ each) + (theta[-1] - _NOISE_CENTRE) / 9.0
    return np.append(by_length, by_noise)


def _noises(values: Array, noise: Array | None) -> Array:
    return np.ones(len(values)) if noise is None else noise


def _solved(kernel: Array, values: Array) -> tuple[Array, Array, float, float]:
    """Return inverse of the kernel matrix and weights of the values, and the most likely mean and variance."""
    inverse = np.asarray(np.linalg.inv(kernel), np.float64)
    mean = float(np.sum(inverse @ values) / np.sum(inverse))
    weights = inverse @ (values - mean)
    return inverse, weights, mean, max(float((values - mean) @ weights) / len(values), 1e-12)


def _matern(distances2: Array) -> Array:
    root = _ROOT5 * np.sqrt(distances2)
    result: Array = (1.0 + root + root**2 / 3.0) * np.exp(-root)
    return result


def _distances2(a: Array, b: Array) -> Array:
    squares: Array = (a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2.0 * a @ b.T
    result: Array = np.maximum(squares, 0.0)
    return result


@dataclass(frozen=True)
class Linear:
    """A fitted linear model: means of its coefficients and their covariance."""

    weights: Array
    covariance: Array

    def predict(self, columns: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation at rows of columns, shape (n,) each."""
        return columns @ self.weights, np.sqrt(np.sum(columns @ self.covariance * columns, axis=1))


def regress(columns: Array, values: Array, spread: Array, noise: Array) -> Linear:
    """Return the coefficients of columns (n, m) that values (n,) let expect.

    spread: standard deviation of each coefficient before anything is seen, about zero; noise: of each value.
    """
    weighted = columns / noise[:, None] ** 2
    covariance = np.asarray(np.linalg.inv(columns.T @ weighted + np.diag(spread**-2)), np.float64)
    return Linear(covariance @ (weighted.T @ values), covariance)
