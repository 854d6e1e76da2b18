"""Kernels of the loss breakdown: the same text without collision, without what it reads, or without what it writes."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytest

from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.collisions import NO_COLLISION
from lbmtune.catalogue.config import cpu
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.cuda.shared.ablation import ablated, can_be_ablated
from lbmtune.codegen.probes import RUNS
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.measure.calibration.microbench import Rate
from lbmtune.measure.profiling import loss_breakdown as losses
from lbmtune.measure.profiling.loss_breakdown import provable
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.timing.protocol import measure
from lbmtune.measure.timing.state import excite
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.verify import verify
from lbmtune.model.machine.toml import read_machine
from lbmtune.records import Measurement, Resources, Verification
from lbmtune.records.profile import COLLISION, COPY, DATASHEET, KERNEL, READS, STREAMING, STREAMS, WRITES
from lbmtune.records.spec import TimingProtocol
from lbmtune.runtime import Simulation
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels.compiled import ptx
from tests.support.kernels.cuda_samples import config, flows, needs_nvrtc
from tests.support.paths import RECORDED
from tests.support.seconds import close

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
_MARCH = {"family": "temporal-blocking", "block": (32, 6, 1), "chunk_planes": 5, "plane_fetch": "none"}
KINDS: dict[str, dict[str, Any]] = {
    "one step": {"scheme": "pull", "cells_per_thread": 2},
    "16 bits": {"scheme": "push", "storage": "fp16s", "cells_per_thread": 2},
    "in place": {"scheme": "aa", "layout": "aosoa", "load_hint": "streaming"},
    "columns ahead": {"z_cells": 3, "prefetch_cells": 1},
    "listed": {"family": "sparse", "scheme": "esoteric-twist", "block": (32, 1, 1)},
    "several steps": _MARCH,
    "moments": {"representation": "moments", **_MARCH, "plane_fetch": "cp_async"},
    "flat": {"representation": "moments", **_MARCH, "block": (32, 2, 1)},
}

QUICK = ("16 bits", "moments")
"""Of these every run of the tests; of the others the slow ones."""
EACH = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in KINDS]


def case(name: str, collision: str = "regularised") -> Case:
    return flows("d2q9" if name == "flat" else "d3q19", collision)["box" if "step" in name else "channel"]


def rendered(name: str, collision: str = "regularised") -> Program:
    chosen = config(**KINDS[name])
    assert broken(case(name, collision), chosen, Limits(shared_bytes_per_block=227 << 10, asynchronous=True)) is None
    return render(case(name, collision), chosen)


@needs_compiler
@pytest.mark.parametrize("name", EACH)
def test_without_collision_populations_stream(name: str) -> None:
    """What comes out is the oracle's streaming, walls included, and the relaxation rate is no argument any more."""
    program = provable(rendered(name, NO_COLLISION))
    assert not any("omega" in launch.arguments for step in program.period for launch in step)
    found = verify(program, compile_on_host(program), HostDevice(), 1)
    assert found.passed, found


def test_the_oracle_without_collision_streams() -> None:
    here = box("d2q9", NO_COLLISION, (5, 4, 1))
    f = oracle.random_state(here)
    east = here.stencil.velocities.index((1, 0, 0))
    assert np.array_equal(oracle.step(f, here)[east], np.roll(f[east], 1, axis=2))


def test_cpu_kernels_stream_too() -> None:
    text = render(box("d2q9", NO_COLLISION, (64, 48, 1)), cpu.Direct(vector_bits=0)).source
    assert "omega" not in text
    assert "g3 = f3" in text


def test_no_study_may_ask_for_it() -> None:
    from lbmtune.files.studyfile import load_study

    with pytest.raises(InputError, match="unknown collision 'none'"):
        load_study("quick", ["case.collision=none"])


@needs_compiler
@pytest.mark.parametrize("name", EACH)
def test_what_is_taken_out_is_not_done(name: str) -> None:
    """Who writes nothing leaves the state; who reads nothing leaves sound values where there was poison."""
    full, free = rendered(name), rendered(name, NO_COLLISION)
    assert can_be_ablated(full)
    for program in (ablated(free, reads=True, writes=False), ablated(full, reads=False, writes=False)):
        simulation = on_host(program)
        excite(simulation)
        before = {key: value.copy() for key, value in simulation.buffers.items()}
        simulation.step(simulation.parity_steps)
        assert all(np.array_equal(before[key], value) for key, value in simulation.buffers.items())
    writes = on_host(ablated(free, reads=False, writes=True))
    writes.buffers["f0"].fill(0)  # a march still reads a few rows, again and again
    writes.step(writes.parity_steps)
    assert np.isfinite(np.asarray(writes.populations())).all()


def on_host(program: Program) -> Simulation:
    small = replace(program.case, domain=program.config.awkward_domain(program.case))
    return Simulation(program, compile_on_host(program), HostDevice(), small)


@needs_nvrtc
@pytest.mark.parametrize("name", ["one step", "moments"])
def test_all_else_is_as_in_the_kernel(name: str) -> None:
    """By the compiler's own account: as many loads, stores and operations as the kernel has of what was left in."""
    full, free = rendered(name), rendered(name, NO_COLLISION)
    whole, streams = counts(full), counts(free)
    reads, writes, collides = (
        counts(ablated(free, reads=True, writes=False)),
        counts(ablated(free, reads=False, writes=True)),
        counts(ablated(full, reads=False, writes=False)),
    )
    assert streams["ld"] == reads["ld"] == whole["ld"]
    assert streams["st"] == writes["st"] == whole["st"]
    if name == "moments":
        assert streams["arithmetic"] < whole["arithmetic"]
    else:
        assert streams["arithmetic"] == 0
        assert writes["ld"] == collides["ld"] == 0
        assert collides["arithmetic"] >= whole["arithmetic"]


def counts(program: Program) -> dict[str, int]:
    text = ptx(program)
    patterns = {
        "ld": r"ld\.global|cp\.async\.ca",
        "st": r"st\.global",
        "arithmetic": r"\b(fma|mul|add|sub)\.[a-z.]*f32",
    }
    return {name: len(re.findall(pattern, text)) for name, pattern in patterns.items()}


def test_kernels_of_several_launches_have_no_parts() -> None:
    assert not can_be_ablated(render(flows("d2q9", "bgk")["box"], config(scheme="push", wrap="ghost")))
    assert not can_be_ablated(render(box("d2q9", "bgk", (64, 48, 1)), cpu.Direct(vector_bits=0)))


@needs_nvrtc
def test_line_numbers_lead_to_the_text_on_disk(tmp_path: Any) -> None:
    from lbmtune.measure.profiling.profiler_target import compiled, text_on_disk

    program = rendered("one step")
    text = text_on_disk(program, tmp_path)
    assert "#line" not in text.read_text()
    assert text.name == f"{program.config.key}.cu"

    class Hopper:
        backend, architecture = "cuda", "sm_90"

    with_lines, plain = (compiled(program, Hopper(), folder) for folder in (tmp_path, None))  # type: ignore[arg-type]
    for part in (text.name, str(text.parent)):
        assert part.encode() in with_lines.image
        assert part.encode() not in plain.image
    assert with_lines.resources.registers == plain.resources.registers


class TimedHost(HostDevice):
    """The host with a clock, and memory that a data sheet knows."""

    def time_s(self, run: Callable[[], None]) -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    def slices_s(self, run: Callable[[], None], count: int, look: Callable[[], None]) -> list[float]:
        found = []
        for _ in range(count):
            found.append(self.time_s(run))
            look()
        return found

    def datasheet_bytes_per_s(self) -> float:
        return 4e9


@needs_compiler
def test_the_losses_of_a_cuda_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rungs and parts, on the host; copies alone are made up."""
    monkeypatch.setattr(losses, "measure_copy", lambda *_: Rate(2e9, 0.01))
    monkeypatch.setattr(losses._GpuLosses, "_streams", lambda *_: Rate(1e9, 0.01))
    monkeypatch.setattr(losses, "compiler_for", lambda _: compile_on_host)
    monkeypatch.setattr(losses, "rate", lambda device, run, moved: Rate(moved / device.time_s(run), 0.0))
    timed: list[str] = []
    verified: list[str] = []

    def noted(simulation: Simulation, protocol: TimingProtocol) -> Measurement:
        timed.append(simulation.program.case.collision)
        return measure(simulation, protocol)

    def proven(program: Program, *rest: Any) -> Verification:
        verified.append(program.case.collision)
        return verify(program, *rest)

    monkeypatch.setattr(losses, "measure", noted)
    monkeypatch.setattr(losses, "verify", proven)
    machine = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    small = box("d2q9", "bgk", (64, 24, 1))
    chosen = config(scheme="pull", block=(32, 2, 1))
    asked = losses.ProfileRequest(
        small, chosen, machine, TimingProtocol(verify_periods=1, max_samples=6, sustained_s=0.1)
    )
    found = losses.measure_losses(TimedHost(), asked, lambda _: None)
    assert [one.name for one in found.rungs] == [DATASHEET, COPY, STREAMS, STREAMING, KERNEL]
    assert timed == [NO_COLLISION, "bgk"], "the one without collision is the rung above"
    assert set(verified) == {NO_COLLISION, "bgk"}, "what is timed is right"
    assert [one.name for one in found.apart] == [READS, WRITES, COLLISION]
    assert found.rung(DATASHEET).seconds == found.rung(DATASHEET).model_s == pytest.approx(72 / 4e9)
    assert found.rung(COPY).seconds == pytest.approx(72 / 2e9)
    assert found.rung(COPY).model_s == pytest.approx(72 / machine.copy_bytes_per_s)
    assert found.rung(STREAMS).model_s == close(72 / machine.calibration.runs_bytes_per_s["4"])  # type: ignore[union-attr]
    assert found.counters.source == "no counters: they were not asked for"
    assert sum(loss.measured for loss in found.losses) == pytest.approx(
        1 - found.rungs[-1].mlups / found.rungs[0].mlups
    )
    brief = losses.measure_losses(PooledDevice(TimedHost()), replace(asked, brief=True), lambda _: None)
    assert [one.name for one in (*brief.rungs, *brief.apart)] == [one.name for one in (*found.rungs, *found.apart)]
    assert brief.rung(COPY).seconds == pytest.approx(72 / machine.copy_bytes_per_s), "by the description"
    assert brief.rung(COPY).spread is None
    assert (found.sustained is None, brief.sustained is None) == (False, True)


class Copied(NamedTuple):
    """What a copy of streams was asked to do. options: as defined for the compiler."""

    options: dict[str, str]
    blocks: int
    threads: int
    in_place: bool
    elements: tuple[int, int]
    accesses: int


class Copier(TimedHost):
    """Copies of streams in NumPy, which are noted."""

    def __init__(self) -> None:
        self.asked: list[Copied] = []
        self.options: dict[str, str] = {}
        self.resources = Resources()

    def load(self, program: Program, binary: Binary) -> Any:
        self.options = dict(option[2:].split("=") for option in program.options if option.startswith("-D"))
        return self

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Any) -> None:
        assert launch.entry == RUNS
        source, target, accesses = arguments
        sizes = source.nbytes, target.nbytes
        same = source is target
        self.asked.append(Copied(self.options, grid[0], launch.block[0], same, sizes, int(accesses)))
        target[:] = source


@pytest.mark.parametrize(
    ("axes", "access", "run", "arrays"),
    [
        ({"scheme": "pull"}, "unsigned int", 0, 2),
        ({"scheme": "aa"}, "unsigned int", 0, 1),
        ({"scheme": "pull", "block": (32, 32, 1)}, "unsigned int", 0, 2),
        ({"scheme": "pull", "cells_per_thread": 4}, "uint4", 0, 2),
        ({"scheme": "aa", "layout": "aosoa", "width": 32}, "unsigned int", 32, 1),
        ({"scheme": "pull", "layout": "aosoa", "width": 32, "storage": "fp16s"}, "unsigned short", 32, 2),
    ],
    ids=str,
)
def test_the_copy_of_streams_moves_what_the_kernel_does(
    axes: dict[str, Any], access: str, run: int, arrays: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every value of 9 directions is read and written once, by its accesses, in its runs, in place or elsewhere."""
    moved: list[float] = []

    def noted(device: Copier, run: Callable[[], None], moved_bytes: float) -> Rate:
        moved.append(moved_bytes)
        run()
        return Rate(moved_bytes, 0.0)

    monkeypatch.setattr(losses, "rate", noted)
    cells, chosen = (64, 24, 1), config(**{"block": (32, 2, 1), **axes})
    machine = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    asked = losses.ProfileRequest(box("d2q9", "bgk", cells), chosen, machine, TimingProtocol())
    device = Copier()
    one = losses._GpuLosses(device, lambda _: Binary(b"", "", Resources()), asked, lambda _: None)  # type: ignore[arg-type]
    assert one._inputs
    one._streams()
    values = 9 * 64 * 24
    size = 2 if "storage" in axes else 4
    assert moved == [2 * values * size]
    (found,) = device.asked
    assert (found.options["STREAMS"], found.options["ACCESS"], int(found.options["RUN"])) == ("9", access, run)
    assert found.in_place == (arrays == 1)
    assert found.threads == min(prod(chosen.block), 512), "more have no room for the registers of a wide copy"
    assert set(found.elements) == {values * size}
    assert 9 * found.accesses * {"unsigned int": 4, "uint4": 16, "unsigned short": 2}[access] == values * size
    assert (found.blocks - 1) * found.threads < found.accesses <= found.blocks * found.threads


def test_a_copy_of_streams_that_moves_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "rate", lambda *_: Rate(1e9, 0.0))  # it never runs
    machine = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    asked = losses.ProfileRequest(box("d2q9", "bgk", (64, 24, 1)), config(block=(32, 2, 1)), machine, TimingProtocol())
    one = losses._GpuLosses(Copier(), lambda _: Binary(b"", "", Resources()), asked, lambda _: None)  # type: ignore[arg-type]
    assert one._inputs
    with pytest.raises(RuntimeError, match="did not move what it should"):
        one._streams()


def test_a_timed_level_has_the_spread_of_its_samples_and_whether_it_was_disturbed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measurement = Measurement(
        mlups=1000.0,
        ci_low_mlups=980.0,
        ci_high_mlups=1040.0,
        bandwidth_bytes_per_s=1e9,
        bytes_per_update=72.0,
        samples_s=(1e-3,),
        steps_per_sample=1,
        sites=1000,
        disturbed=True,
    )
    monkeypatch.setattr(losses, "measure", lambda *_: measurement)
    monkeypatch.setattr(losses._LossBreakdown, "_simulation", lambda *_: None)
    small, chosen = box("d2q9", "bgk", (64, 24, 1)), config(block=(32, 2, 1))
    machine = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    asked = losses.ProfileRequest(small, chosen, machine, TimingProtocol())
    one = losses._GpuLosses(TimedHost(), compile_on_host, asked, lambda _: None)  # type: ignore[arg-type]
    made = losses._Compiled(render(small, chosen), Binary(b"", "", Resources(registers=40)))
    found = one._timed(KERNEL, made)
    assert (found.name, found.seconds, found.disturbed) == (KERNEL, close(1e-9), True)
    assert found.spread == pytest.approx(0.03)
    assert found.resources == Resources(registers=40)


@needs_compiler
def test_kernels_with_parts_taken_out_are_of_the_kernel_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collision alone is the whole kernel's, and a step of each part counts as an update of each cell."""
    taken: list[tuple[str, Program]] = []
    moved: list[float] = []

    def noted(device: TimedHost, run: Callable[[], None], moved_bytes: float) -> Rate:
        run()
        moved.append(moved_bytes)
        return Rate(1.0, 0.0)

    monkeypatch.setattr(losses, "rate", noted)
    monkeypatch.setattr(losses, "ablated", lambda program, **parts: note(taken, program, **parts))
    small, chosen = box("d2q9", "bgk", (64, 24, 1)), config(scheme="aa", block=(32, 2, 1))
    machine = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    asked = losses.ProfileRequest(small, chosen, machine, TimingProtocol())
    one = losses._GpuLosses(TimedHost(), compile_on_host, asked, lambda _: None)  # type: ignore[arg-type]
    full, free = (render(replace(small, collision=name), chosen) for name in ("bgk", NO_COLLISION))
    assert [rung.name for rung in one._ablations(full, free)] == [READS, WRITES, COLLISION]
    assert [(parts, program.case.collision) for parts, program in taken] == [
        *((parts, NO_COLLISION) for parts in ("reads", "writes")),
        ("", "bgk"),
    ]
    assert moved == [2 * 64 * 24] * 3, "both parities of AA"


def note(taken: list[tuple[str, Program]], program: Program, **parts: bool) -> Program:
    taken.append((" ".join(name for name, kept in parts.items() if kept), program))
    return ablated(program, **parts)
