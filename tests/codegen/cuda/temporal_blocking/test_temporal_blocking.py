"""Kernels of populations that do several time steps per launch: text, bytes, places, rules and results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.families.cuda.temporal_blocking import tile
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.describe import describe_storage
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification.verify import verify
from lbmtune.records import Verification
from lbmtune.runtime.placement import PopulationPlaces
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels import compiled
from tests.support.kernels.configs import configured, refusal
from tests.support.kernels.cuda_samples import needs_nvrtc
from tests.support.kernels.full_size import verify_full_size

LIMITS = Limits(shared_bytes_per_block=227 << 10, asynchronous=True, bulk=True)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")


def flow(lattice: str = "d3q19", collision: str = "bgk") -> Case:
    solid = int(lattice != "d2q9")
    case = box(lattice, collision, (64, 64, 64 if solid else 1), 1.3)
    return replace(case, force=(1e-3, -5e-4, 2e-4 * solid))


def config(**axes: object) -> CudaConfig:
    return configured(cuda.TemporalBlocking, **{"chunk_planes": 5, "plane_fetch": "none", **axes})


# what is stored


def test_bytes() -> None:
    """Q values read and written per launch; two copies of them."""
    assert bytes_per_update(flow(), config()) == 76
    assert bytes_per_update(flow("d3q27"), config(steps=3, storage="fp16s")) == 36
    assert footprint_bytes(flow(), config()) == 2 * 19 * 4 * 64**3


def test_the_tile_and_its_halo() -> None:
    assert tile(LATTICES["d3q19"], config(steps=3, rows=2, pack=2)) == (24, 10)
    # 8 warps exchange twice five populations in three stages, and have two rows of nine pairs and one on the way
    one = config(steps=3, rows=2, pack=2, plane_fetch="cp_async")
    assert one.shared_bytes(flow()) == 3 * 2 * (5 * 256 + 4 * 32) * 4 + 256 * 2 * 76


STORED: list[tuple[str, dict[str, object]]] = [
    *product(LATTICES, ({"layout": "soa"}, {"pack": 1}, {"pack": 2})),
    ("d2q9", {"pack": 8}),  # of 19 and 27 values three are left over, which are no vector
]


@pytest.mark.parametrize(("lattice", "axes"), STORED)
def test_every_population_has_a_place_and_a_formula(lattice: str, axes: dict[str, object]) -> None:
    flat = lattice == "d2q9"
    case, one = replace(flow(lattice), domain=(13, 5, 1 if flat else 3)), config(**axes)
    found = [np.ravel(place.indices) for place in PopulationPlaces(case, one, 0, np).each()]
    assert len(set(np.concatenate(found).tolist())) == case.stencil.q * case.sites
    described = describe_storage(render(case, one))
    assert [(at.slot, at.offset) for at in described.locations[0]] == [(i, (0, 0, 0)) for i in range(case.stencil.q)]
    at = {"NX": 16, "NY": 5, "NZ": case.domain[2], "X": 7, "Y": 3, "Z": case.domain[2] - 1}
    formula, cell = described.index.replace("/", "//"), (at["Z"] * 5 + 3) * 13 + 7
    assert [eval(formula, {**at, "Q": i}) for i in range(case.stencil.q)] == [int(one[cell]) for one in found]


def test_flags_take_shared_memory() -> None:
    """One of 8 bytes for each of 8 warps and 3 exchanges."""
    one = config(steps=3, rows=2, pack=2, plane_fetch="cp_async")
    assert replace(one, warp_sync="neighbours").shared_bytes(flow()) - one.shared_bytes(flow()) == 3 * 8 * 8


def test_what_goes_up_takes_shared_memory() -> None:
    """Five populations of a cell, of 2 rows of 256 threads in 3 steps."""
    one = config(steps=3, rows=2, pack=2, plane_fetch="cp_async")
    assert replace(one, z_buffer="shared").shared_bytes(flow()) - one.shared_bytes(flow()) == 5 * 4 * 2 * 256 * 3


def test_indices_are_counted_over_the_whole_buffer() -> None:
    assert render(flow(), config()).max_elements == 2**32
    assert render(replace(flow(), domain=(1024, 512, 512)), config()).max_elements is None


# rules


@pytest.mark.parametrize(
    ("knobs", "reason"),
    [
        ({"scheme": "pull"}, "scheme is not a knob of family temporal-blocking"),
        ({"steps": 0}, "steps=0 is not supported for family temporal-blocking (use 1 to 8)"),
        ({"steps": 1, "rows": 2}, "steps=1 is not supported for representation=populations (use 2 to 8"),
        ({"steps": 1, "pack": 2}, "steps=1 is not supported for representation=populations (use 2 to 8"),
        ({"steps": 4}, "steps=4: the halo leaves"),
        ({"layout": "aos"}, "layout=aos is not supported for family temporal-blocking (use soa or rows)"),
        ({"pack": 4}, "pack=4 is not supported for lattice=d3q19: the last 3 of 19 populations are no vector"),
        ({"block": (64, 4, 1)}, "block 64x4x1 is not supported for temporal blocking (use 32 x n x 1)"),
        ({"warp_sync": "warp"}, "warp_sync=warp is not supported for family temporal-blocking"),
        ({"overread": 1, "plane_fetch": "none"}, "overread=1 is not supported for plane_fetch=none"),
        ({"z_buffer": "cache"}, "z_buffer=cache is not supported for family temporal-blocking"),
        ({"steps": 1, "z_buffer": "shared"}, "steps=1 is not supported for representation=populations (use 2 to 8"),
        ({"wrap": "ghost"}, "wrap is not a knob of family temporal-blocking"),
        ({"macroscopics": "every-step"}, "macroscopics is not a knob of family temporal-blocking"),
        ({"links": "all"}, "links is not a knob of family temporal-blocking"),
        ({"steps": 3, "block": (32, 32, 1), "cells_per_thread": 2}, "bytes of shared memory"),
    ],
)
def test_illegal(knobs: dict[str, object], reason: str) -> None:
    assert reason in refusal(flow(), LIMITS, config(), **knobs)


# results

SAMPLES: dict[str, tuple[str, str, dict[str, object]]] = {
    "pairs": ("d3q19", "bgk", {"pack": 2, "plane_fetch": "cp_async", "rows": 2, "steps": 3}),
    "vectors": ("d3q19", "trt", {"cells_per_thread": 2, "pack": 2, "rows": 2, "plane_fetch": "registers"}),
    "bulk copies": ("d3q19", "bgk", {"steps": 3, "pack": 2, "rows": 2, "plane_fetch": "bulk"}),
    "double": ("d3q19", "mrt", {"layout": "soa", "storage": "fp64", "compute": "fp64", "plane_fetch": "registers"}),
    "half": (
        "d3q19",
        "regularised",
        {"storage": "fp16s", "pack": 2, "plane_fetch": "registers", "rows": 2, "steps": 4},
    ),
    "bfloat": ("d3q27", "bgk", {"storage": "bf16", "cells_per_thread": 2}),
    "cumulants": ("d3q27", "cumulant", {"pack": 2}),
    "neighbours": (
        "d3q19",
        "bgk",
        {"pack": 2, "plane_fetch": "cp_async", "rows": 2, "steps": 3, "warp_sync": "neighbours"},
    ),
    "shelved": (
        "d3q19",
        "bgk",
        {"pack": 2, "plane_fetch": "cp_async", "rows": 2, "steps": 3, "z_buffer": "shared", "overread": 1},
    ),
    "in the plane": ("d2q9", "mrt", {"steps": 4, "pack": 4, "block": (32, 2, 1), "plane_fetch": "registers"}),
}


def _on_host(program: Program) -> Verification:
    return verify(program, compile_on_host(program), HostDevice(), 2)


@needs_compiler
@pytest.mark.parametrize("name", SAMPLES)
def test_kernels_on_the_host(name: str) -> None:
    lattice, collision, axes = SAMPLES[name]
    assert broken(flow(lattice, collision), config(**axes), LIMITS) is None
    found = _on_host(render(flow(lattice, collision), config(**axes)))
    assert found.passed, found


@needs_compiler
@pytest.mark.parametrize("steps", [1, 3])
def test_warps_of_moments_wait_for_their_neighbours_too(steps: int) -> None:
    axes = {"representation": "moments", "steps": steps, "warp_sync": "neighbours"}
    found = _on_host(render(flow("d3q19", "regularised"), config(**axes)))
    assert found.passed, found


@needs_compiler
def test_at_full_size_both_buffers_are_read() -> None:
    program = render(replace(flow(), domain=(37, 9, 11)), config(plane_fetch="registers"))
    assert verify_full_size(program, compile_on_host(program), HostDevice()).passed


def _text(old: str, new: str) -> Callable[[str], str]:
    def changed(source: str) -> str:
        assert old in source, old
        return source.replace(old, new, 1)

    return changed


FAULTS: dict[str, Callable[[str], str]] = {
    "a population of another": _text("m[3] = current[3]", "m[3] = current[4]"),
    "to the wrong side": _text("right[0] = m[", "right[0] = 0 * m["),
    "up instead of down": _text("Real(&rising)[ACROSS] = r ? up", "Real(&rising)[ACROSS] = r ? down"),
    "a plane late": _text("= pending[0];", "= pending[1];"),
    "halo too narrow": _text("next_z = wrapped(begin - STEPS, nz)", "next_z = wrapped(begin - STEPS + 1, nz)"),
}


@needs_compiler
@pytest.mark.parametrize("fault", FAULTS)
def test_verification_finds(fault: str) -> None:
    program = render(flow(), config(rows=2))
    changed = FAULTS[fault](program.source)
    assert not _on_host(replace(program, source=changed)).passed


@needs_nvrtc
@pytest.mark.parametrize(
    ("registers", "axes"),
    [
        (255, {"steps": 3, "rows": 2, "pack": 2, "plane_fetch": "cp_async"}),
        (96, {"steps": 2, "block": (32, 20, 1), "pack": 2, "plane_fetch": "cp_async"}),
    ],
)
def test_the_shapes_that_pay_do_not_spill(registers: int, axes: dict[str, object]) -> None:
    case = box("d3q19", "bgk", (256, 256, 256))
    one = config(chunk_planes=64, **axes)
    found = compiled.resources("several_steps.txt", render(case, one))
    assert found.shared_bytes == one.shared_bytes(case) > 0
    assert found.registers <= registers
    assert found.spill_bytes == 0
