"""The page of predictions along one knob: terms of the time of an update."""

from collections.abc import Mapping
from pathlib import Path

from lbmtune.records import Prediction
from lbmtune.records.whole_files import write_atomically
from lbmtune.report.drawing import BESIDE, PALETTE, Figure, plain_figure, wrapped
from lbmtune.report.html import figure_page
from lbmtune.units import format_mlups


def terms_figure(knob: str, predictions: Mapping[str, Prediction]) -> Figure:
    """Draw the terms of the time of an update, in picoseconds, for each value of a knob."""
    found = plain_figure(knob, "ps per update")
    names = dict.fromkeys(term.name for one in predictions.values() for term in one.terms)
    for number, name in enumerate(names):
        found.add_bar(
            x=list(predictions),
            y=[one.seconds_of(name) * 1e12 for one in predictions.values()],
            name=name,
            marker_color=PALETTE[number % len(PALETTE)],
            customdata=[f"{format_mlups(one.mlups)} MLUPS<br>{wrapped(one.limit)}" for one in predictions.values()],
            hovertemplate=f"{knob} %{{x}}, {name} %{{y:.3g}} ps<br>%{{customdata}}<extra></extra>",
        )
    # beside the bars, because many entries below them would leave the bars no height
    found.update_layout(barmode="relative", legend=BESIDE)
    found.update_xaxes(type="category")
    return found


def write_varied(path: Path, title: str, knob: str, predictions: Mapping[str, Prediction]) -> None:
    """Write one file that works offline. Raises InputError if it cannot be written."""
    page = figure_page(title, terms_figure(knob, predictions), "480px")
    write_atomically(path, page, "choose another file for --output")
