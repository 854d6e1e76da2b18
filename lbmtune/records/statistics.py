"""Medians and their confidence intervals without assumptions on the distribution."""

from collections.abc import Sequence
from math import comb
from statistics import median
from typing import NamedTuple


class Interval(NamedTuple):
    """A median with the bounds of its confidence interval."""

    low: float
    median: float
    high: float

    @property
    def half_width(self) -> float:
        """Half-width relative to the median."""
        return (self.high - self.low) / 2 / self.median


def median_interval(samples: Sequence[float]) -> Interval:
    """Return the median and its 95 % interval from order statistics.

    Below six samples no such interval exists; the range is returned: 93.75 % for five, 75 % for three, 50 % for two.
    Source: Conover, Practical Nonparametric Statistics, 1999, section 3.2.
    """
    ordered = sorted(samples)
    rank = interval_rank(len(ordered))
    return Interval(ordered[rank], median(ordered), ordered[-1 - rank])


def interval_rank(n: int, level: float = 0.95) -> int:
    """Return the number of samples outside the interval at each end."""
    rank, tail = 0, 2.0**-n
    while rank + 1 < n / 2 and 2 * (tail + comb(n, rank + 1) * 2.0**-n) <= 1 - level:
        rank += 1
        tail += comb(n, rank) * 2.0**-n
    return rank


def paired_ratio(samples: Sequence[float], reference: Sequence[float]) -> Interval:
    """Return median and interval of sample over reference, round by round, which cancels drift."""
    return median_interval([a / b for a, b in zip(samples, reference, strict=True)])


def relative_error(predicted: float, measured: float) -> float:
    """Return |predicted / measured - 1|."""
    return abs(predicted / measured - 1)
