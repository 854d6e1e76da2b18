"""Kernels that keep moments and do several time steps per launch: derivation, text, bytes, rules and results."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import sympy
from sympy import Rational, Symbol

from lbmtune.catalogue.collisions import collision
from lbmtune.catalogue.collisions.operator import assignments, population, relaxed, weight
from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.families.cuda.temporal_blocking import piece_cells, run_cells, tile
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes
from lbmtune.catalogue.moments.basis import orders, smallest_weight
from lbmtune.catalogue.moments.collision import coefficients, moment, polynomial
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.codegen.describe import describe_storage
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.lattice import LATTICES, Lattice
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.verify import error_bounds, verify
from lbmtune.model.gpu.temporal_blocking.inputs import chunk_planes
from lbmtune.records import Verification
from lbmtune.runtime import Simulation
from lbmtune.runtime.moments import moments_of, places, populations_of, seen
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels import compiled
from tests.support.kernels.configs import configured, refusal
from tests.support.kernels.cuda_samples import needs_nvrtc
from tests.support.kernels.full_size import verify_full_size

LIMITS = Limits(shared_bytes_per_block=227 << 10, asynchronous=True, bulk=True)
FORCE = (1e-3, -5e-4, 2e-4)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")


def flow(lattice: str = "d3q19", force: tuple[float, float, float] = FORCE) -> Case:
    return replace(box(lattice, "regularised", (64, 64, 64), 1.3), force=force)


def config(**axes: object) -> CudaConfig:
    usual = {"representation": "moments", "steps": 1, "block": (32, 6, 1), "chunk_planes": 5, "plane_fetch": "none"}
    return configured(cuda.TemporalBlocking, **{**usual, **axes})


# what is stored


@pytest.mark.parametrize("lattice", LATTICES.values(), ids=lambda found: found.name)
@pytest.mark.parametrize("forced", [False, True])
def test_moments_relax_as_populations_do(lattice: Lattice, forced: bool) -> None:
    """Exactly, in rational numbers: moments, their relaxation and the polynomial are the regularised operator."""
    draw = random.Random(3)
    given = {population(i): Rational(draw.randint(-50, 50), 1000) for i in range(lattice.q)}
    given |= {Symbol("omega"): Rational(13, 10), Symbol("unit"): sympy.Integer(1)}
    for axis, name in enumerate("xyz"):
        given[Symbol(f"force_{name}")] = Rational(draw.randint(1, 9) * (axis < lattice.dimensions), 1000)
    expected, found = dict(given), dict(given)
    for step in assignments(collision("regularised"), lattice, forced):
        expected[step.name] = step.value.xreplace(expected)
    unit = Rational(*smallest_weight(lattice).as_integer_ratio())
    for n in orders(lattice):
        parts = [
            c[0] ** n[0] * c[1] ** n[1] * c[2] ** n[2] * given[population(i)] for i, c in enumerate(lattice.velocities)
        ]
        found[moment(n)] = sympy.Add(*parts) / unit
    for step in coefficients(lattice, forced):
        found[step.name] = step.value.xreplace(found)
    for i, c in enumerate(lattice.velocities):
        assert weight(lattice, i) * polynomial(lattice, c).xreplace(found) == expected[relaxed(i)]


@pytest.mark.parametrize("lattice", LATTICES.values(), ids=lambda found: found.name)
def test_what_a_kernel_sees_of_a_state_has_its_moments_and_is_seen_as_it_is(lattice: Lattice) -> None:
    weights = np.array([float(w) for w in lattice.weights]).reshape(-1, 1, 1, 1)
    state = weights * (1 + 0.1 * np.random.default_rng(1).uniform(-1, 1, (lattice.q, 2, 3, 4)))
    once = seen(state, lattice, np)
    np.testing.assert_allclose(seen(once, lattice, np), once, rtol=1e-13)
    for n, before, after in zip(
        orders(lattice), moments_of(state - weights, lattice, np), moments_of(once - weights, lattice, np), strict=True
    ):
        np.testing.assert_allclose(after, before, atol=1e-12, err_msg=str(n))
    assert abs(once - state).max() > 1e-4 or lattice.q == len(orders(lattice))


@pytest.mark.parametrize("axes", [{"layout": "soa"}, {"pack": 1}, {"pack": 2}, {"pack": 4}, {"pack": 8}])
@pytest.mark.parametrize("lattice", ["d3q19", "d3q27"])
def test_every_moment_of_every_cell_has_a_place_of_its_own(lattice: str, axes: dict[str, object]) -> None:
    case = replace(flow(lattice), domain=(13, 5, 3))
    indices = np.concatenate([np.ravel(found) for found in places(case, config(**axes), np)])
    assert len(set(indices.tolist())) == 10 * case.sites
    assert (indices.min(), indices.max() < 16 * 5 * 3 * 10) == (0, True)


def test_bytes() -> None:
    """Ten values read and ten written per launch; two copies of them."""
    assert bytes_per_update(flow(), config()) == 80
    assert bytes_per_update(flow(), config(steps=2)) == 40
    assert bytes_per_update(flow("d3q27"), config(steps=4, storage="fp16s")) == 10
    assert footprint_bytes(flow(), config()) == 2 * 10 * 4 * 64**3


def test_planes_of_chunks() -> None:
    """Falling ones take what is left in proportion to the square of how many chunks are left."""
    even, falling = config(), config(chunk_schedule="tapered")
    assert chunk_planes(256, 9, even) == (29,) * 8 + (24,)
    assert chunk_planes(256, 4, falling) == (112, 80, 48, 16)
    assert chunk_planes(5, 5, falling) == (1, 2, 1, 0, 1)
    assert all(sum(chunk_planes(n, k, falling)) == n for n in (1, 7, 64, 255) for k in range(1, n + 1))


def test_the_tile_and_its_halo() -> None:
    assert tile(LATTICES["d3q19"], config(steps=2, rows=3, block=(32, 12, 1), pack=4)) == (28, 32)
    assert tile(LATTICES["d3q19"], config(steps=1, cells_per_thread=2, block=(32, 10, 1), pack=2)) == (60, 8)
    # 12 warps of 32 lanes exchange twice five sums in two stages, and have three rows of 40 bytes on the way
    one = config(steps=2, rows=3, block=(32, 12, 1), pack=4, plane_fetch="cp_async")
    assert one.shared_bytes(flow()) == 2 * 2 * (5 * 384 + 4 * 32) * 4 + 384 * 3 * 40
    # runs that begin with whole pieces, and a flag for each warp
    assert replace(one, plane_fetch="bulk").shared_bytes(flow()) == one.shared_bytes(flow()) + 12 * 8


@pytest.mark.parametrize(
    ("axes", "piece", "run"),
    [
        ({"steps": 2, "pack": 4}, 2, 32),
        ({"steps": 3, "pack": 4}, 2, 34),  # three cells of two values before the tile: half of a piece
        ({"steps": 3, "pack": 8, "storage": "fp16s"}, 4, 36),
        ({"steps": 1, "pack": 1}, 4, 36),
        ({"steps": 3, "pack": 2, "storage": "fp64", "compute": "fp64"}, 1, 32),
        ({"steps": 1, "pack": 2, "cells_per_thread": 2}, 2, 64),
    ],
)
def test_bulk_copies_move_whole_pieces(axes: dict[str, object], piece: int, run: int) -> None:
    one = config(plane_fetch="bulk", **axes)
    assert (piece_cells(LATTICES["d3q19"], one), run_cells(flow(), one)) == (piece, run)


def test_bulk_copies_are_for_devices_that_have_them() -> None:
    reason = broken(flow(), config(plane_fetch="bulk"), replace(LIMITS, bulk=False))
    assert reason == "plane_fetch=bulk is not supported by this device (use cp_async): it has no bulk copies"


def test_storage_is_described_for_a_solver() -> None:
    described = describe_storage(render(flow(), config(pack=4, storage="fp16s")))
    assert (described.scale, described.locations, described.index) == (128.0, (), "")
    assert [one.order for one in described.moments] == list(orders(LATTICES["d3q19"]))
    extents = {"NX": 64, "NY": 64, "NZ": 64}
    found = [eval(one.index.replace("/", "//"), {**extents, "x": 3, "y": 2, "z": 1}) for one in described.moments]
    expected = [int(at[1, 2, 3]) for at in places(flow(), config(pack=4), np)]
    assert found == expected


# rules


@pytest.mark.parametrize(
    ("case", "knobs", "reason"),
    [
        (replace(flow(), collision="bgk"), {}, "representation=moments is not supported for collision=bgk"),
        (flow(), {"scheme": "aa"}, "scheme is not a knob of family temporal-blocking"),
        (flow(), {"layout": "aosoa"}, "layout=aosoa is not supported for family temporal-blocking"),
        (flow(), {"layout": "soa", "pack": 2}, "pack=2 is not supported for layout=soa (use pack=1)"),
        (flow(), {"plane_fetch": "tma"}, "plane_fetch=tma is not supported for family temporal-blocking"),
        (
            replace(flow(), domain=(65, 64, 64)),
            {"pack": 4, "plane_fetch": "bulk"},
            "which is 2 cells of fp32 with pack=4",
        ),
        (flow(), {"storage": "fp16c"}, "numbers below 2"),
        (flow(), {"storage": "fp16s", "plane_fetch": "cp_async"}, "plane_fetch=cp_async with 2 bytes at once"),
        (flow(), {"block": (64, 4, 1)}, "block 64x4x1 is not supported for temporal blocking"),
        (flow(), {"steps": 3}, "steps=3: the halo leaves"),
        (flow(), {"steps": 2, "block": (32, 24, 1), "cells_per_thread": 4}, "bytes of shared memory"),
        (flow(), {"chunk_planes": 65}, "chunk_planes=65"),
        (box("d2q9", "regularised", (64, 64, 1)), {"z_buffer": "shared"}, "z_buffer=shared is not supported"),
    ],
)
def test_illegal(case: Case, knobs: dict[str, object], reason: str) -> None:
    limits = replace(LIMITS, shared_bytes_per_block=128 << 10)
    assert reason in refusal(case, limits, config(), **knobs)


@pytest.mark.parametrize("knobs", [{"steps": 2}, {"rows": 2}, {"pack": 2}])
def test_populations_have_none_of_it(knobs: dict[str, object]) -> None:
    (name,) = knobs
    assert f"{name} is not a knob of family direct" in refusal(flow(), LIMITS, cuda.Direct(), **knobs)


def test_an_unknown_representation_is_bad_input() -> None:
    reason = refusal(flow(), LIMITS, config(), representation="moment")
    assert "representation=moment is not supported for family temporal-blocking (use populations or moments)" in reason


def test_defaults_are_those_of_a_kernel_of_populations() -> None:
    usual = cuda.Direct()
    assert (usual.family, usual.kept.name, usual.fused_steps) == ("direct", "populations", 1)


# results

SAMPLES: dict[str, tuple[str, dict[str, object]]] = {
    "one step": ("d3q19", {}),
    "two steps, registers, quads": ("d3q19", {"steps": 2, "plane_fetch": "registers", "pack": 4}),
    "three steps, shared memory": ("d3q19", {"steps": 3, "plane_fetch": "cp_async", "pack": 2, "block": (32, 8, 1)}),
    "three steps, bulk copies": ("d3q19", {"steps": 3, "rows": 2, "pack": 4, "plane_fetch": "bulk", "overread": 1}),
    "bulk copies, double": (
        "d3q19",
        {"layout": "soa", "storage": "fp64", "compute": "fp64", "rows": 2, "plane_fetch": "bulk"},
    ),
    "bulk copies, halves": ("d3q19", {"steps": 3, "rows": 2, "storage": "fp16s", "pack": 8, "plane_fetch": "bulk"}),
    "rows and vectors": (
        "d3q19",
        {"steps": 2, "rows": 2, "cells_per_thread": 2, "plane_fetch": "registers", "pack": 2},
    ),
    "double": ("d3q19", {"layout": "soa", "storage": "fp64", "compute": "fp64", "rows": 2, "plane_fetch": "registers"}),
    "half": ("d3q19", {"steps": 2, "rows": 3, "storage": "fp16s", "pack": 8, "plane_fetch": "cp_async"}),
    "bfloat": ("d3q27", {"storage": "bf16", "cells_per_thread": 2}),
    "shelved": (
        "d3q19",
        {"steps": 2, "rows": 2, "plane_fetch": "cp_async", "pack": 4, "z_buffer": "shared", "overread": 1},
    ),
    "shelved, double": (
        "d3q19",
        {"storage": "fp64", "compute": "fp64", "rows": 2, "plane_fetch": "registers", "z_buffer": "shared"},
    ),
    "27, shelved": (
        "d3q27",
        {"steps": 2, "cells_per_thread": 2, "pack": 2, "plane_fetch": "registers", "z_buffer": "shared"},
    ),
    "beyond the last plane": (
        "d3q19",
        {"steps": 2, "rows": 2, "plane_fetch": "registers", "warp_sync": "neighbours", "overread": 1},
    ),
    "falling chunks": (
        "d3q19",
        {"steps": 2, "chunk_planes": 3, "plane_fetch": "registers", "chunk_schedule": "tapered"},
    ),
    "27, two steps": ("d3q27", {"steps": 2, "rows": 2, "pack": 4, "plane_fetch": "registers"}),
}


def _on_host(program: Program) -> Verification:
    return verify(program, compile_on_host(program), HostDevice(), 2)


@needs_compiler
@pytest.mark.parametrize("name", SAMPLES)
def test_kernels_on_the_host(name: str) -> None:
    lattice, axes = SAMPLES[name]
    assert broken(flow(lattice), config(**axes), LIMITS) is None
    found = _on_host(render(flow(lattice), config(**axes)))
    assert found.passed, found


@needs_compiler
def test_a_block_is_given_the_shared_memory_that_it_uses() -> None:
    program = render(flow(), config(layout="soa", storage="fp64", compute="fp64", rows=2, plane_fetch="cp_async"))
    less = [tuple(replace(launch, shared_bytes=launch.shared_bytes - 16) for launch in step) for step in program.period]
    with pytest.raises(AssertionError, match="16 bytes of shared memory behind"):
        _on_host(replace(program, period=tuple(less)))


@needs_compiler
def test_runs_of_buffers_beyond_32_bits_begin_where_they_lie() -> None:
    """Every plane as if it lay 2^33 elements further on."""
    program = render(replace(flow(), domain=(1024, 1024, 512)), config(plane_fetch="bulk"))
    assert "unsigned long long Index;" in program.source
    there = "of_first(from + row[r])"
    away = _text(there, "of_first(from + row[r] + (Index(1) << 33))")(program.source)
    back = _text("source + begins[r]", "source + (begins[r] - (Index(1) << 33))")(away)
    assert _on_host(replace(program, source=back)).passed


@needs_compiler
def test_bulk_copies_that_nobody_waits_for_are_found() -> None:
    program = render(flow(), config(plane_fetch="bulk"))
    changed = _text("await(arrived + warp, plane & 1)", "__syncwarp()")(program.source)
    with pytest.raises(AssertionError, match="or after its end"):
        _on_host(replace(program, source=changed))


@needs_compiler
def test_at_full_size_both_buffers_are_read() -> None:
    case, one = replace(flow(), domain=(40, 11, 13)), config(steps=2, plane_fetch="registers")
    program = render(case, one)
    binary = compile_on_host(program)
    assert Simulation(program, binary, HostDevice()).parity_steps == 4
    assert verify_full_size(program, binary, HostDevice()).passed


def _text(old: str, new: str) -> Callable[[str], str]:
    def changed(source: str) -> str:
        assert old in source
        return source.replace(old, new, 1)

    return changed


FAULTS: dict[str, Callable[[str], str]] = {
    "a moment of another": _text("m[8] = current[7] - falls_10", "m[8] = current[8] - falls_10"),
    "wrong sign along z": _text("m[3] = current[6] - falls_00", "m[3] = current[6] + falls_00"),
    "wrong weight": _text("= 2 * still[1]", "= 1 * still[1]"),
    "wrong rate": _text("const Real keep = Real(3)", "const Real keep = Real(3.3)"),
    "force lost": lambda source: re.sub(r"(const Real p100 = )Real\([^)]*\) \* force_x \+ ", r"\1", source, count=1),
    "lane of the wrong side": _text("(lane + 31) % 32", "(lane + 1) % 32"),
    "halo too narrow": _text("next_z = wrapped(begin - STEPS, nz)", "next_z = wrapped(begin - STEPS + 1, nz)"),
    "row of the wrong warp": _text("sent.up.value, seat + v * 32 - NEXT", "sent.up.value, seat + v * 32"),
    "barrier lost": _text("__syncthreads();", "if (!nx) __syncthreads();"),
    "shelf of another step": _text("shelves[(t * ROWS + r)", "shelves[(0 * t + r)"),
    "run of another group": _text("from + static_cast<unsigned long long>(pitch) * g,", "from + pitch * (g ? g : 1),"),
    "another place of a run": _text("const int cell = shift +", "const int cell ="),
    "one plane not stored": _text("if (stored[r]) store_cells", "if (stored[r] && plane != 2 * STEPS) store_cells"),
}


_IN_OTHER_PRECISIONS = [
    *((fault, storage) for fault in ("wrong rate", "wrong weight") for storage in ("fp64", "fp16s", "bf16")),
    # the momentum that a force brings in two steps is less than what bfloat keeps
    *(("force lost", storage) for storage in ("fp64", "fp16s")),
]


@pytest.mark.thinned(3)
@needs_compiler
@pytest.mark.parametrize(("fault", "storage"), [*((fault, "fp32") for fault in FAULTS), *_IN_OTHER_PRECISIONS])
def test_verification_finds(fault: str, storage: str) -> None:
    axes: dict[str, object] = {"storage": storage, "compute": "fp64" if storage == "fp64" else "fp32", "steps": 2}
    axes["plane_fetch"] = "bulk" if "run" in fault.split() else "registers"
    program = render(flow(), config(**axes, z_buffer="shared" if fault.startswith("shelf") else "registers"))
    changed = FAULTS[fault](program.source)
    assert changed != program.source
    assert not _on_host(replace(program, source=changed)).passed


def test_a_bound_counts_what_all_moments_of_a_cell_are_rounded_by() -> None:
    """The largest moments that noise makes, each off by epsilon of itself, all in the direction that hurts most."""
    exact = config(storage="bf16")
    rest, axis, diagonal = (error_bounds(flow(), exact, 1)[i] for i in (0, 1, 7))
    arithmetic = 6 * 2.0**-24 * oracle.NOISE / 3 + 2.0**-50
    for found, moved, of_one in ((rest, 4, 3), (axis, 4, 18), (diagonal, 6, 36)):
        assert found == pytest.approx(2 * 2.0**-8 * moved * oracle.NOISE / of_one + arithmetic, rel=1e-12)
    stencil, draw = LATTICES["d3q19"], np.random.default_rng(5)
    weights = np.array([float(w) for w in stencil.weights]).reshape(-1, 1, 1, 1)
    noise = weights * oracle.NOISE * draw.choice((-1, 1), (19, 4, 4, 4))
    kept = np.stack(list(moments_of(noise, stencil, np)))
    rounded = kept * (1 + 2.0**-8 * draw.choice((-1, 1), kept.shape))
    moved = abs(
        np.stack(list(populations_of(rounded, stencil, np))) - np.stack(list(populations_of(kept, stencil, np)))
    )
    most = np.array([m / w for m, w in ((4, 3), *[(4, 18)] * 6, *[(6, 36)] * 12)]) * 2.0**-8 * oracle.NOISE
    assert (moved.max(axis=(1, 2, 3)) <= most).all()
    assert moved.max() > 0.3 * most.max()
    # three steps of a launch are stored once
    assert max(error_bounds(flow(), replace(exact, steps=3), 3)) == pytest.approx(rest + 2 * arithmetic, rel=1e-12)


def test_moving_faces_add_to_what_is_rounded() -> None:
    lid = cavity("d3q19", "regularised", (64, 64, 64), 1.3)
    still = replace(lid, faces=("wall",) * 6)
    exact = config(storage="bf16")
    assert error_bounds(still, exact, 1) == pytest.approx(error_bounds(flow(), exact, 1), rel=1e-3)
    assert all(a > 1.1 * b for a, b in zip(error_bounds(lid, exact, 1), error_bounds(still, exact, 1), strict=True))


@needs_compiler
@pytest.mark.parametrize(("storage", "factor"), [("fp32", 1.00001), ("fp16s", 1.01), ("bf16", 1.06)])
def test_verification_finds_a_rate_that_is_little_wrong(storage: str, factor: float) -> None:
    program = render(flow(), config(storage=storage))
    changed = _text("const Real keep = Real(3)", f"const Real keep = Real({factor}) * Real(3)")(program.source)
    assert not _on_host(replace(program, source=changed)).passed


@needs_compiler
def test_steps_that_are_no_multiple_of_a_launch_are_refused() -> None:
    case = replace(flow(), domain=(16, 8, 6))
    program = render(case, config(steps=2))
    simulation = Simulation(program, compile_on_host(program), HostDevice())
    simulation.initialise(oracle.random_state(case))
    with pytest.raises(InputError, match=r"steps=3 is not supported .*multiple of 2.: it does 2 steps per launch"):
        simulation.step(3)


@needs_nvrtc
@pytest.mark.parametrize(
    ("registers", "axes"),
    [
        (
            96,
            {
                "cells_per_thread": 2,
                "block": (32, 10, 1),
                "pack": 2,
                "plane_fetch": "registers",
                "register_limit": "2-blocks",
            },
        ),
        (168, {"steps": 2, "rows": 3, "block": (32, 12, 1), "pack": 4, "plane_fetch": "cp_async"}),
        (168, {"steps": 3, "rows": 2, "block": (32, 12, 1), "pack": 4, "plane_fetch": "registers"}),
        (
            168,
            {"steps": 3, "rows": 3, "block": (32, 12, 1), "pack": 4, "plane_fetch": "cp_async", "z_buffer": "shared"},
        ),
    ],
)
def test_the_shapes_that_pay_stay_in_their_class_of_registers(registers: int, axes: dict[str, object]) -> None:
    """So many of 10 and of 12 warps fit into a multiprocessor's 65536 registers."""
    case = replace(flow(force=(0.0, 0.0, 0.0)), domain=(256, 256, 256))
    found = compiled.resources("moments.txt", render(case, config(chunk_planes=64, **axes)))
    assert found.registers <= registers
    assert found.spill_bytes == 0
