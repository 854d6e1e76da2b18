"""The Pareto set between the objectives of a study, and all that others dominate."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from lbmtune.records import Trial
from lbmtune.records.spec import OBJECTIVES
from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import MARK, NEUTRAL, PALE, PALETTE, Figure, choose, plain_figure, scatter, wrapped
from lbmtune.report.html import Panel, panel
from lbmtune.report.study.trials import label, varied_knobs
from lbmtune.report.tables import SHORT, objective_texts
from lbmtune.search.pareto import figures, members

_TITLES = {
    "mlups": "MLUPS",
    "footprint": "footprint (GiB)",
    "energy": "energy (nJ per update)",
    "accuracy": "error of the velocity",
}
"""Titles of axes."""
_UNITS = {"footprint": 2.0**-30}
"""Factors of figures that are not shown in the unit of their record."""
_FEWEST = 3
"""Different figures of an objective from which on it is drawn beside speed."""
_LEAST = 1e-16
"""Least figure on a logarithmic axis."""
_CAPTION = (
    "Pareto front: no other finalist is better in one objective and as good in all others. Pale: first measurements of "
    "trials that are dominated, or were not measured again."
)


def pareto_table(study: StudyRecord) -> list[dict[str, str]]:
    """Return the members as rows of text, the best by the first objective first."""
    varied, titles = varied_knobs(study), [SHORT[name] for name in study.header.spec.objectives]
    return [
        {
            "member": str(place),
            "trial": str(trial.number),
            **dict(zip(titles, objective_texts(study, trial), strict=True)),
            "configuration": label(trial, varied),
        }
        for place, trial in enumerate(members(study), 1)
    ]


def pareto_panels(study: StudyRecord) -> list[Panel]:
    """Return the figure, if there is a Pareto set."""
    found = members(study)
    return [panel("pareto", "Pareto set", _CAPTION, pareto_figure(study, found))] if found else []


def costs_panels(study: StudyRecord) -> list[Panel]:
    """Return the figure of speed beside what else is known of kernels, if one objective was asked for."""
    known = beside_speed(study) if len(study.header.spec.objectives) == 1 else ()
    if not known:
        return []
    finals = [trial for trial in study.ranked if trial.final] or study.ranked
    asked = _asked(study, known)
    rows = [figures(asked, trial) for trial in finals]
    found = members(_asked(study, tuple(name for name in known if all(row[name] is not None for row in rows))))
    caption = f"{_CAPTION} The search went by {_TITLES[study.header.spec.objective].partition(' (')[0]} alone."
    return [panel("costs-of-speed", "Speed beside what it costs", caption, pareto_figure(asked, found))]


def beside_speed(study: StudyRecord) -> tuple[str, ...]:
    """Return the objectives beside speed of which several verified trials have different figures."""
    others = tuple(name for name in OBJECTIVES if name != "mlups")
    asked = _asked(study, others)
    rows = [figures(asked, trial) for trial in study.ranked]
    return tuple(name for name in others if len({row[name] for row in rows} - {None}) >= _FEWEST)


def _asked(study: StudyRecord, beside: tuple[str, ...]) -> StudyRecord:
    """Return a study as if speed and these objectives had been asked for."""
    spec = replace(study.header.spec, objective="mlups", beside=beside)
    return replace(study, header=replace(study.header, spec=spec))


def pareto_figure(study: StudyRecord, found: Sequence[Trial]) -> Figure:
    """Draw each pair of objectives, chosen from a list if there are several: members, and all other trials."""
    pairs = [(x, y) for y, x in combinations(study.header.spec.objectives, 2)]
    figure, varied = plain_figure("", ""), varied_knobs(study)
    texts = {trial.number: label(trial, varied) for trial in study.ranked}
    for pair in pairs:
        for drawn in (_others(study, found, pair, texts), _members(study, found, pair, texts, joined=len(pairs) == 1)):
            hover = f"%{{text}}<br>{_TITLES[pair[0]]} %{{x:.4g}}, {_TITLES[pair[1]]} %{{y:.4g}}<extra></extra>"
            figure.add_trace(scatter(**drawn, hovertemplate=hover, visible=pair == pairs[0]))
    figure.update_layout(**{name.replace(".", "_"): value for name, value in _axes(*pairs[0]).items()})
    if len(pairs) > 1:
        seen = [[trace // 2 == number for trace in range(2 * len(pairs))] for number in range(len(pairs))]
        choices = zip(pairs, seen, strict=True)
        choose(figure, [(f"{y} over {x}", [{"visible": visible}, _axes(x, y)]) for (x, y), visible in choices])
    return figure


def _others(
    study: StudyRecord, found: Sequence[Trial], pair: tuple[str, str], texts: Mapping[int, str]
) -> dict[str, object]:
    """Return the points of the trials that are no members."""
    numbers = {trial.number for trial in found}
    named = {f"trial {trial.number}": trial for trial in study.ranked if trial.number not in numbers}
    marker = {"size": 7, "color": PALETTE[0], "opacity": PALE}
    return {"name": "other trials", "marker": marker, **_points(study, named, pair, texts)}


def _members(
    study: StudyRecord, found: Sequence[Trial], pair: tuple[str, str], texts: Mapping[int, str], *, joined: bool
) -> dict[str, object]:
    """Return the points of the members, joined by steps or not."""
    named = {f"member {place}": trial for place, trial in enumerate(found, 1)}
    marker = {"size": 11, "color": MARK, "symbol": "diamond"}
    shape = "vh" if pair[0] == "mlups" else "hv"  # more speed is better, of all others less
    steps = {"mode": "lines+markers", "line": {"shape": shape, "width": 1.5, "color": NEUTRAL}} if joined else {}
    return {"name": "Pareto front", "marker": marker, **steps, **_points(study, named, pair, texts)}


def _points(
    study: StudyRecord, named: Mapping[str, Trial], pair: tuple[str, str], texts: Mapping[int, str]
) -> dict[str, object]:
    """Return the places of trials in a figure of two objectives, from left to right, and what is said of them."""
    known = [(place, name) for name, trial in named.items() if (place := _place(study, trial, pair))]
    known.sort()
    said = [wrapped(f"{name}: {texts[named[name].number]}") for _, name in known]
    return {"x": [place[0] for place, _ in known], "y": [place[1] for place, _ in known], "text": said}


def _axes(x: str, y: str) -> dict[str, str]:
    """Return the layout of the axes of two objectives."""
    found: dict[str, str] = {}
    for axis, name in (("xaxis", x), ("yaxis", y)):
        found |= {f"{axis}.title.text": _TITLES[name], f"{axis}.type": "log" if name == "accuracy" else "linear"}
    return found


def _place(study: StudyRecord, trial: Trial, pair: tuple[str, str]) -> tuple[float, float] | None:
    """Return where a trial lies in a figure of two objectives; None if one of them is not known."""
    known = figures(study, trial)
    x, y = (None if known[n] is None else max(known[n] or 0.0, _LEAST) * _UNITS.get(n, 1.0) for n in pair)
    return None if x is None or y is None else (x, y)
