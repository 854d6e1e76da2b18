"""Figures of parts on several devices: the timeline of one period, and efficiency against one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import NamedTuple

from lbmtune.records.comparison.statistics import Interval
from lbmtune.report.drawing import MARK, NEUTRAL, PALETTE, Figure, interval, plain_figure
from lbmtune.report.html import Panel, filled

EDGES, INTERIOR, ALL_PLANES, EXCHANGE = "edges", "interior", "all planes", "exchange"
_LANES = (EDGES, ALL_PLANES, INTERIOR, EXCHANGE)


@dataclass(frozen=True)
class Timed:
    """Measured times of a coupling, in seconds from one exchange to the next.

    overlap: of the coupling; edges: share of a part's planes that its edges have; launches_s, exchange_s: each without
    the other; period_s: of all.
    """

    overlap: str
    edges: float
    launches_s: float
    exchange_s: float
    period_s: float


class Span(NamedTuple):
    """A bar of a timeline, in seconds from the begin of a period."""

    lane: str
    begin_s: float
    end_s: float


def spans(one: Timed) -> list[Span]:
    """Return when edges, interior and exchange run.

    Durations are measured, those of edges and interior in proportion to their planes; begins follow from the order of
    the queues (`runtime.parts.schedule`). Without overlap the exchange, which packs and sends, comes last.
    """
    if one.overlap == "none":
        end = one.launches_s
        return [Span(ALL_PLANES, 0.0, end), Span(EXCHANGE, end, end + one.exchange_s)]
    edges = one.edges * one.launches_s
    beside = edges if one.overlap == "edge-first" else 0.0
    return [
        Span(EDGES, 0.0, edges),
        Span(INTERIOR, beside, one.launches_s),
        Span(EXCHANGE, edges, edges + one.exchange_s),
    ]


def timeline_figure(timed: Mapping[str, Timed]) -> Figure:
    """Draw the timeline of one period of each coupling, by name; a mark is at its measured end."""
    figure = plain_figure("us from the begin of a period", "")
    for colour, lane in zip(PALETTE, _LANES, strict=False):
        bars = [(name, one) for name, several in timed.items() for one in spans(several) if one.lane == lane]
        if bars:
            figure.add_bar(
                y=[name for name, _ in bars],
                base=[1e6 * one.begin_s for _, one in bars],
                x=[1e6 * (one.end_s - one.begin_s) for _, one in bars],
                offsetgroup=lane,
                orientation="h",
                name=lane,
                marker={"color": colour},
                hovertemplate=f"{lane}: %{{base:.1f}} us, for %{{x:.1f}} us<extra></extra>",
            )
    figure.add_scatter(
        y=list(timed),
        x=[1e6 * one.period_s for one in timed.values()],
        name="measured period",
        mode="markers",
        marker={"color": MARK, "symbol": "line-ns-open", "size": 16},
        hovertemplate="period %{x:.1f} us<extra></extra>",
    )
    figure.update_yaxes(autorange="reversed")
    return figure


def scaling_efficiency_figure(
    predicted: Mapping[str, Sequence[tuple[int, float]]], measured: Mapping[str, tuple[int, Interval]]
) -> Figure:
    """Draw efficiency over the number of devices: lines are predicted, points with 95 % intervals measured, by name."""
    figure = plain_figure("devices", "efficiency against one device")
    for colour, (name, points) in zip(cycle(PALETTE), predicted.items(), strict=False):
        figure.add_scatter(
            x=[devices for devices, _ in points],
            y=[100 * share for _, share in points],
            name=f"{name}, predicted",
            mode="lines",
            line={"color": colour},
            hovertemplate=f"{name}, %{{x}} devices: %{{y:.1f}} % predicted<extra></extra>",
        )
        if name in measured:
            devices, share = measured[name]
            figure.add_scatter(
                x=[devices],
                y=[100 * share.median],
                name=f"{name}, measured",
                mode="markers",
                marker={"color": colour, "size": 9},
                error_y=interval([100 * share.median], [100 * share.low], [100 * share.high], colour),
                hovertemplate=f"{name}, %{{x}} devices: %{{y:.1f}} % measured<extra></extra>",
            )
    numbers = sorted({devices for points in predicted.values() for devices, _ in points})
    figure.update_xaxes(type="log", tickvals=numbers, ticktext=[str(one) for one in numbers])
    figure.update_yaxes(ticksuffix=" %")
    return figure


def parts_page(title: str, headline: str, text: str, panels: Sequence[Panel]) -> str:
    """Return a page of figures of several devices, one HTML file that works offline."""
    return filled("figures.html", ("script.js", "start.js"), panels, title=title, headline=headline, text=text)


def efficiency_figure(efficiencies: Mapping[str, Interval]) -> Figure:
    """Draw the efficiency of each coupling against one device, with its 95 % interval."""
    figure = plain_figure("efficiency against one device, paired by turns", "")
    shares: Sequence[Interval] = list(efficiencies.values())
    medians = [100 * one.median for one in shares]
    figure.add_scatter(
        x=medians,
        y=list(efficiencies),
        mode="markers",
        marker={"size": 10, "color": PALETTE[0]},
        error_x=interval(medians, [100 * one.low for one in shares], [100 * one.high for one in shares], NEUTRAL),
        hovertemplate="%{y}: %{x:.1f} %<extra></extra>",
        showlegend=False,
    )
    figure.update_yaxes(autorange="reversed")
    figure.update_xaxes(ticksuffix=" %")
    return figure
