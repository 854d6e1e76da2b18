"""Medians and their confidence intervals without assumptions on the distribution."""

from collections.abc import Sequence
from math import comb, gamma, log, sqrt
from statistics import fmean, median
from typing import NamedTuple


class Interval(NamedTuple):
    """A median with the bounds of its confidence interval."""

    low: float
    median: float
    high: float

    @property
    def half_width(self) -> float:
        """Return the half-width relative to the median."""
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


FEWEST_PAIRS = 3
"""Pairs of measurements of one kernel each from which on their spread is estimated."""
REPEATS_HELD = 0.9
"""Share of repeats that an interval is to hold."""


def repeat_spread(apart: Sequence[float]) -> float | None:
    """Return how far a repeat lies away at most, in nine of ten cases; None for too few pairs.

    apart: logarithms of the ratio of two measurements of a kernel in two runs; the result is one as well. Their sizes
    are nearly exponential (studies/recorded/nvidia-h100/pairs.jsonl.gz: median 0.24 %, 90 % within 0.77 %). The scale
    comes from the mean of their roots, on which one outlier has little weight. A dozen pairs have no 90th percentile to
    speak of, so about one standard error of the scale is added: five of six such estimates are not too low.
    """
    if len(apart) < FEWEST_PAIRS:
        return None
    scale = (fmean(sqrt(abs(one)) for one in apart) / gamma(1.5)) ** 2
    return scale * -log(1 - REPEATS_HELD) * (1 + 1 / sqrt(len(apart)))


def relative_error(predicted: float, measured: float) -> float:
    """Return |predicted / measured - 1|."""
    return abs(predicted / measured - 1)
