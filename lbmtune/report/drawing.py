"""Colours, symbols, axes and legends of all figures. Plotly is imported when a figure is made.

Text and grid have no colours here: the page gives them those of its light or dark theme.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from textwrap import wrap
from typing import Any

from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.records import Outcome
from lbmtune.search.kinds import Kind

Figure = Any
"""A figure of Plotly, which has no types."""

_SCHEME_LOOKS = (
    ("#0072b2", "circle"),
    ("#56b4e9", "circle"),
    ("#d55e00", "circle"),
    ("#009e73", "circle"),
    ("#cc79a7", "circle"),
    ("#882255", "triangle-down"),
    ("#999933", "x"),
    ("#117733", "cross"),
    ("#6a51a3", "star"),
)
"""Colour and symbol of schemes by their position in the catalogue: palettes of Okabe and Ito, then of Tol."""
_LOOKS = {name: _SCHEME_LOOKS[place % len(_SCHEME_LOOKS)] for place, name in enumerate(SCHEMES)}
_MOMENTS_COLOURS = ("#f3cf55", "#e69f00", "#b07600", "#7d5200")
"""Colours of moments with one, two, three, four and more steps per launch."""
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#999999")
"""Colours of things without a colour of their own: Okabe and Ito, then Tol."""
STATE_COLOURS = {"populations": "#0072b2", "moments": "#e69f00"}
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
"""Legend to the right, for wide figures."""
MANY = 1200
"""Number of points of a figure up to which all are drawn until a reader zooms in."""
FEWEST = 50
"""Points of a trace that are drawn in any case."""


@dataclass(frozen=True)
class Look:
    """The look of a kind of kernel: colour by pattern, symbol and dash by steps per launch."""

    colour: str
    symbol: str
    dash: str
    opacity: float = 0.75

    @property
    def marker(self) -> dict[str, Any]:
        """Return the marker of Plotly."""
        return {"color": self.colour, "symbol": self.symbol, "size": 8, "opacity": self.opacity}


def look(kind: Kind) -> Look:
    """Return the look of a kind. Kinds that share a symbol differ in colour, for the colour-blind too."""
    moments = _by_steps(_MOMENTS_COLOURS, kind.steps), _STEP_SYMBOLS[0]
    colour, symbol = _LOOKS.get(kind.pattern, moments)
    if kind.on_chip:
        symbol = _ON_CHIP
    elif kind.steps > 1:
        symbol = _by_steps(_STEP_SYMBOLS, kind.steps)
    return Look(colour, symbol, _by_steps(_STEP_DASHES, kind.steps))


def _by_steps(choices: Sequence[str], steps: int) -> str:
    return choices[min(steps, len(choices)) - 1]


def plain_figure(x: str, y: str) -> Figure:
    """Return an empty figure in the style of the page, with titles of its axes."""
    from plotly.graph_objects import Figure

    axis = {"automargin": True, "zeroline": False}
    # at once: updates, one after the other, take Plotly ten times as long
    return Figure(
        layout={
            "template": "none",
            "margin": {"l": 64 if y else 92, "r": 28, "t": 28, "b": 56},  # wider ones make Plotly draw all anew
            # at the foot of the panel, so that the axis with its title ends above it however many rows it has
            "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "font": {"size": 11}},
            "hovermode": "closest",
            "autosize": True,
            "xaxis": {"title": {"text": x}, **axis},
            "yaxis": {"title": {"text": y}, **axis},
        }
    )


def scatter(**settings: Any) -> Any:
    """Return a trace of points."""
    from plotly.graph_objects import Scatter

    return Scatter(**{"mode": "markers", **settings})


def thin(figure: Figure) -> bool:
    """Limit the points that a figure with more than `MANY` draws at a time; return if it has so many.

    Plotly draws those in view evenly, and shows the others on hover and to a reader who zooms in.
    """
    points = [one for one in figure.data if one.type == "scatter" and "markers" in (one.mode or "")]
    traces = [one for one in points if one.marker.maxdisplayed is None]
    total = sum(len(trace.y) for trace in traces if trace.visible is not False)
    if total <= MANY:
        return False
    for trace in traces:
        trace.marker.maxdisplayed = max(FEWEST, len(trace.y) * MANY // total)
    return True


def of_trials(numbers: Sequence[int]) -> dict[str, Any]:
    """Return the settings of a trace whose points are trials: the page labels them, and shows one if it is chosen."""
    return {"customdata": list(numbers), "meta": "trials"}


def interval(medians: Sequence[float], lows: Sequence[float], highs: Sequence[float], colour: str) -> dict[str, Any]:
    """Return asymmetric error bars of Plotly for medians with the bounds of their intervals."""
    return {
        "type": "data",
        "symmetric": False,
        "color": colour,
        "array": [high - median for median, high in zip(medians, highs, strict=True)],
        "arrayminus": [median - low for median, low in zip(medians, lows, strict=True)],
    }


def add_winner(figure: Figure, x: float, y: float, number: int, name: str, **ring: Any) -> None:
    """Ring the winner and name it. ring: settings of the trace besides.

    Of points in one place that with the smallest marker is hovered: here a dot within the ring.
    """
    look = {
        "name": name,
        "mode": "markers+text",
        "marker": {"symbol": "circle-open", "size": 17, "color": MARK, "line": {"width": 2.5, "color": MARK}},
        "text": ["winner"],
        "textposition": "top center",
        "textfont": {"size": 13, "color": MARK},
        "hoverinfo": "skip",
    }
    dot = {
        "name": "winner's point",
        "mode": "markers",
        "marker": {"size": 4, "color": MARK},
        "showlegend": False,
        "hovertemplate": "winner: %{text}<br>%{y:,.0f} MLUPS<extra></extra>",
    }
    figure.add_scatter(x=[x], y=[y], **(look | ring))
    figure.add_scatter(x=[x], y=[y], **dot, yaxis=ring.get("yaxis"), **of_trials([number]))


def choose(figure: Figure, choices: Sequence[tuple[str, list[Any]]]) -> None:
    """Add a list above the figure that updates it. choices: text and arguments of Plotly's update."""
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
        margin={"t": 54},
    )


def wrapped(text: str, width: int = 64) -> str:
    """Return HTML for a hover label: up to 400 characters in lines of `width`."""
    return "<br>".join(escape(line) for line in wrap(text[:400], width))


def log_axis(update: Callable[..., object], low: float, high: float) -> None:
    """Make an axis logarithmic from low to high, with a few ticks in each decade."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    ticks = [m * 10.0**d for d in decades for m in (1, 1.5, 2, 3, 5, 7) if low <= m * 10.0**d <= high]
    update(type="log", range=[log10(low), log10(high)], tickvals=ticks, ticktext=[f"{t:,g}" for t in ticks])
