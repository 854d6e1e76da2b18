"""Speeds of a study by the value of each knob, and their distribution by kind of kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lbmtune.catalogue.config import Scalar
from lbmtune.records import Trial
from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import Figure, choose, look, plain_figure, scheme_colour, wrapped
from lbmtune.report.html import Panel, panel
from lbmtune.report.study.trials import by_kind, label, points, varied_knobs
from lbmtune.search.kinds import Kind

_KNOBS = (
    "Verified trials by the value of a knob, in the order of the share of the variance of speeds that lies between the "
    "values."
)
_DISTRIBUTION = "Share of verified trials up to a speed. A steep end at the right means an easy search."


@dataclass(frozen=True)
class KnobInfo:
    """Speeds by value of one knob. explained: share of the variance that lies between the values."""

    name: str
    values: tuple[str, ...]
    mlups: tuple[tuple[float, ...], ...]
    labels: tuple[tuple[str, ...], ...]
    explained: float


def knobs_info(study: StudyRecord) -> tuple[KnobInfo, ...]:
    """Return the speeds by knob, the knob that explains most first, without knobs of one verified value."""
    varied = varied_knobs(study)
    found = (_knob(study.ranked, name, varied) for name in varied)
    return tuple(sorted((knob for knob in found if len(knob.values) > 1), key=lambda k: -k.explained))


def _knob(trials: Sequence[Trial], name: str, varied: Sequence[str]) -> KnobInfo:
    groups: dict[Scalar, list[Trial]] = {}
    for trial in trials:
        if name in trial.config:
            groups.setdefault(trial.config[name], []).append(trial)
    order = sorted(groups, key=lambda value: (isinstance(value, str), value))
    mlups = tuple(tuple(t.mlups or 0.0 for t in groups[v]) for v in order)
    labels = tuple(tuple(f"trial {t.number}: {label(t, varied)}" for t in groups[v]) for v in order)
    return KnobInfo(name, tuple(map(str, order)), mlups, labels, explained_variance(mlups))


def explained_variance(groups: Sequence[Sequence[float]]) -> float:
    """Return the variance between the means of groups over all variance, 0 to 1."""
    everything = [value for group in groups for value in group]
    if not everything:
        return 0.0
    mean = sum(everything) / len(everything)
    total = sum((value - mean) ** 2 for value in everything)
    between = sum(len(group) * (sum(group) / len(group) - mean) ** 2 for group in groups)
    return between / total if total else 0.0


def knobs_panels(study: StudyRecord) -> list[Panel]:
    """Return the figure, if any knob varies."""
    knobs = knobs_info(study)
    return [panel("knobs", "Speed by knob", _KNOBS, knobs_figure(knobs))] if knobs else []


def knobs_figure(knobs: Sequence[KnobInfo]) -> Figure:
    """Draw the speeds by value of a knob that is chosen from a list, the one that explains most first."""
    figure = plain_figure("", "MLUPS")
    owners = [number for number, knob in enumerate(knobs) for _ in knob.values]
    for number, knob in enumerate(knobs):
        for value, mlups, labels in zip(knob.values, knob.mlups, knob.labels, strict=True):
            figure.add_box(
                y=mlups,
                name=value,
                boxpoints="all",
                jitter=0.5,
                pointpos=0,
                marker={"size": 5, "opacity": 0.6},
                line={"width": 1.2},
                text=[wrapped(text) for text in labels],
                hovertemplate="%{text}<br>%{y:,.0f} MLUPS<extra></extra>",
                showlegend=False,
                visible=number == 0,
                marker_color=scheme_colour(value, "#4c8bb5"),
            )
    choose(
        figure,
        [
            (
                f"{knob.name}: {knob.explained:.0%} of the variance",
                [{"visible": [owner == number for owner in owners]}],
            )
            for number, knob in enumerate(knobs)
        ],
    )
    figure.update_xaxes(type="category")
    return figure


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
            marker={"size": 5, "symbol": drawn.symbol, "color": drawn.colour},
            name=f"{kind.label} ({len(values)})",
            legendgroup=kind.label,  # groups flow into rows, where single entries stand in columns
            hovertemplate="%{y:.0f} % up to %{x:,.0f} MLUPS<extra>" + kind.label + "</extra>",
        )
    figure.update_yaxes(range=[0, 102])
    figure.update_layout(legend={"tracegroupgap": 0})
    return figure
