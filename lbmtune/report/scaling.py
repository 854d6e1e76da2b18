"""The page of predicted scaling: speeds over the number of devices."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lbmtune.records.whole_files import write_atomically
from lbmtune.report.drawing import NEUTRAL, PALETTE, Figure, log_axis, plain_figure
from lbmtune.report.html import figure_page
from lbmtune.units import format_mlups

Speed = tuple[int, float, str]
"""Devices, their speed, and what is shown beside it."""


def scaling_figure(speeds: Mapping[str, Sequence[Speed]], alone: float, unit: str) -> Figure:
    """Draw the speed by the number of devices for each kind of scaling, beside the ideal one. alone: of one device."""
    found = plain_figure("devices", unit)
    numbers = sorted({devices for several in speeds.values() for devices, _, _ in several})
    slowest = min(mlups for several in speeds.values() for _, mlups, _ in several)
    ends = [1, numbers[-1]]
    found.add_scatter(
        x=ends, y=[alone * n for n in ends], name="ideal", mode="lines", line={"color": NEUTRAL, "dash": "dash"}
    )
    for colour, (name, several) in zip(PALETTE, speeds.items(), strict=False):
        found.add_scatter(
            x=[devices for devices, _, _ in several],
            y=[mlups for _, mlups, _ in several],
            name=name,
            mode="lines+markers",
            marker={"color": colour, "size": 8},
            customdata=[f"{format_mlups(mlups)} {unit}<br>{said}" for _, mlups, said in several],
            hovertemplate=f"{name}, %{{x}} devices: %{{customdata}}<extra></extra>",
        )
    log_axis(found.update_yaxes, 0.8 * min(slowest, alone), 1.2 * alone * numbers[-1])
    found.update_xaxes(type="log", tickvals=numbers, ticktext=[f"{one:,}" for one in numbers])
    return found


def write_scaling(path: Path, title: str, speeds: Mapping[str, Sequence[Speed]], alone: float, unit: str) -> None:
    """Write one file that works offline. Raises InputError if it cannot be written."""
    page = figure_page(title, scaling_figure(speeds, alone, unit), "480px")
    write_atomically(path, page, "choose another file for --output")
