"""Waterfalls: bars that begin where the one before ends, as the part of plotly.js in pages draws them."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from lbmtune.report.drawing import Figure
from lbmtune.units import format_ps


class Step(NamedTuple):
    """A bar. seconds: its height, negative for a step down."""

    name: str
    seconds: float
    colour: str


def add_waterfall(figure: Figure, name: str, steps: Sequence[Step], total: Step) -> None:
    """Add a waterfall in picoseconds, which ends with a bar from zero. name: of the trace."""
    heights = [1e12 * step.seconds for step in steps]
    starts = [0.0, *accumulate(heights)][: len(heights)]
    shown = [*steps, total]
    figure.add_bar(
        x=[step.name for step in shown],
        y=[*heights, 1e12 * total.seconds],
        base=[*starts, 0.0],
        name=name,
        offsetgroup=name,
        marker={"color": [step.colour for step in shown]},
        text=[format_ps(step.seconds) for step in shown],
        textposition="outside",
        cliponaxis=False,
        customdata=[start + height for start, height in zip(starts, heights, strict=True)] + [1e12 * total.seconds],
        hovertemplate="%{x}: %{text} ps<br>up to here %{customdata:.4g} ps<extra>" + name + "</extra>",
    )
