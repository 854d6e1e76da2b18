"""Tell from the finals of a study who is first, by how much, and who cannot be told from it.

Finalists are measured in rounds, so that speeds are compared round by round, which cancels drift. One that was dropped
took part in the first rounds alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lbmtune.records.comparison.repeats import percent
from lbmtune.records.comparison.statistics import Interval, paired_ratio
from lbmtune.records.trial import Trial

_FEWEST = 6
"""Rounds below which no interval holds 95 %."""


@dataclass(frozen=True)
class Verdict:
    """The end of a race. first: number of the fastest; tied: of those that are not slower at 95 %, by speed.

    behind: the fastest of the others, None if there is none; ahead: how much faster the first is, as a ratio; untold:
    others that may be as fast: their rounds are too few, or too unlike each other, to tell.
    """

    first: int
    tied: tuple[int, ...] = ()
    behind: int | None = None
    ahead: Interval | None = None
    untold: tuple[int, ...] = ()

    def sentence(self, keys: dict[int, str], winner: int, leads: str = "has the smallest footprint of them") -> str:
        """Return margin, confidence and ties in words.

        keys: of trials by number; leads: why the winner is the best of those that are tied, if it is one of them.
        """
        said = []
        if self.tied:
            level = (self.first, *self.tied)
            chosen = f"; {keys[winner]} {leads}" if winner in level else ""
            said.append(f"tied at 95 %: {', '.join(keys[number] for number in level)}{chosen}")
        if self.behind is not None and self.ahead is not None:
            low, high = (percent(bound - 1) for bound in (self.ahead.low, self.ahead.high))
            lead = percent(self.ahead.median - 1)
            said.append(f"{keys[self.first]} is {lead} ({low} to {high} at 95 %) faster than {keys[self.behind]}")
        if self.untold:
            named = ", ".join(keys[number] for number in self.untold)
            said.append(f"the rounds do not tell at 95 % if {keys[self.first]} is faster than {named}")
        return "; ".join(said)


def verdict(trials: Sequence[Trial]) -> Verdict | None:
    """Return what the finals of these trials say; None without finals."""
    raced = sorted((t for t in trials if t.final and t.mlups), key=lambda t: -(t.mlups or 0.0))
    if not raced:
        return None
    first, *others = raced
    ahead = {t.number: _ahead(first, t) for t in others}
    slower = [number for number, found in ahead.items() if found and found.low > 1.0]
    untold = tuple(number for number, found in ahead.items() if found is None)
    tied = tuple(number for number in ahead if number not in (*slower, *untold))
    behind = next(iter(slower), None)
    return Verdict(first.number, tied, behind, None if behind is None else ahead[behind], untold)


def slower(trial: Trial, other: Trial) -> bool:
    """Return whether a trial is slower than another one of its finals at 95 %, by rounds of both."""
    found = _ahead(other, trial) if trial.final and other.final else None
    return found is not None and found.low > 1.0


def _ahead(first: Trial, other: Trial) -> Interval | None:
    """Return the time of another over that of the first, by rounds of both; None for too few."""
    assert first.final is not None
    assert other.final is not None
    rounds = min(len(first.final.samples_s), len(other.final.samples_s))
    if rounds < _FEWEST:
        return None
    return paired_ratio(other.final.samples_s[:rounds], first.final.samples_s[:rounds])
