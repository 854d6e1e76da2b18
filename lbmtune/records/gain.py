"""How fast a finalist is beside the winner by rounds of both, which cancels drift."""

from lbmtune.records import Trial
from lbmtune.records.comparison.statistics import Interval, paired_ratio
from lbmtune.records.study import StudyRecord


def paired_with_winner(study: StudyRecord, trial: Trial) -> Interval | None:
    """Return the speed of a finalist over the winner's, by rounds of both; None if they were not measured in turns."""
    winner = study.ranked[0]
    if trial is winner or not (winner.final and trial.final):
        return None
    mine, best = trial.final.samples_s, winner.final.samples_s
    # samples are paired by round; who was dropped took part in the first ones
    rounds = min(len(mine), len(best))
    if not rounds or (len(mine) != len(best) and not study.header.stopped):
        return None
    return paired_ratio(best[:rounds], mine[:rounds])
