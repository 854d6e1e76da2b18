"""Outcomes of the trials of a study, and the time that each stage took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lbmtune.records import Outcome
from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import OUTCOME_COLOURS, Figure, plain_figure
from lbmtune.report.html import Panel, panel

STAGES = ("compile", "verify", "measure", "search")


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


def cost_info(study: StudyRecord) -> dict[Outcome, dict[str, float]]:
    """Return the seconds of each stage by outcome, without zeros."""
    return {
        outcome: {
            stage: seconds
            for stage in STAGES
            if (seconds := sum(getattr(t.costs, f"{stage}_s") for t in study.trials if t.outcome is outcome)) > 0
        }
        for outcome in Outcome
    }


def outcome_panels(study: StudyRecord) -> list[Panel]:
    """Return the figures of outcomes and of costs, as far as there is something to show."""
    if not study.trials:
        return []
    caption = f"{len(study.ranked)} of {len(study.trials)} trials were verified and have a speed."
    found = [panel("outcomes", "Outcomes", caption, outcome_figure(outcome_info(study)))]
    costs = cost_info(study)
    if any(costs.values()):
        total = f"{sum(sum(mine.values()) for mine in costs.values()):,.1f} s in total, summed over processes."
        found.append(panel("costs", "Time spent by stage", total, cost_figure(costs)))
    return found


def cost_figure(costs: Mapping[Outcome, Mapping[str, float]]) -> Figure:
    """Draw the seconds by stage, split by outcome."""
    figure = plain_figure("time (s)", "")
    for outcome, mine in costs.items():
        if mine:
            figure.add_bar(
                y=list(mine),
                x=list(mine.values()),
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
