"""How the figures of the pages look, whatever they show. Plotly is imported by what is called, not by importing this.

Figures have no colours of their own for text and grid: the page gives them those of its light or dark theme.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from lbmtune.records import Outcome
from lbmtune.report.info import Kind, Point

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
_ON_CHIP = "star-diamond"
_STEP_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
OUTCOME_COLOURS = {
    Outcome.OK: "#2a9d6f",
    Outcome.ILLEGAL: "#9aa0a6",
    Outcome.COMPILE_FAILED: "#7e57c2",
    Outcome.TOO_MANY_RESOURCES: "#5c6bc0",
    Outcome.OUT_OF_MEMORY: "#26a6c9",
    Outcome.WRONG_RESULT: "#d1495b",
    Outcome.MISCOMPILED: "#f28482",
    Outcome.UNSTABLE_TIMING: "#e9a03b",
    Outcome.CRASHED: "#b5179e",
    Outcome.TIMED_OUT: "#8d6e63",
}
PALE = 0.25
"""Opacity of points that do not count."""
NEUTRAL, CEILING, MARK = "#888888", "#c98500", "#e03131"
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
    opacity: float = 0.75

    @property
    def marker(self) -> dict[str, Any]:
        """As Plotly takes it."""
        return {"color": self.colour, "symbol": self.symbol, "size": 8, "opacity": self.opacity}


def look(kind: Kind) -> Look:
    """Kinds that share a symbol differ in colour, for the colour-blind too."""
    fallback = _by_steps(MOMENTS_COLOURS, kind.steps) if kind.pattern == "moments" else NEUTRAL
    symbol = _by_steps(_STEP_SYMBOLS, kind.steps)
    return Look(
        colour=SCHEME_COLOURS.get(kind.pattern, fallback),
        symbol=_ON_CHIP if kind.on_chip else _SYMBOLS.get(kind.pattern, symbol) if kind.steps == 1 else symbol,
        dash=_by_steps(_STEP_DASHES, kind.steps),
    )


def _by_steps(choices: Sequence[str], steps: int) -> str:
    return choices[min(steps, len(choices)) - 1]


def plain_figure(x: str, y: str) -> Figure:
    """An empty figure in the style of the page, with titles of its axes."""
    from plotly.graph_objects import Figure

    axis = {"automargin": True, "zeroline": False}
    # at once: updates, one after the other, take Plotly ten times as long
    return Figure(
        layout={
            "template": "none",
            "margin": {"l": 64, "r": 16, "t": 28, "b": 56},
            # at the foot of the panel, so that the axis with its title ends above it however many rows it has
            "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "font": {"size": 11}},
            "hovermode": "closest",
            "autosize": True,
            "xaxis": {"title": {"text": x}, **axis},
            "yaxis": {"title": {"text": y}, **axis},
        }
    )


def scatter(**settings: Any) -> Any:
    """Points, drawn by the graphics card where there are more than `MANY`."""
    from plotly.graph_objects import Scatter, Scattergl

    kind = Scattergl if len(settings["x"]) > MANY else Scatter
    return kind(**{"mode": "markers", **settings})


def choose(figure: Figure, choices: Sequence[tuple[str, list[Any]]]) -> None:
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


def by_kind(found: Sequence[Point]) -> list[tuple[Kind, list[Point]]]:
    """Points of each kind of kernel."""
    return [(k, [p for p in found if p.kind == k]) for k in sorted({p.kind for p in found})]


def wrapped(text: str, width: int = 64) -> str:
    """Text for a hover label."""
    return "<br>".join(escape(line) for line in wrap(text[:400], width))


def log_axis(update: Callable[..., object], low: float, high: float) -> None:
    """A logarithmic axis from low to high with a few ticks in each decade."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    ticks = [m * 10.0**d for d in decades for m in (1, 1.5, 2, 3, 5, 7) if low <= m * 10.0**d <= high]
    update(type="log", range=[log10(low), log10(high)], tickvals=ticks, ticktext=[f"{t:,g}" for t in ticks])
