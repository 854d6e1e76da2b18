"""Verify a kernel, and time it: what the measurer does for one configuration."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lbmtune.backend.protocol import Binary, CompileError, OutOfMemoryError, TooManyResourcesError
from lbmtune.backend.registry import compiler_for, reassembled
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render_single
from lbmtune.errors import DeviceUnavailableError
from lbmtune.measure.processes.worker import Progress
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.timing.protocol import measure
from lbmtune.measure.timing.state import WrongResultError
from lbmtune.measure.timing.sustained import sustain
from lbmtune.measure.verification.aftermath import Sums, check_line, check_slab, check_slabs, check_sums, sums
from lbmtune.measure.verification.verify import (
    describe_failure,
    single_proof,
    verify,
    verify_simulation,
    verify_single,
)
from lbmtune.measure.workers.messages import MeasureRequest, MeasureResult
from lbmtune.measure.workers.side_tasks import Reporting, pooled_simulations, simulation_with
from lbmtune.records import Environment, Outcome, Sustained, Verification
from lbmtune.records.spec import TimingProtocol
from lbmtune.runtime.memory import array_names

if TYPE_CHECKING:  # workers start often, and these imports take long
    from lbmtune.records.claims import SideTask

FULL_SIZE = "verify at full size"
SUSTAINED = "measure sustained"
OUTPUT = "measure output"
_LATER = "it goes wrong after other launches, or not always"


def verify_and_measure(
    program: Program,
    binary: Binary,
    device: PooledDevice,
    request: MeasureRequest,
    protocol: TimingProtocol,
    progress: Progress,
    side_task: SideTask | None = None,
) -> MeasureResult:
    """Verify a program, and time it if it is right. Device faults are not caught: they end the process."""
    result = MeasureResult()
    try:
        if request.output:
            from lbmtune.measure.timing.output import measure_output

            with _stage(OUTPUT, result, progress, device):
                (simulation,) = pooled_simulations(device, [(program, binary, side_task)])
                compiler = compiler_for(device.environment)
                result.output = measure_output(simulation, request.output, device.device, compiler, request.folder)
            return result
        if request.full or not request.sustained_s:
            with _stage(FULL_SIZE if request.full else "verify", result, progress, device):
                check = partial(_verify, program, device, request, protocol, side_task)
                result.verification = check(binary)
                if not result.verification.passed:
                    result.outcome, result.reason = _cause(
                        program, binary, device.environment, check, result.verification
                    )
                    return result
        if request.sustained_s:
            with _stage(SUSTAINED, result, progress, device):
                result.sustained = _sustained(
                    program, binary, device, replace(protocol, sustained_s=request.sustained_s), side_task
                )
        elif request.timed and not request.full:
            with _stage("measure", result, progress, device):
                simulation = pooled_simulations(device, [(program, binary, side_task)])[0]
                result.measurement = measure(simulation, protocol, request.incumbent_s)
                check_line(simulation)
                device.check_guards(array_names(program))
            _reject_unstable(result, protocol)
    except TooManyResourcesError as error:
        result.outcome, result.reason = Outcome.TOO_MANY_RESOURCES, str(error)
    except (OutOfMemoryError, MemoryError) as error:
        result.outcome, result.reason = Outcome.OUT_OF_MEMORY, str(error) or "the device could not hold the buffers"
    except WrongResultError as error:
        result.outcome, result.reason = Outcome.WRONG_RESULT, str(error)
    return result


def _sustained(
    program: Program, binary: Binary, device: PooledDevice, protocol: TimingProtocol, side_task: SideTask | None
) -> Sustained:
    """Run a simulation for seconds, and prove the state that it leaves."""
    (simulation,) = pooled_simulations(device, [(program, binary, side_task)])
    begun: list[Sums] = []
    found = sustain(simulation, protocol, lambda: begun.append(sums(simulation)))
    check_sums(simulation, begun[0])
    check_slab(simulation)
    check_slabs(simulation, found.steps)
    device.check_guards(array_names(program))
    return found


def _cause(
    program: Program,
    binary: Binary,
    environment: Environment,
    check: Callable[[Binary], Verification],
    failed: Verification,
) -> tuple[Outcome, str]:
    """Tell a wrong text from a wrong assembly: the text is right if it passes when it is assembled otherwise.

    A binary that then passes, too, is no fault of the assembler.
    """
    reason = describe_failure(failed)
    # a variant that cannot be compiled or launched proves nothing about the one that is wrong
    with suppress(CompileError, DeviceUnavailableError, TooManyResourcesError, OutOfMemoryError, MemoryError):
        for how, variant in reassembled(environment, program):
            if check(variant).passed:
                if check(binary).passed:  # it was loaded anew, the variant having taken its place
                    return Outcome.WRONG_RESULT, f"{reason}; loaded anew it is right: {_LATER}"
                return Outcome.MISCOMPILED, f"{reason}; assembled by {how} the same text is right"
    return Outcome.WRONG_RESULT, reason


def _verify(
    program: Program,
    device: PooledDevice,
    request: MeasureRequest,
    protocol: TimingProtocol,
    side_task: SideTask | None,
    binary: Binary,
) -> Verification:
    device.reset()
    if not request.full:
        found = verify(program, binary, device, protocol.verify_periods)
        device.check_guards(array_names(program))
        return found
    every_step = replace(side_task, every=1) if side_task else None  # few steps are verified, and it must be due
    simulation = simulation_with(every_step, program, binary, device, program.case)
    found = verify_simulation(simulation)
    if isinstance(simulation, Reporting):
        simulation.check()
    device.check_guards(array_names(program))
    if not found.passed or side_task:
        return found
    return replace(found, single=_verify_single(program, binary, device))


def _verify_single(program: Program, binary: Binary, device: PooledDevice) -> Verification | None:
    """Verify the kernel for left-over steps on a small domain; None if there is no such kernel.

    That domain is the same whatever the domain of the case, so what was proved on a device is not proved there again.
    """
    single = render_single(program)
    if single is None:
        return None
    device.reset()
    with suppress(CompileError, TooManyResourcesError, OutOfMemoryError, MemoryError):
        compiled = compiler_for(device.environment)(single)
        key = single_proof(program, binary, compiled)
        if key not in device.proofs:
            found = verify_single(program, binary, device, (single, compiled))
            device.check_guards(array_names(program))
            if not found.passed:
                return found
            device.proofs[key] = found
        return device.proofs[key]
    return None


def _reject_unstable(result: MeasureResult, protocol: TimingProtocol) -> None:
    """Reject a disturbed measurement whose interval is as wide as the factor by which candidates are dismissed."""
    found, widest = result.measurement, protocol.bail_out - 1
    assert found is not None
    width = (found.ci_high_mlups - found.ci_low_mlups) / 2 / found.mlups
    if found.disturbed and width > widest:
        result.outcome = Outcome.UNSTABLE_TIMING
        result.reason = f"the 95 % interval is +-{width:.0%} of the median after {len(found.samples_s)} samples"


@contextmanager
def _stage(name: str, result: MeasureResult, progress: Progress, device: PooledDevice) -> Iterator[None]:
    """Report a stage, mark it for profilers, and record its seconds even if it fails."""
    progress(name)
    start = time.perf_counter()
    try:
        with device.marked(name):
            yield
    finally:
        result.spent_s[f"{name.split()[0]}_s"] = time.perf_counter() - start
