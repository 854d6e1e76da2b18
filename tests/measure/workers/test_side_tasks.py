"""A simulation stores, saves, compares and stages what it should, besides stepping."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.backend.protocol import CompileError
from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.catalogue.config import CudaConfig, cpu, cuda
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.render import render
from lbmtune.measure.timing.host_output import residual
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.timing.sampling import take
from lbmtune.measure.timing.state import WrongResultError
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.verify import verify_simulation
from lbmtune.measure.workers import side_tasks
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.measure.workers.messages import MeasureRequest
from lbmtune.measure.workers.one_kernel import verify_and_measure
from lbmtune.measure.workers.side_tasks import (
    Comparing,
    Refreshing,
    Reporting,
    Saving,
    Staged,
    Storing,
    simulation_with,
    with_side_task,
)
from lbmtune.records import Outcome
from lbmtune.records.claims import SIDE_TASKS, SideTask
from lbmtune.records.spec import TimingProtocol
from lbmtune.runtime import Simulation
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels.cuda_samples import config, flows

pytestmark = pytest.mark.skipif(not COMPILER, reason="g++ is not installed")
SMALL = {"d2q9": (48, 7, 1), "d3q19": (48, 7, 5)}


def started(side_task: SideTask, sample: CudaConfig, case: Case) -> Simulation:
    program = with_side_task(render(case, sample), side_task)
    simulation = simulation_with(side_task, program, compile_on_host(program), HostDevice(), case)
    simulation.initialise(oracle.random_state(case))
    return simulation


def small(flow: str, lattice: str) -> Case:
    return replace(flows(lattice, "bgk")[flow], domain=SMALL[lattice])


@pytest.mark.thinned(3)
@pytest.mark.parametrize("flow", ["box", "cavity", "channel", "grinder"])
@pytest.mark.parametrize(("scheme", "cells", "storage"), [("push", 1, "fp64"), ("aa", 2, "fp32"), ("pull", 4, "fp16s")])
@pytest.mark.parametrize("lattice", SMALL)
def test_macroscopics_are_those_of_the_state_before_the_step(
    flow: str, scheme: str, cells: int, storage: str, lattice: str
) -> None:
    case = small(flow, lattice)
    simulation = started(
        SideTask("macroscopics", 3), config(scheme=scheme, cells_per_thread=cells, storage=storage), case
    )
    assert isinstance(simulation, Storing)
    simulation.macroscopics.fill(np.nan)
    simulation.step(2)
    assert np.isnan(simulation.macroscopics).all(), "it is due in the third step"
    density, velocity = simulation.macroscopic()
    simulation.step(1)
    bound = {"fp64": 1e-12, "fp32": 1e-6, "fp16s": 1e-6}[storage]
    assert np.abs(simulation.macroscopics[0] - density).max() < bound
    assert np.abs(simulation.macroscopics[1:] - velocity).max() < bound


@pytest.mark.parametrize("scheme", ["pull", "push", "aa", "esoteric-twist", "two-step", "swap"])
def test_storing_does_not_change_the_flow(scheme: str) -> None:
    case, sample = small("cavity", "d2q9"), config(scheme=scheme, storage="fp64")
    storing = started(SideTask("macroscopics", 1), sample, case)
    program = render(case, sample)
    plain = Simulation(program, compile_on_host(program), HostDevice())
    plain.initialise(oracle.random_state(case))
    for simulation in (storing, plain):
        simulation.step(5)
    assert (storing.populations() == plain.populations()).all()


def test_every_side_task_is_due_within_a_cycle() -> None:
    for every in (1, 2, 3, 10):
        storing = started(SideTask("macroscopics", every), config(scheme="aa"), small("box", "d2q9"))
        assert storing.cycle_steps % every == 0
        assert storing.cycle_steps % 2 == 0
        assert storing.parity_steps == 2


def test_what_is_saved_lies_on_the_host() -> None:
    simulation = started(SideTask("save", 2), config(scheme="push", storage="fp64"), small("box", "d2q9"))
    assert isinstance(simulation, Saving)
    simulation.host.fill(np.nan)
    simulation.step(1)
    assert np.isnan(simulation.host).all()
    simulation.step(1)
    assert (simulation.host == simulation.macroscopics.reshape(-1)).all()
    assert simulation.file.content() == simulation.host.tobytes()


def test_the_residual_compares_velocities_of_two_times() -> None:
    case, sample = small("channel", "d2q9"), config(scheme="push", storage="fp64")
    simulation = started(SideTask("residual", 4), sample, case)
    assert isinstance(simulation, Comparing)
    velocities = []
    for _ in range(2):
        simulation.step(3)
        velocities.append(simulation.macroscopic()[1])
        simulation.step(1)
    change, size = abs(velocities[1] - velocities[0]), abs(velocities[1])
    assert simulation.residual == pytest.approx(change.sum() / size.sum())


def test_a_flow_at_rest_has_no_residual() -> None:
    assert residual(np.zeros(8), np.zeros(8)) == float("inf")
    assert residual(np.ones(4), np.zeros(4)) == 1.0


def test_a_residual_is_of_absolute_values_over_all_parts() -> None:
    now, before = np.random.default_rng(1).normal(size=(2, 100_001)).astype(np.float32)
    assert residual(now, before) == pytest.approx(abs(now - before).sum() / abs(now).sum(), rel=1e-4)
    assert residual(np.array([3.0, -1.0]), np.array([1.0, 1.0])) == 1.0  # the norm L2 would give 0.89


@pytest.mark.parametrize("sample", [{"scheme": "ghost-cell", "block": (32, 4, 1)}, {"scheme": "push", "wrap": "ghost"}])
def test_ghost_cells_are_refreshed_twice_and_the_flow_stays(
    sample: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    case, chosen = replace(small("box", "d2q9"), domain=(64, 8, 1)), config(storage="fp64", **sample)
    simulation = started(SideTask("refresh"), chosen, case)
    launched: list[str] = []
    monkeypatch.setattr(simulation, "_launch_all", lambda bound: launched.extend(one.entry for one, *_ in bound))
    simulation.step(1)
    once = [launch.entry for launch in render(case, chosen).period[0]]
    assert any(entry.startswith("refresh_") for entry in once)
    assert launched == [entry for entry in once for _ in range(1 + entry.startswith("refresh_"))]
    assert verify_simulation(started(SideTask("refresh"), chosen, case)).passed


@pytest.mark.parametrize("domain", [(32, 9, 1), (32, 10, 1), (32, 6, 7)])
@pytest.mark.parametrize("scheme", ["pull", "push"])
def test_a_staged_domain_is_right_on_every_cell(
    domain: tuple[int, int, int], scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = box("d2q9" if domain[2] == 1 else "d3q19", "bgk", domain)
    simulation = started(SideTask("staged"), config(scheme=scheme, storage="fp64"), case)
    assert isinstance(simulation, Staged)
    assert verify_simulation(simulation).passed
    monkeypatch.setattr(side_tasks, "_runs", _without_neighbours)
    assert not verify_simulation(simulation).passed


def _without_neighbours(part: range, layers: int) -> list[tuple[slice, slice]]:
    """A halo that is never refreshed."""
    return [(slice(part.start, part.stop), slice(1, len(part) + 1))]


@pytest.mark.parametrize("cells", [1, 2])
def test_the_text_of_storing_kernels_compiles(cells: int) -> None:
    for scheme in ("push", "aa"):
        sample = cuda.Direct(block=(64, 1, 1), compute="fp64", storage="fp64", scheme=scheme, cells_per_thread=cells)
        program = with_side_task(render(box("d3q19", "bgk", (128, 128, 128)), sample), SideTask("macroscopics"))
        try:
            binary = compile_cuda(program, architecture="sm_90")
        except CompileError as error:
            pytest.fail(str(error))
        assert 0 < binary.resources.registers < 255
        assert not binary.resources.spill_bytes


CHOSEN = cpu.Direct(compute="fp64", row_offset=0, storage="fp64", vector_bits=0, wrap="select")


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    protocol = TimingProtocol(final_rounds=3, final_sample_s=1e-3, finalists=3, warmup_s=0.005, min_cpu_share=0.0)
    with Evaluator(box("d3q19", "bgk", (16, 8, 8)), "cpu", protocol) as opened:
        yield opened


def test_an_evaluator_measures_a_staged_domain_beside_a_resident_one(evaluator: Evaluator) -> None:
    """On the processor, where the copies are plain ones: the duty reaches the worker and is verified there."""
    resident, staged = evaluator.finals([CHOSEN, CHOSEN], {1: SideTask("staged")})
    for trial in (resident, staged):
        assert trial.outcome is Outcome.OK, trial.reason
        assert trial.proven
        assert trial.final
        assert trial.final.sites == evaluator.case.sites


def on_processor(side_task: SideTask, scheme: str) -> Reporting:
    case = small("cavity", "d3q19")
    chosen = cpu.Direct(compute="fp64", storage="fp64", scheme=scheme, row_offset=0, vector_bits=0, wrap="select")
    program = with_side_task(render(case, chosen), side_task)
    device = open_device("cpu")
    simulation = simulation_with(side_task, program, compiler_for(device.environment)(program), device, case)
    assert isinstance(simulation, Reporting)
    simulation.initialise(oracle.random_state(case))
    return simulation


@pytest.mark.parametrize("scheme", ["push", "aa"])
def test_a_processor_has_output_of_the_state_between_two_steps(scheme: str) -> None:
    simulation = on_processor(SideTask("save", 3), scheme)
    assert simulation.cycle_steps == 6, "populations or parities take turns"
    simulation.step(2)
    assert simulation.output.file.content() == b"", "it is due after the third step"
    simulation.step(5)
    saved = np.frombuffer(simulation.output.file.content()).reshape(4, *simulation.case.domain[::-1])
    again = on_processor(SideTask("save", 3), scheme)
    again.step(6)
    density, velocity = again.macroscopic()
    assert np.abs(saved[0] - density).max() < 1e-12
    assert np.abs(saved[1:] - velocity).max() < 1e-12
    assert (simulation.populations() != again.populations()).any(), "it has done one step more"
    again.step(1)
    assert (simulation.populations() == again.populations()).all(), "output does not change the flow"


def test_a_residual_of_a_processor_compares_velocities_of_two_times() -> None:
    simulation, velocities = on_processor(SideTask("residual", 4), "push"), []
    for _ in range(2):
        simulation.step(4)
        velocities.append(simulation.macroscopic()[1])
    change, size = abs(velocities[1] - velocities[0]), abs(velocities[1])
    assert simulation.output.residual == pytest.approx(change.sum() / size.sum())


def test_wrong_fields_of_a_processor_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = on_processor(SideTask("macroscopics", 2), "pull")
    simulation.step(2)
    simulation.check()
    wrong = simulation.output.fields().copy()
    wrong[1] += 1e-3
    monkeypatch.setattr(simulation.output, "fields", lambda: wrong)
    with pytest.raises(WrongResultError, match="u_x of the output is off"):
        simulation.check()


def test_an_evaluator_measures_output_beside_the_steps_alone(evaluator: Evaluator) -> None:
    tasks = {1: SideTask("save", 5), 2: SideTask("residual", 7)}
    trials = evaluator.finals([CHOSEN] * 3, tasks)
    for number, trial in enumerate(trials):
        assert trial.outcome is Outcome.OK, trial.reason
        assert trial.proven
        assert trial.final
        if number in tasks:
            assert not trial.final.steps_per_sample % tasks[number].every, "each sample has its outputs"
    assert len({trial.source_digest for trial in trials}) == 1, "a pass of its own writes the fields"


@pytest.mark.parametrize("kind", ["macroscopics", "save", "residual"])
def test_what_is_timed_of_a_processor_has_its_output(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = on_processor(SideTask(kind, 3), "push")
    outputs: list[int] = []
    monkeypatch.setattr(simulation, "_act", lambda: outputs.append(simulation.steps_done))

    def ticks(run: Callable[[], None]) -> float:
        """Take a second for each output, and no time for a step."""
        before = len(outputs)
        run()
        return float(len(outputs) - before)

    monkeypatch.setattr(simulation.device, "time_s", ticks)
    assert take(simulation, 12, TimingProtocol()).step_s * 12 == 4.0
    assert outputs == [3, 6, 9, 12]


@pytest.mark.parametrize("kind", ["macroscopics", "save", "residual"])
def test_a_side_task_that_is_due_after_many_steps_is_verified_in_few(kind: str) -> None:
    program = with_side_task(render(small("box", "d2q9"), config(scheme="push", storage="fp64")), SideTask(kind, 500))
    binary, protocol = compile_on_host(program), TimingProtocol()
    found = verify_and_measure(
        program,
        binary,
        PooledDevice(HostDevice()),
        MeasureRequest(path=Path(), full=True),
        protocol,
        print,
        SideTask(kind, 500),
    )
    assert found.outcome is Outcome.OK, found.reason


def test_host_memory_of_the_processor_is_its_own() -> None:
    array = open_device("cpu").host_empty(100, "float64")
    assert (array.size, array.dtype) == (100, np.float64)


def test_every_side_task_has_a_simulation(tmp_path: Path) -> None:
    case, sample = small("box", "d2q9"), config(scheme="push", storage="fp64")
    beads = replace(case, geometry="packing:fraction=0.3:radius=2")
    listed = config(family="sparse", scheme="push", storage="fp64", block=(32, 1, 1))
    samples = {kind: (listed, beads) if kind == "walls" else (sample, case) for kind in SIDE_TASKS}
    assert {type(started(SideTask(kind, 2), *of)) for kind, of in samples.items()} == {
        Storing,
        Saving,
        Comparing,
        Refreshing,
        Staged,
        Simulation,
    }
