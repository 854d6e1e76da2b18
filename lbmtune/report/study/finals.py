"""Finals of a study: the finalists, measured interleaved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lbmtune.records import Measurement, Trial
from lbmtune.records.statistics import paired_ratio
from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import CEILING, NEUTRAL, plain_figure, wrapped
from lbmtune.report.html import Panel, panel
from lbmtune.report.study.trials import label, varied_knobs
from lbmtune.units import format_mlups

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class FinalInfo:
    """A finalist. best_of: the kind that it leads; ratio: its speed over the winner's, median over common rounds."""

    number: int
    label: str
    best_of: str
    measurement: Measurement
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None


def finals_info(study: StudyRecord) -> tuple[FinalInfo, ...]:
    """Return the finalists, winner first, with ratios paired by round."""
    varied = varied_knobs(study)
    finalists = [t for t in study.ranked if t.final]
    return tuple(_final(t, finalists[0], varied) for t in finalists)


def _final(trial: Trial, winner: Trial, varied: Sequence[str]) -> FinalInfo:
    assert trial.final is not None
    assert winner.final is not None
    mine, best = trial.final.samples_s, winner.final.samples_s
    name = label(trial, varied)
    # samples are paired by round: with another number of them there are no pairs
    if trial is winner or len(mine) != len(best):
        return FinalInfo(trial.number, name, trial.stands_for, trial.final)
    ratio = paired_ratio(best, mine)
    return FinalInfo(trial.number, name, trial.stands_for, trial.final, ratio.median, ratio.low, ratio.high)


def finals_panels(study: StudyRecord) -> list[Panel]:
    """Return the figure, if there were finals."""
    finals = finals_info(study)
    caption = f"{len(finals)} finalists, measured interleaved. Finalists with overlapping intervals are not ranked."
    return [panel("finals", "Finals", caption, finals_figure(finals))] if finals else []


def finals_figure(finals: Sequence[FinalInfo]) -> Figure:
    """Draw the median of each finalist with its 95 % interval."""
    figure = plain_figure("MLUPS, median and its 95 % confidence interval", "")
    figure.add_scatter(
        x=[f.measurement.mlups for f in finals],
        y=[f"trial {f.number}" for f in finals],
        mode="markers",
        marker={"size": 10, "color": [CEILING] + ["#4c8bb5"] * (len(finals) - 1)},
        error_x={
            "type": "data",
            "symmetric": False,
            "color": NEUTRAL,
            "array": [f.measurement.ci_high_mlups - f.measurement.mlups for f in finals],
            "arrayminus": [f.measurement.mlups - f.measurement.ci_low_mlups for f in finals],
        },
        text=[wrapped(f.label) for f in finals],
        hovertemplate="%{text}<br>%{x:,.0f} MLUPS<extra></extra>",
        showlegend=False,
    )
    figure.update_yaxes(autorange="reversed")
    return figure


def finals_table(finals: Sequence[FinalInfo]) -> list[dict[str, str]]:
    """Return the finalists as rows of text, with paired ratios to the winner."""
    return [
        {
            "trial": str(f.number),
            "configuration": f.label,
            "best_of": f.best_of,
            "mlups": format_mlups(f.measurement.mlups),
            "interval": f"{format_mlups(f.measurement.ci_low_mlups)} to {format_mlups(f.measurement.ci_high_mlups)}",
            "ratio": f"{f.ratio:.4f}" if f.ratio else "winner" if f is finals[0] else "-",
            "ratio_interval": f"{f.ratio_low:.4f} to {f.ratio_high:.4f}" if f.ratio_low else "",
            "samples": str(len(f.measurement.samples_s)),
        }
        for f in finals
    ]
