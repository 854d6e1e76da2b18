"""Requests to the worker processes of an evaluator, and their results."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program
from lbmtune.model.machine.description import Machine
from lbmtune.records import Measurement, Outcome, Resources, Sustained, Trial, Verification
from lbmtune.records.output import Output, OutputCost

Renderer = Callable[[Case, KernelConfig], Program]


@dataclass(kw_only=True)
class Result:
    """The result of a stage of a trial, in fields of the trial. spent_s: seconds, by field of its costs."""

    outcome: Outcome = Outcome.OK
    reason: str = ""
    spent_s: dict[str, float] = field(default_factory=dict)

    def into(self, trial: Trial) -> Trial:
        """Return the trial with this result."""
        changes = dict(vars(self))
        costs = replace(trial.costs, **changes.pop("spent_s"))
        return replace(trial, costs=costs, **changes)


@dataclass(kw_only=True)
class CompileResult(Result):
    """The result of compiling."""

    source_digest: str = ""
    binary_digest: str = ""
    resources: Resources | None = None


@dataclass(kw_only=True)
class MeasureResult(Result):
    """The result of verifying and timing."""

    verification: Verification | None = None
    measurement: Measurement | None = None
    sustained: Sustained | None = None
    output: tuple[OutputCost, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MeasureRequest:
    """Verify and time a compiled program. full: verify on the case's own domain and do not time; timed: time at all.

    sustained_s: run it for so many seconds, 0: take short samples; verify before a run only if `full`. output: measure
    this instead, without verification; folder: of its file, None: the one for temporary files.
    """

    path: Path
    full: bool = False
    timed: bool = True
    sustained_s: float = 0.0
    incumbent_s: float | None = None
    output: Output | None = None
    folder: Path | None = None


@dataclass(frozen=True, kw_only=True)
class FinalsRequest:
    """Time these programs interleaved.

    race_s: drop those that are slower at 95 %, and end after so many seconds; None: time all of them equally.
    """

    paths: tuple[Path, ...]
    race_s: float | None = None


@dataclass(frozen=True)
class FinalsFailure:
    """A wrong result during the finals. position: the finalist that caused it; None: unknown."""

    position: int | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class OutputRatesRequest:
    """Measure the rates of output for fields of so many bytes. folder: of the file. The answer is OutputRates."""

    fields_bytes: int
    folder: Path | None


@dataclass(frozen=True, kw_only=True)
class DryRunRequest:
    """Prepare any worker for configurations like these. The answer is None."""

    case: Case
    configs: tuple[KernelConfig, ...]
    renderer: Renderer


@dataclass(frozen=True, kw_only=True)
class LossesRequest:
    """Measure the losses of a configuration level by level, beside predictions. The answer is a Profile."""

    case: Case
    config: KernelConfig
    machine: Machine


@dataclass(frozen=True, kw_only=True)
class AccuracyRequest:
    """Measure the accuracy of a configuration with the lattice and collision of a case."""

    case: Case
    config: KernelConfig
    brief: bool = False
