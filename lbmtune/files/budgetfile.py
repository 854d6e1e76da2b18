"""The table [budget] of a study file: when a search ends."""

from dataclasses import dataclass
from math import nan
from typing import Any

from lbmtune.errors import InputError
from lbmtune.files.ranges import SAMPLE, TARGET, TIME_S, TRIALS, check
from lbmtune.files.source import Source
from lbmtune.records.spec import TARGETS, Budget, Target
from lbmtune.units import parse_duration_s


@dataclass(frozen=True, kw_only=True)
class BudgetFile:
    """The table [budget]: trials; time of the whole and search_time of the trials alone, such as '5m'. None: no limit.

    target: share of the prediction at which the search ends, or 'ceiling:0.97'; sample: first trials, spread over the
    space.
    """

    trials: int | None = None
    time: str | int | float | None = None
    search_time: str | int | float | None = None
    target: str | int | float | None = None
    sample: int = 0


def tree_of(budget: Budget) -> dict[str, Any]:
    """Return the table that says the same."""
    found: dict[str, Any] = {"trials": budget.trials, "time": budget.seconds, "search_time": budget.search_seconds}
    found |= {"target": str(budget.target or ""), "sample": budget.sample}
    return {name: value for name, value in found.items() if value}


def budget(file: BudgetFile, source: Source) -> Budget:
    """Return the budget of a study."""
    if file.trials is not None:
        check(file.trials, TRIALS, "budget.trials", source, "leave it out for no limit.")
    check(file.sample, SAMPLE, "budget.sample", source, "leave it out for a search from the start.")
    return Budget(
        trials=file.trials or 0,
        seconds=_seconds(file.time, "budget.time", source),
        search_seconds=_seconds(file.search_time, "budget.search_time", source),
        target=None if file.target is None else _target(str(file.target), source),
        sample=file.sample,
    )


def _seconds(time: str | float | None, key: str, source: Source) -> float:
    if time is None:
        return 0.0
    try:
        seconds = parse_duration_s(time) if isinstance(time, str) else time
    except InputError as error:
        source.fail(key, str(error))
    if seconds not in TIME_S:
        source.fail(key, f"{time} is not {TIME_S} seconds; leave it out for no limit.")
    return float(seconds)


def _target(text: str, source: Source) -> Target:
    of, _, share = text.rpartition(":")
    if of not in ("", *TARGETS):
        source.fail("budget.target", f"{text} is not supported (use 0.97, or ceiling:0.97).")
    try:
        value = float(share)
    except ValueError:
        value = nan
    if value not in TARGET:
        source.fail("budget.target", f"{text} is not a share {TARGET}; write for example 0.97, or leave it out.")
    return Target(share=value, of=of or TARGETS[0])
