"""Walls of second order: where they lie, that no thread changes what another reads, and that kernels are right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.catalogue.boundaries import second_order
from lbmtune.catalogue.boundaries.cut_links import whole
from lbmtune.catalogue.boundaries.second_order import Walls, interpolated, means, wall_parts
from lbmtune.catalogue.config import parse_config
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.geometries.packing import _centres
from lbmtune.catalogue.problem.geometries.shape import resolved
from lbmtune.catalogue.problem.geometry import levels, solid
from lbmtune.codegen.render import render
from lbmtune.codegen.wall_pass import ENTRY, with_walls, without_walls
from lbmtune.lattice import LATTICES
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.aftermath import check_slabs
from lbmtune.measure.verification.verify import verify_simulation
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.measure.workers.messages import MeasureRequest
from lbmtune.measure.workers.worker_tasks import verify_and_measure
from lbmtune.records import Outcome
from lbmtune.records.claims import SideTask
from lbmtune.records.study import TimingProtocol
from lbmtune.runtime import Simulation
from lbmtune.runtime.wall_pass import Walled
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.cuda_samples import needs_nvrtc

on_shim = pytest.mark.skipif(not COMPILER, reason="g++ is not installed")
DOMAINS = {"d2q9": (40, 30, 1), "d3q19": (24, 20, 18), "d3q27": (24, 20, 18)}


def beads(lattice: str = "d2q9", **changes: Any) -> Case:
    case = Case("porous", lattice, "bgk", DOMAINS[lattice], 1.6, geometry="packing:fraction=0.4:radius=5")
    return replace(case, force=(1e-4, 0.0, 0.0), **changes)


def walled(case: Case, text: str, backend: str) -> Walled:
    program = with_walls(render(case, parse_config(text, backend)))
    if backend == "cpu":
        return Walled(program, compile_cpu(program), open_cpu())
    return Walled(program, compile_on_host(program), HostDevice())


@pytest.mark.parametrize("lattice", LATTICES)
def test_a_wall_lies_where_the_link_enters_the_sphere(lattice: str) -> None:
    """By the centres of the spheres, where one of them is closest to both ends of the link."""
    case = beads(lattice)
    nx, ny, _ = case.domain
    shape, level = case.domain[::-1], levels(case.geometry, case.domain)
    assert level is not None
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
    narrow = 0
    for c in case.stencil.velocities[1:]:
        ahead, behind = (np.roll(rock, (s * c[2], s * c[1], s * c[0]), (0, 1, 2)) for s in (-1, 1))
        chosen = interpolated(case, c, whole(case.domain), np)
        assert (chosen == (~rock & ahead & ~behind)).all()
        narrow += int((~rock & ahead & behind).sum())
    assert narrow


@on_shim
@pytest.mark.parametrize("scheme", ["pull", "push", "aa", "esoteric-pull", "esoteric-twist", "swap", "two-step"])
def test_no_link_changes_what_another_reads(scheme: str) -> None:
    simulation = walled(beads("d3q19"), f"family=sparse,scheme={scheme}", "cuda")
    for own, other in simulation._tables.parities:
        assert len(np.unique(own)) == len(own) == len(simulation._tables.share)
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
]
CPU = [
    ("d3q27", "family=sparse,scheme=esoteric-twist,links=three_pointers"),
    ("d3q19", "family=sparse,scheme=aa,threads=2"),
    ("d3q19", "flags=memory,scheme=pull,storage=fp64,compute=fp64"),
    ("d2q9", "family=sparse,scheme=push,vector_bits=0,layout=aos"),
]


@on_shim
@pytest.mark.parametrize(("lattice", "text"), CUDA)
def test_cuda_kernels(lattice: str, text: str) -> None:
    assert verify_simulation(walled(beads(lattice), text, "cuda")).passed


@pytest.mark.parametrize(("lattice", "text"), CPU)
def test_cpu_kernels(lattice: str, text: str) -> None:
    simulation = walled(beads(lattice), text, "cpu")
    assert verify_simulation(simulation).passed
    simulation.step(7)
    check_slabs(simulation, simulation.steps_done)


@on_shim
def test_verification_finds_what_is_not_interpolated_or_is_so_wrongly() -> None:
    case, text = beads("d3q19"), "family=sparse,scheme=aa"
    good = walled(case, text, "cuda")

    class Never(Walled):
        def _launch_all(self, bound: Any, executable: Any = None) -> None:
            super()._launch_all([one for one in bound if one[0].entry != ENTRY], executable)

    binary = compile_on_host(good.program)
    assert not verify_simulation(Never(good.program, binary, HostDevice())).passed
    good._tables.share[:] = 1 - good._tables.share
    assert not verify_simulation(good).passed
    plain = render(case, parse_config(text))
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


def test_the_error_of_a_flow_around_discs_falls_faster_than_with_half_way_walls() -> None:
    exact = _mean_speed(48, Walls.INTERPOLATED)
    errors = {walls: [abs(_mean_speed(n, walls) / exact - 1) for n in (9, 13, 17)] for walls in Walls}
    assert max(errors[Walls.INTERPOLATED]) < 0.5 * max(errors[Walls.HALF_WAY])


REASONS = {
    "family=sparse,scheme=aa,boundary=implicit": "boundary=implicit (use branch)",
    "family=sparse,scheme=aa,storage=fp16s": "storage=fp16s (use fp32 or fp64)",
}


@pytest.mark.parametrize("text", REASONS)
def test_reasons(text: str) -> None:
    assert REASONS[text] in str(without_walls(beads(), parse_config(text)))
    assert without_walls(beads(), parse_config("family=sparse,scheme=aa")) is None


@pytest.mark.parametrize("geometry", ["", "sandstone:fraction=0.5", "packing:fraction=0"])
def test_surfaces_must_be_known(geometry: str) -> None:
    case, config = beads(geometry=geometry), parse_config("family=sparse,scheme=aa")
    assert "(use geometry packing or sphere," in str(without_walls(case, config))
    between = replace(beads(), faces=(*("wall",) * 4, "periodic", "periodic"))
    assert "walls of second order" in str(without_walls(between, config))


def test_far_from_a_surface_half_of_the_link_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    case = beads()
    far = np.full(case.domain[::-1], np.inf, np.float32)
    monkeypatch.setattr(second_order, "_levels_on", lambda *_: far)
    assert (wall_parts(case, (1, 0, 0), whole(case.domain), np) == 0.5).all()


@on_shim
def test_bytes_of_the_pass_are_counted() -> None:
    """Two words, a weight, two populations read and one written: 24 bytes of a link in single precision."""
    case, text = beads("d3q27"), "family=sparse,scheme=aa"
    plain = render(case, parse_config(text))
    without = Simulation(plain, compile_on_host(plain), HostDevice()).bytes_per_update
    links = sum(len(one.cells) for one in means(case, np))
    assert walled(case, text, "cuda").bytes_per_update == pytest.approx(without + 24 * links / case.fluid_sites)


@on_shim
def test_the_side_task_is_verified_with_its_walls() -> None:
    case, task = beads("d3q19"), SideTask("walls")
    program = with_walls(render(case, parse_config("family=sparse,scheme=esoteric-twist,links=three_pointers")))
    request = MeasureRequest(path=Path(), full=True)
    binary, device = compile_on_host(program), PooledDevice(HostDevice())
    found = verify_and_measure(program, binary, device, request, TimingProtocol(), print, task)
    assert found.outcome is Outcome.OK, found.reason


def test_an_evaluator_measures_it_beside_half_way_walls() -> None:
    case, config = beads("d3q19"), parse_config("family=sparse,scheme=aa,vector_bits=0", "cpu")
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
@pytest.mark.parametrize("storage", ["fp32", "fp64"])
def test_the_text_compiles(storage: str) -> None:
    text = f"family=sparse,scheme=esoteric-twist,storage={storage},compute=fp64"
    found = compile_cuda(with_walls(render(beads("d3q27"), parse_config(text))), architecture="sm_90").resources
    assert not found.spill_bytes
