"""Few kernels that cover many domains, by speeds that were measured, and predicted ones where they were not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lbmtune.search.regression.features import Array

Mask = NDArray[np.bool_]
_NOTHING, _EXCHANGES = 1e-9, 3
"""Difference of losses that counts as none, and rounds of exchanges."""
_MEASURED_COUNTS = 3.0
"""Measured domains for which one counts that is predicted alone."""


@dataclass(frozen=True)
class Table:
    """Speeds of kernels on domains. domains: (n, 3); speeds: (n, kernels), MLUPS, 0: the kernel is illegal there.

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

    def beyond(self, tolerance: float) -> Array:
        """Return what a kernel loses beyond a tolerance; its whole loss if it is slower than the default one."""
        found: Array = np.where(self.slower, self.losses, np.maximum(self.losses - tolerance, 0.0))
        return found


def cover(table: Table, most: int, tolerance: float, first: Sequence[int] = ()) -> tuple[int, ...]:
    """Return few kernels, at most so many, that lose the least beyond a tolerance. first: those that stay.

    One after the other is added that takes away most of the squares of what is lost, then each is exchanged for a
    better one while there is any, and left out if it is for nothing. Source: Nemhauser et al. 1978 (greedy maximisation
    of coverage), with exchanges as in Teitz, Bart 1968.
    """
    beyond, weights = table.beyond(tolerance) ** 2, table.weights

    def added(chosen: Sequence[int]) -> tuple[float, int]:
        """Return what is left if the best kernel is added, and that kernel."""
        lost = weights @ np.minimum(beyond, beyond[:, list(chosen)].min(axis=1, initial=1.0)[:, None])
        best = int(np.argmin(lost))
        return float(lost[best]), best

    def left(chosen: Sequence[int]) -> float:
        return float(weights @ beyond[:, list(chosen)].min(axis=1, initial=1.0))

    chosen = list(first)
    while len(chosen) < most:
        less, one = added(chosen)
        if less >= left(chosen) - _NOTHING:
            break
        chosen.append(one)
    for place in [*range(len(first), len(chosen))] * _EXCHANGES:
        rest = [*chosen[:place], *chosen[place + 1 :]]
        less, one = added(rest)
        if less < left(chosen) - _NOTHING:
            chosen[place] = one
    for one in chosen[len(first) :]:
        rest = [k for k in chosen if k != one]
        if rest and left(rest) <= left(chosen) + _NOTHING:
            chosen = rest
    return tuple(chosen)


def robust(table: Table, among: Sequence[int]) -> int:
    """Return the kernel with the least largest loss on measured domains, then the least mean loss."""
    rows = table.measured.any(axis=1)
    losses = table.losses[rows] if rows.any() else table.losses
    return min(among, key=lambda k: (float(losses[:, k].max()), float(losses[:, k].mean())))
