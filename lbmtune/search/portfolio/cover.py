"""Few kernels that cover many domains, by speeds that were measured, and predicted ones where they were not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lbmtune.search.regression.features import Array

Mask = NDArray[np.bool_]
_NEAR = 0.3
"""Distance of two domains, in logarithms of extents, at which the correction of one says half as much of the other."""
_MUCH = 0.1
"""Loss by prediction from which on a kernel is not taken: the model errs by some per cent."""
_MEASURED_COUNTS = 5.0
"""Measured domains for which one counts that is predicted alone."""


@dataclass(frozen=True)
class Table:
    """Speeds over that of the default kernel. domains: (n, 3); speeds: (n, kernels), 0: the kernel is illegal there.

    measured: (n, kernels), whether a speed was measured; slower: whether it is slower than the default at 95 %.
    """

    domains: Array
    speeds: Array
    measured: Mask
    slower: Mask

    @property
    def losses(self) -> Array:
        """Return the share of the fastest kernel's speed that each loses; 1 where it is illegal."""
        found: Array = 1.0 - self.speeds / self.speeds.max(axis=1, keepdims=True)
        return found

    def of_measured(self) -> Table:
        """Return the table without speeds of kernels that were measured on no domain: predictions alone prove none."""
        known = (self.measured & (self.speeds > 0)).any(axis=0)
        return replace(self, speeds=np.where(known, self.speeds, 0.0))

    @property
    def weights(self) -> Array:
        """Return how much a domain counts."""
        return np.where(self.measured.any(axis=1), _MEASURED_COUNTS, 1.0)

    def good(self, tolerance: float) -> Mask:
        """Return where a kernel loses no more than the tolerance and is not slower than the default, (n, kernels)."""
        found: Mask = (self.losses <= tolerance) & ~self.slower & (self.speeds > 0)
        return found

    def bad(self, tolerance: float) -> Mask:
        """Return where a kernel is not to be taken: it is not good, or should lose much where nothing was measured."""
        found: Mask = np.where(self.measured, ~self.good(tolerance), self.losses > _MUCH)
        return found


def corrected(domains: Array, model: Array, measured: Array) -> Array:
    """Return speeds over that of the default, the first kernel: measured ones, else predicted and corrected.

    model: MLUPS by the model, (n, kernels), 0: illegal; measured: MLUPS, NaN: not measured. The model's error of a
    kernel beside the default is that of near domains where both were measured.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.log(model / model[:, :1])
        seen = np.log(measured / measured[:, :1])
    errors = np.where(np.isfinite(seen) & np.isfinite(expected), seen - expected, np.nan)
    apart = np.linalg.norm(np.log(domains)[:, None] - np.log(domains)[None], axis=-1)
    near = 1.0 / (1.0 + (apart / _NEAR) ** 2)
    known = np.isfinite(errors)
    total = near @ np.where(known, errors, 0.0)
    weight = near @ known.astype(float)
    change = np.where(weight > 0, total / np.maximum(weight, 1e-12), 0.0)
    found = np.where(np.isfinite(seen), np.exp(np.where(np.isfinite(seen), seen, 0.0)), 0.0)
    guess = np.where(model > 0, np.exp(np.where(np.isfinite(expected), expected + change, 0.0)), 0.0)
    answer: Array = np.where(np.isfinite(measured), found, guess)
    return answer


def cover(table: Table, most: int, tolerance: float, first: Sequence[int] = ()) -> tuple[int, ...]:
    """Return few kernels, at most so many, that are good on as many domains as can be. first: those that stay.

    One after the other is added that is good on most domains that have none yet, and left out again if the others are
    enough. Source: Chvatal 1979 (greedy set covering).
    """
    good, weights = table.good(tolerance), table.weights
    losses = table.losses
    chosen = list(first)
    while len(chosen) < most:
        left = weights * ~good[:, chosen].any(axis=1)
        gain = left @ good
        best = np.flatnonzero(gain >= gain.max() - 1e-9)
        if gain.max() <= 0:
            break
        chosen.append(int(min(best, key=lambda k: weights @ np.minimum(losses[:, k], 1.0))))
    for one in chosen[len(first) :]:
        rest = [k for k in chosen if k != one]
        if rest and (good[:, rest].any(axis=1) >= good[:, chosen].any(axis=1)).all():
            chosen = rest
    return tuple(chosen)


def robust(table: Table, among: Sequence[int]) -> int:
    """Return the kernel with the least largest loss on measured domains, then the least mean loss."""
    rows = table.measured.any(axis=1)
    losses = table.losses[rows] if rows.any() else table.losses
    return min(among, key=lambda k: (float(losses[:, k].max()), float(losses[:, k].mean())))
