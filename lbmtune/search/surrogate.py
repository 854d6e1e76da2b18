"""A Gaussian process over a finite set of points: mean and standard deviation at each point.

Matern 5/2 kernel with one length per axis; lengths and noise maximise the posterior density (Rprop).
Source: Rasmussen, Williams 2006, chapters 2, 4, 5; expected improvement: Jones, Schonlau, Welch 1998.
"""

from __future__ import annotations

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
    weights: Array
    inverse: Array
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


def condition(points: Features, values: Array, hyper: Hyperparameters) -> Process:
    """Return the process conditioned on values (n,) at points (n, features)."""
    scale = np.exp(-hyper.lengths)[points.groups]
    scaled = points.values * scale
    kernel = _matern(_distances2(scaled, scaled)) + (np.exp(hyper.noise) + 1e-9) * np.eye(len(values))
    inverse = np.linalg.inv(kernel)
    mean = float(np.sum(inverse @ values) / np.sum(inverse))
    weights = inverse @ (values - mean)
    variance = max(float((values - mean) @ weights) / len(values), 1e-12)
    return Process(scaled, scale, weights, inverse, mean, variance)


def fit(points: Features, values: Array, hyper: Hyperparameters, steps: int = 25) -> Hyperparameters:
    """Return hyperparameters of highest posterior density from a starting point: Rprop on the exact gradient."""
    axes = len(hyper.lengths)
    by_axis = np.stack([_distances2(one, one) for one in (points.values[:, points.groups == g] for g in range(axes))])
    theta, step = np.append(hyper.lengths, hyper.noise), np.full(axes + 1, 0.3)
    last = np.zeros(axes + 1)
    for _ in range(steps):
        sign = np.sign(_gradient(theta, by_axis, values))
        step = np.clip(np.where(sign * last > 0, 1.2, np.where(sign * last < 0, 0.5, 1.0)) * step, 1e-3, 1.0)
        theta = np.clip(theta - sign * step, -8.0, 6.0)
        last = sign
    return Hyperparameters(theta[:-1], float(theta[-1]))


def expected_improvement(mean: Array, deviation: Array, best: float) -> Array:
    """Return the expected improvement over `best`."""
    z = (mean - best) / deviation
    cumulative = 0.5 * (1.0 + np.array([erf(v / sqrt(2.0)) for v in z]))
    return (mean - best) * cumulative + deviation * np.exp(-0.5 * z**2) / sqrt(2.0 * np.pi)


def _gradient(theta: Array, by_axis: Array, values: Array) -> Array:
    """Return the gradient of the negative log posterior density by log lengths and log noise."""
    shrink, noise = np.exp(-2.0 * theta[:-1]), np.exp(theta[-1])
    root = _ROOT5 * np.sqrt(np.tensordot(shrink, by_axis, 1))
    decay = np.exp(-root)
    kernel = (1.0 + root + root**2 / 3.0) * decay + (noise + 1e-9) * np.eye(len(values))
    inverse = np.linalg.inv(kernel)
    centred = values - np.sum(inverse @ values) / np.sum(inverse)
    weights = inverse @ centred
    variance = max(float(centred @ weights) / len(values), 1e-12)
    pull = inverse - np.outer(weights, weights) / variance
    slope = pull * (5.0 / 3.0) * (1.0 + root) * decay
    by_length = 0.5 * shrink * np.tensordot(by_axis, slope, 2) + theta[:-1]
    by_noise = 0.5 * noise * np.trace(pull) + (theta[-1] - _NOISE_CENTRE) / 9.0
    return np.append(by_length, by_noise)


def _matern(distances2: Array) -> Array:
    root = _ROOT5 * np.sqrt(distances2)
    result: Array = (1.0 + root + root**2 / 3.0) * np.exp(-root)
    return result


def _distances2(a: Array, b: Array) -> Array:
    squares: Array = (a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2.0 * a @ b.T
    result: Array = np.maximum(squares, 0.0)
    return result
