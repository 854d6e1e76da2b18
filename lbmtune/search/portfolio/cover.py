"""Few kernels that cover many domains, by speeds that were measured, and predicted ones where they were not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from lbmtune.search.regression.features import Array

Mask = NDArray[np.bool_]
_NOTHING = 1e-9
"""Difference of losses that counts as none."""
_DRAWN, _SEED = 12, 1
"""Sets that are drawn besides the greedy one, from which exchanges begin, and the seed of these."""
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


def cover(table: Table, most: int, tolerance: float, anchors: Sequence[int] = ()) -> tuple[int, ...]:
    """Return few kernels, at most so many, that lose the least beyond a tolerance. anchors: the first is one of these.

    One after the other is added that takes away most of the squares of what is lost. In these, and in several drawn
    sets, each kernel is exchanged for a better one while there is any. The best set is taken, without what is for
    nothing. Source: Nemhauser et al. 1978 (greedy maximisation of coverage), with exchanges as in Teitz, Bart 1968.
    """
    beyond, weights = table.beyond(tolerance) ** 2, table.weights
    kernels = range(beyond.shape[1])
    barred = [k for k in kernels if anchors and k not in anchors]

    def added(chosen: Sequence[int], place: int) -> tuple[float, int]:
        """Return what is left if the best kernel is added at a place, and that kernel."""
        lost = weights @ np.minimum(beyond, beyond[:, list(chosen)].min(axis=1, initial=1.0)[:, None])
        if place == 0:
            lost[barred] = np.inf
        best = int(np.argmin(lost))
        return float(lost[best]), best

    def left(chosen: Sequence[int]) -> float:
        return float(weights @ beyond[:, list(chosen)].min(axis=1, initial=1.0))

    def exchanged(chosen: list[int]) -> list[int]:
        """Return a set of which no exchange of one kernel is for the better."""
        found, least, settled = [*chosen], left(chosen), 0
        for place in cycle(range(len(found))):
            less, one = added([*found[:place], *found[place + 1 :]], place)
            settled = 0 if less < least - _NOTHING else settled + 1
            if settled > len(found):
                break
            if settled == 0:
                found[place], least = one, less
        return found

    chosen = list[int]()
    for place in range(most):
        less, one = added(chosen, place)
        if less >= left(chosen) - _NOTHING and not (anchors and place == 0):
            break
        chosen.append(one)
    random, starts = np.random.default_rng(_SEED), [chosen]
    for _ in range(_DRAWN if chosen else 0):
        one = int(random.choice(anchors or kernels))
        starts.append([one, *random.permutation([k for k in kernels if k != one])[: len(chosen) - 1].tolist()])
    chosen = min(map(exchanged, starts), key=left)
    for one in chosen[1 if anchors else 0 :]:
        rest = [k for k in chosen if k != one]
        if rest and left(rest) <= left(chosen) + _NOTHING:
            chosen = rest
    return tuple(chosen)


def robust(table: Table, among: Sequence[int]) -> int:
    """Return the kernel with the least largest loss on measured domains, then the least mean loss."""
    rows = table.measured.any(axis=1)
    losses = table.losses[rows] if rows.any() else table.losses
    return min(among, key=lambda k: (float(losses[:, k].max()), float(losses[:, k].mean())))
