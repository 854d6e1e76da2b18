"""Measure a few early trials again at the end of the search: how far runs lie apart that are minutes apart."""

import time
from collections.abc import Sequence
from dataclasses import replace

from lbmtune.records import Outcome, Trial
from lbmtune.records.comparison.statistics import FEWEST_PAIRS
from lbmtune.records.store import append_trial, read_study
from lbmtune.search.interfaces import Search
from lbmtune.search.plan import Plan

_SHARE, _LEAST_S = 0.03, 6.0
"""Share of the search that visits may take; seconds of it below which none are made, since a process starts slowly."""
_MOST = 12
_EARLY = 2 / 3
"""Share of the trials that count as early."""


def visit_again(search: Search, plan: Plan) -> None:
    """Measure early trials in a new process with new memory, one after another until their time is over.

    None if no time is left for it, or if the study is resumed behind them. A trial that fails keeps its speed, since
    the finals decide on it.
    """
    record = read_study(search.folder)
    seconds = _SHARE * record.search_s
    chosen = chosen_trials(record.trials)
    if seconds < _LEAST_S or len(chosen) < FEWEST_PAIRS or any(trial.again for trial in record.trials):
        return
    if plan.search_left_s() < seconds:
        plan.left_out.append("early trials measured again")
        return
    evaluator, end = search.evaluator, time.monotonic() + seconds
    incumbent_s = evaluator.incumbent_s
    evaluator.restart()
    for trial in chosen:
        if time.monotonic() > end:
            break
        evaluator.incumbent_s = None  # or slow ones would be dismissed
        evaluator.submit(trial.number, trial.kernel_config)
        answer = evaluator.next()
        if answer.outcome is Outcome.OK:
            append_trial(search.folder, replace(trial, again=answer.measurement))
    evaluator.incumbent_s = incumbent_s


def chosen_trials(trials: Sequence[Trial]) -> list[Trial]:
    """Return early trials, spread evenly over the search: what other programs do to neighbours in time is alike.

    Those of the first device alone, which measures them again; every other one first, so that a visit that ends early
    has seen all of that time.
    """
    early = [
        t
        for t in trials[: int(_EARLY * len(trials))]
        if t.mlups and t.measurement and not (t.measurement.dismissed or t.device)
    ]
    spread = early[:: max(1, -(-len(early) // _MOST))]
    return [*spread[::2], *spread[1::2]]
