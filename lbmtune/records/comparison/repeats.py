"""Intervals that hold 90 % of repeats of a measurement in other runs: the spread within a run and between runs."""

from math import exp, hypot, log
from typing import NamedTuple, Protocol

NOT_MEASURED = "between runs: not measured"
"""Said in place of the spread between runs; lbmtune devices --calibrate measures it."""

_SLOWEST, _WIDEST = 1e-30, 20.0
"""MLUPS and logarithms beyond which a record makes no sense; intervals stay finite."""


class Sampled(Protocol):
    """Speed from samples of one run with the bounds of its interval, such as a `Measurement` or a `best.Expected`."""

    @property
    def mlups(self) -> float: ...
    @property
    def ci_low_mlups(self) -> float: ...
    @property
    def ci_high_mlups(self) -> float: ...


class RepeatInterval(NamedTuple):
    """Bounds, MLUPS, that hold 90 % of repeats. within: relative half-width of the 95 % interval of the median.

    between: `statistics.repeat_spread`; None if it was not measured: then the bounds are those within the run alone.
    """

    mlups: float
    low_mlups: float
    high_mlups: float
    within: float
    between: float | None

    @property
    def half_width(self) -> float:
        """Return the half-width relative to the speed."""
        return (self.high_mlups - self.low_mlups) / 2 / self.mlups

    def covers(self, mlups: float) -> bool:
        """Return whether a speed lies in the interval."""
        return self.low_mlups <= mlups <= self.high_mlups

    def __str__(self) -> str:
        """Return the half-widths with what they say."""
        within = f"+-{percent(self.within)} within the run"
        if self.between is None:
            return f"{within}; {NOT_MEASURED}"
        return f"+-{percent(self.half_width)} (90 % of repeats; {within})"


def repeat_interval(found: Sampled, between: float | None) -> RepeatInterval:
    """Return the interval of a measurement. between: spread between runs, a logarithm, or None."""
    slower, faster = (min(hypot(one, between or 0.0), _WIDEST) for one in distances(found))
    return RepeatInterval(
        mlups=found.mlups,
        low_mlups=found.mlups * exp(-slower),
        high_mlups=found.mlups * exp(faster),
        within=(found.ci_high_mlups - found.ci_low_mlups) / 2 / found.mlups,
        between=between,
    )


def distances(found: Sampled) -> tuple[float, float]:
    """Return how far the bounds within the run lie below and above a measurement, as logarithms of ratios."""
    low, high = (log(max(bound, _SLOWEST) / found.mlups) for bound in (found.ci_low_mlups, found.ci_high_mlups))
    return abs(low), abs(high)


def percent(share: float) -> str:
    """Return a share in per cent, with two digits below one per cent."""
    return f"{100 * share:.{1 if share >= 0.00995 else 2}f} %"
