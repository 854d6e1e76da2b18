"""The score of a run: the field's share of the optimum over the budget, and evaluations and device seconds to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from scripts.contest.play import Run
from scripts.contest.sets import Array, World

MARKS = (1, 2, 5, 10, 25, 50, 100)
"""Evaluations at which shares are given."""
GOALS = (0.98, 0.99)
"""Shares to which evaluations are counted."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """The score of a strategy on a set, over runs that are all shuffled.

    start: "calibrated", "cold" (bandwidths alone), or "none" of strategies that know no model. share_N: median share of
    the optimum after N evaluations. to_98: median of evaluations to 98 %, to_98_p95: its 95th percentile, seconds_99:
    median of device seconds to 99 %; None if not within the budget. stop: median of evaluations at the stop, lost,
    lost_p95: share that is missing there, of the runs that stop; None if the strategy does not.
    """

    set: str
    strategy: str
    start: str
    backend: str
    configurations: int
    seeds: int
    share_1: float
    share_2: float
    share_5: float
    share_10: float
    share_25: float
    share_50: float
    share_100: float
    to_98: int | None
    to_98_p95: int | None
    to_99: int | None
    to_99_p95: int | None
    seconds_99: float | None
    stop: int | None = None
    lost: float | None = None
    lost_p95: float | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """Return what only one score has."""
        return self.set, self.strategy, self.start

    def at(self, evaluations: int) -> float:
        """Return the median share after one of `MARKS`."""
        found: float = getattr(self, f"share_{evaluations}")
        return found

    def row(self) -> dict[str, Any]:
        """Return the fields by their names."""
        return asdict(self)


COLUMNS = tuple(field.name for field in fields(Score))


def score(world: World, strategy: str, start: str, runs: Sequence[Run]) -> Score:
    """Judge the runs of a strategy on a set."""
    curves = np.stack([_curve(world, run.order, MARKS[-1]) for run in runs])
    ninety_nine = [_evaluations(curve, GOALS[1]) for curve in curves]
    stops = [run.stopped for run in runs if run.stopped]
    lost = [1.0 - curve[run.stopped - 1] for run, curve in zip(runs, curves, strict=True) if run.stopped]
    reached: dict[str, Any] = {}
    for goal in GOALS:
        needed = [_evaluations(curve, goal) for curve in curves]
        for name, level in (("", 0.5), ("_p95", 0.95)):
            at = _quantile(needed, level)
            reached[f"to_{100 * goal:.0f}{name}"] = None if at is None else int(at)
    seconds = _quantile([_seconds(world, run, needed) for run, needed in zip(runs, ninety_nine, strict=True)], 0.5)
    return Score(
        set=world.name,
        strategy=strategy,
        start=start,
        backend=world.backend,
        configurations=len(world.configs),
        seeds=len(runs),
        **{f"share_{mark}": round(float(np.median(curves[:, mark - 1])), 4) for mark in MARKS},
        **reached,
        seconds_99=None if seconds is None else round(seconds, 2),
        stop=int(np.median(stops)) if stops else None,
        lost=round(float(np.median(lost)), 4) if lost else None,
        lost_p95=round(float(np.quantile(lost, 0.95)), 4) if lost else None,
    )


def _curve(world: World, order: Sequence[int], budget: int) -> Array:
    """Return the best share after each evaluation, up to the budget."""
    best = np.maximum.accumulate(world.share[list(order)])
    return np.concatenate([best, np.full(max(0, budget - len(order)), best[-1])])[:budget]


def _evaluations(curve: Array, goal: float) -> float:
    reached = curve >= goal - 1e-12
    return float(reached.argmax() + 1) if reached.any() else np.inf


def _seconds(world: World, run: Run, needed: float) -> float:
    return float(world.device_s[list(run.order[: int(needed)])].sum()) if np.isfinite(needed) else np.inf


def _quantile(values: Sequence[float], level: float) -> float | None:
    """Return a quantile that is one of the values; None if that is infinite."""
    found = float(np.quantile(values, level, method="inverted_cdf"))
    return found if np.isfinite(found) else None
