"""Put the results of workers, or their deaths, into trials."""

from __future__ import annotations

from dataclasses import replace

from lbmtune.measure.processes.worker import Death
from lbmtune.measure.workers.messages import CompileResult, MeasureResult
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
