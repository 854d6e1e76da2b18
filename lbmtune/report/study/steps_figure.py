"""The figure of kernels with several steps per launch: bytes per update and MLUPS against the number of steps."""

from collections.abc import Sequence

from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import BESIDE, NEUTRAL, STATE_COLOURS, Figure, add_winner, log_axis, plain_figure
from lbmtune.report.html import Panel, panel
from lbmtune.report.study.steps import CellsRead, Stage, StepsInfo, explanation, steps_info
from lbmtune.units import format_mlups

_CAPTION = (
    "The best of each number of steps. Dotted lines: bounds without halos (below: bytes per update; above: speed that "
    "the ceiling allows with these bytes)."
)
_SPEED = "%{y:,.0f} MLUPS"


def steps_panels(study: StudyRecord, cells_read: CellsRead | None) -> list[Panel]:
    """Return the figure, if any kernel keeps moments, the state on chip, or fuses steps."""
    info = steps_info(study, cells_read)
    if info is None:
        return []
    caption = " ".join((_CAPTION, *explanation(study, info, cells_read)))
    return [panel("steps", "Several steps per launch", caption, steps_figure(info))]


def steps_figure(info: StepsInfo) -> Figure:
    """Draw against steps per launch: below bytes per update; above MLUPS with their bounds."""
    figure = plain_figure("time steps per launch, T", "")
    for kept, ideal in info.ideal.items():
        _add_bounds(figure, info, kept, ideal)
        _add_stages(figure, [s for s in info.stages if s.kind.representation == kept and not s.kind.on_chip])
    steps = [1, max(len(ideal) for ideal in info.ideal.values())]
    for stage in info.stages:
        if stage.kind.on_chip:
            _add_on_chip(figure, stage, steps, winner=stage is info.winner)
    figure.add_scatter(
        x=steps,
        y=[info.one_step_mlups] * 2,
        mode="lines",
        name="roofline of populations, T = 1",
        yaxis="y2",
        line={"width": 1, "color": NEUTRAL},
    )
    if not info.winner.kind.on_chip:
        first = info.winner
        name = f"winner: trial {first.number}, {format_mlups(first.mlups)} MLUPS"
        # left of the ring, because the winner often has the most steps, at the right end of the figure
        ring = {"yaxis": "y2", "textposition": "bottom left"}
        add_winner(figure, first.kind.steps, first.mlups, first.number, name, **ring)
    elif info.winner not in info.stages:
        _add_on_chip(figure, info.winner, steps, winner=True)
    _set_axes(figure, info)
    return figure


def _add_bounds(figure: Figure, info: StepsInfo, kept: str, ideal: Sequence[float]) -> None:
    """Add bytes per update without halos, and the speed that the ceiling allows with them."""
    steps = list(range(1, len(ideal) + 1))
    line = {"dash": "dot", "width": 1.5, "color": STATE_COLOURS.get(kept, NEUTRAL)}
    bounds = [info.bytes_per_s / moved / 1e6 for moved in ideal]
    figure.add_scatter(x=steps, y=bounds, mode="lines", name=f"bandwidth / bytes, {kept}", line=line, yaxis="y2")
    figure.add_scatter(x=steps, y=ideal, mode="lines", line=line, showlegend=False, name=f"without halos, {kept}")


def _add_stages(figure: Figure, stages: Sequence[Stage]) -> None:
    """Add the best of each number of steps: bytes with halos, issue bound, predicted, burst and sustained speed."""
    if not stages:
        return
    kept = stages[0].kind.representation
    colour = STATE_COLOURS.get(kept, NEUTRAL)
    halo_bytes = [s.halo_bytes for s in stages]
    marks = (
        (f"{kept}, halos read from memory", "circle-open", "y", halo_bytes, "%{y:.3g} B per update"),
        (f"issue slots alone, {kept}", "line-ew-open", "y2", [s.issue_mlups for s in stages], _SPEED),
        (f"predicted, {kept}", "x-thin-open", "y2", [s.predicted_mlups for s in stages], _SPEED),
        (f"burst, {kept}", "circle", "y2", [s.mlups for s in stages], _SPEED),
        (f"sustained, {kept}", "diamond-open", "y2", [s.sustained_mlups for s in stages], _SPEED),
    )
    for name, symbol, axis, values, form in marks:
        if any(value is not None for value in values):
            figure.add_scatter(
                x=[s.kind.steps for s in stages],
                y=values,
                mode="markers",
                name=name,
                yaxis=axis,
                marker={"color": colour, "size": 11, "symbol": symbol, "line": {"width": 2, "color": colour}},
                text=[f"trial {s.number}: {s.kind.label}" for s in stages],
                hovertemplate=f"%{{text}}<br>{form}<extra>{name}</extra>",
            )


def _add_on_chip(figure: Figure, stage: Stage, steps: Sequence[int], *, winner: bool) -> None:
    """Add bytes and speed of a kernel on chip as lines over all numbers of steps, because its number is an argument."""
    name = f"{stage.kind.state}, any number of steps{', the winner' if winner else ''}"
    line = {"dash": "longdashdot", "width": 2, "color": STATE_COLOURS.get(stage.kind.representation, NEUTRAL)}
    for axis, value, form in (("y", stage.bytes_per_update, "%{y:.3g} B per update"), ("y2", stage.mlups, _SPEED)):
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


def _set_axes(figure: Figure, info: StepsInfo) -> None:
    figure.update_xaxes(dtick=1)
    figure.update_layout(
        yaxis={"title": "bytes per update", "domain": [0, 0.36]},
        yaxis2={"title": "MLUPS", "domain": [0.46, 1], "anchor": "x", "automargin": True, "zeroline": False},
        legend=BESIDE,
        margin={"l": 88},
    )
    ideal = [moved for each in info.ideal.values() for moved in each]
    drawn = [(s.mlups, s.memory_mlups, s.issue_mlups, s.predicted_mlups, s.sustained_mlups) for s in info.stages]
    speeds = [mlups for each in drawn for mlups in each if mlups]
    speeds.append(info.bytes_per_s / min(ideal) / 1e6)
    moved = [*ideal, *(s.bytes_per_update for s in info.stages)]
    log_axis(figure.layout.yaxis.update, min(moved) / 1.3, max(moved) * 1.3)
    log_axis(figure.layout.yaxis2.update, min([*speeds, info.one_step_mlups]) / 1.3, max(speeds) * 1.3)
