"""The page of predicted scaling: speeds over the number of devices."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lbmtune.records.store import write_atomically
from lbmtune.report.drawing import NEUTRAL, PALETTE, Figure, log_axis, plain_figure
from lbmtune.report.html import figure_page
from lbmtune.units import format_mlups


class Speed(NamedTuple):
    """A point of the figure. said: what is shown beside it."""

    devices: int
    mlups: float
    said: str


def scaling_figure(speeds: Mapping[str, Sequence[Speed]], alone: float, unit: str) -> Figure:
    """Draw the speed by the number of devices for each kind of scaling, beside the ideal one. alone: of one device."""
    found = plain_figure("devices", unit)
    most = max(one.devices for several in speeds.values() for one in several)
    slowest = min(one.mlups for several in speeds.values() for one in several)
    found.add_scatter(
        x=[1, most], y=[alone, alone * most], name="ideal", mode="lines", line={"color": NEUTRAL, "dash": "dash"}
    )
    for colour, (name, several) in zip(PALETTE, speeds.items(), strict=False):
        found.add_scatter(
            x=[one.devices for one in several],
            y=[one.mlups for one in several],
            name=name,
            mode="lines+markers",
            marker={"color": colour, "size": 8},
            customdata=[f"{format_mlups(one.mlups)} {unit}<br>{one.said}" for one in several],
            hovertemplate=f"{name}, %{{x}} devices: %{{customdata}}<extra></extra>",
        )
    log_axis(found.update_yaxes, min(slowest, alone) * 0.8, alone * most * 1.2)
    numbers = sorted({one.devices for several in speeds.values() for one in several})
    found.update_xaxes(type="log", tickvals=numbers, ticktext=[f"{one:,}" for one in numbers])
    return found


def write_scaling(path: Path, title: str, speeds: Mapping[str, Sequence[Speed]], alone: float, unit: str) -> None:
    """Write one file that works offline. Raises InputError if it cannot be written."""
    page = figure_page(title, scaling_figure(speeds, alone, unit), "480px")
    write_atomically(path, page, "choose another file for --page")
