"""The terms of predictions along one axis, as a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lbmtune.records.store import write_atomically

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from lbmtune.records import Prediction

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#882255", "#999999")


def figure(axis: str, predictions: Mapping[str, Prediction]) -> Figure:
    """What the time of an update is made of, in picoseconds, for each value of the axis."""
    from lbmtune.report.drawing import BESIDE, plain_figure, wrapped
    from lbmtune.units import format_mlups

    found = plain_figure(axis, "ps per update")
    names = dict.fromkeys(term.name for one in predictions.values() for term in one.terms)
    for number, name in enumerate(names):
        found.add_bar(
            x=list(predictions),
            y=[one.seconds_of(name) * 1e12 for one in predictions.values()],
            name=name,
            marker_color=_COLOURS[number % len(_COLOURS)],
            customdata=[f"{format_mlups(one.mlups)} MLUPS<br>{wrapped(one.limit)}" for one in predictions.values()],
            hovertemplate=f"{axis} %{{x}}, {name} %{{y:.3g}} ps<br>%{{customdata}}<extra></extra>",
        )
    # beside the bars: below them it would be under the fold where terms are many
    found.update_layout(barmode="relative", legend=BESIDE)
    found.update_xaxes(type="category")
    return found


def write_varied(path: Path, title: str, axis: str, predictions: Mapping[str, Prediction]) -> None:
    """One file, which needs no network. Raises InputError where it cannot be written."""
    from html import escape

    picture = figure(axis, predictions).to_html(full_html=False, include_plotlyjs=True, default_height="480px")
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>"
        f"<body style='font-family: sans-serif; margin: 2em'>"
        f"<h1 style='font-size: 1.2em; overflow-wrap: anywhere; white-space: pre-line'>{escape(title)}</h1>"
        f"{picture}</body></html>\n"
    )
    write_atomically(path, page.encode(), "choose another file for --page")
