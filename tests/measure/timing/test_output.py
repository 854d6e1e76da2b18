"""Output every n steps: the file holds the fields, the residual is that of the formula, and the cost is told."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.catalogue.config import parse_config
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.measure.timing import output as timing
from lbmtune.measure.timing.host_output import residual, residual_of_threads
from lbmtune.measure.timing.output import Outputs, check_fields, measure_output, measure_rates, outputs
from lbmtune.measure.timing.state import WrongResultError, excite
from lbmtune.measure.verification import oracle
from lbmtune.records.output import MACROSCOPICS, RESIDUAL, SAVE, Output, rounds_s, steps_apart
from lbmtune.runtime import Simulation
from tests.shim.device import COMPILER, HostDevice, compile_on_host

CASE = Case(
    "cavity", "d3q19", "bgk", (16, 8, 8), 1.6, faces=("wall",) * 5 + ("moving",), wall_velocity=(0.05, 0.0, 0.0)
)
CPU = "scheme=aa,storage=fp64,compute=fp64,threads=1"


def started(text: str = CPU, case: Case = CASE) -> Simulation:
    program = render(case, parse_config(text, "cpu"))
    simulation = Simulation(program, compile_cpu(program), open_cpu())
    simulation.initialise(oracle.random_state(case))
    return simulation


def test_the_file_holds_the_macroscopic_fields(tmp_path: Path) -> None:
    simulation = started()
    with outputs(simulation, open_cpu(), compile_cpu, tmp_path) as found:
        for steps in (3, 2):  # of either parity, and the file is replaced
            simulation.step(steps)
            found.save()
            saved = np.frombuffer(found.file.content(), np.float64).reshape(4, *CASE.domain[::-1])
            density, velocity = simulation.macroscopic()
            assert np.abs(saved[0] - density).max() < 1e-14
            assert np.abs(saved[1:] - velocity).max() < 1e-14
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not COMPILER, reason="g++ is not installed")
def test_the_file_of_a_cuda_kernel_with_flags_in_memory(tmp_path: Path) -> None:
    case = replace(CASE, flow="porous", geometry="blocks:fraction=0.3")
    program = render(case, parse_config("scheme=pull,flags=memory,block=16x4x1"))
    simulation = Simulation(program, compile_on_host(program), HostDevice())
    simulation.initialise(oracle.random_state(case))
    simulation.step(3)
    found = Outputs(simulation, HostDevice(), compile_on_host, tmp_path)
    found.save()
    saved = np.frombuffer(found.file.content(), np.float32).reshape(4, *case.domain[::-1])
    assert np.abs(saved[1:] - simulation.macroscopic()[1]).max() < 1e-6
    found.close()


def test_the_residual_is_of_the_velocities_of_two_outputs(tmp_path: Path) -> None:
    simulation, velocities = started(), []
    with outputs(simulation, open_cpu(), compile_cpu, tmp_path) as found:
        for _ in range(3):
            simulation.step(5)
            velocities.append(simulation.macroscopic()[1])
            found.compare()
        before, now = velocities[-2:]
        assert found.residual == pytest.approx(abs(now - before).sum() / abs(now).sum())


@pytest.mark.skipif(not COMPILER, reason="g++ is not installed")
def test_a_host_beside_the_device_compares_the_velocities_that_it_copied(tmp_path: Path) -> None:
    program = render(CASE, parse_config("scheme=aa,block=16x4x1"))
    simulation, velocities = Simulation(program, compile_on_host(program), HostDevice()), []
    simulation.initialise(oracle.random_state(CASE))
    with outputs(simulation, HostDevice(), compile_on_host, tmp_path) as found:
        for _ in range(3):
            simulation.step(2)
            velocities.append(simulation.macroscopic()[1])
            found.compare()
        before, now = velocities[-2:]
        assert found.residual == pytest.approx(abs(now - before).sum() / abs(now).sum(), rel=1e-4)
        assert found.residual_s > 0, "it is hidden behind the steps, as long as these take longer"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1, 16384, 50001])
def test_threads_compute_the_residual_of_the_host(dtype: str, size: int) -> None:
    random = np.random.default_rng(2)
    now, before = (random.uniform(-1, 1, size).astype(dtype) for _ in range(2))
    for threads in (1, 2):
        assert residual_of_threads(now, before, threads, "none") == pytest.approx(residual(now, before), rel=1e-6)
    assert residual_of_threads(0 * now, before, 1, "none") == float("inf")


MOMENTS = "family=moments-wavefront,steps=4,threads=1"


@pytest.mark.parametrize("text", [CPU, MOMENTS])
def test_the_cost_of_each_kind_is_measured(text: str, tmp_path: Path) -> None:
    wanted = Output(macroscopics=2, save=6, residual=5)
    case = CASE if text == CPU else box("d3q19", "regularised", (64, 16, 16))
    simulation = started(text, case)
    costs = measure_output(simulation, wanted, open_cpu(), compile_cpu, tmp_path)
    assert [one.kind for one in costs] == [MACROSCOPICS, SAVE, RESIDUAL]
    # between launches: of four steps, the next whole number of them
    assert [one.every for one in costs] == ([2, 6, 5] if text == CPU else [4, 8, 8])
    for one in costs:
        assert one.low_s <= one.event_s <= one.high_s
        assert one.step_s > 0
        assert 0 <= one.share < 1
    assert simulation.steps_done % simulation.program.steps == 0


def test_a_full_disk_ends_it_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    simulation, wanted = started(), Output(save=10)
    measure_output(simulation, wanted, open_cpu(), compile_cpu, tmp_path)  # its kernels are in the cache from now on
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device; choose a folder with room by --scratch"):
        measure_output(simulation, wanted, open_cpu(), compile_cpu, tmp_path)


@pytest.mark.skipif(not COMPILER, reason="g++ is not installed")
@pytest.mark.parametrize(
    ("geometry", "text"), [("", "scheme=aa"), ("blocks:fraction=0.4", "family=sparse,scheme=pull")]
)
def test_fields_are_checked_by_what_cupy_has_too(geometry: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy's `where` takes no plain truth value, and its arrays' `max` no initial value."""
    program = render(Case("box", "d3q19", "bgk", (16, 8, 8), 1.6, geometry=geometry), parse_config(text))
    simulation, where = Simulation(program, compile_on_host(program), HostDevice()), np.where

    def strict(condition: Any, *others: Any) -> Any:
        assert isinstance(condition, np.ndarray)
        return where(condition, *others)

    excite(simulation)
    with outputs(simulation, HostDevice(), compile_on_host, None) as found:
        fields = found.fields()
        monkeypatch.setattr(np, "where", strict)
        check_fields(simulation, fields)


def test_wrong_fields_are_no_output() -> None:
    simulation = started()
    excite(simulation)
    with outputs(simulation, open_cpu(), compile_cpu, None) as found:
        fields = found.fields()
        check_fields(simulation, fields)
        fields[2] += 1e-3
        with pytest.raises(WrongResultError, match=r"u_y of the output is off by 0\.001"):
            check_fields(simulation, fields)


def test_rates_are_those_of_this_machine(tmp_path: Path) -> None:
    rates = measure_rates(open_cpu(), 1 << 16, tmp_path)
    assert rates.folder == str(tmp_path)
    assert rates.copy_bytes_per_s is None, "the memory of a CPU is that of the host"
    assert min(rates.file_bytes_per_s, rates.residual_bytes_per_s, rates.pass_bytes_per_s or 0) > 0
    assert (rates.thread_pass_bytes_per_s or 0) > 0
    assert set(rates.pass_values_per_s) == {"groups", "cells", "list"}
    assert min(rates.pass_values_per_s.values()) > 0
    assert rates.threads == open_cpu().limits.cores


@pytest.mark.parametrize("event_s", [2e-4, 0.01, 0.4])
@pytest.mark.parametrize(("step_s", "every"), [(1e-4, 500), (1e-4, 20), (0.02, 100)])
def test_the_seconds_of_all_rounds_are_known_beforehand(
    monkeypatch: pytest.MonkeyPatch, event_s: float, step_s: float, every: int
) -> None:
    clock = SimpleNamespace(now_s=50.0)

    def spend(seconds: float) -> None:
        clock.now_s += seconds

    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: clock.now_s))
    simulation: Any = SimpleNamespace(
        device=SimpleNamespace(synchronize=lambda: None),
        program=SimpleNamespace(any_steps=True, steps=1),
        step=lambda steps: spend(steps * step_s),
    )
    output: Any = SimpleNamespace(kinds={SAVE: lambda: spend(event_s)}, residual=0.0, residual_s=0.0)
    output.kinds[SAVE]()  # whatever is made at first use
    cost = timing._measured(simulation, output, SAVE, every, step_s)
    assert cost.event_s == pytest.approx(event_s)
    assert cost.apart == steps_apart(event_s, step_s, every)
    assert clock.now_s - 50.0 == pytest.approx(rounds_s(event_s, step_s, every), rel=0.15)
    assert clock.now_s - 50.0 <= rounds_s(event_s, step_s, every) * (1 + 1e-9)
