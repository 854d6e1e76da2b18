"""Kernels that keep populations on chip through many steps: results, faults, bytes, rules and how they are launched."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cuda import nvrtc
from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, pipe
from lbmtune.codegen.describe import describe_kernel
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.verify import verify
from lbmtune.records import Verification
from lbmtune.runtime import Simulation, simulation
from tests.shim.device import COMPILER, HostDevice, HostExecutable, compile_on_host
from tests.support.kernels.compiled import ptx
from tests.support.kernels.configs import configured, refusal
from tests.support.kernels.cuda_samples import needs_nvrtc
from tests.support.kernels.full_size import verify_full_size

H200 = Limits(
    shared_bytes_per_block=227 << 10,
    shared_bytes_per_multiprocessor=228 << 10,
    multiprocessors=132,
    cooperative=True,
    dependent=True,
    asynchronous=True,
)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")


def config(**axes: Any) -> CudaConfig:
    return configured(cuda.Persistent, **{"layout": "rows", "block": (8, 2, 1), "tile_planes": 3, **axes})


def flow(lattice: str = "d3q19", collision: str = "bgk") -> Case:
    return box(lattice, collision, (8, 4, 1 if lattice == "d2q9" else 6), 1.3)


def grinder(lattice: str, collision: str) -> Case:
    """Walls all around, some of which move, and a force."""
    z = ("periodic", "periodic") if lattice == "d2q9" else ("moving", "wall")
    flat = float(lattice != "d2q9")
    return replace(
        flow(lattice, collision),
        flow="grinder",
        faces=("moving", "wall", "wall", "moving", *z),
        wall_velocity=(0.05, -0.03, 0.02 * flat),
        force=(1e-3, -5e-4, 2e-4 * flat),
    )


def on_host(program: Program) -> Verification:
    return verify(program, compile_on_host(program), HostDevice())


def on_host_at_full_size(program: Program) -> Verification:
    return verify_full_size(program, compile_on_host(program), HostDevice())


# results

SAMPLES: dict[str, tuple[Case, CudaConfig]] = {
    "walls": (grinder("d3q19", "bgk"), config()),
    "periodic": (flow("d3q27", "cumulant"), config(storage="fp16s", tile_planes=2)),
    "one plane": (grinder("d3q27", "mrt"), config(tile_planes=1, layout="soa", storage="fp64", compute="fp64")),
    "flat": (grinder("d2q9", "trt"), config(tile_planes=1, block=(16, 3, 1), layout="aosoa", width=16)),
    "neighbours": (grinder("d3q19", "bgk"), config(grid_sync="neighbours")),
    "one row": (
        grinder("d3q19", "regularised"),
        config(block=(8, 1, 1), storage="bf16", layout="tiled", layout_tile=(8, 1, 3)),
    ),
    "solid cells": (
        replace(grinder("d3q19", "bgk"), flow="solids", geometry="blocks:fraction=0.3"),
        config(flags="memory", tile_planes=2),
    ),
    "walls by words": (grinder("d2q9", "trt"), config(flags="memory", tile_planes=1)),
    "one thread": (flow(), config(block=(1, 1, 1), tile_planes=2)),
    "neighbours of one thread": (flow(), config(block=(1, 1, 1), tile_planes=2, grid_sync="neighbours")),
}


@needs_compiler
@pytest.mark.parametrize("name", SAMPLES)
def test_one_two_and_three_steps_of_a_launch_are_those_of_the_oracle(name: str) -> None:
    case, one = SAMPLES[name]
    case = replace(case, domain=one.awkward_domain(case))
    assert broken(case, one, HostDevice.limits) is None
    found = on_host(render(case, one))
    assert found.passed, found
    assert len(set(found.domains[0])) == 3


def test_a_plane_stays_one_however_narrow_it_is() -> None:
    assert config(block=(1, 1, 1), tile_planes=1).awkward_domain(flow("d2q9")) == (1, 3, 1)
    assert config(block=(3, 1, 1), tile_planes=1).awkward_domain(flow()) == (3, 4, 5)


def _text(old: str, new: str) -> Callable[[str], str]:
    def changed(source: str) -> str:
        assert old in source
        return source.replace(old, new, 1)

    return changed


FAULTS = {
    "nobody waits": _text("if (number == 0 && step) wait_for", "if (false) wait_for"),
    "a step too little": _text("wait_for(barrier, step * blocks)", "wait_for(barrier, (step - 1) * blocks)"),
    "one buffer": _text("Stored* const sent = step % 2 ? source : target;", "Stored* const sent = source;"),
    "left in the other buffer": _text("left = steps % 2 ? target", "left = steps % 2 ? source"),
    "counted on": _text("barrier[0] = 0", "barrier[0] = blocks"),
    "the tile is overwritten too early": _text("        __syncthreads();\n#line", "#line"),
    "read from the wrong side": _text("take<1, 0, 0>", "take<-1, 0, 0>"),
    "a face that stays": _text("        send<0, 1, 0>(f,", "        if (step) send<0, 1, 0>(f,"),
}


FAULTS_OF_NEIGHBOURS = {
    "nobody waits": _text("if (step) wait_for_neighbours", "if (false) wait_for_neighbours"),
    "a step too little": _text("number, begun + step)", "number, begun + step - 1)"),
    "only those above": _text("n % 3 - 1) % gridDim.y", "n % 2) % gridDim.y"),
    "from the beginning": _text("const unsigned begun = *flag", "const unsigned begun = 0"),
}


@needs_compiler
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str) -> None:
    program = render(flow("d2q9"), config(tile_planes=1))
    found = on_host(replace(program, source=FAULTS[fault](program.source)))
    assert not found.passed


@needs_compiler
@pytest.mark.parametrize("fault", FAULTS_OF_NEIGHBOURS)
def test_a_fault_among_neighbours_is_found(fault: str) -> None:
    program = render(flow("d2q9"), config(tile_planes=1, block=(8, 1, 1), grid_sync="neighbours"))
    found = on_host(replace(program, source=FAULTS_OF_NEIGHBOURS[fault](program.source)))
    assert not found.passed


@needs_compiler
def test_any_number_of_steps_by_launches_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """From either buffer to either buffer; what is left at full size is right, too."""
    launched: list[int] = []
    plain = HostExecutable.launch

    def noted(self: HostExecutable, launch: Any, grid: Any, arguments: Any) -> None:
        launched.append(int(arguments[launch.arguments.index("steps")]))
        plain(self, launch, grid, arguments)

    monkeypatch.setattr(HostExecutable, "launch", noted)
    monkeypatch.setattr(simulation, "LONGEST_LAUNCH", 4)
    case = replace(flow("d2q9"), domain=(8, 4, 1))
    program = render(case, config(tile_planes=1, storage="fp64", compute="fp64"))
    binary = compile_on_host(program)
    flows = Simulation(program, binary, HostDevice())
    state = oracle.random_state(case)
    flows.initialise(state)
    flows.step(1)
    flows.step(10)
    for _ in range(11):
        state = oracle.step(state, case)
    assert launched == [1, 4, 4, 2]
    np.testing.assert_allclose(flows.populations(), state, atol=1e-14)
    assert flows.state is flows.buffers["f1"]
    assert (flows.parity_steps, flows.cycle_steps) == (2, 1024)
    assert verify_full_size(program, binary, HostDevice()).passed


@needs_nvrtc
@pytest.mark.parametrize("representation", ["populations", "moments"])
@pytest.mark.parametrize(
    ("meeting", "said"), [("all", "red.release.gpu.global.add.u32"), ("neighbours", "st.release.gpu.global.u32")]
)
def test_what_a_block_has_sent_is_seen_by_those_who_see_that_it_has(
    meeting: str, said: str, representation: str
) -> None:
    """On the host other text does that, so that no result tells whether this one releases and acquires."""
    one = config(grid_sync=meeting, representation=representation, block=(32, 2, 1))
    text = ptx(render(box("d3q19", "regularised", (32, 6, 9)), one), "compute_90")
    assert set(re.findall(r"\b(?:ld|st|red)\.(?!global|shared|param)\S+", text)) == {said, "ld.acquire.gpu.global.u32"}


@needs_compiler
@pytest.mark.parametrize("representation", ["populations", "moments"])
def test_at_full_size_blocks_write_what_others_have_read(representation: str) -> None:
    """With two steps nobody would: the second one goes to the other buffer."""
    one = config(representation=representation, block=(16, 2, 1), tile_planes=2)
    program = render(replace(flow(collision="regularised"), domain=(16, 8, 8)), one)
    changed = _text("number == 0 && step) wait_for", "number == 0 && step && step < 2) wait_for")
    assert not on_host_at_full_size(replace(program, source=changed(program.source))).passed
    assert on_host_at_full_size(program).passed


# what it moves and needs


def test_bytes() -> None:
    """Values that leave a tile of 4 x 8 cells: 8 of 32 by each of 6 directions, 4 by each of 6, 11 by each of 4."""
    case, one = box("d3q19", "bgk", (64, 64, 64)), config(block=(64, 4, 1), tile_planes=8)
    assert bytes_per_update(case, one) == 2 * 4 * (6 * 8 + 6 * 4 + 4 * 11) / 32 == 29
    assert bytes_per_update(case, replace(one, storage="fp16s")) == 14.5
    assert one.shared_bytes(case) == 19 * 4 * 64 * 4 * 8
    assert footprint_bytes(case, one) == 2 * 19 * 4 * 64**3
    assert bytes_per_update(box("d2q9", "bgk", (64, 64, 1)), config(block=(64, 1, 1), tile_planes=1)) == 2 * 4 * 6


def _sized(*domain: int) -> Case:
    return box("d3q19", "bgk", domain)  # type: ignore[arg-type]


REASONS: dict[str, tuple[Case, dict[str, Any], Limits]] = {
    "scheme is not a knob of family persistent": (_sized(64, 64, 64), {"scheme": "aa"}, H200),
    "rows=2 is not supported for representation=populations": (_sized(64, 64, 64), {"rows": 2}, H200),
    "grid_sync=some is not supported for family persistent": (_sized(64, 64, 64), {"grid_sync": "some"}, H200),
    "grid_sync is not a knob of family direct": (_sized(64, 64, 64), {"family": "direct"}, H200),
    "pack is not a knob of family persistent": (_sized(64, 64, 64), {"pack": 2}, H200),
    "layout=bundle is not supported for family persistent": (_sized(64, 64, 64), {"layout": "bundle"}, H200),
    "boundary is not a knob of family persistent": (
        cavity("d3q19", "bgk", (64, 64, 64), 1.6),
        {"flags": "memory", "boundary": "predicated"},
        H200,
    ),
    "cells_per_thread=2 is not supported for representation=populations": (
        _sized(64, 64, 64),
        {"cells_per_thread": 2},
        H200,
    ),
    "register_limit is not a knob of family persistent": (
        _sized(64, 64, 64),
        {"register_limit": "128-registers"},
        H200,
    ),
    "block 32x4x1 is not supported (use 64 x n x 1): tiles are whole rows": (
        _sized(64, 64, 64),
        {"block": (32, 4, 1)},
        H200,
    ),
    "the domain 64x64x60 is not divisible into tiles of 64x4x8": (_sized(64, 64, 60), {}, H200),
    "a tile of 64x4x16 needs 304 KiB of shared memory; a block here has 227 KiB": (
        _sized(64, 64, 64),
        {"tile_planes": 16},
        H200,
    ),
    "family persistent is not supported by this device: it has no cooperative launch": (
        _sized(64, 64, 64),
        {},
        replace(H200, cooperative=False),
    ),
    "256 blocks of 64x4x4 cells do not run at once: 132 multiprocessors hold 1 each": (
        _sized(64, 64, 64),
        {"tile_planes": 4},
        H200,
    ),
    "256 blocks of 64x4x8 cells do not run at once: 132 multiprocessors hold 1 each": (
        _sized(64, 64, 128),
        {},
        H200,
    ),
    "velocity face x- is not supported for family persistent": (pipe("d3q19", "bgk", (64, 64, 64), 1.3), {}, H200),
}


@pytest.mark.parametrize("reason", REASONS)
def test_what_cannot_stay_on_chip_says_why(reason: str) -> None:
    case, knobs, limits = REASONS[reason]
    assert reason in refusal(case, limits, config(block=(64, 4, 1), tile_planes=8), **knobs)


def test_what_fits_is_legal() -> None:
    for case in (_sized(64, 64, 64), cavity("d3q19", "bgk", (64, 64, 64), 1.6)):
        assert broken(case, config(block=(64, 4, 1), tile_planes=8), H200) is None
    assert broken(_sized(64, 64, 64), config(block=(64, 4, 1), tile_planes=4, min_blocks=2), H200) is None
    twice = config(block=(64, 4, 1), tile_planes=4, min_blocks=2, storage="fp64", compute="fp64")
    assert "132 multiprocessors hold 1 each" in str(broken(_sized(64, 64, 64), twice, H200))


@needs_nvrtc
@pytest.mark.parametrize("tile", [(64, 4, 8), (32, 4, 2)])
def test_a_column_stays_in_registers(tile: tuple[int, int, int]) -> None:
    x, y, z = tile
    found = nvrtc.compile_cuda(render(_sized(x, x, x), config(block=(x, y, 1), tile_planes=z))).resources
    assert (found.spill_bytes, found.local_bytes) == (0, 0)


def test_a_solver_is_told_how_to_launch_it() -> None:
    program = render(_sized(64, 64, 64), config(block=(64, 4, 1), tile_planes=8))
    kernel = describe_kernel(program)
    ((launch,),) = kernel.period
    assert (launch.mode, launch.grid, launch.block) == ("cooperative", (1, 16, 8), (64, 4, 1))
    assert launch.arguments[:4] == ("f0", "f1", "barrier", "steps")
    assert [(one.name, one.elements) for one in kernel.buffers][-1] == ("barrier", 2)
    assert kernel.arguments["steps"].type == "int32"
    with_flags = describe_kernel(
        render(_sized(64, 64, 64), config(block=(64, 4, 1), tile_planes=8, grid_sync="neighbours"))
    )
    flags = with_flags.buffers[-1]
    assert (flags.elements, flags.bytes) == (32 * 128, 4 * 32 * 128)
    nx, ny, nz = 64, 64, 64
    assert eval(flags.elements_formula.replace("/", "//"), {"nx": nx, "ny": ny, "nz": nz}) == flags.elements


def test_a_launch_takes_a_barrier_that_is_zero() -> None:
    seen: list[np.ndarray] = []

    class Device(HostDevice):
        def load(self, program: Program, binary: Binary) -> Any:
            class Executable:
                def launch(self, launch: Any, grid: Any, arguments: Any) -> None:
                    seen.append(arguments[launch.arguments.index("barrier")])

            return Executable()

    program = render(flow(), config())
    Simulation(program, Binary(b"", "", resources=None), Device()).step(3)  # type: ignore[arg-type]
    (barrier,) = seen
    assert barrier.dtype == np.uint32
    assert barrier.tolist() == [0, 0]
