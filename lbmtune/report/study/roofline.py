"""The roofline of a study: measured bandwidths, the limits of the winner, and each verified trial."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lbmtune.records.remarks import in_cache_of
from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import BESIDE, CEILING, Figure, add_winner, log_axis, look, of_trials, plain_figure, scatter
from lbmtune.report.html import Panel, panel
from lbmtune.report.limits import Limit, Roof, ceiling_of, exceeded, limits_of, limits_text, roofs_of
from lbmtune.report.study.trials import Point, by_kind, points
from lbmtune.units import format_mlups, format_rate

CEILING_TITLE = "the fastest copy of many separate streams or update in place"
"""Words for `Ceiling.best_bytes_per_s`."""
_FIRST, _LAST = 1, 2000
"""Ranks of entries of the legend; those of kinds of kernels have 1000."""
_COUNTED = (
    "Flop are those of the collision operator, a fused multiply-add being two; terms of the model count instructions "
    "of the kernel."
)
_NEAR = 2
"""Multiple of the lowest limit up to which others are drawn."""
_FULL_NAME = {"hoverinfo": "name", "hoverlabel": {"namelength": -1}}


@dataclass(frozen=True)
class RooflineInfo:
    """Data of a roofline.

    flops: operations of one cell update, 0 if unknown; ceiling: the roof that shares refer to; points: best first;
    limits: of the winner, which the ceiling does not show, the lowest first.
    """

    flops: float
    roofs: tuple[Roof, ...]
    ceiling: Roof
    points: tuple[Point, ...]
    limits: tuple[Limit, ...] = ()

    def ridge(self, limit: Limit) -> float:
        """Return the intensity at which the ceiling allows as much as a limit, in flop per byte."""
        return limit.mlups * 1e6 * self.flops / self.ceiling.bytes_per_s


def roofline_info(study: StudyRecord) -> RooflineInfo:
    """Return the measured bandwidths and the verified trials."""
    return RooflineInfo(
        flops=study.header.spec.flop_per_update,
        roofs=roofs_of(study),
        ceiling=ceiling_of(study),
        points=points(study),
        limits=level_limits(study),
    )


def level_limits(study: StudyRecord) -> tuple[Limit, ...]:
    """Return the nearest limits of the winner that are no line of the roofline: up to `_NEAR` times the lowest."""
    found = limits_of(study, study.ranked[0]) if study.ranked else ()
    others = [one for one in found if not one.measured]
    return tuple(one for one in others if one.mlups <= _NEAR * others[0].mlups)


def roofline_panel(study: StudyRecord) -> Panel:
    """Return the roofline with its caption."""
    info = roofline_info(study)
    when = f" ({study.header.ceiling.date[:10]})" if study.header.ceiling.date else ""
    fluid = "Speeds count updates of fluid cells: MLUPS are MFLUPS here." if study.header.spec.case.geometry else ""
    caption = (
        f"Lines: bandwidths measured on this device{when}; the thick one, {info.ceiling.name}, is "
        f"{CEILING_TITLE}. A click on the others shows them. Kinds of kernels are shifted along x so that "
        "they do not hide each other. "
        f"{_COUNTED} {other_roofs(study)} {above_the_ceiling(study)} {in_cache_of(study)} {_on_chip(study)} {fluid}"
    )
    return panel("roofline", "Roofline", " ".join(caption.split()), roofline_figure(info))


def other_roofs(study: StudyRecord) -> str:
    """Name the winner's roofs besides bandwidths, or why there are none, in a sentence."""
    if not study.ranked:
        return ""
    if level := level_limits(study):
        return f"Level lines: what limits the winner by the model, each alone: {limits_text(study, level)}."
    prediction = study.ranked[0].prediction
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
    """Explain speeds above the benchmark; empty if there are none."""
    share = exceeded(study)
    if not share:
        return ""
    ceiling = study.header.ceiling
    plain = ""
    if ceiling.copy_bytes_per_s > ceiling.best_bytes_per_s:
        plain = f"; a copy of one array moves {format_rate(ceiling.copy_bytes_per_s)}"
    return (
        f"Kernels exceeded this benchmark by up to {share:.0%}, in the search or the finals: longer contiguous "
        f"accesses and cache hits are faster than its many streams{plain}. It is no upper bound: shares are relative."
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
    low, high = min(intensities) / 2, max([*intensities, *map(info.ridge, info.limits)]) * 2
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
            textposition="middle right",  # its limits lie above it
            legendrank=_FIRST - 1,
        )
    speeds = [p.mlups for p in info.points]
    fastest = max([max(roof.bytes_per_s for roof in info.roofs) * high / info.flops / 1e6, *speeds])
    log_axis(figure.update_xaxes, low, high)
    log_axis(
        figure.update_yaxes,
        min(speeds, default=info.ceiling.bytes_per_s / info.flops / 1e6 / 10) / 1.5,
        fastest * 1.2,
    )
    figure.update_layout(legend=BESIDE, margin={"l": 88})
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
            legendrank=_FIRST if top else _LAST,
            visible=True if top else "legendonly",  # six lines within 15 % cannot be told apart
            **_FULL_NAME,
        )
    on_chip = bool(info.points) and info.points[0].kind.on_chip
    for limit in info.limits:
        figure.add_scatter(
            x=[low if on_chip else info.ridge(limit), high],
            y=[limit.mlups] * 2,
            mode="lines",
            name=f"{limit.label}: {format_mlups(limit.mlups)} MLUPS",
            line={"width": 2.5 if limit == info.limits[0] else 1.2, "dash": "dash", "color": CEILING},
            legendrank=_FIRST,
            **_FULL_NAME,
        )


def _shift(name: str, kinds: Mapping[str, Sequence[Point]]) -> float:
    """Return the factor by which points of a kind move along x so that equal intensities do not hide each other."""
    mine = {p.intensity for p in kinds[name]}
    beside = [k for k, others in kinds.items() if mine & {p.intensity for p in others}]
    return float(1.015 ** (beside.index(name) - (len(beside) - 1) / 2))
