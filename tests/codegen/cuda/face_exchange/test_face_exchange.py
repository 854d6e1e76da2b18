"""Tiles of moments that leave at their faces what crosses them: results, faults, links, bytes, rules and launches."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from lbmtune.api.machines.shipped import named_machine
from lbmtune.backend.cuda import nvrtc
from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.families.cuda.face_exchange import array_elements, crossing, list_starts
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.footprint import buffer_elements, bytes_per_update, footprint_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, pipe
from lbmtune.codegen.describe import describe_kernel
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.verify import verify
from lbmtune.model.gpu.face_exchange import partial, slots
from lbmtune.model.gpu.families import inputs_of
from lbmtune.model.predict import predict
from lbmtune.records import Resources, Verification
from lbmtune.records.terms import ISSUE, SECTORS
from lbmtune.runtime import Simulation
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.conformance.choices import case_of
from tests.support.kernels.configs import configured, refusal
from tests.support.kernels.cuda_samples import needs_nvrtc

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
PRECISE = {"storage": "fp64", "compute": "fp64"}
IN_TILES = {"layout": "tiled-cells", "layout_tile": (8, 8, 8)}
CUBE = box("d3q19", "regularised", (256, 256, 256))


def config(**axes: Any) -> CudaConfig:
    return configured(cuda.FaceExchange, **{"layout": "soa", **axes})


def on_host(program: Program) -> Verification:
    return verify(program, compile_on_host(program), HostDevice())


def forced(lattice: str) -> Case:
    case = box(lattice, "regularised", (9, 7, 1 if lattice == "d2q9" else 5), 1.3)
    return replace(case, force=(1e-3, -5e-4, 2e-4 * (lattice != "d2q9")))


# results

SAMPLES: dict[str, tuple[Case, CudaConfig]] = {
    "tiles of several cells each way": (forced("d3q19"), config(tile=(8, 4, 2), **PRECISE)),
    "copied": (forced("d3q27"), config(tile=(4, 4, 4), layout="rows", prefetch_to="shared")),
    "tiles in memory": (
        case_of("grinder", "d3q27", "regularised"),
        config(tile=(4, 2, 3), layout="tiled-cells", layout_tile=(4, 2, 3), **PRECISE),
    ),
    "flat": (case_of("cavity", "d2q9", "regularised"), config(tile=(16, 4, 1), storage="bf16", layout="aos")),
    "a cell thin": (case_of("channel", "d3q19", "regularised"), config(tile=(1, 4, 1), launch="dependent")),
    "walls and solid cells by words": (
        case_of("solids", "d3q19", "regularised"),
        config(tile=(8, 4, 2), flags="memory", prefetch_to="shared", layout="tiled", layout_tile=(8, 4, 2)),
    ),
}


@needs_compiler
@pytest.mark.parametrize("name", SAMPLES)
def test_one_two_and_three_steps_are_those_of_the_oracle(name: str) -> None:
    """The last tiles along each axis are smaller than the others."""
    case, one = SAMPLES[name]
    domain = one.awkward_domain(case)
    assert all(n % edge or edge == 1 for n, edge in zip(domain, one.block, strict=True))
    found = on_host(render(case, one))
    assert found.passed, found
    assert domain in found.domains


def _changed(program: Program, old: str, new: str) -> Program:
    assert old in program.source
    return replace(program, source=program.source.replace(old, new, 1))


FAULTS = {
    "the same place in every step": lambda p: replace(p, period=(p.period[0],) * 2),
    "nothing at the faces at first": lambda p: replace(p, prologue=()),
    "at the faces of the other parity": lambda p: replace(p, prologue=p.prologue[::-1]),
    "the tile before has the size of others": lambda p: _changed(p, "(tile == 0 ? rest : size) - 1", "size - 1"),
    "the last tile has the size of others": lambda p: _changed(p, "(tile + 1 == tiles ? rest : size)", "(size)"),
    "not around the box": lambda p: _changed(p, "tile == 0 ? Place(tiles - 1)", "tile == 0 ? Place(0)"),
    "from the same tile": lambda p: _changed(p, "RISES ? across.before : 0", "0"),
    "the wrong neighbour": lambda p: _changed(p, "BEHIND<0, 1, 0>]", "BEHIND<0, -1, 0>]"),
    "a face that nobody leaves anything at": lambda p: _changed(p, "if (!cell.at_face()) return;\n#", "return;\n#"),
    "no waiting for the block": lambda p: _changed(p, "    __syncthreads();\n", ""),
}


@needs_compiler
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str) -> None:
    program = render(forced("d2q9"), config(tile=(8, 2, 1), **PRECISE))
    assert not on_host(FAULTS[fault](program)).passed


@needs_compiler
def test_what_waits_at_the_faces_follows_a_change_of_the_relaxation_rate() -> None:
    """After an odd number of steps, so that it waits in the places of the other parity."""
    case = forced("d2q9")
    program = render(case, config(tile=(4, 2, 1), **PRECISE))
    flow = Simulation(program, compile_on_host(program), HostDevice())
    state = flow.kept.seen(oracle.random_state(case))
    flow.initialise(state)
    for rate, steps in ((case.relaxation_rate, 3), (0.8, 1), (1.7, 2)):
        case = replace(case, relaxation_rate=rate)
        flow.change_case(case)
        flow.step(steps)
        for _ in range(steps):
            state = oracle.step(state, case)
        np.testing.assert_allclose(flow.populations(), flow.kept.seen(state), atol=1e-14)
    flow.initialise(state)
    flow.step(1)
    np.testing.assert_allclose(flow.populations(), flow.kept.seen(oracle.step(state, case)), atol=1e-14)
    assert flow.state is flow.buffers["f0"]
    assert [*flow.buffers] == ["f0"]


# links


@pytest.mark.parametrize("lattice", LATTICES)
def test_lists_of_a_tile_fill_its_part_of_the_arrays(lattice: str) -> None:
    stencil, one = LATTICES[lattice], config(tile=(4, 3, 1) if lattice == "d2q9" else (4, 3, 2))
    starts = list_starts(stencil, one)
    lengths = {(axis, i): 12 // one.block[axis] if lattice == "d2q9" else 24 // one.block[axis] for axis, i in starts}
    covered = [n for key, start in starts.items() for n in range(start, start + lengths[key])]
    assert sorted(covered) == list(range(crossing(stencil, one)))
    assert {i for _, i in starts} == {i for i, c in enumerate(stencil.velocities) if max(c) > 0}


def test_a_place_has_one_thread_in_a_step() -> None:
    """Both ends of a link lead to one number, of which one end has the place in one array and one in the other."""
    stencil, block, domain = LATTICES["d3q19"], (3, 2, 2), (7, 3, 5)
    one = config(tile=block)
    tiles = [-(-n // edge) for n, edge in zip(domain, block, strict=True)]
    starts, taken = list_starts(stencil, one), dict[tuple[str, int], tuple[Any, int]]()

    def number(axis: int, i: int, cell: tuple[int, ...]) -> int:
        """Of the link that leaves a cell through an upper face."""
        tile, own = zip(*(divmod(x, edge) for x, edge in zip(cell, block, strict=True)), strict=True)
        across = [a for a in range(3) if a != axis]
        place = own[across[1]] * block[across[0]] + own[across[0]]
        row = (tile[2] * tiles[1] + tile[1]) * tiles[0] + tile[0]
        return int(row * crossing(stencil, one) + starts[axis, i] + place)

    for cell, i in product(product(*map(range, domain)), range(1, stencil.q)):
        c = stencil.velocities[i]
        there = tuple((x - d) % n for x, d, n in zip(cell, c, domain, strict=True))
        for axis in range(3):
            lower = cell if c[axis] < 0 else there
            last = lower[axis] % block[axis] == block[axis] - 1 or lower[axis] == domain[axis] - 1
            if not c[axis] or not last:
                continue
            rises = c[axis] > 0
            found = ("rising" if rises else "falling", number(axis, i if rises else stencil.opposite[i], lower))
            assert taken.setdefault(found, (cell, i)) == (cell, i)
    for array, n in list(taken):
        (cell, i), (far, j) = taken[array, n], taken["falling" if array == "rising" else "rising", n]
        assert j == stencil.opposite[i]
        assert far == tuple((x - d) % m for x, d, m in zip(cell, stencil.velocities[i], domain, strict=True))
    assert max(n for _, n in taken) < array_elements(stencil, one, domain)


# what it moves and needs


def test_bytes() -> None:
    """Ten moments there and back; through each of six faces five populations come in, and as many go out."""
    assert bytes_per_update(CUBE, config()) == 2 * 4 * (10 + 2 * 5 * 3 / 8) == 110
    assert bytes_per_update(CUBE, config(tile=(32, 8, 4))) == 2 * 4 * (10 + 10 * (1 / 32 + 1 / 8 + 1 / 4)) == 112.5
    assert bytes_per_update(CUBE, config(tile=(16, 8, 8))) == 105
    assert bytes_per_update(CUBE, config(storage="fp16s")) == 55
    flat = box("d2q9", "regularised", (256, 256, 1))
    assert bytes_per_update(flat, config(tile=(32, 8, 1))) == 2 * 4 * (6 + 6 * (1 / 32 + 1 / 8))
    walled = cavity("d3q19", "regularised", (256, 256, 256), 1.6)
    assert bytes_per_update(walled, config()) == 2 * 4 * (10 + 10 * 3 * 31 / 256)
    assert bytes_per_update(walled, config(flags="memory")) == bytes_per_update(walled, config()) + 4
    rest = box("d3q19", "regularised", (257, 256, 256))
    assert bytes_per_update(rest, config()) == pytest.approx(2 * 4 * (10 + 10 * (33 / 257 + 2 / 8)), rel=1e-12)


def test_memory() -> None:
    """One copy of the moments, and a place for each population that crosses a face: 55 bytes where a march has 80."""
    assert footprint_bytes(CUBE, config()) == 55 * 256**3
    assert footprint_bytes(CUBE, config(layout="tiled-cells", layout_tile=(8, 8, 8))) == 55 * 256**3
    assert footprint_bytes(CUBE, config(tile=(16, 8, 8))) == 52.5 * 256**3
    march = cuda.TemporalBlocking(chunk_planes=32, plane_fetch="none", representation="moments", steps=1)
    assert footprint_bytes(CUBE, march) == 80 * 256**3
    assert config().shared_bytes(CUBE) == 4 * (18 * 512 + 2 * (64 + 8 + 1))
    assert config(prefetch_to="shared").shared_bytes(CUBE) == 4 * (18 * 512 + 2 * (64 + 8 + 1) + 10 * 3 * 64)
    flat = replace(CUBE, lattice="d2q9", domain=(64, 64, 1))
    assert config(tile=(32, 8, 1), **PRECISE).shared_bytes(flat) == 8 * (8 * 256 + 2 * 33)


def test_what_is_there_for_each_parity() -> None:
    case = replace(CUBE, domain=(250, 256, 260))
    program = render(case, config(tile=(16, 8, 4), layout="tiled-cells", layout_tile=(16, 8, 4)))
    arguments = [step[0].arguments[:3] for step in program.period]
    assert arguments == [("f0", "faces_0", "faces_1"), ("f0", "faces_1", "faces_0")]
    assert [step[0].arguments[:3] for step in program.prologue] == arguments[::-1]
    assert {launch.entry for step in program.prologue for launch in step} == {"fill_faces"}
    state, array = 256 * 256 * 260 * 10, 16 * 32 * 65 * 5 * (8 * 4 + 16 * 4 + 16 * 8)
    assert program.slot_starts(case.domain) == {"faces_0": state, "faces_1": state + array}
    assert program.buffer_elements(case.domain) == buffer_elements(case, program.config) == state + 2 * array
    assert program.array_bytes(case.domain) == [4 * (state + 2 * array)]


def test_a_solver_is_told_of_the_faces() -> None:
    case = replace(CUBE, domain=(250, 256, 260))
    program = render(case, config(tile=(16, 8, 4), layout="tiled-cells", layout_tile=(16, 8, 4)))
    kernel = describe_kernel(program)
    (buffer,) = kernel.buffers
    known = {"nx": 250, "ny": 256, "nz": 260, "NX": 256, "NY": 256, "NZ": 260}
    assert eval(buffer.elements_formula.replace("/", "//"), known) == buffer.elements
    starts = {name: eval(text.replace("/", "//"), dict(known)) for name, text in kernel.slots.items()}
    assert starts == program.slot_starts(case.domain)
    ((first,), (second,)) = kernel.opening
    assert (first.arguments[1], second.arguments[1]) == ("faces_1", "faces_0")
    assert (first.grid, first.block) == ((16, 32, 65), (16, 8, 4))


def test_indices_of_faces_have_as_many_bits_as_they_need() -> None:
    large = replace(CUBE, domain=(2048, 2048, 2048))
    thin = config(tile=(1, 1, 32), layout="soa")
    assert "typedef unsigned int Place;" in render(CUBE, thin).source
    assert render(CUBE, thin).max_elements == 2**33
    assert "typedef unsigned long long Place;" in render(large, thin).source
    assert (render(large, thin).max_elements or 2**64) >= buffer_elements(large, thin)


H200 = Limits(shared_bytes_per_block=227 << 10, shared_bytes_per_multiprocessor=228 << 10, asynchronous=True)
REASONS: dict[str, tuple[Case, dict[str, Any]]] = {
    "tile=0x8x8 is not supported (each extent is at least 1)": (CUBE, {"tile": (0, 8, 8)}),
    "unknown family of cuda 'cells'": (CUBE, {"family": "cells"}),
    "representation is not a knob of family face-exchange": (CUBE, {"representation": "populations"}),
    "steps is not a knob of family face-exchange": (CUBE, {"steps": 2}),
    "scheme is not a knob of family face-exchange": (CUBE, {"scheme": "aa"}),
    "z_cells is not a knob of family face-exchange": (CUBE, {"z_cells": 4}),
    "pack is not a knob of family face-exchange": (CUBE, {"pack": 2}),
    "plane_fetch is not a knob of family face-exchange": (CUBE, {"plane_fetch": "registers"}),
    "cells_per_thread is not a knob of family face-exchange": (CUBE, {"cells_per_thread": 2}),
    "layout=bundle is not supported for family face-exchange": (CUBE, {"layout": "bundle"}),
    "grid_sync is not a knob of family face-exchange": (CUBE, {"grid_sync": "all"}),
    "family face-exchange is not supported for collision=bgk": (replace(CUBE, collision="bgk"), {}),
    "storage=fp16c is not supported for family face-exchange": (CUBE, {"storage": "fp16c"}),
    "velocity face x- is not supported for family face-exchange": (
        pipe("d3q19", "regularised", (64, 64, 64), 1.3),
        {},
    ),
    "links is not a knob of family face-exchange": (CUBE, {"links": "all"}),
    "prefetch_to=shared is not supported for storage=bf16 with compute=fp32 (use registers): a copy does not convert": (
        CUBE,
        {"prefetch_to": "shared", "storage": "bf16"},
    ),
    "tile 16x16x16 needs 290.1 KiB of shared memory; a block here has 227 KiB": (CUBE, {"tile": (16, 16, 16)}),
    "block 16x8x16 = 2048 threads; this device allows 1024": (CUBE, {"tile": (16, 8, 16)}),
    "4 blocks of (107,664 + 1,024 reserved) bytes of shared memory": (
        replace(CUBE, lattice="d3q27"),
        {"tile": (8, 8, 8), "register_limit": "4-blocks", "compute": "fp64", "storage": "fp64"},
    ),
}


@pytest.mark.parametrize("reason", REASONS)
def test_what_cannot_be_says_why(reason: str) -> None:
    case, knobs = REASONS[reason]
    assert reason in refusal(case, H200, config(), **knobs)


def test_what_can_be_is_legal() -> None:
    for axes in (
        {},
        {"register_limit": "4-blocks", "prefetch_to": "shared"},
        {"layout": "tiled", "layout_tile": (8, 8, 8)},
    ):
        assert broken(CUBE, config(**axes), H200) is None
    assert broken(replace(CUBE, domain=(251, 17, 9)), config(), H200) is None


@needs_nvrtc
def test_four_blocks_of_a_cube_of_eight_spill_nothing() -> None:
    for fetch in ("registers", "shared"):
        found = nvrtc.compile_cuda(
            render(CUBE, config(register_limit="4-blocks", prefetch_to=fetch, **IN_TILES))
        ).resources
        assert (found.registers, found.spill_bytes) == (32, 0)


@pytest.mark.parametrize(
    ("axes", "measured_mlups"),
    [
        ({"register_limit": "4-blocks"}, 32_429),
        ({"register_limit": "3-blocks"}, 30_956),
        ({"tile": (16, 8, 8), "layout_tile": (16, 8, 8), "register_limit": "2-blocks"}, 32_519),
        ({"tile": (32, 8, 4), "layout_tile": (32, 8, 4), "register_limit": "2-blocks"}, 32_231),
        ({"register_limit": "2-blocks", **PRECISE}, 17_007),
    ],
)
def test_what_an_h200_did_is_predicted(axes: dict[str, Any], measured_mlups: float) -> None:
    one = config(**{**IN_TILES, **axes})
    found = predict(CUBE, one, named_machine("h200"))
    assert found.mlups == pytest.approx(measured_mlups, rel=0.08)
    assert found.bytes_per_update == bytes_per_update(CUBE, one)


def mlups(**axes: Any) -> float:
    return predict(CUBE, config(**axes), named_machine("h200")).mlups


def seconds(name: str, **axes: Any) -> float:
    found = predict(CUBE, config(**axes), named_machine("h200"))
    return next((term.seconds for term in found.terms if term.name == name), 0.0)


def test_layouts_are_ranked_by_how_warps_find_moments_in_them() -> None:
    """A warp has eight cells of a row: with halves half a sector, but where the cells of a tile lie together."""
    for storage in ("fp32", "fp16s"):
        found = [mlups(storage=storage, **one) for one in ({"layout": "aos"}, {"layout": "soa"}, IN_TILES)]
        assert found[0] < 0.7 * found[1] < 0.7 * found[2]
    assert seconds(SECTORS, layout="soa") == seconds(SECTORS, storage="fp16s", **IN_TILES) == 0
    assert seconds(SECTORS, layout="soa", storage="fp16s") > 3e-12


def test_a_warp_that_has_one_cell_of_a_row_moves_a_sector_for_each_value() -> None:
    """28 bytes of 32 come along with each of ten moments, there and back; lists of faces are whole sectors."""
    machine = named_machine("h200")
    assert machine.calibration
    rate = machine.calibration.local_bytes_per_s["L2"]
    subject = inputs_of(CUBE, config(tile=(1, 32, 16)), machine, Resources(registers=32))
    assert partial(subject).seconds == pytest.approx(2 * 10 * 28 / rate)
    small = replace(subject, config=config(tile=(1, 4, 1)))
    crossing = 2 * 5 * (16 + 28 + 16) / 4
    assert partial(small).seconds == pytest.approx(2 * (10 * 28 + crossing) / rate)
    assert mlups(tile=(1, 32, 16)) < 4.8e12 / 640 * 1e-6
    assert mlups(tile=(1, 32, 16)) < mlups(tile=(2, 16, 16)) < mlups(tile=(4, 8, 16)) < mlups(tile=(8, 8, 8))


def test_a_warp_issues_for_lanes_that_have_no_thread() -> None:
    machine = named_machine("h200")
    assert machine.calibration
    for block, there in (((1, 4, 1), 32), ((4, 4, 2), 32), ((8, 8, 8), 4)):
        subject = inputs_of(CUBE, config(tile=block), machine, Resources(registers=32))
        assert subject.blocks == there
    assert "32 x 4 cells" in predict(CUBE, config(tile=(1, 4, 1)), machine).limit
    few, whole = (
        next(t.sentence for t in predict(CUBE, config(tile=b), machine).terms if t.name == ISSUE)
        for b in ((1, 4, 1), (1, 4, 8))
    )
    assert "for 4 updates" in few
    assert "for 32 updates" in whole


@pytest.mark.parametrize(
    ("axes", "counted"),
    [({}, 565), ({"tile": (16, 8, 8)}, 555), ({"tile": (32, 8, 4)}, 554), ({"prefetch_to": "shared"}, 697)],
)
def test_instructions_are_those_that_an_h200_counted(axes: dict[str, Any], counted: int) -> None:
    assert slots(CUBE, config(**axes), 1) == pytest.approx(counted, rel=0.01)
