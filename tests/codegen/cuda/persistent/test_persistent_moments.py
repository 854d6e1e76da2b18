"""Kernels that keep moments on chip through many steps: results, faults, bytes, registers and rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cuda import nvrtc
from lbmtune.catalogue.boundaries.cut_links import OPEN, cut_kind, may_cut
from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.families.cuda.persistent import face_elements
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.codegen.describe import describe_kernel, describe_storage
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.lattice import negate
from lbmtune.measure.verification import oracle
from lbmtune.runtime import Simulation, simulation
from lbmtune.runtime.moments import moments_of, places, populations_of
from tests.codegen.cuda.persistent.test_persistent import H200, grinder, on_host
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels.configs import configured, refusal
from tests.support.kernels.cuda_samples import needs_nvrtc
from tests.support.kernels.full_size import verify_full_size

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")


def config(**axes: Any) -> CudaConfig:
    usual = {"representation": "moments", "layout": "rows", "block": (32, 2, 1), "tile_planes": 3}
    return configured(cuda.Persistent, **usual | axes)


def flow(lattice: str = "d3q19") -> Case:
    """Periodic, with a force."""
    case = box(lattice, "regularised", (32, 6, 1 if lattice == "d2q9" else 9), 1.3)
    return replace(case, force=(1e-3, -5e-4, 2e-4 * (lattice != "d2q9")))


DOUBLES = {"storage": "fp64", "compute": "fp64"}
SOLIDS = replace(grinder("d3q19", "regularised"), flow="solids", geometry="blocks:fraction=0.3")
SAMPLES: dict[str, tuple[Case, CudaConfig]] = {
    "sums where moments lay": (flow(), config(tile_planes=2)),
    "held": (
        flow(),
        config(tile_planes=4, register_planes=2, cells_per_thread=2, rows=2, grid_sync="neighbours", **DOUBLES),
    ),
    "halves": (flow(), config(tile_planes=1, block=(32, 1, 1), storage="fp16s")),
    "pairs held": (flow("d3q27"), config(tile_planes=4, register_planes=2, block=(16, 2, 1), storage="bf16")),
    "one of three held": (
        flow(),
        config(tile_planes=6, register_planes=2, block=(16, 2, 1), cells_per_thread=3, grid_sync="neighbours"),
    ),
    "apart": (flow("d3q27"), config(layout="soa", block=(8, 4, 1), cells_per_thread=3)),
    "flat": (flow("d2q9"), config(block=(16, 2, 1), cells_per_thread=3)),
    "walls": (grinder("d3q19", "regularised"), config()),
    "walls, held": (
        grinder("d3q27", "regularised"),
        config(tile_planes=4, register_planes=2, block=(16, 2, 1), grid_sync="neighbours"),
    ),
    "walls, flat": (grinder("d2q9", "regularised"), config(block=(16, 2, 1), tile_planes=2, **DOUBLES)),
    "solid cells": (SOLIDS, config(flags="memory", rows=2)),
    "solid cells, several of a lane": (
        SOLIDS,
        config(flags="memory", block=(16, 2, 1), cells_per_thread=2, tile_planes=2),
    ),
}


@needs_compiler
@pytest.mark.parametrize("name", SAMPLES)
def test_one_two_and_three_steps_of_a_launch_are_those_of_the_oracle(name: str) -> None:
    case, one = SAMPLES[name]
    case = replace(case, domain=one.awkward_domain(case))
    assert broken(case, one, HostDevice.limits) is None
    found = on_host(render(case, one))
    assert found.passed, found


def test_the_highest_tiles_are_thinner_where_that_may_be() -> None:
    """One plane of them is left, or a pass of those held; an odd number of rows of tiles, and of layers."""
    assert config(tile_planes=3).awkward_domain(flow()) == (32, 6, 13)
    assert config(tile_planes=2).awkward_domain(flow()) == (32, 6, 9)
    assert config(tile_planes=4, register_planes=2).awkward_domain(flow()) == (32, 6, 18)
    assert config(tile_planes=9, register_planes=3).awkward_domain(flow()) == (32, 6, 39)
    assert config(tile_planes=3, register_planes=1).awkward_domain(flow()) == (32, 6, 15)
    assert config(tile_planes=3).awkward_domain(flow("d2q9")) == (32, 18, 1)


def _text(old: str, new: str) -> Callable[[str], str]:
    def changed(source: str) -> str:
        assert old in source, old
        return source.replace(old, new)

    return changed


FAULTS = {
    "nobody waits": _text("if (number == 0 && step) wait_for", "if (false) wait_for"),
    "one buffer of faces": _text("memory + step % 2 * 2 *", "memory + 0 * 2 *"),
    "left without what came in": _text(
        "if (at_rim(seat)) expect_side(entering, sides, k == 0", "if (false) expect_side(entering, sides, k == 0"
    ),
    "a side is not sent": _text("if (seat.last) send_side", "if (step && seat.last) send_side"),
    "diagonals from their own plane": _text("way(n) > 0 ? below : way(n) < 0 ? above : here", "here"),
    "sums are read too early": _text(
        "sides.out[side] += NEXT;\n                    __syncthreads();", "sides.out[side] += NEXT;"
    ),
    "the next plane has what came in to this one": _text(
        "if (!high && at_rim(seat)) expect_side", "if (false) expect_side"
    ),
}


THIN_FAULTS = {
    "one plane has nothing from below": _text("if (low && high) {", "if (false) {"),
    "two planes have nothing from above": _text("if (ends(j, 2) && k + 2 == seat.planes) {", "if (false) {"),
}
"""Of the highest tiles, where they have fewer planes than the others."""


@needs_compiler
@pytest.mark.parametrize(
    ("fault", "march", "block"),
    [(fault, 2, (16, 4, 1)) for fault in FAULTS] + [(fault, 3, (16, 2, 1)) for fault in THIN_FAULTS],
)
def test_a_fault_is_found(fault: str, march: int, block: tuple[int, int, int]) -> None:
    case, one = flow(), config(tile_planes=march, block=block)
    case = replace(case, domain=one.awkward_domain(case))
    program = render(case, one)
    assert not on_host(replace(program, source=(FAULTS | THIN_FAULTS)[fault](program.source))).passed


FAULTS_OF_SHAPES: dict[str, tuple[str, Callable[[str], str]]] = {
    "a plane that shared memory keeps goes to registers": (
        "one of three held",
        _text("(j + TOGETHER - 1) % TOGETHER, seat.number", "(j + 1) % TOGETHER, seat.number"),
    ),
    "two planes in one place of shared memory": (
        "one of three held",
        _text("k - (k + TOGETHER - 1) / TOGETHER", "k - (k + 1) / 2"),
    ),
    "words of other cells": (
        "solid cells, several of a lane",
        _text("x = seat.x * WIDE + v, y", "x = seat.x + v * LANES, y"),
    ),
}
"""Which some shapes of blocks and tiles have and others do not, each with the sample that has it."""


@needs_compiler
@pytest.mark.parametrize("fault", FAULTS_OF_SHAPES)
def test_a_fault_of_some_shapes_is_found(fault: str) -> None:
    name, changed = FAULTS_OF_SHAPES[fault]
    case, one = SAMPLES[name]
    case = replace(case, domain=one.awkward_domain(case))
    program = render(case, one)
    assert not on_host(replace(program, source=changed(program.source))).passed


@needs_compiler
@pytest.mark.parametrize("planes", [1, 2, 3])
def test_the_highest_tiles_may_have_any_number_of_planes(planes: int) -> None:
    one = config(tile_planes=3, block=(16, 2, 1))
    program = render(replace(flow(), domain=(16, 6, 6 + planes)), one)
    assert broken(program.case, one, HostDevice.limits) is None
    assert verify_full_size(program, compile_on_host(program), HostDevice()).passed


@needs_compiler
def test_any_number_of_steps_by_launches_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each launch leaves moments as its last step has them, what came in from other tiles included."""
    monkeypatch.setattr(simulation, "LONGEST_LAUNCH", 4)
    case = replace(flow("d2q9"), domain=(16, 4, 1), force=(0.0, 0.0, 0.0))
    program = render(case, config(block=(16, 2, 1), tile_planes=1, **DOUBLES))
    binary = compile_on_host(program)
    flows = Simulation(program, binary, HostDevice())
    state = flows.kept.seen(oracle.random_state(case))
    flows.initialise(state)
    flows.step(1)
    flows.step(10)
    for _ in range(11):
        state = oracle.step(state, case)
    np.testing.assert_allclose(flows.populations(), flows.kept.seen(state), atol=1e-13)
    assert verify_full_size(program, binary, HostDevice()).passed


# how often 16 bits round

LAST_STEPS: dict[str, tuple[Case, CudaConfig]] = {
    "planes one by one": (flow(), config(storage="fp16s")),
    "one plane": (flow(), config(storage="bf16", tile_planes=1, block=(32, 1, 1))),
    "several cells and rows": (
        flow(),
        config(storage="fp16s", block=(16, 2, 1), cells_per_thread=2, rows=2, tile_planes=2, grid_sync="neighbours"),
    ),
    "held": (flow("d3q27"), config(storage="bf16", block=(16, 2, 1), tile_planes=4, register_planes=2)),
    "flat": (flow("d2q9"), config(storage="fp16s", block=(16, 2, 1))),
    "walls": (grinder("d3q19", "regularised"), config(storage="fp16s", block=(16, 2, 1))),
}


def _of_other_tiles(case: Case, config: CudaConfig) -> np.ndarray:
    """Which populations come to a cell from another tile, (q, nz, ny, nx); what a wall returns does not."""
    nx, ny, nz = case.domain
    z, y, _ = np.indices((nz, ny, nx))
    flat, found = case.stencil.dimensions == 2, []
    rows, planes = config.tile_planes if flat else config.block[1] * config.rows, 1 if flat else config.tile_planes
    for c in case.stencil.velocities:
        from_y, from_z = y - c[1], z - c[2]
        beyond = (from_y < 0) | (from_y >= ny) | (from_z < 0) | (from_z >= nz)
        beyond |= (from_y // rows != y // rows) | (from_z // planes != z // planes)
        cut = cut_kind(case, negate(c)) != OPEN if may_cut(case, negate(c)) else False
        found.append(beyond & np.broadcast_to(np.logical_not(cut), beyond.shape))
    return np.array(found)


def _codes(flows: Simulation) -> np.ndarray:
    """Moments as they are stored."""
    kernel = flows.program
    return np.stack([flows.state[place] for place in places(kernel.case, kernel.config, np)])


def _rounded_once_a_step(case: Case, config: CudaConfig, codes: np.ndarray, steps: int) -> np.ndarray:
    """The codes after a launch of some steps, worked out in float64 but for the roundings that a launch makes.

    On chip a cell is rounded without what comes from other tiles, which is added when it is taken up again; what the
    last step leaves is rounded when that has come, and no sooner.
    """
    lattice, stored, unit = case.stencil, config.stored, config.unit
    weights = np.array([float(w) for w in lattice.weights]).reshape(-1, 1, 1, 1)
    others, own, rest = _of_other_tiles(case, config), stored.deviations(codes, np, unit), np.float64(0.0)
    for _ in range(steps):
        kept = stored.deviations(stored.stored(own, np, unit), np, unit)
        state = np.stack(list(populations_of(kept + rest, lattice, np)))
        arrived = oracle.stream(oracle.collide(state, case), case) - weights
        own, rest = (
            np.stack(list(moments_of(np.where(coming, arrived, 0.0), lattice, np))) for coming in (~others, others)
        )
    return np.asarray(stored.stored(own + rest, np, unit))


def _same(found: np.ndarray, expected: np.ndarray) -> float:
    return float((found == expected).mean())


def launched(case: Case, program: Program, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The codes after one launch, and those worked out here."""
    assert isinstance(program.config, CudaConfig)
    flows = Simulation(program, compile_on_host(program), HostDevice())
    flows.initialise(oracle.random_state(case))
    before = _codes(flows)
    flows.step(steps)
    return _codes(flows), _rounded_once_a_step(case, program.config, before, steps)


@needs_compiler
@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("name", LAST_STEPS)
def test_sixteen_bits_round_a_cell_once_a_step(name: str, steps: int) -> None:
    """But for sums in single precision that lie between two codes."""
    case, one = LAST_STEPS[name]
    case = replace(case, domain=one.awkward_domain(case))
    assert broken(case, one, HostDevice.limits) is None
    found, expected = launched(case, render(case, one), steps)
    assert _same(found, expected) > SAME


SAME = 0.98
"""Share of the codes that have to be equal. Of faultless kernels 0.998 are after a step, 0.989 after three."""
LAST_STEP_FAULTS = {
    "the plane above is left": _text(
        "leave_plane(m, source, target, k - 1, nx", "leave_plane(m, source, target, k, nx"
    ),
    "the highest plane is left below": _text("target, seat.planes - 1, nx", "target, seat.planes - 2, nx"),
    "the highest plane is not left": _text("leave_plane(m, source, target, seat.planes - 1, nx, ny, nz);", ""),
    "rounded before all has come": _text(
        "static_cast<float>(m[r][v][i])", "static_cast<float>(widen(narrow(m[r][v][i])))"
    ),
    "half of the bits": _text("static_cast<Stored>(bits & 0xffffu)", "static_cast<Stored>(0)"),
    "found without them": _text("static_cast<unsigned>(target[cell + component(i, n)])", "0u"),
    "found on the lowest plane": _text(
        "find_plane(m, source, target, seat, k, n)", "find_plane(m, source, target, seat, 0, n)"
    ),
    "kept, and found where nobody left it": _text("} else if (HALVED && step + 1 == steps) {", "} else if (false) {"),
    "left a step too early": _text("} else if (HALVED && step + 1 == steps) {", "} else if (HALVED) {"),
    "nothing came along y": _text("add_side(m, entering, seat);\n            Crossing", "Crossing"),
    "what comes along y is not loaded": _text("sums[side][v][n] = __ldcg(row + v * LANES);", "sums[side][v][n] = 0;"),
    "loaded a second time from the same plane": _text("sides.in[side] += NEXT;", ""),
    "nothing came along z": _text(
        "rise(m[r][v], crossing[r][v]);\n                }\n            }\n            if (k + 1",
        ";\n                }\n            }\n            if (k + 1",
    ),
    "left in the other lattice": _text("left = steps % 2 ? target : source", "left = steps % 2 ? source : target"),
}


@needs_compiler
@pytest.mark.parametrize("fault", LAST_STEP_FAULTS)
def test_a_fault_of_the_last_step_in_sixteen_bits_is_found(fault: str) -> None:
    case, one = LAST_STEPS["planes one by one"]
    case = replace(case, domain=one.awkward_domain(case))
    program = render(case, one)
    found, expected = launched(case, replace(program, source=LAST_STEP_FAULTS[fault](program.source)), 2)
    assert not _same(found, expected) > SAME


# what it moves and needs


def _sized(*domain: int) -> Case:
    return box("d3q19", "regularised", domain)  # type: ignore[arg-type]


def test_bytes() -> None:
    """Five sums leave a cell of each face, and are read; 10 moments lie in shared memory, and sums where they lay."""
    case, one = _sized(64, 64, 64), config(block=(32, 8, 1), cells_per_thread=2, tile_planes=4)
    assert bytes_per_update(case, one) == 2 * 4 * 5 * (2 / 8 + 2 / 4)
    assert one.shared_bytes(case) == 10 * 4 * 64 * 8 * 4
    assert face_elements(case.stencil, one, case.domain) == 2 * 2 * 64 * 5 * (8 * 64 + 16 * 64)
    assert footprint_bytes(case, one) == 2 * 10 * 4 * 64**3 + 4 * face_elements(case.stencil, one, case.domain)
    half = replace(one, storage="fp16s")
    assert half.shared_bytes(case) == 10 * 2 * 64 * 8 * 4 + 2 * 10 * 4 * 64 * 8
    held = replace(one, register_planes=2)
    assert held.shared_bytes(case) == 10 * 4 * 64 * 8 * 2 + 10 * 4 * 64 * 8
    flat = box("d2q9", "regularised", (64, 64, 1))
    assert one.shared_bytes(flat) == 6 * 4 * 64 * 8 * 4
    assert face_elements(flat.stencil, one, flat.domain) == 2 * 2 * 64 * 3 * 16


REASONS: dict[str, tuple[Case, dict[str, Any]]] = {
    "representation=moments is not supported for collision=bgk": (box("d3q19", "bgk", (64, 64, 64)), {}),
    "layout=aosoa is not supported for representation=moments (use soa or rows)": (
        _sized(64, 64, 64),
        {"layout": "aosoa", "width": 16},
    ),
    "block 24x8x1 is not supported for moments (use for example 32x4x1): 1, 2, 4, 8, 16 or 32 threads have a row": (
        _sized(48, 64, 64),
        {"block": (24, 8, 1)},
    ),
    "block 8x2x1 is not supported for moments": (_sized(16, 64, 64), {"block": (8, 2, 1)}),
    "block 32x8x1 x 2 cells is not supported for moments (use 96 cells along x): tiles are whole rows": (
        _sized(96, 64, 64),
        {},
    ),
    "60 rows of the domain 64x60x64 are not divisible into tiles of 8": (_sized(64, 60, 64), {}),
    "a tile of 96x12x6 needs 270 KiB of shared memory; a block here has 227 KiB": (
        _sized(96, 96, 96),
        {"block": (32, 12, 1), "cells_per_thread": 3, "tile_planes": 6},
    ),
    "144 blocks of 96x8x8 cells do not run at once: 132 multiprocessors hold 1 each": (
        _sized(96, 96, 96),
        {"cells_per_thread": 3, "tile_planes": 8, "register_planes": 4},
    ),
    "register_planes=3 is not supported for tile_planes=4: registers keep one plane of each two, three or more": (
        _sized(64, 64, 64),
        {"register_planes": 3},
    ),
    "register_planes=2: nz=63 of the domain 64x64x63 is not a multiple of the 2 planes of a pass": (
        _sized(64, 64, 63),
        {"register_planes": 2},
    ),
    "register_planes=2 is not supported for representation=populations (use register_planes=0)": (
        _sized(64, 64, 64),
        {"register_planes": 2, "representation": "populations", "cells_per_thread": 1, "block": (64, 8, 1)},
    ),
    "is not a knob of family face-exchange": (
        _sized(64, 64, 64),
        {"family": "face-exchange", "register_planes": 2},
    ),
    "rows=2 is not supported for lattice=d2q9 (use 1): threads go up along y": (
        box("d2q9", "regularised", (64, 64, 1)),
        {"rows": 2},
    ),
    "pack is not a knob of family persistent": (_sized(64, 64, 64), {"pack": 2}),
    "moments of 32 cells of a thread at once: 320 registers; with these blocks it has 255": (
        _sized(128, 64, 16),
        {"block": (16, 4, 1), "cells_per_thread": 8, "rows": 4, "tile_planes": 1},
    ),
    "moments of 30 cells of a thread at once: 300 registers; with these blocks it has 255": (
        _sized(160, 64, 40),
        {"cells_per_thread": 5, "tile_planes": 10, "register_planes": 5},
    ),
    "moments of 15 cells of a thread at once: 300 registers; with these blocks it has 255": (
        _sized(160, 64, 40),
        {"cells_per_thread": 5, "register_planes": 2, **DOUBLES},
    ),
    # 113.75 KiB, and 1 KiB that the device keeps for itself
    "144 blocks of 112x2x13 cells do not run at once: 132 multiprocessors hold 1 each": (
        _sized(112, 48, 78),
        {"block": (16, 2, 1), "cells_per_thread": 7, "tile_planes": 13},
    ),
    "register_planes=9 is not supported (use up to 8)": (
        _sized(64, 64, 72),
        {"register_planes": 9, "tile_planes": 18},
    ),
    "cells_per_thread=9 is not supported for family persistent (use 1 to 8)": (
        _sized(64, 64, 64),
        {"cells_per_thread": 9},
    ),
}


@pytest.mark.parametrize("reason", REASONS)
def test_what_cannot_stay_on_chip_says_why(reason: str) -> None:
    case, knobs = REASONS[reason]
    assert reason in refusal(case, H200, config(block=(32, 8, 1), cells_per_thread=2, tile_planes=4), **knobs)


FITTING = {
    "64": (_sized(64, 64, 64), config(block=(32, 8, 1), cells_per_thread=2, tile_planes=4)),
    "64 with walls": (cavity("d3q19", "regularised", (64, 64, 64), 1.6), config(block=(32, 8, 1), cells_per_thread=2)),
    "96": (_sized(96, 96, 96), config(block=(32, 8, 1), cells_per_thread=3, tile_planes=9, register_planes=3)),
    "96 in halves": (
        _sized(96, 96, 96),
        config(block=(32, 6, 1), cells_per_thread=3, tile_planes=6, min_blocks=2, storage="fp16s"),
    ),
}


@pytest.mark.parametrize("name", FITTING)
def test_what_fits_is_legal(name: str) -> None:
    case, one = FITTING[name]
    assert broken(case, replace(one, tile_planes=4) if name == "64 with walls" else one, H200) is None


@needs_nvrtc
def test_a_pass_stays_in_registers() -> None:
    found = nvrtc.compile_cuda(render(*FITTING["64"])).resources
    assert (found.spill_bytes, found.local_bytes) == (0, 0)


def test_a_solver_is_told_what_it_needs() -> None:
    program = render(*FITTING["96"])
    kernel = describe_kernel(program)
    ((launch,),) = kernel.period
    assert (launch.mode, launch.grid, launch.block) == ("cooperative", (1, 12, 11), (32, 8, 1))
    assert launch.arguments[:5] == ("f0", "f1", "barrier", "faces", "steps")
    (faces,) = [one for one in kernel.buffers if one.name == "faces"]
    assert (faces.dtype, faces.elements) == ("float32", 4 * 96 * 5 * (12 * 96 + 11 * 96))
    for found in (program, render(box("d2q9", "regularised", (64, 64, 1)), config(cells_per_thread=2))):
        nx, ny, nz = found.case.domain
        (of,) = [one for one in describe_kernel(found).buffers if one.name == "faces"]
        assert eval(of.elements_formula.replace("/", "//"), {"nx": nx, "ny": ny, "nz": nz}) == of.elements
    assert len(describe_storage(program).moments) == 10
