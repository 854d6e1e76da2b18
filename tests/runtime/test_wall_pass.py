"""Walls of second order: where they lie, that no thread changes what another reads, and that kernels are right."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.catalogue.boundaries import second_order
from lbmtune.catalogue.boundaries.cut_links import whole
from lbmtune.catalogue.boundaries.second_order import Walls, interpolated, link_count, means, wall_parts
from lbmtune.catalogue.config import FAMILIES, parse_config
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.footprint import footprint_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.geometries.packing import _centres
from lbmtune.catalogue.problem.geometries.shape import resolved
from lbmtune.catalogue.problem.geometry import levels, solid
from lbmtune.codegen.program import WALL_PLACES, WALL_SHARE
from lbmtune.codegen.render import WALLS, render
from lbmtune.errors import InputError
from lbmtune.lattice import LATTICES
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.aftermath import check_slabs
from lbmtune.measure.verification.verify import verify_simulation
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.measure.workers.messages import MeasureRequest
from lbmtune.measure.workers.one_kernel import verify_and_measure
from lbmtune.measure.workers.side_tasks import with_side_task
from lbmtune.records import Outcome
from lbmtune.records.claims import SideTask
from lbmtune.records.spec import TimingProtocol
from lbmtune.runtime import Simulation
from lbmtune.runtime.wall_pass import wall_tables
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.conformance.choices import ROOMY
from tests.support.kernels.cuda_samples import needs_nvrtc

on_shim = pytest.mark.skipif(not COMPILER, reason="g++ is not installed")
DOMAINS = {"d2q9": (40, 30, 1), "d3q19": (24, 20, 18), "d3q27": (24, 20, 18)}


def beads(lattice: str = "d2q9", **changes: Any) -> Case:
    case = Case("porous", lattice, "bgk", DOMAINS[lattice], 1.6, geometry="packing:fraction=0.4:radius=5")
    return replace(case, force=(1e-4, 0.0, 0.0), **{"walls": "interpolated", **changes})


def simulated(case: Case, text: str, backend: str) -> Simulation:
    program = render(case, parse_config(text, backend))
    if backend == "cpu":
        return Simulation(program, compile_cpu(program), open_cpu())
    return Simulation(program, compile_on_host(program), HostDevice())


@pytest.mark.parametrize("lattice", LATTICES)
def test_a_wall_lies_where_the_link_enters_the_sphere(lattice: str) -> None:
    """By the centres of the spheres, where one of them is closest to both ends of the link."""
    case = beads(lattice)
    nx, ny, _ = case.domain
    shape, level = case.domain[::-1], levels(case.geometry, case.domain)
    assert level.shape == shape
    assert ((level > 0) == ~solid(case)).all()
    centres, compared = _centres(shape, 0.4, resolved(5.0, shape, 0.25), 1), 0
    for links in means(case, np):
        c = np.array(case.stencil.velocities[links.direction][::-1])
        start = np.stack((links.cells // (nx * ny), links.cells // nx % ny, links.cells % nx), axis=1)
        apart = start[:, None] - centres
        apart -= np.array(shape) * np.round(apart / np.array(shape))
        nearest, nearest_end = ((d**2).sum(axis=2).argmin(axis=1) for d in (apart, apart + c))
        same = nearest == nearest_end
        own = apart[np.arange(len(start)), nearest][same]
        radius2 = (own**2).sum(axis=1) - level[tuple(start[same].T)]
        assert np.ptp(radius2) < 1e-3, "all spheres have one radius"
        at_wall = own + links.part[same, None] * c
        assert (at_wall**2).sum(axis=1) == pytest.approx(radius2, abs=1e-3)
        compared += int(same.sum())
        assert ((links.share(np) >= 0) & (links.share(np) <= 1)).all()
    assert compared > 100


def test_links_with_a_wall_at_both_ends_stay_half_way() -> None:
    case = beads(geometry="packing:fraction=0.6:radius=3")
    rock = solid(case)
    narrow = links = 0
    for c in case.stencil.velocities[1:]:
        ahead, behind = (np.roll(rock, (s * c[2], s * c[1], s * c[0]), (0, 1, 2)) for s in (-1, 1))
        chosen = interpolated(case, c, whole(case.domain), np)
        assert (chosen == (~rock & ahead & ~behind)).all()
        narrow += int((~rock & ahead & behind).sum())
        links += int(chosen.sum())
    assert narrow
    assert links == link_count(case)


@pytest.mark.parametrize("scheme", ["pull", "push", "aa", "esoteric-pull", "esoteric-twist", "swap", "two-step"])
def test_no_link_changes_what_another_reads(scheme: str) -> None:
    case, config = beads("d3q19"), parse_config(f"family=sparse,scheme={scheme}")
    tables = wall_tables(case, config, np)
    for names in WALL_PLACES[: config.propagation.period]:
        own, other = (tables[name] for name in names)
        assert len(np.unique(own)) == len(own) == len(tables[WALL_SHARE]) == link_count(case)
        assert not np.isin(other, own).any()


CUDA = [
    ("d3q27", "family=sparse,scheme=esoteric-twist,links=three_pointers"),
    ("d3q19", "family=sparse,scheme=aa,order=hilbert,cells_per_thread=4"),
    ("d3q27", "family=sparse,scheme=pull,storage=fp64,compute=fp64"),
    ("d3q19", "family=sparse,scheme=esoteric-pull,pointer_swap=1,layout=aosoa,width=16"),
    ("d2q9", "family=sparse,scheme=push,compute=fp64"),
    ("d2q9", "family=sparse,scheme=swap"),
    ("d2q9", "family=sparse,scheme=two-step"),
    ("d3q19", "flags=memory,scheme=aa,layout=aos"),
    ("d2q9", "flags=memory,scheme=pull,launch=graph"),
    ("d2q9", "flags=memory,scheme=aa,storage=fp16s,load_hint=streaming,launch=dependent"),
]
CPU = [
    ("d3q27", "family=sparse,scheme=esoteric-twist,links=three_pointers"),
    ("d3q19", "family=sparse,scheme=aa,threads=2"),
    ("d3q19", "flags=memory,scheme=pull,storage=fp64,compute=fp64"),
    ("d2q9", "family=sparse,scheme=push,vector_bits=0,layout=aos"),
    ("d2q9", "family=sparse,scheme=aa,storage=fp16c"),
]


@on_shim
@pytest.mark.parametrize(("lattice", "text"), CUDA)
def test_cuda_kernels(lattice: str, text: str) -> None:
    assert verify_simulation(simulated(beads(lattice), text, "cuda")).passed


@pytest.mark.parametrize(("lattice", "text"), CPU)
def test_cpu_kernels(lattice: str, text: str) -> None:
    simulation = simulated(beads(lattice), text, "cpu")
    assert verify_simulation(simulation).passed
    simulation.step(7)
    check_slabs(simulation, simulation.steps_done)


@on_shim
def test_verification_finds_what_is_not_interpolated_or_is_so_wrongly() -> None:
    case, text = beads("d3q19"), "family=sparse,scheme=aa"
    good = simulated(case, text, "cuda")

    class Never(Simulation):
        def _launch_all(self, bound: Any, executable: Any = None) -> None:
            super()._launch_all([one for one in bound if one[0].entry != WALLS], executable)

    binary = compile_on_host(good.program)
    assert not verify_simulation(Never(good.program, binary, HostDevice())).passed
    share = good._others[WALL_SHARE]
    share[:] = 1 - share
    assert not verify_simulation(good).passed
    plain = render(replace(case, walls="half-way"), parse_config(text))
    assert verify_simulation(Simulation(plain, compile_on_host(plain), HostDevice())).passed


def _mean_speed(n: int, walls: Walls) -> float:
    """Return the mean speed of a flow through a square array of discs, in units of force, n^2 and viscosity."""
    rate, force = 1.0, 1e-6 * (10 / n) ** 3
    case = Case(
        "porous", "d2q9", "trt", (n, n, 1), rate, force=(force, 0.0, 0.0), geometry="sphere:diameter=0.5", magic=0.1875
    )
    f = np.ones((9, 1, n, n)) * np.array([float(w) for w in case.stencil.weights]).reshape(-1, 1, 1, 1)
    last = 0.0
    while True:
        for _ in range(n * n // 8):
            f = oracle.step(f, case, walls=walls)
        speed = float(np.where(solid(case), 0.0, oracle.velocity(f, case)[0]).mean())
        if abs(speed - last) < 1e-6 * speed:
            return speed * (1 / rate - 0.5) / 3 / (force * n * n)
        last = speed


def test_the_error_of_a_flow_around_discs_falls_faster_than_with_half_way_walls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("cut_kind", "interpolated", "wall_parts"):  # the same in each of thousands of steps
        monkeypatch.setattr(oracle, name, cache(getattr(oracle, name)))
    exact, compared = _mean_speed(32, Walls.INTERPOLATED), (Walls.HALF_WAY, Walls.INTERPOLATED)
    errors = {walls: [abs(_mean_speed(n, walls) / exact - 1) for n in (9, 13, 17)] for walls in compared}
    assert max(errors[Walls.INTERPOLATED]) < 0.5 * max(errors[Walls.HALF_WAY])


REASONS = {
    "family=sparse,scheme=aa,boundary=implicit": "boundary=implicit (use branch)",
    "family=temporal-blocking,steps=2": "family temporal-blocking (use sparse, or direct)",
}


@pytest.mark.parametrize("text", REASONS)
def test_reasons(text: str) -> None:
    assert REASONS[text] in str(broken(beads(), parse_config(text), ROOMY))
    assert broken(beads(), parse_config("family=sparse,scheme=aa"), ROOMY) is None
    assert "walls=" not in str(broken(beads(walls="half-way"), parse_config(text), ROOMY))


@pytest.mark.parametrize("backend", FAMILIES)
def test_families_of_populations_step_by_step_can_do_it(backend: str) -> None:
    case = beads("d3q19", domain=(256, 8, 8))
    for family in FAMILIES[backend]:
        config = parse_config(f"family={family}" + (",flags=memory" if family == "direct" else ""), backend)
        reason = broken(case, config, ROOMY)
        assert (reason is None) == (family in ("direct", "sparse")), reason


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"geometry": ""}, "for flow porous (use a geometry packing or sphere)"),
        ({"geometry": "sandstone:fraction=0.5"}, "(use packing or sphere): where its surface lies is unknown"),
        ({"faces": (*("wall",) * 4, "periodic", "periodic")}, "(use periodic faces)"),
        ({"walls": "curved"}, "unknown walls 'curved'"),
    ],
)
def test_surfaces_must_be_known(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        beads(**changes)


@pytest.mark.parametrize("fraction", [0, 0.5])
def test_there_may_be_no_link(fraction: float) -> None:
    """A sample without solid cells, and one whose links have walls at both ends."""
    case = beads(geometry=f"packing:fraction={fraction}", domain=(2, 1, 1) if fraction else (16, 8, 1))
    assert link_count(case) == 0
    assert verify_simulation(simulated(case, "family=sparse", "cpu")).passed


def test_far_from_a_surface_half_of_the_link_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    case = beads()
    far = np.full(case.domain[::-1], np.inf, np.float32)
    monkeypatch.setattr(second_order, "_levels_on", lambda *_: far)
    assert (wall_parts(case, (1, 0, 0), whole(case.domain), np) == 0.5).all()


@on_shim
def test_bytes_of_the_pass_are_counted() -> None:
    """Two words, a weight, two populations read and one written: 24 bytes of a link in single precision."""
    case, text = beads("d3q27"), "family=sparse,scheme=aa"
    without, config = simulated(replace(case, walls="half-way"), text, "cuda"), parse_config(text)
    links = sum(len(one.cells) for one in means(case, np))
    expected = pytest.approx(without.bytes_per_update + 24 * links / case.fluid_sites)
    assert simulated(case, text, "cuda").bytes_per_update == expected
    tables = wall_tables(case, config, np).values()
    assert footprint_bytes(case, config) - footprint_bytes(without.case, config) == sum(one.nbytes for one in tables)


@on_shim
def test_the_side_task_is_verified_with_its_walls() -> None:
    case, task = beads("d3q19", walls="half-way"), SideTask("walls")
    config = parse_config("family=sparse,scheme=esoteric-twist,links=three_pointers")
    program = with_side_task(render(case, config), task)
    assert program == render(replace(case, walls="interpolated"), config)
    request = MeasureRequest(path=Path(), full=True)
    binary, device = compile_on_host(program), PooledDevice(HostDevice())
    found = verify_and_measure(program, binary, device, request, TimingProtocol(), print, task)
    assert found.outcome is Outcome.OK, found.reason


def test_an_evaluator_measures_it_beside_half_way_walls() -> None:
    case = beads("d3q19", walls="half-way")
    config = parse_config("family=sparse,scheme=aa,vector_bits=0", "cpu")
    protocol = TimingProtocol(final_rounds=3, final_sample_s=0.005, finalists=2, warmup_s=0.005, min_cpu_share=0.0)
    with Evaluator(case, "cpu", protocol) as evaluator:
        half_way, second = evaluator.finals([config, config], {1: SideTask("walls")})
    for trial in (half_way, second):
        assert trial.outcome is Outcome.OK, trial.reason
        assert trial.proven
    assert half_way.final
    assert second.final
    assert second.final.bytes_per_update > half_way.final.bytes_per_update


@needs_nvrtc
@pytest.mark.parametrize("storage", ["fp32", "fp64", "fp16s", "bf16,store_hint=streaming"])
def test_the_text_compiles(storage: str) -> None:
    text = f"family=sparse,scheme=esoteric-twist,compute=fp64,storage={storage}"
    found = compile_cuda(render(beads("d3q27"), parse_config(text)), architecture="sm_90").resources
    assert not found.spill_bytes
