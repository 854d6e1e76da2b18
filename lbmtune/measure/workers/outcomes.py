"""What the workers answered, or how they died, as fields of a trial."""

from __future__ import annotations

from dataclasses import replace

from lbmtune.measure.workers.processes import Death
from lbmtune.measure.workers.worker_tasks import Compiled, Measured
from lbmtune.records import Costs, Outcome, Trial


def compiled(trial: Trial, answer: Compiled) -> Trial:
    """The trial after compiling."""
    return replace(
        trial,
        outcome=answer.outcome,
        reason=answer.reason,
        resources=answer.resources,
        source_digest=answer.source_digest,
        binary_digest=answer.binary_digest,
        costs=Costs(compile_s=answer.compile_s),
    )


def measured(trial: Trial, answer: Measured) -> Trial:
    """The trial after verifying and measuring."""
    return replace(
        trial,
        outcome=answer.outcome,
        reason=answer.reason,
        verification=answer.verification,
        measurement=answer.measurement,
        sustained=answer.sustained,
        costs=replace(trial.costs, verify_s=answer.verify_s, measure_s=answer.measure_s),
    )


def died(trial: Trial, death: Death) -> Trial:
    """The trial whose worker died; the time it took is put down to the stage of the death."""
    name = f"{death.stage.split()[0]}_s"
    costs = replace(trial.costs, **{name: death.stage_s}) if hasattr(trial.costs, name) else trial.costs
    outcome = Outcome.TIMED_OUT if death.timed_out else Outcome.CRASHED
    return replace(trial, outcome=outcome, reason=death.reason, costs=costs)
