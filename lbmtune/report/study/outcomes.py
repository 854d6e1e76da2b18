"""Outcomes of the trials of a study in their order: reasons, the time that each stage took, the history of speeds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from lbmtune.records import Outcome, Trial
from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import CEILING, NEUTRAL, OUTCOME_COLOURS, Figure, choose, of_trials, plain_figure, scatter
from lbmtune.report.html import Panel, panel
from lbmtune.report.limits import Limit, binding
from lbmtune.units import format_mlups

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
    outcomes = outcome_info(study)
    found = [panel("outcomes", "Outcomes", caption, outcome_figure(outcomes))] if len(outcomes) > 1 else []
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


class Attempt(NamedTuple):
    """A trial in the order of the search. elapsed_s: seconds of work on it and all before it; mlups: before finals."""

    trial: Trial
    elapsed_s: float
    mlups: float | None


def attempts(study: StudyRecord) -> list[Attempt]:
    """Return the trials in order, with the speeds that the search saw."""
    elapsed = accumulate(sum(getattr(t.costs, f"{stage}_s") for stage in STAGES) for t in study.trials)
    return [
        Attempt(t, s, None if t.mlups is None else (t.measurement or t.best_measurement).mlups)
        for t, s in zip(study.trials, elapsed, strict=True)
    ]


def best_so_far(found: Sequence[Attempt]) -> list[float | None]:
    """Return the highest speed after each attempt, None before the first verified one."""
    return [top or None for top in accumulate((a.mlups or 0.0 for a in found), max)]


def history_panel(study: StudyRecord) -> Panel:
    """Return the search history with its caption."""
    found = attempts(study)
    last = max(a.elapsed_s for a in found)
    caption = (
        f"{len(found)} trials in {last:,.0f} s of work: compiling, verifying, measuring and searching, "
        "summed over processes. Crosses on the axis have no speed."
    )
    return panel("history", "Search history", caption, history_figure(found, binding(study, study.ranked[0])))


def history_figure(found: Sequence[Attempt], limit: Limit | None) -> Figure:
    """Draw the speed of each attempt and the best so far, against its number or the seconds of work."""
    figure = plain_figure("trial", "MLUPS")
    clocks: list[list[list[float]]] = []

    def keep(mine: Sequence[Attempt]) -> list[float]:
        numbers = [float(a.trial.number) for a in mine]
        clocks.append([numbers, [a.elapsed_s for a in mine]])
        return numbers

    figure.add_scatter(
        x=keep(found),
        y=best_so_far(found),
        name="best so far",
        mode="lines",
        line={"shape": "hv", "width": 2.5, "color": CEILING},
        hoverinfo="skip",  # a point that lies on it answers the mouse
    )
    for outcome in Outcome:
        mine = [a for a in found if a.trial.outcome is outcome]
        if mine:
            figure.add_trace(_attempts(mine, keep(mine), outcome))
    if limit:
        figure.add_hline(
            y=limit.mlups,
            line={"dash": "dot", "width": 1.2, "color": NEUTRAL},
            annotation={
                "text": f"{limit.label}: {format_mlups(limit.mlups)}",
                "font": {"size": 11},
            },
        )
    by_number, by_time = ([clock[i] for clock in clocks] for i in (0, 1))
    choose(
        figure,
        [
            ("by trial", [{"x": by_number}, {"xaxis.title.text": "trial"}]),
            ("by time", [{"x": by_time}, {"xaxis.title.text": "work (s)"}]),
        ],
    )
    figure.update_yaxes(rangemode="tozero")
    return figure


def _failed(outcome: Outcome) -> str:
    return "%{text}<br>" + f"{outcome.value}<extra></extra>"


def _attempts(found: Sequence[Attempt], x: list[float], outcome: Outcome) -> Any:
    good = outcome is Outcome.OK
    return scatter(
        x=x,
        # trials without a speed stand on the axis
        y=[a.mlups or 0.0 for a in found],
        name=outcome.value,
        marker={
            "color": OUTCOME_COLOURS[outcome],
            "size": 7 if good else 9,
            "symbol": "circle" if good else "x",
            "opacity": 0.8,
        },
        **of_trials([a.trial.number for a in found]),
        hovertemplate="%{text}<br>%{y:,.0f} MLUPS<extra></extra>" if good else _failed(outcome),
    )
