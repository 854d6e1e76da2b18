"""The kinds of kernels of a study: how fast the best of each family and scheme is, and what it needs."""

from collections.abc import Sequence
from statistics import median

from lbmtune.records import Trial
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.answer.words import words
from lbmtune.units import format_bytes, format_mlups

_FEWEST = 2
"""Kinds from which on they are compared."""


def kind_rows(study: StudyRecord) -> list[dict[str, str]]:
    """Return a row for each kind of kernel, the winner's first, then by speed in the search; none if all are of one.

    Columns of numbers end in '>'.
    """
    kinds: dict[str, list[Trial]] = {}
    for trial in study.ranked:
        kinds.setdefault(words(trial.kernel_config), []).append(trial)
    if len(kinds) < _FEWEST:
        return []
    first, *others = kinds.items()
    if study.header.spec.objective == "mlups":
        others.sort(key=lambda one: -_in_search(_best(one[1])))
    return [_row(name, mine) for name, mine in (first, *others)]


def _in_search(trial: Trial) -> float:
    return (trial.measurement or trial.best_measurement).mlups


def _best(mine: Sequence[Trial]) -> Trial:
    return max(mine, key=_in_search)


def _row(name: str, mine: Sequence[Trial]) -> dict[str, str]:
    """Return speeds of finals and of the search apart: the machine may have changed between them."""
    best, final = _best(mine), next((trial for trial in mine if trial.final), None)
    prediction = (final or best).prediction
    return {
        "kind": name,
        "finals, MLUPS>": f"{format_mlups(final.mlups or 0.0)} (trial {final.number})" if final else "",
        "search, MLUPS>": f"{format_mlups(_in_search(best))} (trial {best.number})",
        "median of the search>": format_mlups(median(map(_in_search, mine))),
        "trials>": f"{len(mine):,}",
        "memory>": format_bytes(prediction.footprint_bytes) if prediction else "",
    }
