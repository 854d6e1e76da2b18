"""The kinds of kernels of a study: how fast the best of each family and scheme is, and what it needs."""

from collections.abc import Sequence
from statistics import median

from lbmtune.catalogue.config import from_flat
from lbmtune.records import Trial
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.answer.words import words
from lbmtune.units import format_bytes, format_mlups

_FEWEST = 2
"""Kinds from which on they are compared."""


def kind_rows(study: StudyRecord) -> list[dict[str, str]]:
    """Return a row for each kind of kernel, the winner's first, then by speed; none if all are of one.

    Columns of numbers end in '>'.
    """
    kinds: dict[str, list[Trial]] = {}
    for trial in study.ranked:
        kinds.setdefault(words(from_flat(trial.config)), []).append(trial)
    if len(kinds) < _FEWEST:
        return []
    first, *others = kinds.items()
    if study.header.spec.objective == "mlups":
        others.sort(key=lambda one: -(one[1][0].mlups or 0.0))
    return [_row(name, mine, study.ranked[0]) for name, mine in (first, *others)]


def _row(name: str, mine: Sequence[Trial], winner: Trial) -> dict[str, str]:
    best, speeds = mine[0], [trial.mlups or 0.0 for trial in mine]
    prediction = best.prediction
    return {
        "kind": name,
        "best MLUPS>": format_mlups(speeds[0]),
        "of the winner>": f"{speeds[0] / (winner.mlups or 1.0):.0%}",
        "measured in": "finals" if best.final else "the search",
        "median MLUPS>": format_mlups(median(speeds)),
        "trials>": f"{len(mine):,}",
        "memory>": format_bytes(prediction.footprint_bytes) if prediction else "",
        "best trial>": str(best.number),
    }
