"""The search history of a study: speed of each trial and the best so far."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from lbmtune.records import Outcome, Trial
from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import CEILING, NEUTRAL, OUTCOME_COLOURS, Figure, choose, plain_figure, scatter, wrapped
from lbmtune.report.html import Panel, panel
from lbmtune.report.study.outcomes import STAGES
from lbmtune.report.study.trials import label, varied_knobs


class Attempt(NamedTuple):
    """A trial in the order of the search. elapsed_s: seconds of work on it and all before it; mlups: before finals."""

    trial: Trial
    elapsed_s: float
    mlups: float | None
    label: str


def attempts(study: StudyRecord) -> list[Attempt]:
    """Return the trials in order, with the speeds that the search saw."""
    varied = varied_knobs(study)
    elapsed = accumulate(sum(getattr(t.costs, f"{stage}_s") for stage in STAGES) for t in study.trials)
    return [
        Attempt(t, s, None if t.mlups is None else (t.measurement or t.best_measurement).mlups, label(t, varied))
        for t, s in zip(study.trials, elapsed, strict=True)
    ]


def best_so_far(found: Sequence[Attempt]) -> list[float | None]:
    """Return the highest speed after each attempt, None before the first verified one."""
    return [top or None for top in accumulate((a.mlups or 0.0 for a in found), max)]


def history_panel(study: StudyRecord) -> Panel:
    """Return the search history with its caption."""
    ceiling = study.header.ceiling.best_bytes_per_s / study.ranked[0].best_measurement.bytes_per_update / 1e6
    found = attempts(study)
    last = max(a.elapsed_s for a in found)
    caption = (
        f"{len(found)} trials in {last:,.0f} s of work: compiling, verifying, measuring and searching, "
        "summed over processes. Crosses on the axis have no speed."
    )
    return panel("history", "Search history", caption, history_figure(found, ceiling))


def history_figure(found: Sequence[Attempt], ceiling_mlups: float | None) -> Figure:
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
        hoverinfo="y",
    )
    for outcome in Outcome:
        mine = [a for a in found if a.trial.outcome is outcome]
        if mine:
            figure.add_trace(_attempts(mine, keep(mine), outcome))
    if ceiling_mlups:
        figure.add_hline(
            y=ceiling_mlups,
            line={"dash": "dot", "width": 1.2, "color": NEUTRAL},
            annotation={"text": "ceiling of the winner", "font": {"size": 11}},
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
        text=[
            f"trial {a.trial.number}: {outcome.value}<br>{wrapped(a.label)}<br>{wrapped(a.trial.reason)}" for a in found
        ],
        hovertemplate="%{text}<br>%{y:,.0f} MLUPS<extra></extra>" if good else "%{text}<extra></extra>",
    )
