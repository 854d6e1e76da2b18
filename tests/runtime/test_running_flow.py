"""A flow that runs: values of launch arguments change between steps, and moments tell density and velocity."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.boundaries.second_order import Walls, link_count
from lbmtune.catalogue.config import CpuConfig, KernelConfig, cpu, cuda
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, porous
from lbmtune.catalogue.problem.geometry import solid
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render, render_single
from lbmtune.errors import InputError
from lbmtune.export import best
from lbmtune.measure.verification import oracle
from lbmtune.records import Resources
from lbmtune.runtime import Simulation, moments
from lbmtune.runtime.solver import Solver
from lbmtune.runtime.states import state_of, summed
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels.cpu_cases import InterpretingDevice
from tests.support.studies import made_up_records as made

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
PRECISE = {"storage": "fp64", "compute": "fp64"}
TILES = cuda.TemporalBlocking(representation="moments", chunk_planes=5, plane_fetch="none", steps=3, **PRECISE)
FORCED = replace(box("d3q19", "regularised", (11, 7, 6), 1.3), force=(1e-3, -5e-4, 2e-4))
LID = cavity("d2q9", "trt", (8, 6, 1), 1.4)


def flow_of(case: Case, config: KernelConfig) -> tuple[Solver, list[Program]]:
    """A flow on the host, and what was compiled for it beside its own kernel."""
    study, program = made.gpu_study(), render(case, config)
    trial = replace(study.ranked[0], config=config.flat(), key=config.key, source_digest=program.digest, final=None)
    header = replace(study.header, spec=replace(study.header.spec, case=case))
    file = best(replace(study, header=header, trials=(trial,)))
    single, compiled = render_single(program), list[Program]()
    if isinstance(config, CpuConfig):
        return Solver(Simulation(program, Binary(b"", "", Resources()), InterpretingDevice()), file), compiled

    def made_single() -> tuple[Program, Binary]:
        assert single
        compiled.append(single)
        return single, compile_on_host(single)

    return Solver(Simulation(program, compile_on_host(program), HostDevice(), single=made_single), file), compiled


def advanced(state: np.ndarray, case: Case, steps: int) -> np.ndarray:
    for _ in range(steps):
        state = oracle.step(state, case, walls=Walls(case.walls))
    return state


def same(flow: Solver, state: np.ndarray) -> None:
    np.testing.assert_allclose(flow.density(), oracle.density(state), rtol=0, atol=1e-12)
    np.testing.assert_allclose(flow.velocity(), oracle.velocity(state, flow.case), rtol=0, atol=1e-12)


@needs_compiler
def test_walls_are_interpolated_after_a_change_too() -> None:
    beads = replace(porous("d2q9", "bgk", (16, 12, 1), 1.3, "sphere", (1e-4, 0.0, 0.0)), walls="interpolated")
    flow, _ = flow_of(beads, cuda.Sparse(scheme="aa", launch="graph", **PRECISE))
    assert "wall_share" in {buffer.name for buffer in flow.best.kernel.buffers}
    assert flow.best.kernel.arguments["wall_links"].value == link_count(beads) > 0
    for rate in (1.3, 0.7):
        flow.relaxation_rate = rate
        state = advanced(flow.populations(), replace(beads, relaxation_rate=rate), 5)
        flow.step(5)
        np.testing.assert_allclose(flow.velocity()[0, 0, 0], oracle.velocity(state, flow.case)[0, 0, 0], atol=1e-12)
        assert flow.velocity().any()


@needs_compiler
@pytest.mark.parametrize("launch", ["call", "graph"])
def test_rate_and_force_change_between_steps(launch: str) -> None:
    """By launches of three steps, by the kernel of one, and by graphs of both rates; each kernel is compiled once."""
    flow, compiled = flow_of(FORCED, replace(TILES, launch=launch))
    state = advanced(flow.populations(), FORCED, 7)
    flow.step(7)
    same(flow, state)
    flow.relaxation_rate = 0.7
    state = advanced(state, replace(FORCED, relaxation_rate=0.7), 7)
    flow.step(7)
    same(flow, state)
    flow.force = (-2e-3, 0.0, 1e-3)
    now = replace(FORCED, relaxation_rate=0.7, force=(-2e-3, 0.0, 1e-3))
    assert (flow.case, flow.relaxation_rate, flow.force) == (now, 0.7, now.force)
    same(flow, state)  # whose velocity has half of the new force
    flow.step(7)
    same(flow, advanced(state, now, 7))
    assert flow.steps_done == 21
    assert len(compiled) == 1


@pytest.mark.parametrize("scheme", ["pull", "push", "aa"])
def test_a_lid_changes_its_velocity(scheme: str) -> None:
    flow, _ = flow_of(LID, cpu.Direct(scheme=scheme, vector_bits=0, **PRECISE))
    flow.step(3)
    for rate, velocity in ((1.4, (-0.05, 0.0, 0.0)), (0.9, (0.08, 0.0, 0.0))):
        flow.relaxation_rate, flow.wall_velocity = rate, velocity
        state = flow.populations()
        flow.step(3)
        here = replace(LID, relaxation_rate=rate, wall_velocity=velocity)
        np.testing.assert_allclose(flow.populations(), advanced(state, here, 3), rtol=0, atol=1e-13)
    assert flow.steps_done == 9


def test_a_force_may_end_and_begin_again() -> None:
    case = replace(LID, force=(1e-4, 0.0, 0.0))
    flow, _ = flow_of(case, cpu.Direct(vector_bits=0, **PRECISE))
    for force in ((0.0, 0.0, 0.0), (2e-4, 0.0, 0.0)):
        flow.force = force
        state = flow.populations()
        flow.step(2)
        expected = advanced(state, replace(case, force=force), 2)
        np.testing.assert_allclose(flow.populations(), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("scheme", ["pull", "aa"])
@pytest.mark.parametrize("family", ["direct", "sparse"])
def test_solid_cells_are_at_rest_whatever_the_force(family: str, scheme: str) -> None:
    case = replace(porous("d2q9", "bgk", (8, 6, 1), 1.2, "blocks:fraction=0.3"), force=(1e-3, 0.0, 0.0))
    kinds = {"direct": partial(cpu.Direct, flags="memory"), "sparse": cpu.Sparse}
    flow, _ = flow_of(case, kinds[family](scheme=scheme, vector_bits=0, **PRECISE))
    rock = solid(case)
    for force in ((1e-3, 0.0, 0.0), (5e-3, -2e-3, 0.0)):
        flow.force = force
        flow.step(2)
        assert (flow.velocity()[:, rock] == 0).all()
        assert (flow.velocity()[0, ~rock] != 0).all()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("relaxation_rate", 3.0, r"relaxation_rate 3\.0 is not between 0 and 2; choose"),
        ("relaxation_rate", "fast", "relaxation_rate='fast' is not a number"),
        ("force", (1e-5, 0.0, 0.0), "made without a body force"),
        ("force", 1e-5, "is not three numbers"),
        ("wall_velocity", (0.1, 0.0), "is not three numbers"),
        (
            "wall_velocity",
            (0.4, 0.4, 0.2),
            r"wall_velocity \[0.4, 0.4, 0.2\] is not below the speed of sound, 0.577; give",
        ),
        ("wall_velocity", (0.1, float("nan"), 0.0), "is not below the speed of sound"),
        ("wall_velocity", (float("inf"), float("nan"), 0.0), "is not below the speed of sound"),
        ("relaxation_rate", float("nan"), "relaxation_rate nan is not between 0 and 2"),
    ],
)
def test_a_wrong_value_gets_a_sentence_and_changes_nothing(name: str, value: Any, said: str) -> None:
    flow, _ = flow_of(LID, cpu.Direct(vector_bits=0, **PRECISE))
    with pytest.raises(InputError, match=said):
        setattr(flow, name, value)
    assert flow.case == LID


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"density": NAN}, "density is not a positive number everywhere"),
        ({"density": INF}, "density is not a positive number everywhere"),
        ({"density": 0.0}, "density is not a positive number everywhere"),
        ({"velocity": (NAN, 0.0, 0.0)}, "velocity is not below the speed of sound, 0.577, everywhere"),
        ({"velocity": (0.0, -INF, 0.0)}, "velocity is not below the speed of sound, 0.577, everywhere"),
        ({"velocity": (0.4, 0.4, 0.2)}, "velocity is not below the speed of sound, 0.577, everywhere"),
        ({"populations": NAN}, "populations are not numbers everywhere"),
    ],
)
def test_a_state_at_which_no_flow_can_be_computed_is_refused(values: dict[str, Any], said: str) -> None:
    """A single cell of it is enough."""
    flow, _ = flow_of(LID, cpu.Direct(vector_bits=0, **PRECISE))
    before = flow.populations()
    for name, value in values.items():
        field = {"density": flow.density, "velocity": flow.velocity, "populations": flow.populations}[name]()
        field[..., 0, 3, 5] = value
        with pytest.raises(InputError, match=said):
            flow.initialise_populations(field) if name == "populations" else flow.initialise(**{name: field})
    np.testing.assert_array_equal(flow.populations(), before)


def test_a_flow_that_diverges_says_so() -> None:
    flow, _ = flow_of(LID, cpu.Direct(vector_bits=0, **PRECISE))
    flow.initialise(velocity=(0.55, 0.1, 0.0))
    flow.relaxation_rate = 1.999
    flow.step(300)
    with pytest.warns(
        UserWarning, match=r"the flow has diverged: after 300 steps its values are not numbers everywher"
    ):
        flow.velocity()


@pytest.mark.parametrize(
    "config",
    [
        cuda.TemporalBlocking(
            chunk_planes=1, pack=2, plane_fetch="none", representation="moments", steps=1, storage="fp16s"
        ),
        cpu.MomentsWavefront(tile=(16, 3, 2)),
    ],
    ids=["cuda", "cpu"],
)
@pytest.mark.parametrize("lattice", ["d2q9", "d3q27"])
def test_density_and_momentum_are_read_where_they_are_stored(
    lattice: str, config: KernelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same as by the populations that the moments tell of, which are never made."""
    case = box(lattice, "regularised", (16, 5, 1 if lattice == "d2q9" else 3))
    program, kept = render(case, config), state_of(case, config, np)
    buffer = np.zeros(program.buffer_elements(case.domain), config.stored.dtype)
    kept.put(oracle.random_state(case), buffer)
    expected = summed((f for block in kept.blocks(buffer, 0) for f in block), case.stencil)
    monkeypatch.setattr(moments, "populations_of", lambda *_: pytest.fail("made populations"))
    rho, momentum = kept.sums(buffer, 0)
    np.testing.assert_allclose(rho, expected[0], rtol=1e-13)
    for found, wanted in zip(momentum, expected[1], strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-14)
