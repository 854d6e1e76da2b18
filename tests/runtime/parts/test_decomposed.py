"""Several parts against one device, bit for bit: unmodified kernels, poisoned halos, and what the faces say crosses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.catalogue.boundaries.cut_links import OPEN, cut_kind, seen_by, solid_in, whole
from lbmtune.catalogue.config import KernelConfig, cuda, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.render import render
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import Decomposition, case_of, decomposed
from lbmtune.decomposition.rules import refusal
from lbmtune.errors import InputError
from lbmtune.lattice import negate
from lbmtune.measure.verification.oracle import random_state
from lbmtune.runtime import Simulation
from lbmtune.runtime.parts.decomposed import DecomposedSimulation
from lbmtune.runtime.placement import PopulationPlaces
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels.configs import configured
from tests.support.kernels.cuda_samples import LAYOUT_NAMES, PRECISIONS, config, flows

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
SCHEMES = ("pull", "push", "aa", "esoteric-twist", "esoteric-pull")
FLOWS = ("box", "cavity", "channel", "grinder", "sphere", "porous")
CUTS = ("z:2", "y:3", "2x2x1", "2x2x2", "bisection:3")
DOMAIN = (19, 11, 13)
"""Odd extents that all differ."""
ROUNDING = 1e-15
"""Kernels of moments add up sums in an order that depends on where a cell lies in the storage; whether that shows in
the last digit is a matter of the values."""


def case_named(name: str, lattice: str = "d3q19", collision: str = "bgk") -> Case:
    """The flows, `grinder` with moving walls and a force among them, and two with solid cells."""
    found = flows(lattice, collision)
    domain = DOMAIN if lattice != "d2q9" else (19, 22, 1)
    if name == "sphere":
        return replace(found["channel"], domain=domain, geometry="sphere:diameter=0.6")
    if name == "porous":
        return replace(found["box"], domain=domain, geometry="blocks:fraction=0.3", force=(1e-3, -5e-4, 0.0))
    return replace(found[name], domain=domain)


def both(
    case: Case, one: KernelConfig, cut: str, devices: Any = None, depth: int | None = None
) -> tuple[Simulation, DecomposedSimulation]:
    """One device and several of them, at the same random state."""
    chosen = parse_cut(cut)
    device = devices or HostDevice()
    assert refusal(case, one, chosen, device.limits, depth) is None
    program = render(case, one)
    binary = compile_on_host(program) if devices is None else compiler_for(device.environment)(program)
    alone, state = Simulation(program, binary, device), random_state(case)
    several = [device] * chosen.parts if devices else [HostDevice() for _ in range(chosen.parts)]
    parts = DecomposedSimulation(program, binary, several, decomposed(case, one, chosen, depth), poisons=True)
    alone.initialise(state)
    parts.initialise(state)
    return alone, parts


def differences(case: Case, one: KernelConfig, cut: str, exchanges: int = 3, **how: Any) -> np.ndarray:
    """How far the populations of fluid cells lie apart after some exchanges; NaN where poison was read."""
    alone, parts = both(case, one, cut, **how)
    steps = exchanges * parts.decomposition.steps
    alone.step(steps)
    parts.step(steps)
    expected, found = alone.populations(), parts.populations()
    fluid = ~solid_in(case, whole(case.domain))
    assert np.isfinite(expected[:, fluid]).all()
    assert np.abs(expected - random_state(case))[:, fluid].max() > 1e-3
    return np.where(fluid & (expected != found), found - expected, 0.0)


def words(case: Case) -> dict[str, str]:
    return {"flags": "memory"} if case.geometry else {}


@needs_compiler
@pytest.mark.thinned(5)
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_parts_have_the_state_of_one_device(scheme: str, flow: str, cut: str) -> None:
    case = case_named(flow)
    one = config(scheme=scheme, storage="fp64", block=(4, 2, 1), **words(case))
    assert not differences(case, one, cut).any()


@needs_compiler
@pytest.mark.parametrize("flow", ["box", "grinder"])
def test_blocks_with_rings_refresh_them_from_the_halo(flow: str) -> None:
    one = config(scheme="ghost-cell", storage="fp64", block=(4, 2, 1))
    assert not differences(case_named(flow), one, "2x2x1").any()


@needs_compiler
@pytest.mark.parametrize(("lattice", "cut"), [("d2q9", "y:4"), ("d2q9", "2x2x1"), ("d3q27", "1x2x2")])
@pytest.mark.parametrize("scheme", ["pull", "aa"])
def test_lattices(scheme: str, lattice: str, cut: str) -> None:
    one = config(scheme=scheme, storage="fp64", block=(4, 2, 1))
    assert not differences(case_named("grinder", lattice), one, cut).any()


@needs_compiler
@pytest.mark.parametrize("storage", PRECISIONS)
def test_storage_formats(storage: str) -> None:
    """A poison that is a number, in formats without NaN, shows as a difference."""
    assert not differences(case_named("grinder"), config(scheme="aa", storage=storage, block=(4, 2, 1)), "z:3").any()


@needs_compiler
@pytest.mark.parametrize("layout", LAYOUT_NAMES)
def test_layouts(layout: str) -> None:
    one = config(scheme="pull", storage="fp64", layout=layout, block=(8, 2, 1))
    assert not differences(replace(case_named("grinder"), domain=(32, 11, 13)), one, "z:2").any()


@needs_compiler
@pytest.mark.parametrize(
    "knobs", [{"wrap": "ghost"}, {"pointer_swap": 1, "scheme": "esoteric-pull"}, {"cells_per_thread": 2}], ids=str
)
def test_kernels_with_ghost_layers_pointers_and_vectors(knobs: dict[str, Any]) -> None:
    one = config(**{"scheme": "aa", "storage": "fp64", "block": (4, 2, 1), **knobs})
    assert not differences(replace(case_named("grinder"), domain=(20, 11, 13)), one, "1x2x2").any()


@needs_compiler
@pytest.mark.parametrize("boundary", ["branch", "implicit"])
@pytest.mark.parametrize("scheme", ["pull", "aa", "esoteric-pull"])
@pytest.mark.parametrize("cut", ["z:2", "bisection:3"])
def test_index_lists(cut: str, scheme: str, boundary: str) -> None:
    if boundary == "implicit" and scheme == "pull":
        return  # which has no implicit walls
    one = config(family="sparse", scheme=scheme, storage="fp64", block=(32, 1, 1), boundary=boundary)
    assert not differences(case_named("porous"), one, cut).any()


def tiles(**knobs: Any) -> Any:
    """Tiles of temporal blocking on chunks of few planes."""
    usual = {"block": (32, 8, 1), "chunk_planes": 8, "plane_fetch": "none", "storage": "fp64", "compute": "fp64"}
    return configured(cuda.TemporalBlocking, **{**usual, **knobs})


@needs_compiler
@pytest.mark.parametrize(
    ("kept", "steps", "flow", "cut"),
    [
        ("moments", 1, "box", "z:2"),
        ("moments", 2, "channel", "1x2x2"),
        ("moments", 3, "sphere", "z:2"),
        ("populations", 2, "grinder", "z:2"),
    ],
)
def test_several_steps_per_launch_with_as_many_planes_of_halo(kept: str, steps: int, flow: str, cut: str) -> None:
    case = replace(case_named(flow, collision="regularised"), domain=(33, 23, 25))
    one = tiles(representation=kept, steps=steps, **words(case))
    found = differences(case, one, cut, exchanges=2)
    assert np.abs(found).max() <= (ROUNDING if kept == "moments" else 0.0)


@needs_compiler
def test_a_halo_of_two_launches_is_exchanged_after_both() -> None:
    case = replace(case_named("box", collision="regularised"), domain=(33, 9, 13))
    alone, parts = both(case, tiles(representation="moments", steps=2), "z:2", depth=4)
    assert parts.decomposition.steps == 4
    with pytest.raises(InputError, match=r"steps=6 is not supported \(use a multiple of 4\)"):
        parts.step(6)
    alone.step(8)
    parts.step(8)
    assert np.abs(alone.populations() - parts.populations()).max() <= ROUNDING


@needs_compiler
def test_sums_at_walls_that_lie_elsewhere_in_a_tile_are_equal_to_rounding() -> None:
    """Kernels of moments add up what walls return in an order that depends on the tile."""
    case = replace(case_named("cavity", collision="regularised"), domain=(33, 23, 25))
    found = differences(case, tiles(representation="moments", steps=2), "z:2", exchanges=2)
    assert np.isfinite(found).all()
    assert 0 < np.abs(found).max() <= ROUNDING


@pytest.mark.parametrize(
    ("knobs", "flow"),
    [
        ({"family": "direct", "wrap": "select", "row_offset": 0, "scheme": "pull"}, "grinder"),
        ({"family": "direct", "wrap": "ghost", "scheme": "aa"}, "channel"),
        ({"family": "sparse", "scheme": "esoteric-pull"}, "porous"),
        ({"family": "moments-wavefront", "steps": 1, "tile": "32x8x16"}, "box"),
        ({"family": "moments-wavefront", "steps": 3, "tile": "32x8x16", "layout": "rows"}, "box"),
    ],
)
def test_parts_of_a_processor(knobs: dict[str, Any], flow: str) -> None:
    device, of_moments = open_device("cpu"), knobs["family"] == "moments-wavefront"
    case = case_named(flow, collision="regularised") if of_moments else case_named(flow)
    usual = {"backend": "cpu", "storage": "fp64", "compute": "fp64", "threads": 1, "vector_bits": 0}
    if knobs["family"] == "sparse":
        del usual["vector_bits"]
    if of_moments:
        case, usual["vector_bits"] = replace(case, domain=(48, 21, 30)), 256
    one = from_flat({**usual, **knobs})
    assert not differences(case, one, "1x2x2", devices=device).any()


@needs_compiler
def test_two_parts_on_one_device() -> None:
    case, one = case_named("grinder"), config(scheme="aa", storage="fp64", block=(4, 2, 1))
    program = render(case, one)
    found = decomposed(case, one, parse_cut("z:4"), devices=2)
    assert max(part.device for part in found.parts) == 1
    binary, devices = compile_on_host(program), [HostDevice(), HostDevice()]
    parts = DecomposedSimulation(program, binary, devices, found, poisons=True)
    alone = Simulation(program, binary, devices[0])
    assert [simulation.device for simulation in parts.parts] == [devices[0]] * 2 + [devices[1]] * 2
    for each in (parts, alone):
        each.initialise(random_state(case))
        each.step(3)
    assert np.array_equal(parts.populations(), alone.populations())


@needs_compiler
@pytest.mark.parametrize("flow", ["grinder", "porous"])
def test_each_part_has_the_kernel_of_the_whole(flow: str) -> None:
    case = case_named(flow)
    one = config(scheme="aa", storage="fp64", block=(4, 2, 1), **words(case))
    found = decomposed(case, one, parse_cut("2x2x2"))
    assert {render(case_of(case, part), one).digest for part in found.parts} == {render(case, one).digest}


def _without(found: Decomposition, face: int, crossing: int) -> None:
    """Leave out one crossing of a face."""
    faces = list(found.faces)
    kept = tuple(one for n, one in enumerate(faces[face].crossings) if n != crossing)
    faces[face] = replace(faces[face], crossings=kept)
    vars(found)["faces"] = tuple(faces)


@needs_compiler
@pytest.mark.parametrize("scheme", ["pull", "push", "aa", "esoteric-pull"])
def test_whatever_is_left_out_shows(scheme: str) -> None:
    """Each population of each face: in the parity of its step poison is read, or a stale value."""
    case = case_named("channel")
    one = config(scheme=scheme, storage="fp64", block=(4, 2, 1))
    crossings = [len(face.crossings) for face in decomposed(case, one, parse_cut("z:2")).faces]
    assert crossings == [5] * 4
    for face, crossing in ((0, 0), (1, 2), (2, 4), (3, 1)):
        alone, parts = both(case, one, "z:2")
        _without(parts.decomposition, face, crossing)
        parts._messages.clear()
        alone.step(2)
        parts.step(2)
        assert not np.array_equal(alone.populations(), parts.populations())


@needs_compiler
@pytest.mark.parametrize("flow", ["grinder", "porous"])
@pytest.mark.parametrize("scheme", ["pull", "push", "aa", "esoteric-pull"])
def test_what_is_put_is_read_by_the_next_step_and_nothing_twice(scheme: str, flow: str) -> None:
    """Exactly the open links that end at own cells and begin elsewhere."""
    case = case_named(flow)
    one = config(scheme=scheme, storage="fp64", block=(4, 2, 1), **words(case))
    _, parts = both(case, one, "1x2x2")
    for _ in range(2):
        parts.step(1)
        for part, simulation in zip(parts.decomposition.parts, parts.parts, strict=True):
            put = np.concatenate([m.put for m in parts._sent if m.target == part.number])
            window = part.local(part.box).window
            seen, read = seen_by(simulation.case, one), []
            places = PopulationPlaces(simulation.case, one, simulation.parity, np, window).each()
            for c, place in zip(case.stencil.velocities, places, strict=True):
                read.append(place.indices[cut_kind(seen, negate(c), window) == OPEN])
            assert len(set(put.tolist())) == len(put)
            assert set(put.tolist()) <= set(np.concatenate(read).tolist())


@needs_compiler
@pytest.mark.parametrize("cut", ["z:2", "bisection:2"])
def test_index_lists_have_the_sites_of_their_own_part(cut: str) -> None:
    """A sample that is made anew on the extents of a part has another number of fluid cells than the part."""
    case = replace(case_named("box"), domain=(40, 40, 40), geometry="sandstone:fraction=0.87")
    one = config(family="sparse", scheme="pull", storage="fp64", block=(32, 1, 1))
    _, parts = both(case, one, cut)
    for part in parts.parts:
        x, *_ = one.stored_extents(part.case)
        assert part.state.size == 19 * x
    assert not differences(case, one, cut).any()
