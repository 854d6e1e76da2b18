"""Outcomes of the trials of a study, and the time that each stage took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from lbmtune.records import Costs, Outcome
from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import OUTCOME_COLOURS, Figure, plain_figure
from lbmtune.report.html import Panel, panel

STAGES = ("compile", "verify", "measure", "search")


@dataclass(frozen=True)
class StageCost:
    """Seconds that one stage took for trials with one outcome."""

    stage: str
    outcome: Outcome
    seconds: float


@dataclass(frozen=True)
class OutcomeInfo:
    """Number of trials with an outcome, and their most frequent reasons with counts."""

    outcome: Outcome
    count: int
    reasons: tuple[tuple[str, int], ...]


def outcome_info(study: StudyRecord) -> tuple[OutcomeInfo, ...]:
    """Return the outcomes that occurred, in the order of their definition."""
    by_outcome = {o: [t for t in study.trials if t.outcome is o] for o in Outcome}
    return tuple(
        OutcomeInfo(o, len(trials), tuple(Counter(_shortened(t.reason) for t in trials if t.reason).most_common(5)))
        for o, trials in by_outcome.items()
        if trials
    )


def _shortened(reason: str) -> str:
    """Return the first line, up to 160 characters."""
    first = reason.strip().partition("\n")[0]
    return first if len(first) <= 160 else f"{first[:157]}..."


def cost_info(study: StudyRecord) -> tuple[StageCost, ...]:
    """Return the seconds by stage and outcome, without zeros."""
    spent: dict[tuple[str, Outcome], float] = {}
    for trial in study.trials:
        for stage, taken in seconds_by_stage(trial.costs).items():
            spent[stage, trial.outcome] = spent.get((stage, trial.outcome), 0.0) + taken
    return tuple(StageCost(stage, outcome, s) for (stage, outcome), s in spent.items() if s > 0)


def seconds_by_stage(costs: Costs) -> dict[str, float]:
    """Return the seconds of each stage."""
    return {stage: getattr(costs, f"{stage}_s") for stage in STAGES}


def outcome_panels(study: StudyRecord) -> list[Panel]:
    """Return the figures of outcomes and of costs, as far as there is something to show."""
    if not study.trials:
        return []
    caption = f"{len(study.ranked)} of {len(study.trials)} trials were verified and have a speed."
    found = [panel("outcomes", "Outcomes", caption, outcome_figure(outcome_info(study)))]
    costs = cost_info(study)
    if costs:
        total = f"{sum(c.seconds for c in costs):,.1f} s in total, summed over processes."
        found.append(panel("costs", "Time spent by stage", total, cost_figure(costs)))
    return found


def cost_figure(costs: Sequence[StageCost]) -> Figure:
    """Draw the seconds by stage, split by outcome."""
    figure = plain_figure("time (s)", "")
    for outcome in Outcome:
        mine = {c.stage: c.seconds for c in costs if c.outcome is outcome}
        if mine:
            figure.add_bar(
                y=[stage for stage in STAGES if stage in mine],
                x=[mine[stage] for stage in STAGES if stage in mine],
                orientation="h",
                name=outcome.value,
                marker={"color": OUTCOME_COLOURS[outcome]},
                hovertemplate="%{y}: %{x:.2f} s<extra>" + outcome.value + "</extra>",
            )
    figure.update_layout(barmode="stack")
    figure.update_yaxes(categoryorder="array", categoryarray=list(reversed(STAGES)))
    return figure


def outcome_figure(outcomes: Sequence[OutcomeInfo]) -> Figure:
    """Draw the number of trials by outcome."""
    figure = plain_figure("trials", "")
    figure.add_bar(
        y=[o.outcome.value for o in outcomes],
        x=[o.count for o in outcomes],
        orientation="h",
        width=0.6,
        marker={"color": [OUTCOME_COLOURS[o.outcome] for o in outcomes]},
        text=[str(o.count) for o in outcomes],
        textposition="auto",
        hovertemplate="%{y}: %{x}<extra></extra>",
    )
    figure.update_yaxes(autorange="reversed")
    return figure
