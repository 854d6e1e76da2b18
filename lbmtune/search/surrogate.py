"""A Gaussian process over configurations as points of a unit cube: mean and standard deviation at each point.

Matern 5/2 kernel with one length per axis; lengths and noise maximise the posterior density (Rprop).
Source: Rasmussen, Williams 2006, chapters 2, 4, 5; expected improvement: Jones, Schonlau, Welch 1998.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from math import erf, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbmtune.catalogue.config import KernelConfig, field_names
from lbmtune.search.space import varied

Array = NDArray[np.float64]
_ROOT5 = sqrt(5.0)
_NOISE_CENTRE = log(1e-3)


@dataclass(frozen=True)
class Features:
    """Points. values: (configurations, features), each within 0..1; groups: the knob of each feature, from 0 on."""

    values: Array
    groups: NDArray[np.intp]


def features(configs: Sequence[KernelConfig]) -> Features:
    """Return the knobs that vary: numbers on a logarithmic scale, texts as indicators, extents as three numbers."""
    columns: list[Array] = []
    groups: list[int] = []
    for group, name in enumerate(varied(configs)):
        for column in _columns([_value(config, name) for config in configs]):
            columns.append(column)
            groups.append(group)
    if not columns:
        columns, groups = [np.zeros(len(configs))], [0]
    return Features(np.stack(columns, axis=1), np.array(groups, dtype=np.intp))


def _value(config: KernelConfig, name: str) -> Any:
    """Return the value of a knob, or of a layout's knob; None if the configuration has none of that name."""
    if name in field_names(type(config)):
        found = getattr(config, name)
        return found if isinstance(found, (int, str, tuple)) else found.name
    if name == "family":
        return config.family
    layout = getattr(config, "layout", None)
    return getattr(layout, name) if is_dataclass(layout) and name in (f.name for f in fields(layout)) else None


def _columns(given: Sequence[Any]) -> list[Array]:
    """Return the columns of a knob; a configuration that lacks it has the first value that another has.

    Extents of two and of three axes are of different families, and have columns of their own.
    """
    axes = {len(value) for value in given if isinstance(value, tuple)}
    if len(axes) > 1:
        apart = [[v if isinstance(v, tuple) and len(v) == n else None for v in given] for n in sorted(axes)]
        return [column for one in apart for column in _columns(one)]
    first = next(value for value in given if value is not None)
    values = [first if value is None else value for value in given]
    if isinstance(values[0], tuple):
        return [_scaled(np.log2(np.array(part, dtype=float))) for part in zip(*values, strict=True)]
    if isinstance(values[0], str):
        # two different names lie at distance one
        return [np.array([v == name for v in values]) / np.sqrt(2) for name in sorted(set(values))]
    return [_scaled(np.log2(1.0 + np.array(values, dtype=float)))]


def _scaled(column: Array) -> Array:
    low, high = column.min(), column.max()
    return (column - low) / (high - low) if high > low else np.zeros_like(column)


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


def condition(points: Features, values: Array, hyper: Hyperparameters) -> Process:
    """Return the process conditioned on values (n,) at points (n, features)."""
    scale = np.exp(-hyper.lengths)[points.groups]
    scaled = points.values * scale
    kernel = _matern(_distances2(scaled, scaled)) + (np.exp(hyper.noise) + 1e-9) * np.eye(len(values))
    return Process(scaled, scale, *_solved(kernel, values))


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
    inverse, weights, _, variance = _solved(kernel, values)
    pull = inverse - np.outer(weights, weights) / variance
    slope = pull * (5.0 / 3.0) * (1.0 + root) * decay
    by_length = 0.5 * shrink * np.tensordot(by_axis, slope, 2) + theta[:-1]
    by_noise = 0.5 * noise * np.trace(pull) + (theta[-1] - _NOISE_CENTRE) / 9.0
    return np.append(by_length, by_noise)


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
