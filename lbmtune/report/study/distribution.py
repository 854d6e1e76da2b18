"""Distribution of the speeds of a study, by kind of kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import look, plain_figure
from lbmtune.report.html import Panel, panel
from lbmtune.report.study.trials import by_kind, points
from lbmtune.search.kinds import Kind

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

_CAPTION = "Share of verified trials up to a speed. A steep end at the right means an easy search."


def distribution_info(study: StudyRecord) -> dict[Kind, tuple[float, ...]]:
    """Return the speeds of the verified trials by kind, ascending, in MLUPS."""
    return {mine[0].kind: tuple(sorted(p.mlups for p in mine)) for mine in by_kind(points(study)).values()}


def distribution_panel(study: StudyRecord) -> Panel:
    """Return the figure with its caption."""
    figure = distribution_figure(distribution_info(study))
    return panel("distribution", "Distribution of speeds", _CAPTION, figure)


def distribution_figure(distributions: Mapping[Kind, tuple[float, ...]]) -> Figure:
    """Draw the share of the verified trials up to each speed."""
    figure = plain_figure("MLUPS", "share of verified trials (%)")
    for kind, values in distributions.items():
        drawn = look(kind)
        figure.add_scatter(
            x=values,
            y=[100 * (i + 1) / len(values) for i in range(len(values))],
            mode="lines+markers",
            line={"shape": "hv", "color": drawn.colour, "dash": drawn.dash},
            marker={"size": 5, "symbol": drawn.symbol, "color": drawn.colour},
            name=f"{kind.label} ({len(values)})",
            legendgroup=kind.label,  # groups flow into rows, where single entries stand in columns
            hovertemplate="%{y:.0f} % up to %{x:,.0f} MLUPS<extra>" + kind.label + "</extra>",
        )
    figure.update_yaxes(range=[0, 102])
    figure.update_layout(legend={"tracegroupgap": 0})
    return figure
