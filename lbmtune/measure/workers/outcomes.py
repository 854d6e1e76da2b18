"""Put the results of workers, or their deaths, into trials."""

from __future__ import annotations

from dataclasses import replace

from lbmtune.measure.processes.worker import Answer, Death
from lbmtune.measure.workers.messages import CompileResult, MeasureResult
from lbmtune.measure.workers.worker_tasks import final_stage
from lbmtune.records import Costs, Outcome, Trial


def after_compiling(trial: Trial, result: CompileResult) -> Trial:
    """Return the trial with what compiling gave."""
    return replace(
        trial,
        outcome=result.outcome,
        reason=result.reason,
        resources=result.resources,
        source_digest=result.source_digest,
        binary_digest=result.binary_digest,
        costs=Costs(compile_s=result.compile_s),
    )


def after_measuring(trial: Trial, result: MeasureResult) -> Trial:
    """Return the trial with what verifying and timing gave."""
    return replace(
        trial,
        outcome=result.outcome,
        reason=result.reason,
        verification=result.verification,
        measurement=result.measurement,
        sustained=result.sustained,
        costs=replace(trial.costs, verify_s=result.verify_s, measure_s=result.measure_s),
    )


def after_death(trial: Trial, death: Death) -> Trial:
    """Return the trial of a worker that died; its time is charged to the stage of the death."""
    name = f"{death.stage.split()[0]}_s"
    costs = replace(trial.costs, **{name: death.stage_s}) if hasattr(trial.costs, name) else trial.costs
    outcome = Outcome.TIMED_OUT if death.timed_out else Outcome.CRASHED
    return replace(trial, outcome=outcome, reason=death.reason, costs=costs)


def culprit(event: Answer | Death, count: int) -> int | None:
    """Return the position of the finalist that ran when the finals failed; None if unknown."""
    if isinstance(event, Answer):
        position: int | None = event.value.position
        return position
    return next((n for n in range(count) if final_stage(n) == event.stage), None)


def after_failed_final(trial: Trial, event: Answer | Death) -> Trial:
    """Return the trial of a finalist that made the finals fail."""
    if isinstance(event, Death):
        return after_death(trial, event)
    return replace(trial, outcome=Outcome.WRONG_RESULT, reason=event.value.reason)
