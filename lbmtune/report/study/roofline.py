"""The roofline of a study: measured bandwidths, issue of instructions, and each verified trial."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lbmtune.records import Prediction, Term
from lbmtune.records.remarks import in_cache_of
from lbmtune.records.study import CEILING_STREAMS, StudyRecord
from lbmtune.records.terms import ISSUE
from lbmtune.report.drawing import BESIDE, CEILING, Figure, add_winner, log_axis, look, of_trials, plain_figure, scatter
from lbmtune.report.html import Panel, panel
from lbmtune.report.study.trials import Point, by_kind, points
from lbmtune.units import format_mlups, format_rate

CEILING_TITLE = "the fastest copy of many separate streams or update in place"
"""Words for `Ceiling.best_bytes_per_s`."""
_FULL_NAME = {"hoverinfo": "name", "hoverlabel": {"namelength": -1}}


class Roof(NamedTuple):
    """A measured bandwidth."""

    name: str
    bytes_per_s: float


@dataclass(frozen=True)
class RooflineInfo:
    """Data of a roofline.

    flops: operations of one cell update, 0 if unknown; ceiling: the roof that shares refer to; points:
    best first; issue_mlups: speed that issue slots alone allow the winner, None if unknown.
    """

    flops: float
    roofs: tuple[Roof, ...]
    ceiling: Roof
    points: tuple[Point, ...]
    issue_mlups: float | None = None

    @property
    def ridge(self) -> float:
        """Return the intensity at which the ceiling allows as much as issue slots, in flop per byte; 0 if unknown."""
        return self.issue_mlups * 1e6 * self.flops / self.ceiling.bytes_per_s if self.issue_mlups else 0.0


def roofs_of(study: StudyRecord) -> tuple[Roof, ...]:
    """Return the measured bandwidths."""
    ceiling = study.header.ceiling
    streams = (Roof(stream_name(width), rate) for width, rate in ceiling.stream_bytes_per_s.items())
    return (
        Roof("update in place", ceiling.in_place_bytes_per_s),
        *streams,
        Roof("copy of one array", ceiling.copy_bytes_per_s),
    )


def ceiling_of(study: StudyRecord) -> Roof:
    """Return the roof that shares refer to."""
    best = study.header.ceiling.best_bytes_per_s
    return next(roof for roof in roofs_of(study) if roof.bytes_per_s == best)


def roofline_info(study: StudyRecord) -> RooflineInfo:
    """Return the measured bandwidths and the verified trials."""
    return RooflineInfo(
        flops=study.header.spec.flop_per_update,
        roofs=roofs_of(study),
        ceiling=ceiling_of(study),
        points=points(study),
        issue_mlups=issue_mlups(study.ranked[0].prediction) if study.ranked else None,
    )


def issue_mlups(prediction: Prediction | None) -> float | None:
    """Return the speed if issue slots were the only bound; None if the record does not tell it."""
    term = next((one for one in prediction.terms if one.name == ISSUE), None) if prediction else None
    seconds = alone_s(term) if term else None
    return 1e-6 / seconds if seconds else None


def alone_s(term: Term) -> float | None:
    """Return the seconds that a term takes by itself; old records have the figure in the sentence alone."""
    said = re.search(r", ([0-9.e+-]+) ps, \d+ \w[\w ]* on their way$", term.sentence)
    return term.alone_s if term.alone_s is not None or said is None else float(said[1]) * 1e-12


def stream_name(width: str) -> str:
    """Name a many-stream bandwidth by its key: "16" is the bytes of an access, "64 streaming" those of a store."""
    size, _, kind = width.partition(" ")
    return f"{CEILING_STREAMS}-stream copy, {size}-byte {kind or 'access'}"


def roofline_panel(study: StudyRecord) -> Panel:
    """Return the roofline with its caption."""
    info = roofline_info(study)
    when = f" ({study.header.ceiling.date[:10]})" if study.header.ceiling.date else ""
    fluid = "Speeds count updates of fluid cells: MLUPS are MFLUPS here." if study.header.spec.case.geometry else ""
    caption = (
        f"Lines: bandwidths measured on this device{when}; the thick one, {info.ceiling.name}, is the ceiling: "
        f"{CEILING_TITLE}. A click on the others shows them. Kinds of kernels are shifted along x so that "
        "they do not hide each other. "
        f"{other_roofs(study)} {above_the_ceiling(study)} {in_cache_of(study)} {_on_chip(study)} {fluid}"
    )
    return panel("roofline", "Roofline", " ".join(caption.split()), roofline_figure(info))


def other_roofs(study: StudyRecord) -> str:
    """Name the winner's roofs besides bandwidths, or why there are none, in a sentence."""
    if not study.ranked:
        return ""
    prediction = study.ranked[0].prediction
    allowed = issue_mlups(prediction)
    if allowed:
        return (
            f"The level line is the winner's other roof: {format_mlups(allowed)} {study.header.spec.case.speed_unit}, "
            "which issue slots alone allow."
        )
    terms = prediction.significant_terms if prediction else ()
    if len(terms) == 1:
        return f"No other roof is known: the model predicts the winner from {terms[0].name} alone."
    if terms:
        named = ", ".join(one.name for one in terms)
        return (
            f"No other roof is known: the model adds up terms of the winner ({named}), and the record does not say "
            "what one of them would allow by itself."
        )
    return (
        "No other roof is known: the record has no time of the winner's instructions, because the device was not "
        "calibrated (run: lbmtune devices --calibrate)."
    )


def above_the_ceiling(study: StudyRecord) -> str:
    """Explain shares above 100 %; empty if there are none."""
    highest = max(map(study.share_of_ceiling, study.ranked), default=0.0)
    if highest <= 1:
        return ""
    ceiling = study.header.ceiling
    plain = ""
    if ceiling.copy_bytes_per_s > ceiling.best_bytes_per_s:
        plain = f"; a copy of one array moves {format_rate(ceiling.copy_bytes_per_s)}"
    return (
        f"Shares above 100 % (here up to {highest:.0%}) are no error: longer contiguous runs and cache hits are faster "
        f"than the copy of many streams{plain}."
    )


def _on_chip(study: StudyRecord) -> str:
    if not any(point.kind.on_chip for point in points(study)):
        return ""
    return (
        "Kernels on chip move only what leaves their tiles, through the L2 cache: the lines do not bound them, and "
        "shares of the ceiling do not measure their efficiency."
    )


def roofline_figure(info: RooflineInfo) -> Figure:
    """Draw MLUPS against flop per byte, both logarithmic, with sloped and level roofs."""
    intensities = [p.intensity for p in info.points] or [info.flops / 152]
    low, high = min(intensities) / 2, max(*intensities, info.ridge) * 2
    figure = plain_figure(f"arithmetic intensity (flop/B), {info.flops:g} flop per update", "MLUPS")
    _add_roofs(figure, info, low, high)
    kinds = by_kind(info.points)
    for name, mine in kinds.items():
        shift = _shift(name, kinds)
        figure.add_trace(
            scatter(
                x=[p.intensity * shift for p in mine],
                y=[p.mlups for p in mine],
                name=name,
                marker=look(mine[0].kind).marker,
                **of_trials([p.number for p in mine]),
                hovertemplate="%{text}<br>%{y:,.0f} MLUPS<extra>" + name + "</extra>",
            )
        )
    if info.points:
        first = info.points[0]
        add_winner(
            figure,
            first.intensity * _shift(first.kind.label, kinds),
            first.mlups,
            first.number,
            f"winner: trial {first.number}, {format_mlups(first.mlups)} MLUPS",
        )
    speeds = [p.mlups for p in info.points]
    fastest = max([max(roof.bytes_per_s for roof in info.roofs) * high / info.flops / 1e6, *speeds])
    log_axis(figure.update_xaxes, low, high)
    log_axis(
        figure.update_yaxes,
        min(speeds, default=info.ceiling.bytes_per_s / info.flops / 1e6 / 10) / 1.5,
        fastest * 1.2,
    )
    figure.update_layout(legend=BESIDE, margin={"r": 24})
    return figure


def _add_roofs(figure: Figure, info: RooflineInfo, low: float, high: float) -> None:
    for roof in sorted(info.roofs, key=lambda r: -r.bytes_per_s):
        top = roof == info.ceiling
        figure.add_scatter(
            x=[low, high],
            y=[roof.bytes_per_s * x / info.flops / 1e6 for x in (low, high)],
            mode="lines",
            name=f"{roof.name}: {roof.bytes_per_s / 1e9:,.0f} GB/s",
            line={"width": 2.5 if top else 1.2, "dash": "solid" if top else "dot", "color": CEILING if top else None},
            visible=True if top else "legendonly",  # six lines within 15 % cannot be told apart
            **_FULL_NAME,
        )
    if info.issue_mlups:
        figure.add_scatter(
            x=[info.ridge, high],
            y=[info.issue_mlups] * 2,
            mode="lines",
            name=f"issue slots of the winner: {format_mlups(info.issue_mlups)} MLUPS",
            line={"width": 2.5, "dash": "dash", "color": CEILING},
            **_FULL_NAME,
        )


def _shift(name: str, kinds: Mapping[str, Sequence[Point]]) -> float:
    """Return the factor by which points of a kind move along x so that equal intensities do not hide each other."""
    mine = {p.intensity for p in kinds[name]}
    beside = [k for k, others in kinds.items() if mine & {p.intensity for p in others}]
    return float(1.015 ** (beside.index(name) - (len(beside) - 1) / 2))
