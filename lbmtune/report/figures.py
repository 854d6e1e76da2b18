"""Info -> Plotly figures of a study. How they look is in `report.drawing`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lbmtune.records import Outcome
from lbmtune.report.drawing import (
    BESIDE,
    CEILING,
    MARK,
    NEUTRAL,
    OUTCOME_COLOURS,
    PALE,
    SCHEME_COLOURS,
    by_kind,
    choose,
    log_axis,
    look,
    plain_figure,
    scatter,
    wrapped,
)
from lbmtune.report.info import (
    STAGES,
    Attempt,
    AxisInfo,
    FinalInfo,
    HistoryInfo,
    Kind,
    OutcomeInfo,
    ParityInfo,
    Point,
    RooflineInfo,
    StageCost,
)
from lbmtune.units import format_mlups

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def roofline_figure(info: RooflineInfo) -> Figure:
    """Log-log: MLUPS against flop per byte; roofs are bandwidth x intensity / flops per update, and level ones."""
    intensities = [p.intensity for p in info.points] or [info.flops / 152]
    ridge = info.issue_mlups * 1e6 * info.flops / info.ceiling.bytes_per_s if info.issue_mlups else 0.0
    low, high = min(intensities) / 2, max(*intensities, ridge) * 2
    figure = plain_figure(f"arithmetic intensity (flop/B), {info.flops} flop per update", "MLUPS")
    for roof in sorted(info.roofs, key=lambda r: -r.bytes_per_s):
        top = roof is info.ceiling
        figure.add_scatter(
            x=[low, high],
            y=[roof.bytes_per_s * x / info.flops / 1e6 for x in (low, high)],
            mode="lines",
            name=f"{roof.name}: {roof.bytes_per_s / 1e9:,.0f} GB/s",
            line={"width": 2.5 if top else 1.2, "dash": "solid" if top else "dot", "color": CEILING if top else None},
            hoverinfo="name",
            hoverlabel={"namelength": -1},
        )
    if info.issue_mlups:
        figure.add_scatter(
            x=[ridge, high],
            y=[info.issue_mlups] * 2,
            mode="lines",
            name=f"issue of the winner's instructions: {format_mlups(info.issue_mlups)} MLUPS",
            line={"width": 2.5, "dash": "dash", "color": CEILING},
            hoverinfo="name",
            hoverlabel={"namelength": -1},
        )
    kinds = by_kind(info.points)
    for kind, mine in kinds:
        aside = _aside(kind, kinds)
        figure.add_trace(
            scatter(
                x=[p.intensity * aside for p in mine],
                y=[p.mlups for p in mine],
                name=kind.name,
                marker=look(kind).marker,
                text=[_described(p, info.flops) for p in mine],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    if info.winner:
        figure.add_trace(_winner(info.winner, info.flops, _aside(info.winner.kind, kinds)))
    slowest = min((p.mlups for p in info.points), default=info.ceiling.bytes_per_s / info.flops / 1e6 / 10)
    fastest = max(
        max(roof.bytes_per_s for roof in info.roofs) * high / info.flops / 1e6, *(p.mlups for p in info.points), 0.0
    )
    log_axis(figure.update_xaxes, low, high)
    log_axis(figure.update_yaxes, slowest / 1.5, fastest * 1.2)
    figure.update_layout(legend=BESIDE, margin={"r": 24})
    return figure


def _aside(kind: Kind, kinds: Sequence[tuple[Kind, list[Point]]]) -> float:
    """By what factor points of a kind are moved along x: equal intensities would hide each other."""
    mine = _intensities(dict(kinds)[kind])
    beside = [k for k, others in kinds if _intensities(others) & mine]
    return float(1.015 ** (beside.index(kind) - (len(beside) - 1) / 2))


def _winner(found: Point, flops: int, aside: float) -> Any:
    """A ring around the winner, with its name."""
    return scatter(
        x=[found.intensity * aside],
        y=[found.mlups],
        name=f"winner: trial {found.number}, {format_mlups(found.mlups)} MLUPS",
        marker={"symbol": "circle-open", "size": 16, "color": MARK, "line": {"width": 2.5, "color": MARK}},
        hovertext=[_described(found, flops)],
        hovertemplate="%{hovertext}<extra></extra>",
        mode="markers+text",
        text=["winner"],
        textposition="top center",
        textfont={"size": 13, "color": MARK},
    )


def history_figure(info: HistoryInfo, ceiling_mlups: float | None) -> Figure:
    """Speed of each attempt and the best so far, against its number or the seconds of work so far."""
    figure = plain_figure("trial", "MLUPS")
    clocks: list[list[list[float]]] = []

    def keep(attempts: Sequence[Attempt]) -> list[float]:
        numbers = [float(a.number) for a in attempts]
        clocks.append([numbers, [a.elapsed_s for a in attempts]])
        return numbers

    figure.add_scatter(
        x=keep(info.attempts),
        y=list(info.best),
        name="best so far",
        mode="lines",
        line={"shape": "hv", "width": 2.5, "color": CEILING},
        hoverinfo="y",
    )
    for outcome in Outcome:
        mine = [a for a in info.attempts if a.outcome is outcome]
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
            ("by time", [{"x": by_time}, {"xaxis.title.text": "seconds of work"}]),
        ],
    )
    figure.update_yaxes(rangemode="tozero")
    return figure


def _attempts(attempts: Sequence[Attempt], x: list[float], outcome: Outcome) -> Any:
    good = outcome is Outcome.OK
    return scatter(
        x=x,
        # what has no speed stands on the axis
        y=[a.mlups or 0.0 for a in attempts],
        name=outcome.value,
        marker={
            "color": OUTCOME_COLOURS[outcome],
            "size": 7 if good else 9,
            "symbol": "circle" if good else "x",
            "opacity": 0.8,
        },
        text=[f"trial {a.number}: {outcome.value}<br>{wrapped(a.label)}<br>{wrapped(a.reason)}" for a in attempts],
        hovertemplate="%{text}<br>%{y:,.0f} MLUPS<extra></extra>" if good else "%{text}<extra></extra>",
    )


def axes_figure(axes: Sequence[AxisInfo]) -> Figure:
    """Speeds by value of an axis; the axis is chosen from a list, the one that explains most first."""
    figure = plain_figure("", "MLUPS")
    owners = [number for number, axis in enumerate(axes) for _ in axis.values]
    for number, axis in enumerate(axes):
        for value, mlups, labels in zip(axis.values, axis.mlups, axis.labels, strict=True):
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
                marker_color=SCHEME_COLOURS.get(value, "#4c8bb5"),
            )
    choices = [
        (_axis_title(axis), [{"visible": [owner == number for owner in owners]}]) for number, axis in enumerate(axes)
    ]
    choose(figure, choices)
    figure.update_xaxes(type="category")
    return figure


def _axis_title(axis: AxisInfo) -> str:
    return f"{axis.name}: {axis.explained:.0%} of the variance"


def parity_figure(info: ParityInfo) -> Figure:
    """Measured against predicted, with a band of 10 %; points with a flaw are pale."""
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
    for kind, mine in by_kind(info.points):
        good, flawed = ([p for p in mine if bool(p.flaw) is flaw] for flaw in (False, True))
        if flawed:
            figure.add_trace(_beside_prediction(kind, flawed, PALE, listed=not good))
        if good:
            figure.add_trace(_beside_prediction(kind, good, look(kind).opacity, listed=True))
    figure.update_xaxes(range=[0, top])
    figure.update_yaxes(range=[0, top])
    figure.update_layout(legend={"tracegroupgap": 0})
    return figure


def _beside_prediction(kind: Kind, found: Sequence[Point], opacity: float, *, listed: bool) -> Any:
    """Points of a kind of kernel; listed: in the legend, where each kind stands once."""
    return scatter(
        x=[p.predicted_mlups for p in found],
        y=[p.mlups for p in found],
        name=kind.name,
        legendgroup=kind.name,
        showlegend=listed,
        marker={**look(kind).marker, "opacity": opacity},
        text=[f"trial {p.number}{f', {p.flaw}' if p.flaw else ''}<br>{wrapped(p.label)}" for p in found],
        hovertemplate="%{text}<br>predicted %{x:,.0f}, measured %{y:,.0f} MLUPS<extra></extra>",
    )


def cost_figure(costs: Sequence[StageCost]) -> Figure:
    """Seconds by stage, split by what came of them."""
    figure = plain_figure("seconds", "")
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
    """How trials ended."""
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


def distribution_figure(distributions: Mapping[Kind, tuple[float, ...]]) -> Figure:
    """Share of the verified trials that are at most so fast."""
    figure = plain_figure("MLUPS", "share of verified trials (%)")
    for kind, values in distributions.items():
        drawn = look(kind)
        figure.add_scatter(
            x=values,
            y=[100 * (i + 1) / len(values) for i in range(len(values))],
            mode="lines+markers",
            line={"shape": "hv", "color": drawn.colour, "dash": drawn.dash},
            marker={"size": 5, "symbol": drawn.symbol, "color": drawn.colour},
            name=f"{kind.name} ({len(values)})",
            legendgroup=kind.name,  # groups flow into rows, where single entries stand in columns
            hovertemplate="%{y:.0f} % up to %{x:,.0f} MLUPS<extra>" + kind.name + "</extra>",
        )
    figure.update_yaxes(range=[0, 102])
    figure.update_layout(legend={"tracegroupgap": 0})
    return figure


def finals_figure(finals: Sequence[FinalInfo]) -> Figure:
    """Median of each finalist with its 95 % interval."""
    figure = plain_figure("MLUPS, median and its 95 % confidence interval", "")
    figure.add_scatter(
        x=[f.measurement.mlups for f in finals],
        y=[f"trial {f.number}" for f in finals],
        mode="markers",
        marker={"size": 10, "color": [CEILING] + ["#4c8bb5"] * (len(finals) - 1)},
        error_x={
            "type": "data",
            "symmetric": False,
            "color": NEUTRAL,
            "array": [f.measurement.ci_high_mlups - f.measurement.mlups for f in finals],
            "arrayminus": [f.measurement.mlups - f.measurement.ci_low_mlups for f in finals],
        },
        text=[wrapped(f.label) for f in finals],
        hovertemplate="%{text}<br>%{x:,.0f} MLUPS<extra></extra>",
        showlegend=False,
    )
    figure.update_yaxes(autorange="reversed")
    return figure


def _intensities(found: Sequence[Point]) -> set[float]:
    return {p.intensity for p in found}


def _described(p: Point, flops: int) -> str:
    return (
        f"trial {p.number}<br>{wrapped(p.label)}<br><b>{format_mlups(p.mlups)} MLUPS</b>, "
        f"{p.share:.1%} of the ceiling<br>"
        f"{p.mlups * flops / 1e3:,.0f} GFLOP/s at {p.intensity:.3g} flop/B"
    )
