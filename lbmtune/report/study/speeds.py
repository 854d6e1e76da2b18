"""Speeds of a study: their distribution by kind of kernel, and beside predictions."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from lbmtune.records.comparison.statistics import relative_error
from lbmtune.records.remarks import prediction_doubt
from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import FEWEST as MARKERS
from lbmtune.report.drawing import NEUTRAL, PALE, Figure, look, of_trials, plain_figure, scatter
from lbmtune.report.html import Panel, panel
from lbmtune.report.study.trials import DISMISSED, Point, by_kind, points
from lbmtune.search.kinds import Kind

FEWEST = 6
"""Trials whose median error has a 95 % interval."""
_DISTRIBUTION = "Share of verified trials up to a speed. A steep end at the right means an easy search."


def distribution_info(study: StudyRecord) -> dict[Kind, tuple[float, ...]]:
    """Return the speeds of the verified trials by kind, ascending, in MLUPS."""
    return {mine[0].kind: tuple(sorted(p.mlups for p in mine)) for mine in by_kind(points(study)).values()}


def distribution_panel(study: StudyRecord) -> Panel:
    """Return the figure with its caption."""
    figure = distribution_figure(distribution_info(study))
    return panel("distribution", "Distribution of speeds", _DISTRIBUTION, figure)


def distribution_figure(distributions: Mapping[Kind, tuple[float, ...]]) -> Figure:
    """Draw the share of the verified trials up to each speed."""
    figure = plain_figure("MLUPS", "share of verified trials (%)")
    for kind, values in distributions.items():
        drawn = look(kind)
        figure.add_scatter(
            x=values,
            y=[100 * (i + 1) / len(values) for i in range(len(values))],
            mode="lines+markers",
            line={"shape": "hv", "color": drawn.colour, "dash": drawn.dash},
            marker={"size": 5, "symbol": drawn.symbol, "color": drawn.colour, "maxdisplayed": MARKERS},
            name=f"{kind.label} ({len(values)})",
            legendgroup=kind.label,  # groups flow into rows, where single entries stand in columns
            hovertemplate="%{y:.0f} % up to %{x:,.0f} MLUPS<extra>" + kind.label + "</extra>",
        )
    figure.update_yaxes(range=[0, 102])
    figure.update_layout(legend={"tracegroupgap": 0})
    return figure


@dataclass(frozen=True)
class ParityInfo:
    """Trials with a prediction. median_error: `relative_error` of points without a flaw, None of too few.

    of_dismissed: the same of those that were dismissed after a first look, whose few samples count like all others;
    left_out: number of points by flaw; model: version and day of the predictions.
    """

    points: tuple[Point, ...]
    median_error: float | None
    of_dismissed: float | None
    left_out: Mapping[str, int]
    model: str

    @property
    def counted(self) -> int:
        """Return the number of points without a flaw."""
        return len(self.points) - sum(self.left_out.values())


def parity_info(study: StudyRecord) -> ParityInfo:
    """Return the verified trials with a prediction, and the model's error of those without a flaw."""
    known = tuple(p for p in points(study) if p.predicted_mlups)
    good = [p for p in known if not p.flaw]
    left_out = Counter(p.flaw for p in known if p.flaw)
    of_dismissed = _median_error([p for p in good if p.dismissed])
    return ParityInfo(known, _median_error(good), of_dismissed, left_out, _model(study))


def _median_error(found: Sequence[Point]) -> float | None:
    errors = [relative_error(p.predicted_mlups, p.mlups) for p in found if p.predicted_mlups]
    return median(errors) if len(errors) >= FEWEST else None


def _model(study: StudyRecord) -> str:
    """Return the version and the day of the predictions: of the study, unless a later model has made them again."""
    days = {t.prediction.date for t in study.ranked if t.prediction}
    later = max(days, default="")
    return (
        f"made on {later} from the record" if later else f"of lbmtune {study.header.version}, {study.header.date[:10]}"
    )


def error_caption(info: ParityInfo) -> str:
    """State the median error of the model, the trials that count and those left out."""
    over = f"{info.counted:,} of {len(info.points):,} trials"
    if info.median_error is None:
        said = f"No median error of the model: {over} are too few."
    else:
        said = f"Median error of the model, |predicted / measured - 1|, over {over}: {info.median_error:.1%}."
    if info.of_dismissed is not None:
        said += f" Of those dismissed after a first look: {info.of_dismissed:.1%}."
    said += f" Predictions {info.model}."
    left_out = ", ".join(f"{count:,} {flaw}" for flaw, count in info.left_out.items())
    return f"{said} Left out, and pale: {left_out}." if left_out else said


def parity_panels(study: StudyRecord) -> list[Panel]:
    """Return the figure, if any trial has a prediction."""
    info = parity_info(study)
    if not info.points:
        return []
    doubtful = prediction_doubt(*study.header.cpu_shares)
    caption = error_caption(info) + (f" Predictions are {doubtful}." if doubtful else "")
    return [panel("parity", "Predicted against measured", caption, parity_figure(info))]


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
        **of_trials([p.number for p in found]),
        hovertext=[_marks(p) for p in found],
        hovertemplate="%{text}%{hovertext}<br>predicted %{x:,.0f}, measured %{y:,.0f} MLUPS<extra></extra>",
    )


def _marks(point: Point) -> str:
    marks = (point.flaw, DISMISSED if point.dismissed else "")
    return "".join(f"<br>{mark}" for mark in marks if mark)
