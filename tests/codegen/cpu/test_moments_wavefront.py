"""Kernels of moments on the CPU: the order of rows, their rings, bytes, rules and results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cpu.device import vector_bits
from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.config import completed, cpu, from_flat, knobs
from lbmtune.catalogue.families.cpu.moments_wavefront import fetched, ring_rows, ring_values, thread_values
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes
from lbmtune.catalogue.knobs import scalar
from lbmtune.catalogue.moments.basis import orders
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.describe import describe_storage
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.verify import verify
from lbmtune.records import Resources
from lbmtune.runtime import Simulation
from lbmtune.runtime.moments import places
from tests.support.conformance.choices import case_of
from tests.support.kernels.cpu_cases import InterpretingDevice, interpret

LIMITS = Limits(cores=8)
FORCE = (1e-3, -5e-4, 2e-4)


def flow(lattice: str = "d3q19", *, forced: bool = True) -> Case:
    flat = lattice == "d2q9"
    case = box(lattice, "regularised", (192, 64, 1 if flat else 64), 1.3)
    return replace(case, force=(*FORCE[:2], 0.0 if flat else FORCE[2])) if forced else case


def config(**knobs: Any) -> cpu.MomentsWavefront:
    given = {"backend": "cpu", "family": "moments-wavefront", "tile": (16, 3, 2), "threads": 2, **knobs}
    found = from_flat({name: scalar(value) for name, value in given.items()})
    assert isinstance(found, cpu.MomentsWavefront)
    return found


def program(lattice: str = "d3q19", *, forced: bool = True, **axes: Any) -> Program:
    case, chosen = flow(lattice, forced=forced), config(**axes)
    assert broken(case, chosen, LIMITS) is None
    return render(case, chosen)


# results


@pytest.mark.parametrize(
    ("lattice", "steps"),
    # compiled kernels below do more steps of d3q27
    [("d2q9", 1), ("d2q9", 2), ("d2q9", 3), ("d3q19", 1), ("d3q19", 2), ("d3q27", 1)],
)
def test_interpreted_kernels_are_right(lattice: str, steps: int) -> None:
    found = interpret(program(lattice, storage="fp64", compute="fp64", steps=steps), periods=1)
    assert found.passed, found


@pytest.mark.parametrize(
    "axes",
    [
        {"vector_bits": 256, "layout": "rows", "row_offset": 0, "row_padding": 3},
        {"padding": 5},
        {"storage": "fp16s"},
        {"storage": "bf16", "tile": (16, 2, 1)},
        {"streaming_stores": 1, "prefetch_rows": 1},
    ],
    ids=str,
)
def test_formats_layouts_and_vectors(axes: dict[str, Any]) -> None:
    wide = replace(LIMITS, vector_bits=512)
    case, chosen = flow(forced=False), config(steps=2, **axes)
    assert broken(case, chosen, wide) is None
    found = interpret(render(case, chosen), periods=1)
    assert found.passed, found


@pytest.mark.parametrize("domain", [(16, 1, 1), (16, 2, 1), (32, 3, 2), (48, 7, 5), (16, 9, 3)])
def test_halos_that_go_around_the_domain(domain: tuple[int, int, int]) -> None:
    """Thin domains, where a halo meets a cell more than once, and rows that fit into a tile or just do not."""
    for tile_x in (16, 32):
        precise = {"storage": "fp64", "compute": "fp64", "vector_bits": vector_bits(), "tile": (tile_x, 3, 2)}
        several, single = (
            _run(replace(made, case=replace(made.case, domain=domain)), 4, compiled=True)
            for made in (program(**precise, steps=4), program(**precise))
        )
        np.testing.assert_allclose(several, single, rtol=1e-13)


compiled_once = cache(compile_cpu)


def _run(made: Program, steps: int, *, compiled: bool = False) -> np.ndarray:
    how = (compiled_once(made), open_cpu()) if compiled else (Binary(b"", "", Resources()), InterpretingDevice())
    simulation = Simulation(made, *how)
    simulation.initialise(oracle.random_state(made.case))
    simulation.step(steps)
    return simulation.populations()


def test_any_number_of_threads_leaves_the_same_bits() -> None:
    alone, *others = (
        _run(replace(made, case=replace(made.case, domain=(32, 5, 3))), 4)
        for made in (program(steps=2, threads=count) for count in (1, 2, 3, 8))
    )
    assert all((state == alone).all() for state in others)


MUTATIONS: dict[str, Callable[[str], str]] = {
    "a ring that is a row too short": lambda t: t.replace("% 9 *", "% 8 *"),
    "ends that do not meet": lambda t: t.replace("if not low:", "if low:"),
    "a step of the wrong plane": lambda t: t.replace("plane - s, row, low", "plane, row, low"),
    "a halo that does not wrap": lambda t: t.replace("y % ny", "min(max(y, 0), ny - 1)"),
    "a row from the wrong side": lambda t: t.replace("still_7 = load(rings, from_uh", "still_7 = load(rings, from_dh"),
    "a cell from the wrong side": lambda t: t.replace("right_0 = load(rings, ", "right_0 = load(rings, 2 + "),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_wrong_kernels_fail(mutation: str) -> None:
    made = program(storage="fp64", compute="fp64", steps=2)
    small = replace(made, case=replace(made.case, domain=(16, 5, 3)))
    mutant = replace(small, source=MUTATIONS[mutation](small.source))
    assert mutant.source != small.source
    assert abs(_run(mutant, 2) - _run(small, 2)).max() > 1e-6


@pytest.mark.parametrize(
    ("lattice", "axes"),
    [
        ("d3q19", {"steps": 1}),
        ("d3q19", {"steps": 4, "layout": "rows", "storage": "fp16s"}),
        ("d3q19", {"steps": 2, "vector_bits": 0}),
        ("d3q19", {"steps": 3, "storage": "fp64", "compute": "fp64"}),
        ("d3q27", {"steps": 3, "storage": "fp64", "compute": "fp64"}),
        ("d2q9", {"steps": 8, "tile": (32, 3, 2), "storage": "bf16"}),
    ],
)
def test_compiled_kernels_are_right(lattice: str, axes: dict[str, Any]) -> None:
    one = program(lattice, **{"vector_bits": vector_bits(), **axes})
    device = open_cpu()
    for domain in (one.config.awkward_domain(one.case), *one.config.extra_domains(one.case)):
        found = verify(replace(one, case=replace(one.case, domain=domain)), compile_cpu(one), device)
        assert found.passed, found


# bytes, places, axes


def test_bytes() -> None:
    """Ten values read, fetched and written per launch, and read again for halos; not fetched where stores stream."""
    whole = {"tile": (192, 64, 64)}
    halo = (1 + 2 / 64) ** 2
    assert bytes_per_update(flow(), config(**whole)) == pytest.approx(40 * (halo + 2))
    assert bytes_per_update(flow(), config(**whole, streaming_stores=1)) == pytest.approx(40 * (halo + 1))
    halo = (1 + 4 / 64) * (1 + 4 / 64) * (1 + 2 * 2 * 16 / 192)
    cut = config(steps=2, tile=(96, 16, 64))
    assert fetched(flow(), cut) == pytest.approx(halo)
    assert bytes_per_update(flow(), cut) == pytest.approx(20 * (halo + 2))
    # along y alone in two dimensions
    assert fetched(flow("d2q9"), config(steps=2, tile=(192, 16, 1))) == pytest.approx(1 + 4 * 4 / 64)


def test_rings_are_part_of_the_footprint() -> None:
    """A row and two more of what goes down, a plane more of what stays, two of what goes up; all of a tile's width."""
    one = config(steps=2, tile=(32, 4, 2))
    assert [ring_rows(flow(), one, c_z) for c_z in (-1, 0, 1)] == [3, 4 + 3, 2 * 4 + 3]
    assert ring_values(flow(), one) == (32 + 32) * (5 * 3 + 9 * 7 + 5 * 11)
    # and two rows of each plane for the next tile
    edges = 2 * 19 * 64 * (2 + 2 * 2 + 3)
    assert thread_values(flow(), one) == 2 * (ring_values(flow(), one) + edges) + 32
    lattices = 2 * 10 * (192 + 16) * 64 * 64 * 4
    assert footprint_bytes(flow(), one) == lattices + 2 * thread_values(flow(), one) * 4


@pytest.mark.parametrize("layout", ["soa", "rows"])
def test_every_moment_has_a_place_and_a_formula(layout: str) -> None:
    made = render(replace(flow(), domain=(16, 5, 3)), config(layout=layout, row_offset=3, row_padding=2))
    found = [np.asarray(at) for at in places(made.case, made.config, np)]
    assert len({int(at) for each in found for at in np.ravel(each)}) == 10 * made.case.sites
    assert max(int(each.max()) for each in found) < made.buffer_elements(made.case.domain)
    described = describe_storage(made)
    assert [one.order for one in described.moments] == list(orders(LATTICES["d3q19"]))
    given = {"NX": 21, "NY": 5, "NZ": 3, "x": 3, "y": 2, "z": 1}
    by_formula = [eval(one.index.replace("/", "//"), given) for one in described.moments]
    assert by_formula == [int(at[1, 2, 3]) for at in found]


def test_knobs_of_the_family() -> None:
    own = {one.name: one for one in knobs(cpu.MomentsWavefront)}
    assert own["tile"].default == "256x16x64"
    assert own["steps"].neutral({}) is None
    assert "tile" in {one.name for one in knobs(cpu.Wavefront)}
    assert "tile" not in {one.name for one in knobs(cpu.Direct)}
    assert not {"wrap", "collision_passes", "prefetch_local", "row_tail"} & {*own}
    chosen = from_flat(completed({"backend": "cpu", "family": "moments-wavefront"}, LIMITS))
    assert broken(flow(), chosen, LIMITS) is None


@pytest.mark.parametrize("knob", ["scheme", "wrap", "collision_passes", "order", "stride", "tile_x"])
def test_knobs_of_other_families_cannot_be_written(knob: str) -> None:
    with pytest.raises(InputError, match=knob):
        from_flat({"backend": "cpu", "family": "moments-wavefront", knob: 1})


@pytest.mark.parametrize(
    ("case", "axes", "reason"),
    [
        (
            box("d3q19", "bgk", (64, 64, 64), 1.3),
            {},
            "family moments-wavefront is not supported for collision=bgk",
        ),
        (
            case_of("slipping", "d3q19", "regularised"),
            {},
            "slip face x+ is not supported for family moments-wavefront (use family direct): its cells complete",
        ),
        (case_of("rocks", "d3q19", "regularised"), {}, "flags=compiled"),
        (case_of("cavity", "d3q19", "regularised"), {"flags": "memory"}, "faces are compiled in"),
        (flow(), {"storage": "fp16c"}, "storage=fp16c is not supported for family moments-wavefront"),
        (flow(), {"steps": 9}, "steps=9 is not supported for family moments-wavefront (use 1 to 8)"),
        (flow(), {"tile": (24, 3, 2)}, "tile=24x3x2: rows of a tile have a multiple of 16 cells"),
        (flow(), {"tile": (16, 1, 2)}, "tile=16x1x2: what a cell sends may pass 2 rows of a tile"),
        (flow(), {"steps": 1, "prefetch_rows": 1}, "prefetch_rows=1 is not supported for steps=1"),
    ],
)
def test_rules(case: Case, axes: dict[str, Any], reason: str) -> None:
    assert reason in str(broken(case, config(**axes), LIMITS))
