"""Info -> Plotly figures. Plotly is imported by what is called, not by importing this module.

Figures have no colours of their own for text and grid: the page gives them those of its light or dark theme.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from lbmtune.records import Outcome
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

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SCHEME_COLOURS = {
    "pull": "#0072b2",
    "push": "#56b4e9",
    "aa": "#d55e00",
    "esoteric-twist": "#009e73",
    "esoteric-pull": "#cc79a7",
    "two-step": "#882255",
    "swap": "#999933",
    "swap-ordered": "#117733",
    "ghost-cell": "#6a51a3",
}
"""The five of most studies as in the palette of Okabe and Ito, the others as in Tol's."""
MOMENTS_COLOURS = ("#f3cf55", "#e69f00", "#b07600", "#7d5200")
"""Of one, two, three, four and more steps per launch."""
_SYMBOLS = {"two-step": "triangle-down", "swap": "x", "swap-ordered": "cross", "ghost-cell": "star"}
_STEP_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "pentagon", "hexagon", "octagon", "hexagram")
_STEP_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
OUTCOME_COLOURS = {
    Outcome.OK: "#2a9d6f",
    Outcome.ILLEGAL: "#9aa0a6",
    Outcome.COMPILE_FAILED: "#7e57c2",
    Outcome.TOO_MANY_RESOURCES: "#5c6bc0",
    Outcome.OUT_OF_MEMORY: "#26a6c9",
    Outcome.WRONG_RESULT: "#d1495b",
    Outcome.UNSTABLE_TIMING: "#e9a03b",
    Outcome.CRASHED: "#b5179e",
    Outcome.TIMED_OUT: "#8d6e63",
}
_NEUTRAL, _CEILING = "#888888", "#c98500"
BESIDE = {"orientation": "v", "x": 1.02, "yref": "paper", "y": 1, "yanchor": "top", "font": {"size": 12}}
"""A legend to the right, for wide figures."""
MANY = 5000
"""Above this number of points they are drawn by the graphics card."""


@dataclass(frozen=True)
class Look:
    """How a kind of kernel is drawn: colours tell patterns, symbols and dashes the steps of a launch."""

    colour: str
    symbol: str
    dash: str

    @property
    def marker(self) -> dict[str, Any]:
        """As Plotly takes it."""
        return {"color": self.colour, "symbol": self.symbol, "size": 8, "opacity": 0.75}


def look(kind: Kind) -> Look:
    """Kinds that share a symbol differ in colour, for the colour-blind too."""
    fallback = _by_steps(MOMENTS_COLOURS, kind.steps) if kind.pattern == "moments" else _NEUTRAL
    symbol = _by_steps(_STEP_SYMBOLS, kind.steps)
    return Look(
        colour=SCHEME_COLOURS.get(kind.pattern, fallback),
        symbol=_SYMBOLS.get(kind.pattern, symbol) if kind.steps == 1 else symbol,
        dash=_by_steps(_STEP_DASHES, kind.steps),
    )


def _by_steps(choices: Sequence[str], steps: int) -> str:
    return choices[min(steps, len(choices)) - 1]


def roofline_figure(info: RooflineInfo) -> Figure:
    """Log-log: MLUPS against flop per byte; roofs are bandwidth x intensity / flops per update."""
    intensities = [p.intensity for p in info.points] or [info.flops / 152]
    low, high = min(intensities) / 2, max(intensities) * 2
    figure = plain_figure(f"arithmetic intensity (flop/B), {info.flops} flop per update", "MLUPS")
    for roof in sorted(info.roofs, key=lambda r: -r.bytes_per_s):
        top = roof is info.ceiling
        figure.add_scatter(
            x=[low, high],
            y=[roof.bytes_per_s * x / info.flops / 1e6 for x in (low, high)],
            mode="lines",
            name=f"{roof.name}: {roof.bytes_per_s / 1e9:,.0f} GB/s",
            line={"width": 2.5 if top else 1.2, "dash": "solid" if top else "dot", "color": _CEILING if top else None},
            hoverinfo="name",
            hoverlabel={"namelength": -1},
        )
    kinds = _by_kind(info.points)
    for kind, mine in kinds:
        beside = [k for k, others in kinds if _intensities(others) & _intensities(mine)]
        aside = 1.015 ** (beside.index(kind) - (len(beside) - 1) / 2)  # equal intensities would hide each other
        figure.add_trace(
            _scatter(
                x=[p.intensity * aside for p in mine],
                y=[p.mlups for p in mine],
                name=kind.name,
                marker=look(kind).marker,
                text=[_described(p, info.flops) for p in mine],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    slowest = min((p.mlups for p in info.points), default=info.ceiling.bytes_per_s / info.flops / 1e6 / 10)
    fastest = max(roof.bytes_per_s for roof in info.roofs) * high / info.flops / 1e6
    log_axis(figure.update_xaxes, low, high)
    log_axis(figure.update_yaxes, slowest / 1.5, fastest * 1.2)
    figure.update_layout(legend=BESIDE, margin={"r": 24})
    return figure


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
        line={"shape": "hv", "width": 2.5, "color": _CEILING},
        hoverinfo="y",
    )
    for outcome in Outcome:
        mine = [a for a in info.attempts if a.outcome is outcome]
        if mine:
            figure.add_trace(_attempts(mine, keep(mine), outcome))
    if ceiling_mlups:
        figure.add_hline(
            y=ceiling_mlups,
            line={"dash": "dot", "width": 1.2, "color": _NEUTRAL},
            annotation={"text": "ceiling of the winner", "font": {"size": 11}},
        )
    by_number, by_time = ([clock[i] for clock in clocks] for i in (0, 1))
    _choices(
        figure,
        [
            ("by trial", [{"x": by_number}, {"xaxis.title.text": "trial"}]),
            ("by time", [{"x": by_time}, {"xaxis.title.text": "seconds of work (compile, verify, measure, search)"}]),
        ],
    )
    figure.update_yaxes(rangemode="tozero")
    return figure


def _attempts(attempts: Sequence[Attempt], x: list[float], outcome: Outcome) -> Any:
    good = outcome is Outcome.OK
    return _scatter(
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
    _choices(figure, choices)
    figure.update_xaxes(type="category")
    return figure


def _axis_title(axis: AxisInfo) -> str:
    return f"{axis.name}: explains {axis.explained:.0%} of the variance"


def parity_figure(info: ParityInfo) -> Figure:
    """Measured against predicted, with a band of 10 %."""
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
        x=[0, top], y=[0, top], mode="lines", line={"color": _NEUTRAL, "width": 1}, name="equal", hoverinfo="skip"
    )
    for kind, mine in _by_kind(info.points):
        figure.add_trace(
            _scatter(
                x=[p.predicted_mlups for p in mine],
                y=[p.mlups for p in mine],
                name=kind.name,
                marker=look(kind).marker,
                text=[f"trial {p.number}<br>{wrapped(p.label)}" for p in mine],
                hovertemplate="%{text}<br>predicted %{x:,.0f}, measured %{y:,.0f} MLUPS<extra></extra>",
            )
        )
    figure.update_xaxes(range=[0, top])
    figure.update_yaxes(range=[0, top])
    return figure


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
            hovertemplate="%{y:.0f} % up to %{x:,.0f} MLUPS<extra>" + kind.name + "</extra>",
        )
    figure.update_yaxes(range=[0, 102])
    return figure


def finals_figure(finals: Sequence[FinalInfo]) -> Figure:
    """Median of each finalist with its 95 % interval."""
    figure = plain_figure("MLUPS, median and its 95 % confidence interval", "")
    figure.add_scatter(
        x=[f.measurement.mlups for f in finals],
        y=[f"trial {f.number}" for f in finals],
        mode="markers",
        marker={"size": 10, "color": [_CEILING] + ["#4c8bb5"] * (len(finals) - 1)},
        error_x={
            "type": "data",
            "symmetric": False,
            "color": _NEUTRAL,
            "array": [f.measurement.ci_high_mlups - f.measurement.mlups for f in finals],
            "arrayminus": [f.measurement.mlups - f.measurement.ci_low_mlups for f in finals],
        },
        text=[wrapped(f.label) for f in finals],
        hovertemplate="%{text}<br>%{x:,.0f} MLUPS<extra></extra>",
        showlegend=False,
    )
    figure.update_yaxes(autorange="reversed")
    return figure


def plain_figure(x: str, y: str) -> Figure:
    """An empty figure in the style of the page, with titles of its axes."""
    from plotly.graph_objects import Figure

    figure = Figure()
    figure.update_layout(
        template="none",
        margin={"l": 64, "r": 16, "t": 28, "b": 56},
        # at the foot of the panel, so that the axis with its title ends above it however many rows it has
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "font": {"size": 11}},
        hovermode="closest",
        autosize=True,
    )
    figure.update_xaxes(title=x, automargin=True, zeroline=False)
    figure.update_yaxes(title=y, automargin=True, zeroline=False)
    return figure


def _scatter(**settings: Any) -> Any:
    from plotly.graph_objects import Scatter, Scattergl

    kind = Scattergl if len(settings["x"]) > MANY else Scatter
    return kind(mode="markers", **settings)


def _choices(figure: Figure, choices: Sequence[tuple[str, list[Any]]]) -> None:
    """A list above the figure that updates it."""
    figure.update_layout(
        updatemenus=[
            {
                "buttons": [{"label": text, "method": "update", "args": args} for text, args in choices],
                "x": 0,
                "xanchor": "left",
                "y": 1.02,
                "yanchor": "bottom",
                "pad": {"t": 0, "b": 2},
                "font": {"size": 12},
            }
        ],
        margin={"t": 48},
    )


def _by_kind(found: Sequence[Point]) -> list[tuple[Kind, list[Point]]]:
    return [(k, [p for p in found if p.kind == k]) for k in sorted({p.kind for p in found})]


def _intensities(found: Sequence[Point]) -> set[float]:
    return {p.intensity for p in found}


def _described(p: Point, flops: int) -> str:
    return (
        f"trial {p.number}<br>{wrapped(p.label)}<br><b>{p.mlups:,.0f} MLUPS</b>, {p.share:.1%} of the ceiling<br>"
        f"{p.mlups * flops / 1e3:,.0f} GFLOP/s at {p.intensity:.3g} flop/B"
    )


def wrapped(text: str, width: int = 64) -> str:
    """Text for a hover label."""
    return "<br>".join(escape(line) for line in wrap(text[:400], width))


def log_axis(update: Callable[..., object], low: float, high: float) -> None:
    """A logarithmic axis from low to high with a few ticks in each decade."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    ticks = [m * 10.0**d for d in decades for m in (1, 1.5, 2, 3, 5, 7) if low <= m * 10.0**d <= high]
    update(type="log", range=[log10(low), log10(high)], tickvals=ticks, ticktext=[f"{t:,g}" for t in ticks])
