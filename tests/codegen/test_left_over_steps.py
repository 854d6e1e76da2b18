"""Any number of time steps from kernels whose launches do several: a kernel of one step does what is left over."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lbmtune
from lbmtune.backend.protocol import Binary, CompileError, Device
from lbmtune.catalogue.config import KernelConfig, cpu, cuda
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.catalogue.problem.geometry import solid
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.render import render, render_single
from lbmtune.errors import InputError
from lbmtune.export import best, read_best, write_best
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.verify import error_bound, verify_single
from lbmtune.measure.workers import one_kernel
from lbmtune.measure.workers.messages import MeasureRequest
from lbmtune.measure.workers.one_kernel import verify_and_measure
from lbmtune.records import Resources, Verification
from lbmtune.records.best_json.document import encode_best
from lbmtune.records.spec import TimingProtocol
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.winner import verification_table
from lbmtune.runtime import Simulation
from lbmtune.runtime import load as loading
from tests.shim.device import COMPILER, HostDevice, HostExecutable, compile_on_host
from tests.support.conformance.choices import case_of
from tests.support.kernels.cpu_cases import InterpretingDevice
from tests.support.studies import made_up_records as made

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
LIMITS = Limits(shared_bytes_per_block=227 << 10, asynchronous=True, cores=8)
MOMENTS: dict[str, Any] = {"representation": "moments", "chunk_planes": 5, "plane_fetch": "none", "steps": 3}
POPULATIONS: dict[str, Any] = {"chunk_planes": 5, "steps": 2}
FLAT: dict[str, Any] = {"block": (32, 2, 1), "cells_per_thread": 2, "pack": 2, "plane_fetch": "registers", "steps": 6}


LONG = "in the plane"
"""The sample that is run for longer: it takes the least time for a step."""


def small(flow: str, lattice: str, collision: str) -> Case:
    domain = (38, 11, 1) if lattice == "d2q9" else (11, 9, 6)
    return replace(case_of(flow, lattice, collision), domain=domain)


blocked = cuda.TemporalBlocking
SAMPLES: dict[str, tuple[Case, KernelConfig]] = {
    "moments": (small("box", "d3q19", "regularised"), blocked(**MOMENTS, rows=2, warp_sync="neighbours")),
    "moments, walls": (
        small("grinder", "d3q19", "regularised"),
        blocked(**{**MOMENTS, "plane_fetch": "registers"}, rows=2),
    ),
    "populations": (small("box", "d3q19", "bgk"), blocked(**POPULATIONS, pack=2, plane_fetch="cp_async")),
    "populations, walls": (small("cavity", "d3q19", "bgk"), blocked(**POPULATIONS, rows=2)),
    "in the plane": (small("grinder", "d2q9", "regularised"), blocked(**{**MOMENTS, **FLAT})),
    "in the plane, solids": (small("solids", "d2q9", "trt"), blocked(**{**POPULATIONS, **FLAT}, flags="memory")),
}


def run(simulation: Simulation, at_once: Sequence[int]) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Steps so far, the state of the simulation, and what the oracle has, of the fluid cells."""
    case = simulation.case
    state, fluid = oracle.random_state(case), ~solid(case) if case.geometry else slice(None)
    simulation.initialise(state)
    for taken, steps in zip(at_once, accumulate(at_once), strict=True):
        simulation.step(taken)
        for _ in range(taken):
            state = oracle.step(state, case)
        yield steps, simulation.populations()[:, fluid], simulation.kept.seen(state)[:, fluid]


def on_host(program: Program) -> Simulation:
    single = render_single(program)
    assert single
    return Simulation(program, compile_on_host(program), HostDevice(), single=lambda: (single, compile_on_host(single)))


@needs_compiler
@pytest.mark.parametrize("name", SAMPLES)
def test_any_number_of_steps(name: str) -> None:
    case, config = SAMPLES[name]
    assert broken(case, config, LIMITS) is None
    for steps, found, expected in run(on_host(render(case, config)), (1, 4, 7, 100 if name == LONG else 3)):
        assert np.abs(found - expected).max() <= error_bound(case, config, steps), steps


def test_any_number_of_steps_on_a_cpu() -> None:
    case = replace(box("d2q9", "regularised", (16, 5, 1), 1.3), force=(1e-3, -5e-4, 0.0))
    config = cpu.MomentsWavefront(tile=(8, 3, 1), steps=3, storage="fp64", compute="fp64", vector_bits=0)
    program = render(case, config)
    single, empty = render_single(program), Binary(b"", "", Resources())
    assert single
    simulation = Simulation(program, empty, InterpretingDevice(), single=lambda: (single, empty))
    for steps, found, expected in run(simulation, (1, 4, 5)):
        assert np.abs(found - expected).max() <= error_bound(case, config, steps), steps


def test_one_step_programs_need_none() -> None:
    case = box("d3q19", "bgk", (64, 8, 4))
    assert render_single(render(case, cuda.Direct())) is None
    several = cpu.Wavefront(tile=(3, 2))
    assert render_single(render(case, several)) is None  # its launches do as many as they are asked for


class Watched:
    """An executable that notes what is launched: which kernel, and the buffer that it reads from."""

    resources = Resources()

    def __init__(self, program: Program, seen: list[tuple[int, int]]) -> None:
        self._steps, self._seen, self._graph = program.steps, seen, False

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        self._seen.append((self._steps, arguments[0].ctypes.data))

    def recorded(self, run: Any) -> Any:
        return run


@pytest.mark.parametrize("launch", ["call", "graph"])
def test_roles_follow_launches(launch: str) -> None:
    case, config = SAMPLES["moments"]
    program = render(case, replace(config, launch=launch))  # type: ignore[type-var]
    seen: list[tuple[int, int]] = []

    class Watching(HostDevice):
        def load(self, program: Program, binary: Binary) -> Any:
            return Watched(program, seen)

    single, asked = render_single(program), []
    assert single

    def compiled() -> tuple[Program, Binary]:
        asked.append(1)
        return single, Binary(b"", "", Resources())

    simulation = Simulation(program, Binary(b"", "", Resources()), Watching(), single=compiled)
    simulation.initialise(oracle.random_state(case))
    simulation.step(6)
    simulation.prepare(6)
    assert not asked  # until it is needed
    simulation.prepare(7)
    assert asked
    for steps in (1, 20, 2, 9):
        simulation.step(steps)
    assert [steps for steps, _ in seen] == [3, 3, 1, *[3] * 6, 1, 1, 1, 1, 3, 3, 3]
    both = [simulation.buffers[name].ctypes.data for name in ("f0", "f1")]
    assert [at for _, at in seen] == [both[n % 2] for n in range(len(seen))]
    assert simulation.state.ctypes.data == both[len(seen) % 2]
    assert (simulation.steps_done, len(asked)) == (38, 1)
    simulation.initialise(oracle.random_state(case))
    simulation.step(1)
    assert seen[-1] == (1, both[0])


@needs_compiler
def test_verification_takes_both_kernels_in_turn() -> None:
    case, config = SAMPLES["populations, walls"]
    program = render(case, config)
    single = render_single(program)
    assert single
    compiled = compile_on_host(program)
    assert verify_single(program, compiled, HostDevice(), (single, compile_on_host(single))).passed
    assert "m[3] = current[3]" in single.source
    faulty = replace(single, source=single.source.replace("m[3] = current[3]", "m[3] = current[4]", 1))
    assert not verify_single(program, compiled, HostDevice(), (faulty, compile_on_host(faulty))).passed


@needs_compiler
def test_a_finalist_is_verified_with_its_kernel_of_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lbmtune.measure.workers.one_kernel.compiler_for", lambda _: compile_on_host)
    case, config = SAMPLES["moments"]
    program = render(case, config)
    work = MeasureRequest(path=Path(), full=True)
    found = verify_and_measure(
        program, compile_on_host(program), PooledDevice(HostDevice()), work, TimingProtocol(), lambda _: None
    )
    assert found.verification
    assert found.verification.passed
    assert found.verification.single
    assert found.verification.single.passed


@needs_compiler
@pytest.mark.parametrize("passed", [True, False])
def test_a_kernel_of_one_step_is_proved_once_whatever_the_domain(passed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is compared on the same small domain; what failed is compared again."""
    case, config = SAMPLES["moments"]
    done: list[tuple[int, int, int]] = []

    def compared(program: Program, *_: object) -> Verification:
        done.append(program.case.domain)
        return Verification(
            error=float(not passed),
            bound=0.5,
            worst_cell=(0, 0, 0),
            worst_direction=0,
            worst_steps=1,
            domains=((8, 8, 8),),
        )

    monkeypatch.setattr(one_kernel, "compiler_for", lambda _: lambda program: Binary(b"", program.digest, Resources()))
    monkeypatch.setattr(one_kernel, "verify_single", compared)
    device = PooledDevice(HostDevice())
    for domain in ((16, 12, 12), (20, 14, 12)):
        program = render(replace(case, domain=domain), config)
        found = one_kernel._verify_single(program, Binary(b"", program.digest, Resources()), device)
        assert found
        assert found.passed is passed
    assert len(done) == (1 if passed else 2)


# best.json


def recorded(name: str) -> StudyRecord:
    """A study of one trial, of moments or several steps."""
    case, config = SAMPLES[name]
    study = made.gpu_study()
    winner = study.ranked[0]
    trial = replace(winner, config=config.flat(), key=config.key, source_digest=render(case, config).digest, final=None)
    return replace(study, header=replace(study.header, spec=replace(study.header.spec, case=case)), trials=(trial,))


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Kernels for a GPU are compiled for the host; the programs that were."""
    compiled: list[Program] = []

    def compiler(program: Program) -> Binary:
        compiled.append(program)
        return compile_on_host(program)

    monkeypatch.setattr(loading, "open_device", lambda _: HostDevice())
    monkeypatch.setattr(loading, "compiler_for", lambda _: compiler)
    return compiled


@needs_compiler
@pytest.mark.filterwarnings("ignore:this kernel was tuned")
def test_a_flow_takes_any_number_of_steps(tmp_path: Path, hosted: list[Program]) -> None:
    path = tmp_path / "best.json"
    write_best(recorded("moments"), path)
    flow = lbmtune.load(path)
    state = flow.populations()
    for steps in (3, 1, 4, 2):
        flow.step(steps)
        for _ in range(steps):
            state = oracle.step(state, flow.case)
        assert len(hosted) == (1 if steps == 3 else 2)  # compiled when it is first needed
        np.testing.assert_allclose(flow.velocity(), oracle.velocity(state, flow.case), atol=1e-6)
    assert flow.steps_done == 10


@needs_compiler
@pytest.mark.filterwarnings("ignore:this kernel was tuned")
def test_seconds_of_a_step_are_of_whole_launches(
    tmp_path: Path, hosted: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    def time_s(self: Device, run: Any) -> float:
        run()
        return 6.0

    monkeypatch.setattr(HostDevice, "time_s", time_s)
    write_best(recorded("moments"), tmp_path / "best.json")
    flow = lbmtune.load(tmp_path / "best.json")
    assert flow.time_per_step_s(4) == 1.0
    assert (flow.steps_done, len(hosted)) == (6, 1)


@needs_compiler
@pytest.mark.filterwarnings("ignore:this kernel was tuned")
def test_a_file_from_before_does_whole_launches(tmp_path: Path, hosted: list[Program]) -> None:
    path = tmp_path / "best.json"
    write_best(recorded("moments"), path)
    values = json.loads(path.read_text())
    del values["kernel"]["single"]
    path.write_text(json.dumps(values))
    flow = lbmtune.load(path)
    flow.step(6)
    with pytest.raises(
        InputError, match=r"steps=7 is not .*multiple of 3.: it does 3 steps per launch; lbmtune export"
    ):
        flow.step(7)
    assert flow.steps_done == 6
    assert len(hosted) == 1


@pytest.mark.filterwarnings("ignore:this kernel was tuned")
def test_a_kernel_of_one_step_that_does_not_compile_gets_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiler(program: Program) -> Binary:
        if program.steps == 1:
            raise CompileError("no such instruction")
        return Binary(b"", "", Resources())

    monkeypatch.setattr(loading, "open_device", lambda _: _Idle())
    monkeypatch.setattr(loading, "compiler_for", lambda _: compiler)
    write_best(recorded("moments"), tmp_path / "best.json")
    flow = lbmtune.load(tmp_path / "best.json")
    flow.step(3)
    with pytest.raises(InputError, match="does not compile here: no such instruction; run a study"):
        flow.step(1)


class _Idle(HostDevice):
    def load(self, program: Program, binary: Binary) -> Any:
        return Watched(program, [])


def test_the_text_of_one_step_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "best.json"
    write_best(recorded("moments"), path)
    values = json.loads(path.read_text())
    values["kernel"]["single"]["source"] += " "
    path.write_text(json.dumps(values))
    with pytest.raises(InputError, match="the text of its kernel has not the digest"):
        read_best(path)


def test_a_kernel_of_one_step_that_is_wrong_is_left_out() -> None:
    study = recorded("moments")
    assert best(study).kernel.single
    (trial,) = study.trials
    assert trial.verification

    def found(error: float) -> Verification:
        assert trial.verification
        return replace(trial.verification, single=replace(trial.verification, error=error))

    for error in (0.0, 1.0):
        one = best(replace(study, trials=(replace(trial, verification=found(error)),)))
        assert (one.kernel.single is None) == (error == 1.0)
        assert one.verification == found(error)
        assert b'"single"' in encode_best(one)
        said = dict(verification_table(one.verification))["kernel of one step"]
        assert said.startswith("passed, alternating" if error == 0.0 else "failed, alternating")
    assert "kernel of one step" not in dict(verification_table(trial.verification))


# docs/guide/best-json.md, followed to the letter


@needs_compiler
@pytest.mark.parametrize("name", ["moments, walls", "populations", "in the plane"])
def test_the_page_holds_for_kernels_of_several_steps(tmp_path: Path, name: str) -> None:
    """Launches by index, roles by launch, the rest by the second text: what the page says and nothing else."""
    case, config = SAMPLES[name]
    write_best(recorded(name), tmp_path / "best.json")
    file = json.loads((tmp_path / "best.json").read_text())
    kernel, storage = file["kernel"], file["storage"]
    start = Simulation(render(case, config), compile_on_host(render(case, config)), HostDevice())
    start.initialise(oracle.random_state(case))
    device = HostDevice()
    buffers = {b["name"]: device.empty(b["elements"], b["dtype"]) for b in kernel["buffers"]}
    buffers["f0"][...] = start.buffers["f0"]
    loaded = [_Compiled(case, config, text, launches) for text, launches in _texts(kernel)]

    n, rest = 0, 2 * kernel["steps"] + kernel["steps"] - 1
    for compiled, size in zip(loaded, (kernel["steps"], 1), strict=True):
        while rest >= size:
            f = [buffers[("f0", "f1")[(n + k) % 2]] for k in (0, 1)]
            compiled.advance(n, kernel, f, case)
            n, rest = n + 1, rest - size
    assert n == 2 + kernel["steps"] - 1

    expected = oracle.random_state(case)
    for _ in range(3 * kernel["steps"] - 1):
        expected = oracle.step(expected, case)
    start.buffers["f0"][...] = buffers[("f0", "f1")[n % 2]]
    np.testing.assert_allclose(start.populations(), start.kept.seen(expected), atol=1e-6)
    assert storage["scale"] == 1.0


def _texts(kernel: dict[str, Any]) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    yield kernel, kernel["period"]
    yield kernel["single"], [kernel["single"]["launches"]]


class _Compiled:
    """A text of the file with its launches."""

    def __init__(self, case: Case, config: KernelConfig, text: dict[str, Any], period: list[Any]) -> None:
        self.period = period
        launches = tuple(tuple(self._launch(one) for one in step) for step in period)
        # the shim asks a program for the names and types of arguments; what is launched is of the file
        program = Program("cuda", case, config, text["source"], tuple(text["options"]), launches)
        self._executable = HostExecutable(program, compile_on_host(program))

    def _launch(self, one: dict[str, Any]) -> Launch:
        return Launch(one["entry"], tuple(one["arguments"]), tuple(one["block"]), shared_bytes=one["shared_bytes"])

    def advance(self, n: int, kernel: dict[str, Any], f: list[Any], case: Case) -> None:
        values: dict[str, Any] = {"f0": f[0], "f1": f[1]}
        for name, argument in kernel["arguments"].items():
            values[name] = np.dtype(argument["type"]).type(argument["value"])
        extents = dict(zip(("nx", "ny", "nz"), case.domain, strict=True))
        for one in self.period[n % len(self.period)]:
            x, y, z = (int(eval(_python(formula), {}, extents)) for formula in one["grid_formula"])
            self._executable.launch(self._launch(one), (x, y, z), [values[name] for name in one["arguments"]])


def _python(formula: str) -> str:
    """A formula in C, whose only operator that Python lacks is the choice."""
    condition, _, rest = formula.partition("?")
    if rest:
        chosen, _, other = rest.partition(":")
        return f"({_python(chosen)}) if ({_python(condition)}) else ({_python(other)})"
    return formula.replace("/", "//")
