"""Say what makes the ranking of a study doubtful, in one sentence if there are several reasons."""

from typing import NamedTuple

from lbmtune.records.remarks import above_the_winner, disturbance, doubt, drift_text, faster_first, unsteadiness
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.answer.beside import fastest_sustained
from lbmtune.report.tables import plus_minus
from lbmtune.units import format_mlups


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
        unsteadiness(study),
    )
    return Doubts(uncertain=_together(study)) if sum(map(bool, alone)) > 1 else alone


def _together(study: StudyRecord) -> str:
    winner = study.ranked[0]
    spread, above = study.interval(winner), above_the_winner(study)
    drift = f"; {text}" if (text := drift_text(study)) else ""
    others = f", trial {above.number} of the search alone {format_mlups(above.mlups or 0.0)}" if above else ""
    cause = "this machine was disturbed or its speed changed" if unsteadiness(study) or drift else "the samples scatter"
    low, high = format_mlups(spread.low_mlups), format_mlups(spread.high_mlups)
    known = _candidates(study)
    which = f"Which of the trials {', '.join(map(str, known))} is the fastest is not known. " if len(known) > 1 else ""
    each = "each by its key" if which else "it again"
    return (
        f"{cause}: the winner had {low} to {high}{others}{drift}. {which}When the machine is idle, run the study "
        f"again, or measure {each}: lbmtune measure {'KEY' if which else winner.key} --study ."
    )


def _candidates(study: StudyRecord) -> list[int]:
    """Return the numbers of the trials of which any may be the fastest, the winner first."""
    winner, above, sustained = study.ranked[0], above_the_winner(study), fastest_sustained(study)
    high = study.interval(winner).high_mlups
    first = [t.number for t in study.ranked if above and t.final is None and (t.mlups or 0.0) > high]
    near = (*sorted(study.tied), *study.untold)
    return list(dict.fromkeys((winner.number, *near, *first, *([sustained.number] if sustained else []))))
