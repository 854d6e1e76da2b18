"""The change of a velocity field, summed up by all threads of a kernel."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import prange

from lbmtune.backend.cpu.compilation.modules import cached_njit, call_cached
from lbmtune.backend.cpu.placement.threads import bind

Reals = npt.NDArray[np.floating[Any]]
_PART = 1 << 14
"""Numbers of which one thread adds up a sum of its own."""


@cached_njit(fastmath={"reassoc", "nsz"})
def _summed(now: Reals, before: Reals) -> tuple[float, float]:
    change = size = 0.0
    for n in range(now.size):
        change += np.float64(abs(now[n] - before[n]))
        size += np.float64(abs(now[n]))
    return change, size


@cached_njit(parallel=True)
def _parts(now: Reals, before: Reals, sums: npt.NDArray[np.float64]) -> None:
    for part in prange(len(sums)):
        first, last = part * _PART, min((part + 1) * _PART, now.size)
        sums[part, 0], sums[part, 1] = _summed(now[first:last], before[first:last])


def sums_of_changes(now: Reals, before: Reals, threads: int, pinning: str) -> tuple[float, float]:
    """Return the sum of absolute differences of two arrays, and that of the absolute values of the first."""
    sums = np.zeros((-(-now.size // _PART), 2))
    bind(threads, pinning)
    numba.set_num_threads(threads)
    call_cached(_parts, now, before, sums)
    change, size = sums.sum(axis=0)
    return float(change), float(size)
