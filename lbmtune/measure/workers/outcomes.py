"""Time finalists interleaved, without those that fail, and put the deaths of workers into trials."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from lbmtune.measure.processes.events import Answer, Death
from lbmtune.measure.workers.messages import FinalsFailure, FinalsRequest
from lbmtune.measure.workers.worker_pool import WorkerPool
from lbmtune.measure.workers.worker_tasks import final_stage
from lbmtune.records import Outcome, Trial


def after_death(trial: Trial, death: Death) -> Trial:
    """Return the trial of a worker that died; its time is charged to the stage of the death."""
    name = f"{death.stage.split()[0]}_s"
    costs = replace(trial.costs, **{name: death.stage_s}) if hasattr(trial.costs, name) else trial.costs
    outcome = Outcome.TIMED_OUT if death.timed_out else Outcome.OUT_OF_MEMORY if death.starved else Outcome.CRASHED
    return replace(trial, outcome=outcome, reason=death.reason, costs=costs)


def time_interleaved(
    pool: WorkerPool,
    verified: Sequence[tuple[Trial, Path]],
    on_stage: Callable[[int, str], None],
    race_s: float | None = None,
) -> list[Trial]:
    """Return the trials with their finals; if one of them fails, the others are timed again without it.

    race_s: `FinalsRequest`.
    """
    if not verified:
        return []
    trials = [trial for trial, _ in verified]
    request = FinalsRequest(paths=tuple(path for _, path in verified), race_s=race_s)
    event = pool.answer(verified, request, partial(on_stage, trials[0].number))
    if isinstance(event, Answer) and not isinstance(event.value, FinalsFailure):
        return [replace(trial, final=final) for trial, final in zip(trials, event.value, strict=True)]
    failure = event if isinstance(event, Death) else event.value
    position = _culprit(failure, len(trials))
    if position is None:
        return [replace(trial, reason=failure.reason) for trial in trials]
    rest = [one for n, one in enumerate(verified) if n != position]
    return [_after_failed_final(trials[position], failure), *time_interleaved(pool, rest, on_stage, race_s)]


def _culprit(failure: FinalsFailure | Death, count: int) -> int | None:
    """Return the position of the finalist that ran when the finals failed; None if unknown."""
    if isinstance(failure, FinalsFailure):
        return failure.position
    return next((n for n in range(count) if final_stage(n) == failure.stage), None)


def _after_failed_final(trial: Trial, failure: FinalsFailure | Death) -> Trial:
    if isinstance(failure, Death):
        return after_death(trial, failure)
    return replace(trial, outcome=Outcome.WRONG_RESULT, reason=failure.reason)
