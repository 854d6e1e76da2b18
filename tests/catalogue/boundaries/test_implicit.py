"""Implicit bounce-back: skipped cells are walls. Its oracle by hand, and kernels against it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lbmtune.catalogue.boundaries.second_order import Walls
from lbmtune.catalogue.config import CudaConfig, cuda, knobs_by_name
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, porous
from lbmtune.catalogue.problem.geometry import solid
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.catalogue.schemes.scheme import not_reversed
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.verify import verify
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels.cuda_samples import config as sample_config
from tests.support.kernels.full_size import verify_full_size

on_host = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")


def rocks(lattice: str = "d2q9", collision: str = "bgk") -> Case:
    domain = (32, 13, 1 if lattice == "d2q9" else 7)
    return porous(lattice, collision, domain, 1.3, "sandstone:fraction=0.5:grain=0.8:seed=3", (1e-3, -5e-4, 0.0))


SPARSE = {"family": "sparse"}


def config(scheme: str, **knobs: Any) -> CudaConfig:
    """Of family direct, unless another is given."""
    direct = {} if "family" in knobs else {"family": "direct", "flags": "memory"}
    found: CudaConfig = sample_config(
        **{"scheme": scheme, "boundary": "implicit", "block": (32, 1, 1), **direct, **knobs}
    )
    return found


@pytest.mark.parametrize("lattice", LATTICES)
def test_what_a_wall_sends_back_comes_after_two_steps(lattice: str) -> None:
    case = rocks(lattice)
    rock, stencil = solid(case), case.stencil
    start = oracle.random_state(case)
    once = oracle.step(start, case, walls=Walls.IMPLICIT)
    twice = oracle.step(once, case, walls=Walls.IMPLICIT)
    for i, (x, y, z) in enumerate(stencil.velocities):
        ahead = np.roll(rock, (-z, -y, -x), (0, 1, 2))
        opposite = stencil.opposite[i]
        wall, free = ~rock & ahead, ~rock & ~ahead
        assert i == 0 or wall.any()
        assert (twice[opposite][wall] == oracle.collide(start, case)[i][wall]).all()
        arrived = np.roll(once[i], (-z, -y, -x), (0, 1, 2))
        assert (arrived[free] == oracle.collide(start, case)[i][free]).all()


def test_the_steady_flow_is_that_of_half_way_bounce_back() -> None:
    case = porous("d2q9", "bgk", (10, 8, 1), 1.0, "sphere:diameter=0.6", (1e-5, 0.0, 0.0))
    fluid, found = ~solid(case), []
    for walls in (Walls.HALF_WAY, Walls.IMPLICIT):
        state = np.ones((9, 1, 8, 10)) * np.array([float(w) for w in case.stencil.weights]).reshape(-1, 1, 1, 1)
        for step in range(400):
            state = oracle.step(state, case, walls=walls)
            if step == 10:
                early = oracle.velocity(state, case)[:, fluid]
        found.append((early, oracle.velocity(state, case)[:, fluid]))
    (early, late), (other_early, other_late) = found
    assert abs(other_late - late).max() < 1e-5 * abs(late).max()
    assert abs(other_early - early).max() > 1e-3 * abs(early).max()


def test_schemes_that_go_back_through_the_same_places_reverse_what_is_skipped() -> None:
    for lattice in LATTICES.values():
        reversing = {name for name, one in SCHEMES.items() if not_reversed(one, lattice) is None}
        assert reversing == {"aa", "esoteric-twist", "esoteric-pull"}


def passes(program: Program) -> bool:
    return verify(program, compile_on_host(program), HostDevice(), 3).passed


SAMPLES: list[tuple[str, str, dict[str, Any]]] = [
    ("aa", "d3q19", {"cells_per_thread": 4}),
    ("esoteric-twist", "d2q9", {"cells_per_thread": 2, "layout": "aosoa", "width": 16}),
    ("esoteric-pull", "d2q9", {"storage": "fp16s", "cells_per_thread": 8}),
    ("esoteric-twist", "d3q27", {**SPARSE, "links": "three_pointers", "order": "tile"}),
    ("esoteric-pull", "d2q9", {**SPARSE, "cells_per_thread": 4}),
    ("aa", "d3q27", {**SPARSE, "links": "six_pointers", "order": "hilbert", "prefetch_index": 32}),
    ("aa", "d2q9", {**SPARSE, "links": "six_pointers", "cells_per_thread": 4, "layout": "aosoa", "width": 16}),
    ("aa", "d3q19", {**SPARSE, "links": "six_pointers", "sites_per_thread": 3, "prefetch_sites": 2}),
    ("aa", "d2q9", {**SPARSE, "storage": "fp64", "compute": "fp64"}),
]


@on_host
@pytest.mark.parametrize(("scheme", "lattice", "knobs"), SAMPLES)
def test_kernels(scheme: str, lattice: str, knobs: dict[str, Any]) -> None:
    case, chosen = rocks(lattice), config(scheme, **knobs)
    assert broken(case, chosen, Limits()) is None
    program = render(case, chosen)
    assert passes(program)
    assert verify_full_size(program, compile_on_host(program), HostDevice()).passed


FAULTS = {
    "solid cells collide": ("if (flags.of[v] & 1u) reverse(f, v); else ", ""),
    "fluid cells are skipped": ("fluid = fluid || !(flags.of[v] & 1u)", "fluid = fluid && !(flags.of[v] & 1u)"),
    "a pair is not exchanged": ("    exchange(3, 4);\n", ""),
}


@on_host
@pytest.mark.parametrize("fault", FAULTS)
def test_verification_finds(fault: str) -> None:
    program = render(rocks(), config("esoteric-twist", cells_per_thread=4))
    old, new = FAULTS[fault]
    assert program.source.count(old) >= 1
    assert not passes(replace(program, source=program.source.replace(old, new)))


@on_host
def test_neither_rule_passes_for_the_other() -> None:
    implicit, half_way = (render(rocks(), config("aa", boundary=name)) for name in ("implicit", "branch"))
    assert passes(implicit)
    assert passes(half_way)
    assert not passes(replace(implicit, source=half_way.source))
    assert not passes(replace(half_way, source=implicit.source))


def test_no_link_needs_a_flag() -> None:
    """Geier, Schoenherr 2017: 34 values read and 27 written; the type is the wall's, and there is none."""
    case = rocks("d3q27")
    moved = traffic(case, config("esoteric-twist", **SPARSE))
    assert (moved.populations + moved.index, moved.flags) == ((34 + 27) * 4, 0)
    moved = traffic(case, config("aa", **SPARSE))
    assert (moved.index, moved.flags) == (26 * 4 / 2, 0)
    entries = render(case, config("esoteric-twist", **SPARSE)).source.split("extern")[1:]
    assert not any("mask" in entry or "CUT" in entry for entry in entries)


REASONS: list[tuple[Case, dict[str, Any], str]] = [
    (
        rocks(),
        {"scheme": "pull"},
        "scheme=pull (use branch): a skipped cell is missing in the lattice",
    ),
    (rocks(), {"scheme": "swap"}, "scheme=swap (use branch): a skipped cell does not reverse f_0"),
    (box("d2q9", "bgk", (32, 8, 1)), SPARSE, "flow box (use branch): it has no solid cells to skip"),
    (replace(cavity("d2q9", "bgk", (32, 8, 1), 1.3), geometry="blocks"), {}, "behind a wall at a face is no cell"),
    (rocks(), {"flags": "compiled", "boundary": "branch"}, "flags=compiled is not supported for geometry"),
    (rocks(), {"flags": "compiled"}, "boundary=implicit is not supported for flags=compiled"),
    (rocks(), {**SPARSE, "boundary": "predicated"}, "boundary=predicated is not supported for family sparse"),
]


@pytest.mark.parametrize(("case", "knobs", "reason"), REASONS)
def test_reasons(case: Case, knobs: dict[str, Any], reason: str) -> None:
    assert reason in str(broken(case, config(**{"scheme": "aa", **knobs}), Limits()))


def test_the_knob_acts_on_flags_in_memory_and_on_lists() -> None:
    direct, sparse = (knobs_by_name(record)["boundary"] for record in (cuda.Direct, cuda.Sparse))
    assert direct.neutral({"flags": "compiled"}) == "branch"
    assert direct.neutral({"flags": "memory"}) is None
    assert sparse.neutral({}) is None
    assert "boundary" not in knobs_by_name(cuda.Column), "columns have no flags"
