"""Burst and sustained speeds of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lbmtune.records import Trial
from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import NEUTRAL, plain_figure, wrapped
from lbmtune.report.html import Panel, panel
from lbmtune.report.study.steps import is_power_bound, sustained_text
from lbmtune.report.study.trials import label, varied_knobs

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def sustained_panels(study: StudyRecord) -> list[Panel]:
    """Return the figure, if any trial has a sustained run."""
    if not any(trial.sustained for trial in study.ranked):
        return []
    best = study.ranked[0]
    caption = "Bursts: samples of a fraction of a second. Sustained: seconds without a pause. "
    winner = sustained_text(best.sustained, best.best_measurement.mlups)
    caption += f"Winner: {winner[:1].lower()}{winner[1:]}" if winner else ""
    return [panel("sustained", "Burst and sustained", caption.strip(), sustained_figure(study))]


def sustained_figure(study: StudyRecord) -> Figure:
    """Draw burst and sustained speed of each trial that has both, best first."""
    trials = [t for t in study.ranked if t.sustained]
    varied = varied_knobs(study)
    figure = plain_figure("MLUPS", "")
    names = [f"trial {t.number}" for t in trials]
    bursts = [t.best_measurement.mlups for t in trials]
    runs = [t.sustained.mlups for t in trials if t.sustained]
    for burst, run, name in zip(bursts, runs, names, strict=True):
        figure.add_scatter(
            x=[run, burst],
            y=[name, name],
            mode="lines",
            line={"width": 2, "color": NEUTRAL},
            hoverinfo="skip",
            showlegend=False,
        )
    texts = [wrapped(label(t, varied)) for t in trials]
    with_state = [f"{text}<br>{_state(trial)}" for text, trial in zip(texts, trials, strict=True)]
    for kind, values, symbol, colour, shown in (
        ("burst", bursts, "circle", "#0072b2", texts),
        ("sustained", runs, "diamond", "#d55e00", with_state),
    ):
        figure.add_scatter(
            x=values,
            y=names,
            mode="markers",
            name=kind,
            marker={"size": 10, "symbol": symbol, "color": colour},
            text=shown,
            hovertemplate="%{text}<br>%{x:,.0f} MLUPS<extra>" + kind + "</extra>",
        )
    figure.update_yaxes(autorange="reversed", type="category", dtick=1, tickfont={"size": 11})
    return figure


def _state(trial: Trial) -> str:
    """Name energy, clock and a power bound of a sustained run."""
    run = trial.sustained
    assert run is not None
    parts = (
        f"{run.nj_per_update:.3g} nJ per update" if run.nj_per_update else "",
        f"{run.conditions.sm_clock_hz / 1e6:,.0f} MHz" if run.conditions.sm_clock_hz else "",
        "bound by power" if is_power_bound(run, trial.best_measurement.mlups) else "",
    )
    return ", ".join(filter(None, parts))
