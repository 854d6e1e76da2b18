"""Finals and sustained runs of a study."""

from collections.abc import Sequence
from dataclasses import dataclass

from lbmtune.records import Measurement, Trial
from lbmtune.records.comparison.repeats import RepeatInterval
from lbmtune.records.comparison.statistics import Interval
from lbmtune.records.study import StudyRecord, once
from lbmtune.report.drawing import CEILING, NEUTRAL, Figure, interval, plain_figure, wrapped
from lbmtune.report.html import Panel, panel
from lbmtune.report.study.steps import is_power_bound, sustained_text
from lbmtune.report.study.trials import label, varied_knobs
from lbmtune.units import format_mlups

_NARROWEST, _MARGIN = 0.02, 0.06
"""Least width of an axis, of its speeds, and the room beside the outermost points, of their distance."""


@dataclass(frozen=True)
class FinalInfo:
    """A finalist. best_of: the kind that it leads; ratio: its speed over the winner's, by rounds of both.

    interval: of repeats; tied: the winner's interval covers its speed.
    """

    number: int
    label: str
    best_of: str
    measurement: Measurement
    interval: RepeatInterval
    tied: bool = False
    ratio: Interval | None = None


@once
def finals_info(study: StudyRecord) -> tuple[FinalInfo, ...]:
    """Return the finalists, winner first, with ratios paired by round."""
    varied = varied_knobs(study)
    finalists = [t for t in study.ranked if t.final]
    return tuple(_final(study, t, varied) for t in finalists)


def _final(study: StudyRecord, trial: Trial, varied: Sequence[str]) -> FinalInfo:
    assert trial.final is not None
    ratio = study.paired_with_winner(trial)
    tied, interval = trial.number in study.tied, study.interval(trial)
    return FinalInfo(trial.number, label(trial, varied), trial.stands_for, trial.final, interval, tied, ratio)


def finals_panels(study: StudyRecord) -> list[Panel]:
    """Return the figure, if there were finals."""
    finals = finals_info(study)
    tied = sum(f.tied for f in finals)
    level = (
        "ties not judged, as the winner leads over seconds"
        if study.overtaken
        else f"{tied or 'none'} tied with the winner"
    )
    caption = f"{len(finals)} finalists, measured interleaved; {level}"
    caption += f", rounds too few to tell of {len(study.untold)}." if study.untold else "."
    return [panel("finals", "Finals", caption, finals_figure(finals))] if finals else []


def finals_figure(finals: Sequence[FinalInfo]) -> Figure:
    """Draw the median of each finalist with the interval that holds 90 % of repeats."""
    figure = plain_figure("MLUPS, median and the interval of repeats", "")
    figure.add_scatter(
        x=[f.measurement.mlups for f in finals],
        y=[f"trial {f.number}" for f in finals],
        mode="markers",
        marker={"size": 10, "color": [CEILING] + ["#4c8bb5"] * (len(finals) - 1)},
        error_x=interval(
            [f.measurement.mlups for f in finals],
            [f.interval.low_mlups for f in finals],
            [f.interval.high_mlups for f in finals],
            NEUTRAL,
        ),
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
            "interval": f"{format_mlups(f.interval.low_mlups)} to {format_mlups(f.interval.high_mlups)}",
            "ratio": f"{f.ratio.median:.4f}" if f.ratio else "winner" if f is finals[0] else "-",
            "tied": "tied" if f.tied else "",
            "ratio_interval": f"{f.ratio.low:.4f} to {f.ratio.high:.4f}" if f.ratio else "",
            "samples": str(len(f.measurement.samples_s)),
        }
        for f in finals
    ]


def sustained_panels(study: StudyRecord) -> list[Panel]:
    """Return the figure, if any trial has a sustained run."""
    if not any(trial.sustained for trial in study.ranked):
        return []
    best = study.ranked[0]
    caption = "Bursts: samples of a fraction of a second. Sustained: seconds without a pause. "
    winner = sustained_text(best.sustained, best.best_measurement.mlups)
    caption += f"Winner: {winner[:1].lower()}{winner[1:]}" if winner else ""
    return [panel("sustained", "Burst and sustained", caption.strip(), sustained_figure(study))]


def sustained_figure(study: StudyRecord) -> Figure:
    """Draw burst and sustained speed of each trial that has both, best first."""
    trials = [t for t in study.ranked if t.sustained]
    varied = varied_knobs(study)
    figure = plain_figure("MLUPS", "")
    names = [f"trial {t.number}" for t in trials]
    bursts = [t.best_measurement.mlups for t in trials]
    runs = [t.sustained.mlups for t in trials if t.sustained]
    for burst, run, name in zip(bursts, runs, names, strict=True):
        figure.add_scatter(
            x=[run, burst],
            y=[name, name],
            mode="lines",
            line={"width": 2, "color": NEUTRAL},
            hoverinfo="skip",
            showlegend=False,
        )
    texts = [wrapped(label(t, varied)) for t in trials]
    with_state = [f"{text}<br>{_state(trial)}" for text, trial in zip(texts, trials, strict=True)]
    for kind, values, symbol, colour, shown in (
        ("burst", bursts, "circle", "#0072b2", texts),
        ("sustained", runs, "diamond", "#d55e00", with_state),
    ):
        figure.add_scatter(
            x=values,
            y=names,
            mode="markers",
            name=kind,
            marker={"size": 10, "symbol": symbol, "color": colour},
            text=shown,
            hovertemplate="%{text}<br>%{x:,.0f} MLUPS<extra>" + kind + "</extra>",
        )
    figure.update_xaxes(range=_range([*bursts, *runs]))
    figure.update_yaxes(autorange="reversed", type="category", dtick=1, tickfont={"size": 11})
    return figure


def _range(speeds: Sequence[float]) -> tuple[float, float]:
    """Return an axis around speeds that does not blow up differences of less than a percent."""
    low, high = min(speeds), max(speeds)
    beside = max(_MARGIN * (high - low), (_NARROWEST * high - (high - low)) / 2)
    return low - beside, high + beside


def _state(trial: Trial) -> str:
    run = trial.sustained
    assert run is not None
    parts = (
        f"{run.nj_per_update:.3g} nJ per update" if run.nj_per_update else "",
        f"{run.conditions.sm_clock_hz / 1e6:,.0f} MHz" if run.conditions.sm_clock_hz else "",
        "bound by power" if is_power_bound(run, trial.best_measurement.mlups) else "",
    )
    return ", ".join(filter(None, parts))
