"""Pareto sets: what nothing else beats in one objective without losing in another.

All objectives are costs here: lower is better, and speeds are negated.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from lbmtune.records import Trial
from lbmtune.records.study import StudyRecord

if TYPE_CHECKING:
    from lbmtune.search.regression.features import Array, Indices


def front(points: Array) -> Indices:
    """Return the places of the points (n, objectives) that no other one dominates, by the first objective.

    Of equal points the first counts. Source: Kung, Luccio, Preparata 1975.
    """
    import numpy as np  # here and below: it loads slowly, and few studies have several objectives

    left = np.lexsort(points.T[::-1])
    found: list[int] = []
    while len(left):
        found.append(int(left[0]))  # in this order nothing that is left dominates the first
        left = left[(points[left] < points[left[0]]).any(1)]
    return np.array(found, dtype=np.intp)


def hypervolume(points: Array, reference: Array) -> float:
    """Return the volume that points (n, objectives) dominate up to a reference point, in slices along each objective.

    Source: Zitzler, Thiele 1998; slices: While et al. 2006.
    """
    import numpy as np

    inside = points[(points < reference).all(1)]
    inside = inside[front(inside)]
    if not len(inside):
        return 0.0
    if inside.shape[1] == 1:
        return float(reference[0] - inside.min())
    inside = inside[np.argsort(inside[:, -1], kind="stable")]
    depths = np.diff(inside[:, -1], append=reference[-1])
    slices = (hypervolume(inside[: n + 1, :-1], reference[:-1]) for n in range(len(inside)))
    return float(sum(depth * one for depth, one in zip(depths, slices, strict=True)))


def members(record: StudyRecord) -> tuple[Trial, ...]:
    """Return the Pareto set of a study with several objectives, the best by the first objective first.

    They are finalists, whose figures can be compared and whose kernels are proven; before the finals, those by first
    measurements. As long as the energy of none is measured, the speed stands for it. One without a figure, such as an
    error that is no finite number, is no member.
    """
    names = record.header.spec.objectives
    if len(names) == 1:
        return ()
    finals = [trial for trial in record.ranked if trial.final]
    among = [trial for trial in finals if trial.proven and record.power_rank(trial) == 0]
    if not finals:
        among = list(record.ranked)
    if not finals or all(record.cost(trial, "energy") is None for trial in among):
        names = tuple(dict.fromkeys("mlups" if name == "energy" else name for name in names))
    rows = [(trial, [record.cost(trial, name) for name in names]) for trial in among]
    known = [(trial, [one for one in costs if one is not None]) for trial, costs in rows if None not in costs]
    if not known:
        return ()
    import numpy as np

    return tuple(known[place][0] for place in front(np.array([costs for _, costs in known], dtype=float)))


def place_in(found: Sequence[Trial], trial: Trial) -> int:
    """Return the place of a trial in a Pareto set, from 1 on; 0 if it is no member."""
    return next((place for place, one in enumerate(found, 1) if one.number == trial.number), 0)


def held_text(record: StudyRecord, found: Sequence[Trial]) -> str:
    """Return in words which member of a Pareto set best.json holds: the best kernel of the study."""
    place = place_in(found, record.ranked[0])
    if not place:
        return "best.json holds the best kernel that is proven so far, which is no member"
    return f"best.json holds member {place}, the best by {record.header.spec.objective}"


def figures(record: StudyRecord, trial: Trial) -> dict[str, float | None]:
    """Return the objectives of a trial by their names, as they were measured.

    One is None if it is not known, or no finite number.
    """
    error = trial.accuracy.error if trial.accuracy else inf
    known = {
        "mlups": trial.mlups,
        "footprint": trial.prediction.footprint_bytes if trial.prediction else None,
        "energy": trial.sustained.nj_per_update if trial.sustained else None,
        "accuracy": error if error < inf else None,
    }
    return {name: known[name] for name in record.header.spec.objectives}
