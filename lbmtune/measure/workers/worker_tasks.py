"""The tasks of the worker processes: one session compiles, one verifies and measures."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbmtune.backend.protocol import Binary, CompileError, Compiler, Device, Executable, OutOfMemoryError
from lbmtune.backend.registry import compiler_for
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Launch, Program
from lbmtune.measure.processes.worker import Progress, Session
from lbmtune.measure.timing.interleaved import measure_interleaved
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.timing.state import WrongResultError, check_state, excite
from lbmtune.measure.verification import own_kernel as own_kernel  # which registers how users' kernels are verified
from lbmtune.measure.verification.accuracy import measure_accuracy
from lbmtune.measure.verification.aftermath import check_line, check_slabs
from lbmtune.measure.verification.verify import verify, verify_simulation
from lbmtune.measure.workers.messages import (
    AccuracyRequest,
    CompileResult,
    DryRunRequest,
    FinalsFailure,
    FinalsRequest,
    LossesRequest,
    MeasureRequest,
    MeasureResult,
    OutputRatesRequest,
    Renderer,
)
from lbmtune.measure.workers.one_kernel import verify_and_measure
from lbmtune.measure.workers.side_tasks import pooled_simulations, with_side_task
from lbmtune.records import Environment, Measurement, Outcome, Resources
from lbmtune.records.spec import TimingProtocol

if TYPE_CHECKING:  # workers start often, and these imports take long
    from lbmtune.measure.calibration.interference_monitor import InterferenceMonitor
    from lbmtune.records.claims import SideTask

FINALS = "finals"
ACCURACY = "accuracy"
DRY_RUN = "dry run"
OUTPUT_RATES = "rates of output"
LOSSES = "losses"
_NO_BINARY = Binary(b"", "", Resources())


def open_compiler(renderer: Renderer, compiler: Compiler) -> tuple[None, Session]:
    """Open a session that compiles (case, configuration, path, side task) to a CompileResult, or makes a dry run."""

    def session(request: Any, progress: Progress) -> CompileResult | None:
        if isinstance(request, DryRunRequest):
            progress(DRY_RUN)
            for example in request.configs:
                request.renderer(request.case, example)
            return None
        progress("compile")
        case, config, path, side_task = request
        start = time.perf_counter()
        program = with_side_task(renderer(case, config), side_task)
        result = CompileResult(source_digest=program.digest)
        try:
            binary = _compiled_once(program, compiler, path.parent)
            path.write_bytes(pickle.dumps((program, binary, side_task)))
            result.binary_digest, result.resources = binary.digest, binary.resources
        except CompileError as error:
            result.outcome, result.reason = Outcome.COMPILE_FAILED, str(error).strip()
        result.spent_s["compile_s"] = time.perf_counter() - start
        return result

    return None, session


def _compiled_once(program: Program, compiler: Compiler, folder: Path) -> Binary:
    """Return the binary of a program, from the folder if the same text was compiled for another configuration."""
    kept = folder / f"{program.digest}.binary"
    if kept.exists():
        binary: Binary = pickle.loads(kept.read_bytes())
        return binary
    binary = compiler(program)
    part = folder / f"{program.digest}.{os.getpid()}"
    part.write_bytes(pickle.dumps(binary))
    part.rename(kept)  # at once: other processes look for it
    return binary


def open_measurer(opener: Callable[[], Device], protocol: TimingProtocol) -> tuple[tuple[Environment, Limits], Session]:
    """Open a device and a session that answers every request of `messages` but those to compilers."""
    device = opener()
    pooled = PooledDevice(device, partial(_monitor, device) if getattr(device, "shared", False) else None)
    return (pooled.environment, pooled.limits), _Measurer(pooled, protocol).answer


class _Measurer:
    """Measures on one device. prepared: cases and storage formats of which a dry run was made."""

    def __init__(self, device: PooledDevice, protocol: TimingProtocol) -> None:
        self._device, self._protocol = device, protocol
        self._prepared: set[tuple[Case, str]] = set()
        self._dry_runs = not BACKENDS[device.environment.backend].shares_host
        self._answers: dict[type, Callable[[Any, Progress], Any]] = {
            FinalsRequest: self._time_finals,
            AccuracyRequest: self._measure_accuracy,
            DryRunRequest: self._prepare,
            LossesRequest: self._measure_losses,
            MeasureRequest: self._verify_and_measure,
            OutputRatesRequest: self._measure_rates,
        }

    def answer(self, request: Any, progress: Progress) -> Any:
        """Answer one request."""
        return self._answers[type(request)](request, progress)

    def _time_finals(self, request: FinalsRequest, progress: Progress) -> list[Measurement] | FinalsFailure:
        """Time programs interleaved, all in the same memory. Reports the turn of each as a stage."""
        current: int | None = None

        def turn(position: int | None) -> None:
            nonlocal current
            current = position
            progress(FINALS if position is None else final_stage(position))

        turn(None)
        try:
            simulations = pooled_simulations(self._device, [_read_spool(path) for path in request.paths])
            found = measure_interleaved(simulations, self._protocol, turn, request.race_s)
            for position, (simulation, one) in enumerate(zip(simulations, found, strict=True)):
                turn(position)
                check_slabs(simulation, one.steps_per_sample * len(one.samples_s))
            return found
        except WrongResultError as error:
            return FinalsFailure(current, str(error))

    def _measure_accuracy(self, request: AccuracyRequest, progress: Progress) -> Any:
        progress(ACCURACY)
        device, compiler = self._device, compiler_for(self._device.environment)
        return measure_accuracy(request.case, request.config, device, compiler, device.reset, brief=request.brief)

    def _measure_losses(self, request: LossesRequest, progress: Progress) -> Any:
        from lbmtune.measure.profiling.loss_breakdown import ProfileRequest, measure_losses  # here: it comes last

        asked = ProfileRequest(request.case, request.config, request.machine, self._protocol, brief=True)
        return measure_losses(self._device, asked, lambda what: progress(f"{LOSSES}, {what}"))

    def _measure_rates(self, request: OutputRatesRequest, progress: Progress) -> Any:
        from lbmtune.measure.timing.output import measure_rates  # here, as below: few studies have output

        progress(OUTPUT_RATES)
        return measure_rates(self._device.device, request.fields_bytes, request.folder)

    def _prepare(self, request: DryRunRequest, progress: Progress) -> None:
        progress(DRY_RUN)
        for config in request.configs:
            self._dry_run(request.renderer(request.case, config))

    def _verify_and_measure(self, request: MeasureRequest, progress: Progress) -> MeasureResult:
        program, binary, side_task = _read_spool(request.path)
        if self._dry_runs and (program.case, program.config.storage) not in self._prepared:
            progress(DRY_RUN)
            self._dry_run(program)
        return verify_and_measure(program, binary, self._device, request, self._protocol, progress, side_task)

    def _dry_run(self, program: Program) -> None:
        dry_run(program, self._device.device)
        self._prepared.add((program.case, program.config.storage))


_DRY_SITES = 1 << 24
"""Most cells that are verified in vain while the first kernels are compiled: a second of a GPU."""


def dry_run(program: Program, device: Device) -> None:
    """Trigger everything that is done once: CuPy's own kernels are compiled, geometries and references are made.

    That takes seconds, which belong to no trial. A lack of memory is ignored: the trials will report it.
    """
    idle = _IdleDevice(device)
    with suppress(OutOfMemoryError, MemoryError):
        verify(program, _NO_BINARY, idle, 1)
        simulation = pooled_simulations(idle, [(program, _NO_BINARY, None)])[0]
        excite(simulation)
        check_state(simulation)
        with suppress(WrongResultError):  # nothing advances
            check_line(simulation)
        if program.case.sites <= _DRY_SITES:
            verify_simulation(simulation)


class _IdleDevice(PooledDevice):
    """A device whose programs do nothing."""

    def load(self, program: Program, binary: Binary) -> Executable:  # noqa: ARG002
        return _IdleExecutable(binary.resources)


@dataclass(frozen=True)
class _IdleExecutable:
    resources: Resources

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        """Do nothing."""

    def recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return the run itself, which does nothing."""
        return run


def _monitor(device: Device) -> InterferenceMonitor:
    from lbmtune.measure.calibration.interference_monitor import interference_monitor  # here: they need SymPy
    from lbmtune.measure.calibration.machines import caches_bytes

    return interference_monitor(device, compiler_for(device.environment), caches_bytes(device))


def final_stage(position: int) -> str:
    """Return the name of the stage in which the finalist at a position runs."""
    return f"{FINALS}, number {position + 1}"


def _read_spool(path: Path) -> tuple[Program, Binary, SideTask | None]:
    program, binary, side_task = pickle.loads(path.read_bytes())
    return program, binary, side_task
