"""Axes of the CUDA text beyond block, vectors and registers: each acts, and each keeps the result right."""

from __future__ import annotations

import random
from dataclasses import replace
from math import prod

import numpy as np
import pytest

from lbmtune.catalogue.families.cache_hints import L2_PREFETCHES, LOAD_HINTS, STORE_HINTS
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.catalogue.schemes.scheme import HERE, Place, Scheme, shared_slot
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.lattice import lattice
from lbmtune.measure.verification.oracle import random_state
from lbmtune.measure.verification.verify import verify
from lbmtune.runtime import Simulation
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels.configs import varied
from tests.support.kernels.cuda_samples import VECTOR_SCHEMES, Sample, config, flows, label, legal, samples
from tests.support.kernels.full_size import verify_full_size

needs_a_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")


def _check(sample: Sample) -> None:
    program = render(*sample)
    found = verify(program, compile_on_host(program), HostDevice())
    assert found.passed, found


def _changed(count: int, seed: int, **values: tuple[object, ...]) -> list[Sample]:
    """Samples of all axes with others drawn from values, where that is legal."""
    draw, found = random.Random(seed), list[Sample]()
    for case, one in samples(seed):
        other = varied(one, block=(*one.block[:2], 1), **{name: draw.choice(v) for name, v in values.items()})
        if legal(case, other):
            found.append((case, other))
        if len(found) == count:
            break
    return found


def _name(sample: Sample) -> str:
    return f"{label(sample)}-{sample[1].brief}"


@pytest.mark.thinned(5)
@needs_a_compiler
@pytest.mark.parametrize("prefetch", [0, 1, 2])
@pytest.mark.parametrize("scheme", VECTOR_SCHEMES)
def test_columns_with_walls_and_a_tail(scheme: str, prefetch: int) -> None:
    one = config(scheme=scheme, cells_per_thread=4, z_cells=4, prefetch_cells=prefetch)
    sample = flows("d3q19", "bgk")["grinder"], one
    assert one.awkward_domain(sample[0])[2] == (7 if prefetch == 2 else 5)
    _check(sample)


@needs_a_compiler
@pytest.mark.parametrize(
    ("scheme", "axes"),
    [
        ("pull", {"z_cells": 4, "cells_per_thread": 2}),
        ("aa", {"z_cells": 7, "wrap": "ghost"}),
        ("esoteric-twist", {"z_cells": 5, "pointer_swap": 1, "storage": "fp64"}),
        ("swap", {"z_cells": 6, "layout": "aosoa"}),
    ],
)
def test_columns_far_ahead(scheme: str, axes: dict[str, object]) -> None:
    """Columns of as many cells as are read ahead and one more, of less than one round, and with a shorter last one."""
    for ahead in (2, 3):
        one = config(scheme=scheme, prefetch_cells=ahead, **axes)
        _check((flows("d2q9" if one.z_cells == 6 else "d3q19", "bgk")["grinder"], one))


@needs_a_compiler
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("sets[(turn + 1) % (AHEAD + 1)]", "sets[turn]"),
        ("const int z = round + turn - AHEAD;", "const int z = round + turn - AHEAD + 1;"),
        ("round < end + AHEAD", "round < end"),
        ("present = planes_above(present, z + 1, nz, n);", ""),
    ],
)
def test_cells_far_ahead_that_are_mistaken_are_found_out(right: str, wrong: str) -> None:
    program = render(flows("d3q19", "bgk")["box"], config(z_cells=4, prefetch_cells=2))
    assert program.source.count(right) == 1
    wrong_program = replace(program, source=program.source.replace(right, wrong))
    assert not verify(wrong_program, compile_on_host(wrong_program), HostDevice()).passed


@pytest.mark.thinned(5)
@needs_a_compiler
@pytest.mark.parametrize(
    "sample", _changed(16, 3, family=("column",), z_cells=(2, 3, 4, 8), prefetch_cells=(0, 1)), ids=_name
)
def test_columns_with_all_axes(sample: Sample) -> None:
    _check(sample)


@pytest.mark.thinned(5)
@needs_a_compiler
@pytest.mark.parametrize(
    "sample",
    _changed(
        20,
        4,
        load_hint=tuple(LOAD_HINTS),
        store_hint=tuple(STORE_HINTS),
        l2_prefetch=L2_PREFETCHES,
        index_bits=(0, 64),
        family=("direct", "column"),
        z_cells=(3,),
    ),
    ids=_name,
)
def test_cache_hints_with_all_axes(sample: Sample) -> None:
    _check(sample)


def _on_the_curve(sample: Sample) -> Program:
    """Every block counts itself where it thinks it is."""
    program = render(*sample)
    body = program.source.index("{", program.source.index("step_0("))
    count = "source; target[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] += 1; return;"
    return replace(program, source=program.source[: body + 1] + count + program.source[body + 1 :])


@needs_a_compiler
@pytest.mark.parametrize("lattice_name", ["d2q9", "d3q19"])
@pytest.mark.parametrize("grid", [(4, 6, 8), (2, 12, 16), (6, 4, 1), (2, 32, 64), (1, 2, 2)])
def test_every_place_on_a_z_curve_is_taken_once(lattice_name: str, grid: tuple[int, int, int]) -> None:
    program = _on_the_curve((flows(lattice_name, "bgk")["box"], config(block=(1, 1, 1), block_order="z-curve")))
    executable = HostDevice().load(program, compile_on_host(program))
    launch = program.period[0][0]
    counts = np.zeros(prod(grid), np.float32)
    executable.launch(launch, grid, [counts, counts, *([np.int32(8)] * 3), np.float32(1)])
    assert (counts == 1).all()


@needs_a_compiler
def test_a_z_curve_takes_the_corner_of_a_square_first() -> None:
    program = _on_the_curve((flows("d3q19", "bgk")["box"], config(block=(1, 1, 1), block_order="z-curve")))
    at = program.source.replace("+= 1; return;", "= blockIdx_ + 1; return;").replace(
        "source; target", "const unsigned blockIdx_ = host::number; target"
    )
    executable = HostDevice().load(program, compile_on_host(replace(program, source=at)))
    order = np.zeros(16, np.float32)
    executable.launch(program.period[0][0], (1, 4, 4), [order, order, *([np.int32(8)] * 3), np.float32(1)])
    np.testing.assert_array_equal(order.reshape(4, 4), [[1, 2, 5, 6], [3, 4, 7, 8], [9, 10, 13, 14], [11, 12, 15, 16]])


@pytest.mark.thinned(5)
@needs_a_compiler
@pytest.mark.parametrize(
    "sample", _changed(10, 5, block_order=("z-curve",), family=("direct", "column"), z_cells=(2,)), ids=_name
)
def test_block_order_with_all_axes(sample: Sample) -> None:
    _check(sample)


@pytest.mark.thinned(5)
@needs_a_compiler
@pytest.mark.parametrize(
    "sample",
    _changed(10, 6, macroscopics=("every-step",), load_hint=tuple(LOAD_HINTS), block_order=("row", "z-curve")),
    ids=_name,
)
def test_macroscopics_with_all_axes(sample: Sample) -> None:
    _check(sample)


@pytest.mark.thinned(5)
@needs_a_compiler
@pytest.mark.parametrize("storage", ["fp64", "fp32", "fp16s"])
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("m[2][v] = (Real(0) +", "m[2][v] = (Real(0) -"),
        ("+ unit;", "+ unit + unit;"),
        ("k * cells + row", "(k ^ 1) * cells + row"),
        ("    leave(m, macroscopics, x, y, z, nx, ny, nz);", ""),
        ("    m[0][v] = rho / unit;", "    m[0][v] = (rho - f[0][v]) / unit;"),
    ],
)
def test_wrong_density_and_velocity_are_found_out(right: str, wrong: str, storage: str) -> None:
    case = flows("d2q9", "bgk")["channel"]
    program = render(case, config(cells_per_thread=2, storage=storage, macroscopics="every-step"))
    assert right in program.source
    wrong_program = replace(program, source=program.source.replace(right, wrong))
    found = verify(wrong_program, compile_on_host(wrong_program), HostDevice())
    assert not found.passed
    assert found.worst_direction >= case.stencil.q
    full = verify_full_size(wrong_program, compile_on_host(wrong_program), HostDevice())
    assert full.worst_direction >= case.stencil.q
    assert not full.passed


@needs_a_compiler
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("{from.level, from.above,", "{from.level, from.level,"),
        ("from.above, along_z(after(z, nz, ORIGIN_Z), n)", "from.above, along_z(here(z, ORIGIN_Z), n)"),
        ("first + MARCH < nz ? first + MARCH : nz", "first + MARCH"),
    ],
)
def test_planes_that_are_not_carried_along_are_found_out(right: str, wrong: str) -> None:
    case = flows("d3q19", "bgk")["box"]
    program = render(case, config(cells_per_thread=2, z_cells=2, prefetch_cells=1))
    assert program.source.count(right) == 1
    wrong_program = replace(program, source=program.source.replace(right, wrong))
    assert not verify(wrong_program, compile_on_host(wrong_program), HostDevice()).passed


@needs_a_compiler
@pytest.mark.parametrize("scheme", ["pull", "aa"])
def test_graphs_of_steps_are_the_steps(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many steps are asked for, beginning at whatever parity."""
    case = replace(flows("d2q9", "bgk")["cavity"], domain=(16, 5, 1))
    calls, graphs = (render(case, config(scheme=scheme, launch=launch)) for launch in ("call", "graph"))
    assert calls.digest == graphs.digest, "a graph launches the same kernels"
    binary, device = compile_on_host(graphs), HostDevice()
    one, other = Simulation(calls, compile_on_host(calls), device), Simulation(graphs, binary, device)
    recorded: list[int] = []
    honest = other._graph
    monkeypatch.setattr(other, "_graph", lambda steps: recorded.append(steps) or honest(steps))
    for simulation in (one, other):
        simulation.initialise(random_state(case))
        for steps in (1, 7, 2, 150):
            simulation.step(steps)
    assert (one.populations() == other.populations()).all()
    assert recorded == [4, 2, 2, 128, 16, 4, 2], "one step alone, six of seven, two, all of 150"


def test_a_column_is_one_launch_of_fewer_blocks() -> None:
    case = flows("d3q19", "bgk")["box"]
    plain, marching = (render(case, one).period[0][0] for one in (config(), config(z_cells=8)))
    assert plain.block == marching.block
    frame = render(case, config()).frame
    grids = [launch.grid((192, 64, 65), frame) for launch in (plain, marching)]
    assert grids == [(12, 32, 65), (12, 32, 9)]


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=lambda s: s.name)
def test_the_tables_let_a_thread_read_ahead(scheme: Scheme) -> None:
    for parity in range(scheme.period):
        for phase in scheme.passes(lattice("d3q19"), parity):
            assert bool(shared_slot(phase)) is phase.blockwise, "blocks with rings need a barrier because they share"


def test_a_table_whose_places_are_shared_is_noticed() -> None:
    """A write of f_1 one cell on: the next cell of another thread may read it."""
    phase = SCHEMES["aa"].phase(lattice("d3q19"), 0)
    assert shared_slot(phase) is None
    first, second, *others = phase.accesses
    moved = second._replace(write=Place(second.write.slot, (0, 0, 1)))
    found = shared_slot(replace(phase, accesses=(first, moved, *others)))
    assert found is not None
    slot, *places = found
    assert slot == second.write.slot
    assert {place.offset for place in places} == {HERE, (0, 0, 1)}
