"""The time of a portfolio: how many domains are searched, and for how long."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import NamedTuple

import numpy as np

_SEARCHES, _BESIDE, _TAUGHT, _DOUBTFUL = 0.36, 0.08, 0.16, 0.24
"""Shares of the time: studies, their kernels on each other's domains, domains that teach, all over the range and where
there is most doubt. The check has the rest."""
_LEAST_S = 20.0
"""Seconds of the shortest study that finds something."""
_FEWEST, _MOST = 2, 6
"""Domains that are searched."""
TAUGHT, MOST_TAUGHT, CHECKED = 16, 96, 20
"""Domains that teach all over the range, all that teach at most, and those of a check."""


@dataclass(frozen=True)
class PortfolioPlan:
    """Searches of so many domains for so many seconds each. The rest: ends of parts, from the start (`Run.measure`)."""

    searches: int
    search_s: float
    beside_s: float
    taught_s: float
    doubtful_s: float


def planned(limit_s: float) -> PortfolioPlan:
    """Return the plan for a time of the whole; infinite: each study has its own limits."""
    if limit_s == inf:
        return PortfolioPlan(_MOST, 0.0, inf, inf, inf)
    count = min(max(int(_SEARCHES * limit_s / _LEAST_S), _FEWEST), _MOST)
    ends = accumulate((_SEARCHES + _BESIDE, _TAUGHT, _DOUBTFUL))
    return PortfolioPlan(count, _SEARCHES * limit_s / count, *(share * limit_s for share in ends))


class Spent(NamedTuple):
    """The seconds in which so many kernels were proved on a domain of so many cells."""

    cells: int
    kernels: int
    seconds: float


def proof_s(spent: Sequence[Spent], cells: int) -> float:
    """Return the seconds of proving a kernel on a domain: a fixed part and one for each cell, by least squares.

    0 if nothing is known; the longest so far if the domains do not tell the parts apart.
    """
    if not spent:
        return 0.0
    sizes, each = np.array([one.cells for one in spent], dtype=float), [one.seconds / one.kernels for one in spent]
    if np.ptp(sizes) == 0:
        return max(each)
    slope, fixed = np.polyfit(sizes / sizes.max(), each, 1)
    slope = max(slope, 0.0)
    return float(max(fixed + slope * cells / sizes.max(), min(each)))
