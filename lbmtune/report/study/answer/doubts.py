"""Say what makes the ranking of a study doubtful, in one sentence if there are several reasons."""

from typing import NamedTuple

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.records.remarks import above_the_winner, disturbance, doubt, drift_text, faster_first, unsteadiness
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.answer.beside import fastest_sustained
from lbmtune.report.study.answer.words import named
from lbmtune.report.tables import plus_minus
from lbmtune.units import format_mlups

_MUCH = 0.1
"""Change of a finalist's speed since the search from which on it is a doubt of its own."""
_WHICH, _HERE = "Which of the trial", "calibrated on this device"


class Doubts(NamedTuple):
    """Sentences above the answer, empty if there is no reason for them."""

    disturbed: str = ""
    uncertain: str = ""
    above: str = ""
    unsteady: str = ""


def doubts(study: StudyRecord) -> Doubts:
    """Return why the ranking is doubtful: each reason in its sentence, or all of several in the first one."""
    alone = Doubts(
        disturbance(study),
        "" if disturbance(study) else plus_minus(doubt(study)),
        faster_first(study),
        unsteadiness(study) or _changed(study),
    )
    return Doubts(uncertain=_together(study)) if sum(map(bool, alone)) > 1 else alone


def _changed(study: StudyRecord) -> str:
    """Say that a finalist had another speed in the search than in the finals; empty if none had by much."""
    both = [(t.measurement.mlups, t.final.mlups) for t in study.ranked if t.measurement and t.final]
    if all(abs(first / final - 1) <= _MUCH for first, final in both):
        return ""
    return f"{drift_text(study)}: speeds of the search alone may be off by as much. Run again when the machine is idle."


def names_candidates(study: StudyRecord) -> bool:
    """Return whether a doubt names the trials of which any may be the fastest."""
    return _WHICH in doubts(study).uncertain


def _together(study: StudyRecord) -> str:
    winner = study.ranked[0]
    spread, above = study.interval(winner), above_the_winner(study)
    drift = f"; {text}" if (text := drift_text(study)) else ""
    others = f", trial {above.number} of the search alone {format_mlups(above.mlups or 0.0)}" if above else ""
    cause = "this machine was disturbed or its speed changed" if unsteadiness(study) or drift else "the samples scatter"
    low, high = format_mlups(spread.low_mlups), format_mlups(spread.high_mlups)
    known = _candidates(study)
    which = f"{_WHICH}{named(known)} is the fastest is not known. " if len(known) > 1 else ""
    each = "each by its key" if which else "it again"
    return (
        f"{cause}: the winner had {low} to {high}{others}{drift}. {which}{_limits_too(study)}When the machine is idle, "
        f"run the study again, or measure {each}: lbmtune measure {'KEY' if which else winner.key} --study ."
    )


def _limits_too(study: StudyRecord) -> str:
    """Say that what was calibrated on a machine that is not steady is in doubt as well; empty if nothing was."""
    steady = not (unsteadiness(study) or drift_text(study))
    if steady or not BACKENDS[study.header.backend].shares_host or _HERE not in study.header.calibrated_how:
        return ""
    return "Limits and predictions were calibrated on it, and are in doubt, too. "


def _candidates(study: StudyRecord) -> list[int]:
    """Return the numbers of the trials of which any may be the fastest, the winner first."""
    winner, above, sustained = study.ranked[0], above_the_winner(study), fastest_sustained(study)
    high = study.interval(winner).high_mlups
    first = [t.number for t in study.ranked if above and t.final is None and (t.mlups or 0.0) > high]
    near = (*sorted(study.tied), *study.untold)
    return list(dict.fromkeys((winner.number, *near, *first, *([sustained.number] if sustained else []))))
