"""Ratios of speeds that were measured in different runs, with the interval in which chance alone puts them."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, hypot, log

from lbmtune.records.comparison.repeats import Sampled, distances, percent
from lbmtune.records.comparison.statistics import REPEATS_HELD, median_interval

FALSE_ALARMS = 0.01
"""Share of comparisons of unchanged speeds that may find a difference, however many speeds they compare."""


class Verdict(StrEnum):
    """Relation of a speed to an earlier one. Unknown: nobody measured how far two runs lie apart."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A speed over an earlier one. low, high: bounds beyond which more than chance moved it.

    known: whether the bounds hold the spread between runs; if not, they are those of the samples alone.
    """

    ratio: float
    low: float
    high: float
    known: bool

    @property
    def verdict(self) -> Verdict:
        """Return whether the later speed is higher, lower, or within the noise."""
        if not self.known:
            return Verdict.UNKNOWN
        return Verdict.SLOWER if self.high < 1 else Verdict.FASTER if self.low > 1 else Verdict.SAME

    def __str__(self) -> str:
        """Return the change in per cent with its bounds, such as '-5.1 % (-7.0 % to -3.2 %)'."""
        middle, low, high = (_change(one) for one in (self.ratio, self.low, self.high))
        return f"{middle} ({low} to {high})"


def _change(ratio: float) -> str:
    return f"{'-' if ratio < 1 else '+'}{percent(abs(ratio - 1))}"


def widening(questions: int) -> float:
    """Return how many times as wide as one that holds 90 % of repeats an interval of one of several questions is.

    Sizes of deviations are nearly exponential (`statistics.repeat_spread`), and chance may answer any question wrongly
    in `FALSE_ALARMS` of all comparisons: each one has its share of that (Bonferroni).
    """
    return log(FALSE_ALARMS / questions) / log(1 - REPEATS_HELD)


def ratio_of(was: Sampled, now: Sampled, between: float | None, questions: int) -> Ratio:
    """Return the ratio of two measurements. between: `StudyRecord.between_runs`; questions: `widening`."""
    (was_slower, was_faster), (now_slower, now_faster) = distances(was), distances(now)
    down, up = hypot(now_slower, was_faster, between or 0.0), hypot(now_faster, was_slower, between or 0.0)
    return _widened(now.mlups / was.mlups, down, up, between is not None, questions)


def median_ratio(ratios: Sequence[float], between: float | None, questions: int) -> Ratio:
    """Return the median of the ratios of many kernels. between, questions: as in `ratio_of`."""
    found, together = median_interval(ratios), _TOGETHER * (between or 0.0)
    down, up = (hypot(log(bound / found.median), together) for bound in (found.low, found.high))
    return _widened(found.median, down, up, between is not None, questions)


_TOGETHER = 0.5
"""Share of the spread between runs by which all kernels of a run may be faster or slower together, by clocks or by
neighbours. In recorded pairs of runs the median kernel moved by up to a third of it (pairs.jsonl.gz)."""
_WIDEST = 20.0
"""Logarithm beyond which a record makes no sense; bounds stay finite."""


def _widened(ratio: float, down: float, up: float, known: bool, questions: int) -> Ratio:
    times = widening(questions)
    low, high = (min(times * one, _WIDEST) for one in (down, up))
    return Ratio(ratio=ratio, low=ratio * exp(-low), high=ratio * exp(high), known=known)
