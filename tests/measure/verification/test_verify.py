"""Verification part by part says the same as on the whole, and finds a single wrong cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.boundaries.cut_links import Window, whole
from lbmtune.catalogue.boundaries.second_order import Walls
from lbmtune.catalogue.byte_lru_cache import forget_all
from lbmtune.catalogue.config import CudaConfig, KernelConfig, cpu, cuda
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, channel, porous
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.measure.verification import oracle, verify
from lbmtune.measure.verification import reference_states as refs
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Verification
from lbmtune.runtime import Simulation, moments
from lbmtune.runtime.placement import PopulationPlaces
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.devices.fake_device import FakeDevice, compiler, config, renderer
from tests.support.kernels.full_size import verify_full_size

CASES = [
    box("d3q19", "bgk", (6, 5, 9)),
    cavity("d3q19", "trt", (6, 5, 9), 1.3),
    channel("d3q27", "bgk", (6, 5, 9), 1.1, force=1e-3),
    cavity("d2q9", "bgk", (7, 9, 1), 1.3),
    replace(cavity("d3q19", "bgk", (6, 5, 9), 1.3), faces=("wall", "wall", "wall", "wall", "wall", "moving")),
    porous("d3q19", "bgk", (6, 5, 9), 1.3, "blocks:fraction=0.4"),
    replace(cavity("d3q19", "trt", (6, 5, 9), 1.3), geometry="blocks:fraction=0.4"),
]


@pytest.mark.parametrize("frame", [0, 1], ids=["fluid", "solid"])
@pytest.mark.parametrize("kernel", [cuda.Direct(flags="memory"), cuda.Sparse(), cpu.Sparse()])
def test_a_sample_with_a_frame_is_verified_on_cells_of_both_kinds(
    kernel: KernelConfig, frame: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The small domains lie in the frame, where a kernel that does nothing is right, or one that knows no walls."""
    compared: list[Case] = []

    def record(program: Program, _binary: Binary, _device: object, case: Case, _periods: int) -> SimpleNamespace:
        assert program.case.geometry == case.geometry
        compared.append(case)
        return SimpleNamespace(passed=True, error=0.0, bound=1.0)

    monkeypatch.setattr(verify, "compare", record)
    monkeypatch.setattr(verify, "replace", lambda one, **to: one if "domains" in to else replace(one, **to))
    sample = np.full((64, 64, 512), frame, np.uint8)
    sample[60:, 60:, 500:] = 1 - frame
    for name, values in (("frame", sample), ("both", np.arange(sample.size).reshape(sample.shape) % 3 == 0)):
        np.save(tmp_path / f"{name}.npy", values)
        case = porous("d3q19", "bgk", (512, 64, 64), 1.3, f"file:path={tmp_path / name}.npy")
        compared.clear()
        verify.verify(render(case, kernel), cast(Any, None), cast(Any, None))
        assert {one.geometry == case.geometry for one in compared} == {name == "both"}
        assert all(0 < one.fluid_sites < one.sites for one in compared)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.flow}-{c.lattice}-{c.faces[5]}")
@pytest.mark.parametrize("steps", [1, 2])
def test_slabs_of_the_oracle_are_parts_of_the_whole(case: Case, steps: int) -> None:
    parts = list(refs.slabs(case, 2 * case.sites // case.domain[case.stencil.dimensions - 1]))
    assert len(parts) == 5
    (complete,) = refs.slabs(case, case.sites)
    state = refs._scattered(case, complete, np)
    for _ in range(steps):
        state = oracle.step(state, case)
    axis = 4 - case.stencil.dimensions
    joined = np.concatenate([part.copy() for part in refs.reference_slabs(case, parts, steps, np)], axis=axis)
    np.testing.assert_array_equal(joined, state)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.flow}-{c.lattice}-{c.faces[5]}")
@pytest.mark.parametrize("asked", [(1,), (5,), (2, 3, 7), (4, 2)], ids=str)
def test_whole_states_are_those_of_the_oracle(
    case: Case, asked: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By slabs of two layers, each by one of some threads; whatever was asked for before, which stays as it was."""
    forget_all()
    monkeypatch.setitem(refs._SLAB_CELLS, "cpu", 2 * case.sites // case.domain[case.stencil.dimensions - 1])
    monkeypatch.setattr(refs, "usable_cores", lambda: 3)
    states = [refs._scattered(case, whole(case.domain), np)]
    for _ in range(max(asked)):
        states.append(oracle.step(states[-1], case))
    found = [refs._whole_state(case, steps, Walls.HALF_WAY) for steps in asked]
    for steps, state in zip(asked, found, strict=True):
        np.testing.assert_array_equal(state, states[steps])


def test_states_between_are_worked_out_in_the_memory_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what was asked for is read-only: nobody works in it."""
    forget_all()
    case, advance, used = box("d2q9", "bgk", (16, 12, 1)), refs._advance, dict[int, Any]()

    def watched(case: Case, start: Any, steps: int, out: Any, *, walls: Walls) -> None:
        used[id(out)] = out
        advance(case, start, steps, out, walls=walls)

    monkeypatch.setattr(refs, "_advance", watched)
    last = refs._whole_state(case, 9, Walls.HALF_WAY)
    assert len(used) == 2
    assert not last.flags.writeable
    assert refs._whole_state(case, 11, Walls.HALF_WAY) is not last
    assert len(used) == 3


@pytest.mark.parametrize("collision", ["bgk", "trt", "regularised", "mrt"])
def test_a_collision_is_the_same_in_blocks_of_any_size(collision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = replace(channel("d3q19", collision, (8, 6, 7), 1.1, force=1e-3), domain=(8, 6, 7))
    state = refs._scattered(case, whole(case.domain), np)
    at_once = oracle.collide(state, case)
    for cells in (7, 40, 100, 335):
        monkeypatch.setattr(oracle, "_CELLS_AT_ONCE", cells)
        np.testing.assert_array_equal(oracle.collide(state, case), at_once)


@pytest.mark.parametrize(
    ("share", "free", "worked_out"), [(1.99, 9, [2, 2]), (2.01, 2.99, [2, 2]), (2.01, 3.01, [2, 0, 0])]
)
def test_a_host_with_room_works_out_the_state_that_kernels_are_compared_with_once(
    share: float, free: float, worked_out: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """share: of such states in a third of the memory; free: in what nobody uses."""
    forget_all()
    case, asked = box("d2q9", "bgk", (16, 12, 1)), list[int]()
    slabs_of, state_bytes = refs.reference_slabs, 8 * 9 * case.sites

    def counted(case: Case, parts: Sequence[Window], steps: int, *args: Any, **named: Any) -> Iterator[Any]:
        asked.append(steps)
        return slabs_of(case, parts, steps, *args, **named)

    room = SimpleNamespace(total=3 * share * state_bytes, available=int(free * state_bytes))
    monkeypatch.setattr(refs.quotas, "memory", lambda: room)
    for module in (refs, verify):
        monkeypatch.setattr(module, "reference_slabs", counted)
    program = renderer(case, config("right"))
    for _ in range(2):
        assert verify_full_size(program, compiler(program), FakeDevice()).passed
    begun = [0, 0]
    assert sorted(asked) == sorted([*begun, *worked_out])


def test_slabs_are_thin_where_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    case = box("d3q19", "bgk", (256, 256, 256))
    found = []
    for available in (64 << 30, 1 << 30, 0):
        room = SimpleNamespace(total=64 << 30, available=available)
        monkeypatch.setattr(refs.quotas, "memory", lambda room=room: room)
        found.append(refs._slab_cells(case, np, 2, thin=False))
    assert found[0] == refs._SLAB_CELLS["cpu"] > found[1] > found[2] == refs._THIN_CELLS
    assert found[1] * 2 * 19 * 8 * refs._ARRAYS <= 1 << 30


def test_states_that_are_held_count_as_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thirds of what is free, those included, have to hold two."""
    forget_all()
    case = box("d2q9", "bgk", (16, 12, 1))
    state_bytes = 8 * 9 * case.sites

    def leave(states: float) -> None:
        room = SimpleNamespace(total=99 * state_bytes, available=int(states * state_bytes))
        monkeypatch.setattr(refs.quotas, "memory", lambda: room)

    leave(2.1)
    assert refs.whole_state(case, 2, walls=Walls.HALF_WAY) is None
    leave(3.1)
    known = refs.whole_state(case, 2, walls=Walls.HALF_WAY)
    leave(0.1)
    assert refs.whole_state(case, 2, walls=Walls.HALF_WAY) is known is not None, "it takes no more room"
    leave(1.9)
    assert refs.whole_state(case, 3, walls=Walls.HALF_WAY) is None
    assert refs._whole_state.held_bytes == state_bytes
    leave(2.1)
    assert refs.whole_state(case, 3, walls=Walls.HALF_WAY) is not None
    assert refs._whole_state.known(case, 2, Walls.HALF_WAY) is None, "what is held makes room before it is worked out"
    leave(3.1)
    assert refs.whole_state(case, 4, walls=Walls.HALF_WAY) is not None
    assert refs._whole_state.held_bytes == 2 * state_bytes


@pytest.mark.parametrize("known", [True, False], ids=["whole state", "slabs"])
@pytest.mark.parametrize("plane", [0, 4, 8])
@pytest.mark.parametrize("wrong", [1e-4, np.nan, np.inf])
def test_a_wrong_cell_of_any_plane_is_found(
    plane: int, known: bool, wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted once the kernel is done, with slabs of any thickness and threads that share them out."""
    forget_all()
    case = box("d3q19", "bgk", (6, 5, 9))
    monkeypatch.setitem(refs._SLAB_CELLS, "cpu", 2 * 30)
    monkeypatch.setattr(refs, "_THIN_CELLS", 30)
    monkeypatch.setattr(refs, "usable_cores", lambda: 2)
    if not known:
        monkeypatch.setattr(verify, "whole_state", lambda *_, **__: None)
    program = renderer(case, config("right"))
    simulation = Simulation(program, compiler(program), FakeDevice())
    step, places = simulation.step, list(PopulationPlaces(case, program.config, 0, np).each())[7]

    def spoiled(steps: int) -> None:
        step(steps)
        simulation.state[places.indices[plane, 3, 2]] += wrong

    monkeypatch.setattr(simulation, "step", spoiled)
    found = verify.verify_simulation(simulation)
    assert not found.passed
    assert (found.worst_direction, found.worst_cell) == (7, (2, 3, plane))


def test_a_moment_that_nobody_wrote_shows_in_every_population() -> None:
    stencil = box("d3q19", "regularised", (4, 3, 5)).stencil
    held = np.zeros((10, 5, 3, 4))
    for n, k in product(range(10), (0, 2, 4)):
        spoiled = held.copy()
        spoiled[n, k, 1, 3] = np.nan
        wrong = np.isnan(np.stack(list(moments.populations_of(spoiled, stencil, np))))
        assert wrong[:, k, 1, 3].all()
        assert wrong.sum() == stencil.q


def test_the_scattered_state_is_noise() -> None:
    case = box("d3q19", "bgk", (32, 16, 16))
    state = refs._scattered(case, whole(case.domain), np)
    noise = state / state.reshape(19, -1).mean(axis=1).reshape(-1, 1, 1, 1) - 1
    assert abs(noise).max() < 1.1 * oracle.NOISE
    assert noise.std() == pytest.approx(oracle.NOISE / np.sqrt(3), rel=0.01)
    assert abs(np.corrcoef(noise.reshape(19, -1)) - np.eye(19)).max() < 0.1
    for axis in (1, 2, 3):
        assert abs((noise * np.roll(noise, 1, axis)).mean()) < 0.02 * noise.var()


@pytest.mark.parametrize("fault", ["right", "wrong cell", "nan"])
def test_full_size_verification_names_the_wrong_cell(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(refs._SLAB_CELLS, "cpu", 40)
    case = box("d2q9", "bgk", (16, 12, 1))
    program = renderer(case, config(fault))
    found = verify_full_size(program, compiler(program), FakeDevice())
    assert found.full_size
    assert found.domains == (case.domain,)
    assert found.passed == (fault == "right")
    if fault != "right":
        # what is no number spreads from (3, 2) in the second step, and the part with the row below comes first
        worst = {"wrong cell": (5, (4, 1, 0)), "nan": (4, (3, 1, 0))}[fault]
        assert (found.worst_direction, found.worst_cell) == worst
        assert np.isfinite(found.error)


COLUMNS: dict[str, dict[str, Any]] = {
    "plain": {},
    "ahead": {"prefetch_cells": 1},
    "copied": {"prefetch_cells": 2, "prefetch_to": "shared"},
    "far": {"prefetch_cells": 2},
}


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize(
    ("kind", "march"),
    # in a column of two nothing is two cells ahead
    [
        (kind, march)
        for kind, axes in COLUMNS.items()
        for march in (2, 3, 4, 5)
        if march > axes.get("prefetch_cells", 0)
    ],
)
def test_a_column_with_one_cell_left_is_verified(kind: str, march: int) -> None:
    """Of any height; threads that leave it out are found."""
    case = box("d3q19", "bgk", (64, 64, 64), 1.3)
    one = cuda.Column(block=(16, 2, 1), z_cells=march, **COLUMNS[kind])
    assert broken(case, one, HostDevice.limits) is None
    found = [one.awkward_domain(case), *one.extra_domains(case)]
    assert {nz % march for nx, ny, nz in found if len({nx, ny, nz}) == 3} >= {1}
    program = render(case, one)
    assert program.source.count("first < nz;") == 1
    for inside, passed in (("first < nz;", True), ("first + 1 < nz;", False)):
        changed = replace(program, source=program.source.replace("first < nz;", inside))
        assert verify.verify(changed, compile_on_host(changed), HostDevice(), 1).passed == passed


def _moments(**knobs: Any) -> CudaConfig:
    return cuda.TemporalBlocking(representation="moments", block=(32, 6, 1), plane_fetch="none", **knobs)


@pytest.mark.parametrize(("lattice", "axis"), [("d3q19", 2), ("d2q9", 1)])
@pytest.mark.parametrize("steps", [1, 4])
def test_long_chunks_are_verified_as_short_ones_that_meet(lattice: str, axis: int, steps: int) -> None:
    """However long a chunk is: the domain has two of them, and the text and the launches' blocks are the same."""
    case = box(lattice, "regularised", (64, 256, 256 if axis == 2 else 1), 1.3)
    found = set()
    for march in (32, 86, 192):
        config_ = _moments(chunk_planes=march, steps=steps, rows=3 if axis == 2 else 1)
        program = render(case, config_)
        short = verify.short_chunks(program)
        domain = config_.awkward_domain(case)
        assert short.grid(short.period[0][0], domain)[axis] == 2
        assert (short.source, short.period[0][0].block) == (program.source, program.period[0][0].block)
        assert domain[axis] >= 2 * steps + 1
        found.add(domain)
    assert len(found) == 1
    short = render(case, _moments(chunk_planes=5, steps=steps, rows=3 if axis == 2 else 1))
    column = render(case, cuda.Column(z_cells=4))
    assert verify.short_chunks(short) == short, "chunks are short already"
    assert verify.short_chunks(column) is column, "columns are no chunks"


def test_finalists_are_proven_in_the_order_of_the_steps_after_which_they_are_compared() -> None:
    """Two of a launch, and two lattices: four. AA in one lattice: two."""
    moments_of = cpu.MomentsWavefront(tile=(0, 0, 0), vector_bits=256)
    configs = [replace(moments_of, steps=4), cpu.Direct(scheme="aa"), replace(moments_of, steps=2), cpu.Direct()]
    of = cast(Evaluator, SimpleNamespace(case=box("d3q19", "regularised", (16, 6, 5))))
    assert Evaluator._by_steps(of, configs) == [1, 3, 2, 0]


def test_the_worst_deviation_is_the_first_failure_or_the_largest() -> None:
    place: dict[str, Any] = {"worst_cell": (0, 0, 0), "worst_direction": 0, "worst_steps": 1, "domains": ()}
    small, large, wrong = (Verification(error=error, bound=1.0, **place) for error in (0.1, 0.5, 2.0))
    assert verify.worst_of(iter((small, large, small))) == large
    rest = iter((small, wrong, large))
    assert verify.worst_of(rest) == wrong
    assert next(rest) == large, "nothing more is asked for"
