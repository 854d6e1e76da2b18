"""Figures of kernels that do several steps per launch, and of runs of seconds beside bursts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lbmtune.records import Trial
from lbmtune.report.drawing import BESIDE, MARK, MOMENTS_COLOURS, SCHEME_COLOURS, log_axis, plain_figure, wrapped
from lbmtune.report.info import label, varied_axes
from lbmtune.report.steps import Stage, StepsInfo, power_bound
from lbmtune.units import format_mlups

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from lbmtune.records.study import StudyRecord

KEPT_COLOURS = {"populations": SCHEME_COLOURS["pull"], "moments": MOMENTS_COLOURS[1]}
_NEUTRAL = "#888888"


def steps_figure(info: StepsInfo) -> Figure:
    """Against steps per launch: below bytes per update; above MLUPS with what bandwidth and instructions allow."""
    figure = plain_figure("time steps per launch, T", "")
    for kept, ideal in info.ideal.items():
        colour, steps = KEPT_COLOURS.get(kept, _NEUTRAL), list(range(1, len(ideal) + 1))
        line = {"dash": "dot", "width": 1.5, "color": colour}
        bounds = [info.bytes_per_s / moved / 1e6 for moved in ideal]
        figure.add_scatter(x=steps, y=bounds, mode="lines", name=f"bandwidth / bytes, {kept}", line=line, yaxis="y2")
        figure.add_scatter(x=steps, y=ideal, mode="lines", line=line, showlegend=False, name=f"without halos, {kept}")
        _stages(figure, info, kept, colour)
    most = max(len(ideal) for ideal in info.ideal.values())
    for stage in info.stages:
        if stage.on_chip:
            _across(figure, stage, [1, most], winner=stage is info.winner)
    figure.add_scatter(
        x=[1, most],
        y=[info.one_step_mlups] * 2,
        mode="lines",
        name="roofline of populations, T = 1",
        yaxis="y2",
        line={"width": 1, "color": _NEUTRAL},
    )
    if not info.winner.on_chip:
        _winner(figure, info.winner)
    elif info.winner not in info.stages:
        _across(figure, info.winner, [1, most], winner=True)
    figure.update_xaxes(dtick=1)
    speeds = [m for s in info.stages for m in (s.mlups, s.memory_mlups, s.issue_mlups or s.mlups)]
    speeds += [info.bytes_per_s / min(ideal) / 1e6 for ideal in info.ideal.values()]
    moved = [b for ideal in info.ideal.values() for b in ideal] + [s.bytes_per_update for s in info.stages]
    figure.update_layout(
        yaxis={"title": "bytes per update", "domain": [0, 0.36]},
        yaxis2={"title": "MLUPS", "domain": [0.46, 1], "anchor": "x", "automargin": True, "zeroline": False},
        legend=BESIDE,
        margin={"r": 24},
    )
    log_axis(figure.layout.yaxis.update, min(moved) / 1.3, max(moved) * 1.3)
    log_axis(figure.layout.yaxis2.update, min([*speeds, info.one_step_mlups]) / 1.3, max(speeds) * 1.3)
    return figure


def _stages(figure: Figure, info: StepsInfo, kept: str, colour: str) -> None:
    """The best of each number of steps: its bytes with halos, what instructions allow, predicted, bursts, sustained."""
    mine = [s for s in info.stages if s.kept == kept and not s.on_chip]
    if not mine:
        return
    marks = (
        (f"{kept}, halos read from memory", "circle-open", "y", [s.halo_bytes for s in mine], "%{y:.3g} B per update"),
        (
            f"issue of instructions alone, {kept}",
            "line-ew-open",
            "y2",
            [s.issue_mlups for s in mine],
            "%{y:,.0f} MLUPS",
        ),
        (f"predicted, {kept}", "x-thin-open", "y2", [s.predicted_mlups for s in mine], "%{y:,.0f} MLUPS"),
        (f"burst, {kept}", "circle", "y2", [s.mlups for s in mine], "%{y:,.0f} MLUPS"),
        (f"sustained, {kept}", "diamond-open", "y2", [s.sustained_mlups for s in mine], "%{y:,.0f} MLUPS"),
    )
    for name, symbol, axis, values, form in marks:
        if any(value is not None for value in values):
            figure.add_scatter(
                x=[s.steps for s in mine],
                y=values,
                mode="markers",
                name=name,
                yaxis=axis,
                marker={"color": colour, "size": 11, "symbol": symbol, "line": {"width": 2, "color": colour}},
                text=[f"trial {s.number}: {s.family}" for s in mine],
                hovertemplate=f"%{{text}}<br>{form}<extra>{name}</extra>",
            )


def _winner(figure: Figure, stage: Stage) -> None:
    """A ring around the winner, with its name."""
    figure.add_scatter(
        x=[stage.steps],
        y=[stage.mlups],
        mode="markers+text",
        name=f"winner: trial {stage.number}, {format_mlups(stage.mlups)} MLUPS",
        yaxis="y2",
        marker={"symbol": "circle-open", "size": 19, "color": MARK, "line": {"width": 2.5, "color": MARK}},
        text=["winner"],
        textposition="bottom left",  # often of the most steps, at whose right the figure ends
        textfont={"size": 13, "color": MARK},
        hoverinfo="skip",
    )


def _across(figure: Figure, stage: Stage, steps: Sequence[int], *, winner: bool) -> None:
    """What stays on chip has no number of steps: its bytes and its speed are lines over all of them."""
    name = f"{stage.kept} on chip, any number of steps{', the winner' if winner else ''}"
    line = {"dash": "longdashdot", "width": 2, "color": KEPT_COLOURS.get(stage.kept, _NEUTRAL)}
    for axis, value, form in (
        ("y", stage.bytes_per_update, "%{y:.3g} B per update"),
        ("y2", stage.mlups, "%{y:,.0f} MLUPS"),
    ):
        figure.add_scatter(
            x=steps,
            y=[value] * len(steps),
            mode="lines",
            name=name,
            yaxis=axis,
            line=line,
            showlegend=axis == "y2",
            hovertemplate=f"trial {stage.number}<br>{form}<extra>{name}</extra>",
        )


def sustained_figure(study: StudyRecord) -> Figure:
    """Burst and sustained of each trial that has both, best first."""
    trials = [t for t in study.ranked if t.sustained]
    varied = varied_axes(study)
    figure = plain_figure("MLUPS", "")
    names = [f"trial {t.number}" for t in trials]
    for trial, name in zip(trials, names, strict=True):
        assert trial.sustained is not None
        figure.add_scatter(
            x=[trial.sustained.mlups, trial.best_measurement.mlups],
            y=[name, name],
            mode="lines",
            line={"width": 2, "color": _NEUTRAL},
            hoverinfo="skip",
            showlegend=False,
        )
    texts = [wrapped(label(t, varied)) for t in trials]
    bursts = [t.best_measurement.mlups for t in trials]
    for kind, values, symbol, told in (
        ("burst", bursts, "circle", texts),
        ("sustained", [t.sustained.mlups for t in trials if t.sustained], "diamond", _told(trials, texts)),
    ):
        figure.add_scatter(
            x=values,
            y=names,
            mode="markers",
            name=kind,
            marker={"size": 10, "symbol": symbol, "color": "#0072b2" if kind == "burst" else "#d55e00"},
            text=told,
            hovertemplate="%{text}<br>%{x:,.0f} MLUPS<extra>" + kind + "</extra>",
        )
    figure.update_yaxes(autorange="reversed", type="category", dtick=1, tickfont={"size": 11})
    return figure


def _told(trials: Sequence[Trial], texts: Sequence[str]) -> list[str]:
    """With energy, clock and whether power bound the run."""
    told = []
    for trial, text in zip(trials, texts, strict=True):
        run = trial.sustained
        assert run is not None
        parts = [f"{run.nj_per_update:.3g} nJ per update" if run.nj_per_update else ""]
        parts += [f"{run.conditions.sm_clock_hz / 1e6:,.0f} MHz" if run.conditions.sm_clock_hz else ""]
        parts += ["bound by power" if power_bound(run, trial.best_measurement.mlups) else ""]
        told.append("<br>".join([text, ", ".join(filter(None, parts))]))
    return told
