"""Predicted against measured speeds of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from lbmtune.records.statistics import relative_error
from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import NEUTRAL, PALE, Figure, look, plain_figure, scatter, wrapped
from lbmtune.report.html import Panel, panel
from lbmtune.report.study.trials import Point, by_kind, points

FEWEST = 6
"""Trials whose median error has a 95 % interval."""


@dataclass(frozen=True)
class ParityInfo:
    """Trials with a prediction. median_error: `relative_error` of points without a flaw, None of too few.

    left_out: number of points by flaw.
    """

    points: tuple[Point, ...]
    median_error: float | None
    left_out: Mapping[str, int]

    @property
    def counted(self) -> int:
        """Return the number of points without a flaw."""
        return len(self.points) - sum(self.left_out.values())


def parity_info(study: StudyRecord) -> ParityInfo:
    """Return the verified trials with a prediction, and the model's error of those without a flaw."""
    known = tuple(p for p in points(study) if p.predicted_mlups)
    errors = [relative_error(p.predicted_mlups, p.mlups) for p in known if p.predicted_mlups and not p.flaw]
    left_out = Counter(p.flaw for p in known if p.flaw)
    return ParityInfo(known, median(errors) if len(errors) >= FEWEST else None, left_out)


def error_caption(info: ParityInfo) -> str:
    """State the median error of the model, the trials that count and those left out."""
    over = f"{info.counted:,} of {len(info.points):,} trials"
    if info.median_error is None:
        said = f"No median error of the model: {over} are too few."
    else:
        said = f"Median error of the model, |predicted / measured - 1|, over {over}: {info.median_error:.1%}."
    left_out = ", ".join(f"{count:,} {flaw}" for flaw, count in info.left_out.items())
    return f"{said} Left out, and pale: {left_out}." if left_out else said


def parity_panels(study: StudyRecord) -> list[Panel]:
    """Return the figure, if any trial has a prediction."""
    info = parity_info(study)
    if not info.points:
        return []
    return [panel("parity", "Predicted against measured", error_caption(info), parity_figure(info))]


def parity_figure(info: ParityInfo) -> Figure:
    """Draw measured against predicted MLUPS, with a band of 10 %; points with a flaw are pale."""
    figure = plain_figure("predicted MLUPS", "measured MLUPS")
    predicted = [p.predicted_mlups or 0.0 for p in info.points]
    top = 1.08 * max([*predicted, *(p.mlups for p in info.points)], default=1.0)
    figure.add_scatter(
        x=[0, top, top, 0],
        y=[0, 0.9 * top, 1.1 * top, 0],
        fill="toself",
        mode="lines",
        line={"width": 0},
        fillcolor="rgba(136,136,136,0.18)",
        name="within 10 %",
        hoverinfo="skip",
    )
    figure.add_scatter(
        x=[0, top], y=[0, top], mode="lines", line={"color": NEUTRAL, "width": 1}, name="equal", hoverinfo="skip"
    )
    for name, mine in by_kind(info.points).items():
        good, flawed = ([p for p in mine if bool(p.flaw) is flaw] for flaw in (False, True))
        if flawed:
            figure.add_trace(_trace(name, flawed, PALE, listed=not good))
        if good:
            figure.add_trace(_trace(name, good, look(mine[0].kind).opacity, listed=True))
    figure.update_xaxes(range=[0, top])
    figure.update_yaxes(range=[0, top])
    figure.update_layout(legend={"tracegroupgap": 0})
    return figure


def _trace(name: str, found: Sequence[Point], opacity: float, *, listed: bool) -> Any:
    """Return the points of a kind of kernel; listed: in the legend, which has each kind once."""
    return scatter(
        x=[p.predicted_mlups for p in found],
        y=[p.mlups for p in found],
        name=name,
        legendgroup=name,
        showlegend=listed,
        marker={**look(found[0].kind).marker, "opacity": opacity},
        text=[f"trial {p.number}{f', {p.flaw}' if p.flaw else ''}<br>{wrapped(p.label)}" for p in found],
        hovertemplate="%{text}<br>predicted %{x:,.0f}, measured %{y:,.0f} MLUPS<extra></extra>",
    )
