"""Requests to the worker processes of an evaluator, and their results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program
from lbmtune.records import Environment, Measurement, Outcome, Resources, Sustained, Verification

Renderer = Callable[[Case, KernelConfig], Program]


@dataclass(frozen=True, kw_only=True)
class CompileResult:
    """The result of compiling. path: file with program and binary."""

    outcome: Outcome = Outcome.OK
    reason: str = ""
    path: Path
    source_digest: str = ""
    binary_digest: str = ""
    resources: Resources | None = None
    compile_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class MeasureRequest:
    """Verify and time a compiled program. full: verify on the case's own domain and do not time; timed: time at all.

    sustained: run it for seconds instead of taking short samples; verify before only if `full`.
    """

    path: Path
    full: bool = False
    timed: bool = True
    sustained: bool = False
    incumbent_s: float | None = None


@dataclass(kw_only=True)
class MeasureResult:
    """The result of verifying and timing."""

    outcome: Outcome = Outcome.OK
    reason: str = ""
    verification: Verification | None = None
    measurement: Measurement | None = None
    sustained: Sustained | None = None
    verify_s: float = 0.0
    measure_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class FinalsRequest:
    """Time these programs interleaved."""

    paths: tuple[Path, ...]


@dataclass(frozen=True)
class FinalsFailure:
    """A wrong result during the finals. position: the finalist that caused it; None: unknown."""

    position: int | None
    reason: str


@dataclass(frozen=True, kw_only=True)
class DryRunRequest:
    """Prepare any worker for configurations like these. The answer is None."""

    case: Case
    configs: tuple[KernelConfig, ...]
    renderer: Renderer


@dataclass(frozen=True, kw_only=True)
class AccuracyRequest:
    """Measure the accuracy of a configuration with the lattice and collision of a case."""

    case: Case
    config: KernelConfig
    brief: bool = False


@dataclass(frozen=True)
class OpenedDevice:
    """Environment and limits of the device of the measuring worker."""

    environment: Environment
    limits: Limits
