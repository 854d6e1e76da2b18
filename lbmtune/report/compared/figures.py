"""Figures of several studies: winners, the change of each kernel, and how speeds are distributed."""

from collections.abc import Sequence

from lbmtune.records.regression.ratios import Verdict
from lbmtune.records.regression.studies import Comparison
from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import NEUTRAL, PALETTE, interval, plain_figure, scatter
from lbmtune.report.html import Panel, panel

_SYMBOLS = {
    Verdict.SLOWER: "triangle-down",
    Verdict.FASTER: "triangle-up",
    Verdict.SAME: "circle",
    Verdict.UNKNOWN: "circle-open",
}


def panels(names: Sequence[str], studies: Sequence[StudyRecord], comparisons: Sequence[Comparison]) -> list[Panel]:
    """Return the figures that have something to show."""
    changes = [_changes(names, comparisons)] if any(one.changes for one in comparisons) else []
    return [_winners(names, studies), _distributions(names, studies), *changes]


def _winners(names: Sequence[str], studies: Sequence[StudyRecord]) -> Panel:
    """Draw the best speed of each study with the interval that holds 90 % of repeats."""
    best = [study.interval(study.ranked[0]) for study in studies]
    figure = plain_figure("", studies[0].header.spec.case.speed_unit)
    speeds = [one.mlups for one in best]
    figure.add_bar(
        x=list(names),
        y=speeds,
        marker={"color": [PALETTE[n % len(PALETTE)] for n in range(len(names))]},
        error_y=interval(speeds, [one.low_mlups for one in best], [one.high_mlups for one in best], NEUTRAL),
        hovertemplate="%{x}: %{y:,.0f} MLUPS<extra></extra>",
        showlegend=False,
    )
    figure.update_yaxes(rangemode="tozero")
    return panel("winners", "Winners", "Best speed of each study; bars hold 90 % of repeats, where measured.", figure)


def _distributions(names: Sequence[str], studies: Sequence[StudyRecord]) -> Panel:
    """Draw the speeds of each study from the best on, over the share of its kernels."""
    figure = plain_figure("share of the kernels of the study, %", studies[0].header.spec.case.speed_unit)
    for n, (name, study) in enumerate(zip(names, studies, strict=True)):
        speeds = sorted((trial.mlups or 0.0 for trial in study.ranked), reverse=True)
        figure.add_scatter(
            x=[100 * (place + 1) / len(speeds) for place in range(len(speeds))],
            y=speeds,
            name=name,
            mode="lines",
            line={"color": PALETTE[n % len(PALETTE)], "shape": "hv"},
            hovertemplate="%{x:.0f} % of the kernels have %{y:,.0f} MLUPS or more<extra></extra>",
        )
    figure.update_yaxes(rangemode="tozero")
    caption = "Speeds of all verified kernels, the best first: how frequent good kernels are."
    return panel("distributions", "All kernels", caption, figure)


def _changes(names: Sequence[str], comparisons: Sequence[Comparison]) -> Panel:
    """Draw the change of each shared kernel over its speed in the first study."""
    figure = plain_figure(f"MLUPS in {names[0]}", "change, %")
    for n, (name, found) in enumerate(zip(names[1:], comparisons, strict=True), 1):
        if not found.changes:
            continue
        colour, ratios = PALETTE[n % len(PALETTE)], [100 * (one.ratio.ratio - 1) for one in found.changes]
        lows, highs = ([100 * (bound - 1) for bound in column] for column in _bounds(found))
        figure.add_trace(
            scatter(
                x=[one.was_mlups for one in found.changes],
                y=ratios,
                name=name,
                marker={"color": colour, "symbol": [_SYMBOLS[one.verdict] for one in found.changes], "size": 8},
                error_y={**interval(ratios, lows, highs, colour), "thickness": 0.6, "width": 0},
                text=[f"{one.key}, {one.verdict}" for one in found.changes],
                hovertemplate="%{text}: %{y:+.1f} %<extra></extra>",
            )
        )
    figure.add_hline(y=0.0, line={"color": NEUTRAL, "dash": "dash"})
    caption = (
        "Kernels that both studies measured, against the first. Bars: bounds beyond which more than chance moved a "
        "kernel, for all of them at once. Triangles: slower or faster; circles: the same within the noise."
    )
    return panel("changes", "Change of each kernel", caption, figure)


def _bounds(found: Comparison) -> tuple[list[float], list[float]]:
    return [one.ratio.low for one in found.changes], [one.ratio.high for one in found.changes]
