"""The Pareto set between the objectives of a study, and all that others dominate."""

from collections.abc import Sequence
from itertools import combinations

from lbmtune.records import Trial
from lbmtune.records.study import StudyRecord
from lbmtune.report.drawing import MARK, NEUTRAL, PALE, PALETTE, Figure, choose, plain_figure, scatter, wrapped
from lbmtune.report.html import Panel, panel
from lbmtune.report.study.trials import label, varied_knobs
from lbmtune.report.tables import SHORT, objective_texts
from lbmtune.search.pareto import figures, members

_AXES = {
    "mlups": ("MLUPS", 1.0),
    "footprint": ("footprint (GiB)", 2.0**-30),
    "energy": ("energy (nJ per update)", 1.0),
    "accuracy": ("error of the velocity", 1.0),
}
"""Titles of axes, and what figures are multiplied by."""
_CAPTION = (
    "Members: no other finalist is better in one objective and as good in all others. Pale: first measurements of "
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


def pareto_figure(study: StudyRecord, found: Sequence[Trial]) -> Figure:
    """Draw each pair of objectives, chosen from a list if there are several: members, and all other trials."""
    pairs = [(x, y) for y, x in combinations(study.header.spec.objectives, 2)]
    varied = varied_knobs(study)
    numbers = {trial.number: place for place, trial in enumerate(found, 1)}
    figure = plain_figure(_AXES[pairs[0][0]][0], _AXES[pairs[0][1]][0])
    for pair in pairs:
        for members_alone in (False, True):
            trials = [trial for trial in study.ranked if (trial.number in numbers) is members_alone]
            shown = [(trial, place) for trial in trials if (place := _place(study, trial, pair))]
            shown.sort(key=lambda one: one[1])
            names = [f"member {numbers[t.number]}" if members_alone else f"trial {t.number}" for t, _ in shown]
            figure.add_trace(
                scatter(
                    x=[place[0] for _, place in shown],
                    y=[place[1] for _, place in shown],
                    **_look(members_alone, len(pairs)),
                    text=[wrapped(f"{name}: {label(t, varied)}") for name, (t, _) in zip(names, shown, strict=True)],
                    hovertemplate=f"%{{text}}<br>%{{x:.4g}} {pair[0]}, %{{y:.4g}} {pair[1]}<extra></extra>",
                    visible=pair == pairs[0],
                )
            )
    if len(pairs) > 1:
        choose(figure, [(f"{y} over {x}", _shown(number, len(pairs), x, y)) for number, (x, y) in enumerate(pairs)])
    return figure


def _place(study: StudyRecord, trial: Trial, pair: tuple[str, str]) -> tuple[float, float] | None:
    """Return where a trial lies in a figure of two objectives; None if one of them is not known."""
    known = figures(study, trial)
    x, y = (known[name] for name in pair)
    return None if x is None or y is None else (x * _AXES[pair[0]][1], y * _AXES[pair[1]][1])


def _look(members_alone: bool, pairs: int) -> dict[str, object]:
    """Return how members look, joined by steps if there are two objectives, and how others do."""
    if not members_alone:
        return {"name": "other trials", "marker": {"size": 7, "color": PALETTE[0], "opacity": PALE}}
    line = {"mode": "lines+markers", "line": {"shape": "hv", "width": 1.5, "color": NEUTRAL}} if pairs == 1 else {}
    return {"name": "members", "marker": {"size": 11, "color": MARK, "symbol": "diamond"}, **line}


def _shown(number: int, pairs: int, x: str, y: str) -> list[object]:
    """Return the arguments of an update that shows a pair of objectives."""
    visible = [trace // 2 == number for trace in range(2 * pairs)]
    return [{"visible": visible}, {"xaxis.title.text": _AXES[x][0], "yaxis.title.text": _AXES[y][0]}]
