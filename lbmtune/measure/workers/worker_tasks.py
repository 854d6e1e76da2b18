"""What happens inside the worker processes: one session compiles, one verifies and measures."""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbmtune.backend.protocol import (
    Binary,
    CompileError,
    Compiler,
    Device,
    Executable,
    OutOfMemoryError,
    TooManyResourcesError,
)
from lbmtune.backend.registry import compiler_for, reassembled
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Real3
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.render import render_single
from lbmtune.errors import DeviceUnavailableError
from lbmtune.measure.timing.pooled_device import Arena, arena_bytes
from lbmtune.measure.timing.protocol import WrongResultError, check_state, excite, measure, measure_interleaved
from lbmtune.measure.timing.sustained import sustain
from lbmtune.measure.verification.accuracy import measure_accuracy
from lbmtune.measure.verification.verify import verify, verify_simulation, verify_single
from lbmtune.measure.workers.processes import Report, Session
from lbmtune.measure.workers.side_tasks import equipped, simulated
from lbmtune.records import Environment, Measurement, Outcome, Resources, Sustained, Verification
from lbmtune.records.study import TimingProtocol
from lbmtune.runtime import Simulation

if TYPE_CHECKING:  # it takes long to load, and workers start often
    from lbmtune.measure.timing.interference_monitor import Gauge
    from lbmtune.records.claims import Duty

Renderer = Callable[[Case, KernelConfig], Program]
FULL_SIZE = "verify at full size"
_CALM_RATE = 1.8
FINALS = "finals"
ACCURACY = "accuracy"
SUSTAINED = "measure sustained"
REHEARSE = "rehearse"


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What compiling gave. path: where program and binary lie."""

    outcome: Outcome = Outcome.OK
    reason: str = ""
    path: Path
    source_digest: str = ""
    binary_digest: str = ""
    resources: Resources | None = None
    compile_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Work:
    """A request to the measurer. full: verify on the case's own domain and do not measure; timed: measure at all.

    sustained: run it for seconds, after that verification if it is asked for, and take no short samples.
    """

    path: Path
    full: bool = False
    timed: bool = True
    sustained: bool = False
    incumbent_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Finals:
    """A request to the measurer: time these against each other."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """A request to any worker: to get ready for configurations like these. The answer is None."""

    case: Case
    configs: tuple[KernelConfig, ...]
    renderer: Renderer


@dataclass(frozen=True, kw_only=True)
class Accurate:
    """A request to the measurer: the accuracy of a configuration with the lattice and collision of a case."""

    case: Case
    config: KernelConfig
    brief: bool = False


@dataclass(frozen=True)
class Spoiled:
    """The answer to Finals that gave a wrong result. position: whose it is; None: not known."""

    position: int | None
    reason: str


@dataclass(kw_only=True)
class Measured:
    """What verifying and measuring gave."""

    outcome: Outcome = Outcome.OK
    reason: str = ""
    verification: Verification | None = None
    measurement: Measurement | None = None
    sustained: Sustained | None = None
    verify_s: float = 0.0
    measure_s: float = 0.0


@dataclass(frozen=True)
class Opened:
    """What the measurer says of its device."""

    environment: Environment
    limits: Limits


def open_compiler(case: Case, renderer: Renderer, compiler: Compiler) -> tuple[None, Session]:
    """A session that answers (configuration, path, duty) with Compiled."""

    def session(request: Any, report: Report) -> Compiled | None:
        if isinstance(request, Rehearsal):
            report(REHEARSE)
            for example in request.configs:
                request.renderer(request.case, example)
            return None
        report("compile")
        config, path, duty = request
        start = time.perf_counter()
        program = equipped(renderer(case, config), duty)
        try:
            binary = compiler(program)
        except CompileError as error:
            return Compiled(
                outcome=Outcome.COMPILE_FAILED,
                reason=str(error).strip(),
                path=path,
                source_digest=program.digest,
                compile_s=time.perf_counter() - start,
            )
        path.write_bytes(pickle.dumps((program, binary, duty)))
        return Compiled(
            path=path,
            source_digest=program.digest,
            binary_digest=binary.digest,
            resources=binary.resources,
            compile_s=time.perf_counter() - start,
        )

    return None, session


def open_measurer(opener: Callable[[], Device], protocol: TimingProtocol) -> tuple[Opened, Session]:
    """A session that answers Work with Measured, Finals with a measurement each or Spoiled, Accurate with Accuracy.

    On a GPU it goes through all that surrounds launches once before the first trial of each storage format.
    """
    device = opener()
    arena = Arena(device, partial(_gauge, device) if getattr(device, "shared", False) else None)
    rehearsed: set[str] = set()

    def session(request: Any, report: Report) -> Any:
        if isinstance(request, Finals):
            report(FINALS)
            return interleaved(arena, request.paths, protocol, report)
        if isinstance(request, Accurate):
            report(ACCURACY)
            compiler = compiler_for(arena.environment)
            return measure_accuracy(request.case, request.config, arena, compiler, arena.reset, brief=request.brief)
        if isinstance(request, Rehearsal):
            report(REHEARSE)
            for config in request.configs:
                rehearse(request.renderer(request.case, config), arena.device)
                rehearsed.add(config.storage)
            return None
        program, binary, duty = _picked_up(request.path)
        if arena.environment.backend == "cuda" and program.config.storage not in rehearsed:
            report(REHEARSE)
            rehearse(program, arena.device)
            rehearsed.add(program.config.storage)
        return tried(program, binary, arena, request, protocol, report, duty)

    return Opened(arena.environment, arena.limits), session


def _gauge(device: Device) -> Gauge:
    from lbmtune.measure.calibration.machines import caches_bytes  # here: they need SymPy
    from lbmtune.measure.timing.interference_monitor import gauge

    return gauge(device, compiler_for(device.environment), caches_bytes(device))


def rehearse(program: Program, device: Device) -> None:
    """Goes through a verification, and what comes before and after a timed run, without launching anything.

    CuPy compiles its own kernels when they are first used, and a geometry is made when it is first asked for: that
    takes seconds that belong to no trial. Where the memory does not suffice, the trials will say so.
    """
    still = _Still(device)
    with suppress(OutOfMemoryError, MemoryError):
        verify(program, _NO_BINARY, still, 1)
        simulation = _on_own_domain(still, [(program, _NO_BINARY, None)])[0]
        excite(simulation)
        check_state(simulation)


_NO_BINARY = Binary(b"", "", Resources())


class _Still(Arena):
    """A device on which programs do nothing."""

    def load(self, program: Program, binary: Binary) -> Executable:  # noqa: ARG002
        return _Nothing(binary.resources)


@dataclass(frozen=True)
class _Nothing:
    resources: Resources

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        """Does nothing."""

    def recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        """The same."""
        return run


def tried(
    program: Program,
    binary: Binary,
    arena: Arena,
    work: Work,
    protocol: TimingProtocol,
    report: Report,
    duty: Duty | None = None,
) -> Measured:
    """Verifies, and measures what is right. Faults of the device are not caught: they cost the process."""
    result = Measured()
    try:
        if work.full or not work.sustained:
            with _stage(FULL_SIZE if work.full else "verify", result, report, arena):
                prove = partial(_proof, program, arena, work, protocol, duty)
                result.verification = prove(binary)
                if not result.verification.passed:
                    result.outcome, result.reason = _blamed(program, arena.environment, prove, result.verification)
                    return result
        if work.sustained:
            with _stage(SUSTAINED, result, report, arena):
                result.sustained = sustain(_on_own_domain(arena, [(program, binary, duty)])[0], protocol)
        elif work.timed and not work.full:
            with _stage("measure", result, report, arena):
                simulation = _on_own_domain(arena, [(program, binary, duty)])[0]
                result.measurement = measure(simulation, protocol, work.incumbent_s)
            _judge(result, protocol)
    except TooManyResourcesError as error:
        result.outcome, result.reason = Outcome.TOO_MANY_RESOURCES, str(error)
    except (OutOfMemoryError, MemoryError) as error:
        result.outcome, result.reason = Outcome.OUT_OF_MEMORY, str(error) or "the device could not hold the buffers"
    except WrongResultError as error:
        result.outcome, result.reason = Outcome.WRONG_RESULT, str(error)
    return result


def _blamed(
    program: Program, environment: Environment, prove: Callable[[Binary], Verification], found: Verification
) -> tuple[Outcome, str]:
    """Whose fault it is that a kernel is wrong: the text's, unless it is right when it is assembled otherwise."""
    why = explained(found)
    # what cannot be made or run in another way says nothing of the one that is wrong
    with suppress(CompileError, DeviceUnavailableError, TooManyResourcesError, OutOfMemoryError, MemoryError):
        for how, binary in reassembled(environment, program):
            if prove(binary).passed:
                return Outcome.MISCOMPILED, f"{why}; assembled by {how} the same text is right"
    return Outcome.WRONG_RESULT, why


def _proof(
    program: Program, arena: Arena, work: Work, protocol: TimingProtocol, duty: Duty | None, binary: Binary
) -> Verification:
    arena.reset()
    if not work.full:
        return verify(program, binary, arena, protocol.verify_periods)
    always = replace(duty, every=1) if duty else None  # few steps are verified, and it must fall due
    found = verify_simulation(simulated(program, binary, arena, program.case, always))
    return replace(found, single=_proof_of_single(program, binary, arena)) if found.passed and not duty else found


def _proof_of_single(program: Program, binary: Binary, arena: Arena) -> Verification | None:
    """That of the kernel for steps that are no whole launch, on a small domain; None where there is none."""
    single = render_single(program)
    if single is None:
        return None
    arena.reset()
    with suppress(CompileError, TooManyResourcesError, OutOfMemoryError, MemoryError):
        made = single, compiler_for(arena.environment)(single)
        return verify_single(program, binary, arena, made)
    return None


def interleaved(
    arena: Arena, paths: Sequence[Path], protocol: TimingProtocol, report: Report
) -> list[Measurement] | Spoiled:
    """Measures programs against each other, all in the same memory. Reports each one's turn as a stage."""
    whose: int | None = None

    def turn(position: int | None) -> None:
        nonlocal whose
        whose = position
        report(FINALS if position is None else turn_of(position))

    try:
        return measure_interleaved(_on_own_domain(arena, [_picked_up(path) for path in paths]), protocol, turn)
    except WrongResultError as error:
        return Spoiled(whose, str(error))


def turn_of(position: int) -> str:
    """The stage in which the finalist at that position runs."""
    return f"{FINALS}, number {position + 1}"


def explained(found: Verification) -> str:
    """A failed verification in a sentence."""
    cell = ", ".join(map(str, found.worst_cell))
    domain = "x".join(map(str, found.domains[-1]))
    where = f"f_{found.worst_direction} at cell ({cell}) of {domain}"
    if found.error >= sys.float_info.max:
        return f"{where} is not a finite number after {found.worst_steps} steps"
    return f"{where} is off by {found.error:.3g} after {found.worst_steps} steps; the bound is {found.bound:.3g}"


def _judge(result: Measured, protocol: TimingProtocol) -> None:
    """A doubt as large as the factor by which candidates are dismissed says nothing about their rank."""
    found, widest = result.measurement, protocol.bail_out - 1
    assert found is not None
    width = (found.ci_high_mlups - found.ci_low_mlups) / 2 / found.mlups
    if found.disturbed and width > widest:
        result.outcome = Outcome.UNSTABLE_TIMING
        result.reason = f"the 95 % interval is +-{width:.0%} of the median after {len(found.samples_s)} samples"


def _on_own_domain(arena: Arena, programs: Sequence[tuple[Program, Binary, Duty | None]]) -> list[Simulation]:
    """Simulations on the domain of the case, each in the same memory as the others."""
    arena.reset(max(arena_bytes(p.array_bytes(p.case.domain)) for p, _, _ in programs))
    simulations = []
    for program, binary, duty in programs:
        arena.reset()
        simulations.append(simulated(program, binary, arena, calm(program.case), duty))
    return simulations


def calm(case: Case) -> Case:
    """The case with values at which no flow diverges while it is timed: they are launch arguments and cost nothing."""
    patches = (replace(p, velocity=_tenth(p.velocity), density=1 + (p.density - 1) / 10) for p in case.patches)
    return replace(
        case,
        relaxation_rate=min(case.relaxation_rate, _CALM_RATE),
        wall_velocity=_tenth(case.wall_velocity),
        inlet_velocity=_tenth(case.inlet_velocity),
        outlet_density=1 + (case.outlet_density - 1) / 10,
        patches=tuple(patches),
    )


def _tenth(velocity: Real3) -> Real3:
    x, y, z = (u / 10 for u in velocity)
    return x, y, z


def _picked_up(path: Path) -> tuple[Program, Binary, Duty | None]:
    program, binary, duty = pickle.loads(path.read_bytes())
    return program, binary, duty


@contextmanager
def _stage(name: str, result: Measured, report: Report, arena: Arena) -> Iterator[None]:
    """Announces a stage, marks it for profilers, and notes its seconds, also when it fails."""
    report(name)
    start = time.perf_counter()
    try:
        with arena.marked(name):
            yield
    finally:
        setattr(result, f"{name.split()[0]}_s", time.perf_counter() - start)
