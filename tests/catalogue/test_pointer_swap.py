"""One kernel for all parities, whose pointers to slots are exchanged between steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lbmtune
from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.catalogue.config import KernelConfig, completed, cpu, cuda, from_flat, knobs_by_name, parse_config
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.footprint import footprint_bytes, traffic
from lbmtune.catalogue.layouts import AoS, SoA
from lbmtune.catalogue.layouts.layout import Extents
from lbmtune.catalogue.pointer_swap import exchange, exchanges_slots
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.catalogue.schemes.scheme import Place, Scheme, bundled
from lbmtune.codegen.describe import describe_kernel
from lbmtune.codegen.program import Launch
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.export import write_best
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.verify import verify
from tests.records.best_json.test_export import cpu_record
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.conformance.choices import LIMITS, case_of

on_host = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
ESOTERIC = [SCHEMES[name] for name in ("esoteric-twist", "esoteric-pull")]


def config(backend: str, **knobs: Any) -> KernelConfig:
    return from_flat(completed({"backend": backend, "scheme": "esoteric-twist", "pointer_swap": 1, **knobs}, LIMITS))


def test_steps_of_the_esoteric_schemes_differ_in_slots_alone() -> None:
    for lattice in LATTICES.values():
        assert {name for name, one in SCHEMES.items() if exchanges_slots(one, lattice)} == {
            "esoteric-twist",
            "esoteric-pull",
        }


@pytest.mark.parametrize(
    "scheme", [*ESOTERIC, *(bundled(one, group) for one in ESOTERIC for group in (3, 10))], ids=lambda s: s.name
)
@pytest.mark.parametrize("lattice", LATTICES.values(), ids=lambda one: one.name)
def test_the_one_table_with_its_pointers_is_the_table_of_each_parity(scheme: Scheme, lattice: Any) -> None:
    found = exchange(scheme, lattice)
    assert found.phase.pointers == tuple(range(lattice.q))
    for parity, slots in enumerate(found.slots):

        def led(place: Place, slots: tuple[int, ...] = slots) -> Place:
            return place._replace(slot=slots[place.slot], pointer=False) if place.pointer else place

        accesses = tuple(type(a)(a.direction, *map(led, a[1:])) for a in found.phase.accesses)
        assert accesses == scheme.phase(lattice, parity).accesses
    pairs = {(a, b) for a, b in enumerate(exchange(SCHEMES["esoteric-twist"], lattice).slots[1])}
    assert pairs == set(enumerate(lattice.opposite)), "pointers of opposite directions are exchanged"


@pytest.mark.parametrize(("backend", "entry"), [("cuda", 'extern "C" __global__'), ("cpu", "@simd.kernel")])
def test_there_is_one_kernel_and_its_pointers_are_exchanged(backend: str, entry: str) -> None:
    case = case_of("cavity", "d2q9", "bgk")
    one, two = (render(case, config(backend, pointer_swap=swap)) for swap in (1, 0))
    assert (one.source.count(entry), two.source.count(entry)) == (1, 2)
    even, odd = (launch.arguments for (launch,) in one.period)
    assert even[:10] == ("f0", *(f"slot_{i}" for i in range(9)))
    assert odd[:10] == ("f0", *(f"slot_{i}" for i in case.stencil.opposite))
    assert even[10:] == odd[10:] == two.period[0][0].arguments[1:]


def test_bytes_are_those_of_kernels_for_each_parity_but_for_flags() -> None:
    case = case_of("grinder", "d3q19", "bgk")
    still = replace(case, wall_velocity=(0.0, 0.0, 0.0), faces=("wall",) * 6)
    one, two = (config("cuda", pointer_swap=swap) for swap in (1, 0))
    assert footprint_bytes(case, one) == footprint_bytes(case, two)
    assert traffic(case, one) == traffic(case, two)
    one, two = (config("cuda", flags="memory", pointer_swap=swap) for swap in (1, 0))
    assert (traffic(still, one).flags, traffic(still, two).flags) == (4, 2), "an even step alone need not know walls"
    one, two = (config("cuda", family="sparse", pointer_swap=swap) for swap in (1, 0))
    assert (traffic(still, one).flags, traffic(still, two).flags) == (4, 2)
    assert traffic(still, one).index == traffic(still, two).index == 24, "six octants"
    assert footprint_bytes(still, one) == footprint_bytes(still, two)


SAMPLES = [
    ("grinder", "d2q9", {"cells_per_thread": 2, "block": "16x2x1"}),
    ("cavity", "d3q19", {"scheme": "esoteric-pull", "wrap": "ghost", "block": "32x1x1"}),
    ("solids", "d2q9", {"flags": "memory", "layout": "aosoa", "width": 16, "storage": "fp16s", "cells_per_thread": 4}),
    ("grinder", "d2q9", {"scheme": "esoteric-pull", "layout": "bundle", "group": 3, "load_hint": "streaming"}),
    ("channel", "d3q19", {"family": "column", "z_cells": 3, "prefetch_cells": 1, "storage": "fp64"}),
    ("box", "d2q9", {"macroscopics": "every-step", "launch": "dependent"}),
    ("rocks", "d2q9", {"flags": "memory", "boundary": "implicit", "cells_per_thread": 2}),
    ("grinder", "d2q9", {"family": "sparse", "cells_per_thread": 4, "layout": "aosoa", "width": 16}),
    (
        "solids",
        "d2q9",
        {"family": "sparse", "scheme": "esoteric-pull", "storage": "fp16s", "store_hint": "streaming"},
    ),
    (
        "rocks",
        "d3q19",
        {
            "family": "sparse",
            "links": "three_pointers",
            "sites_per_thread": 4,
            "prefetch_sites": 1,
            "prefetch_to": "shared",
        },
    ),
]


@on_host
@pytest.mark.parametrize(("flow", "lattice", "knobs"), SAMPLES)
def test_kernels_of_a_gpu(flow: str, lattice: str, knobs: dict[str, Any]) -> None:
    case, chosen = case_of(flow, lattice, "bgk"), config("cuda", **{"block": "32x1x1", **knobs})
    assert broken(case, chosen, LIMITS) is None
    program = render(case, chosen)
    assert verify(program, compile_on_host(program), HostDevice()).passed


@pytest.mark.parametrize(
    ("flow", "knobs"),
    [
        ("grinder", {}),
        ("solids", {"flags": "memory", "scheme": "esoteric-pull", "layout": "aosoa", "width": 16}),
        ("cavity", {"collision_passes": "two", "storage": "fp64", "threads": 2}),
        ("channel", {"wrap": "select", "scheme": "esoteric-pull"}),
        ("solids", {"family": "sparse", "layout": "bundle-aosoa", "group": 3, "width": 16}),
        ("grinder", {"family": "sparse", "scheme": "esoteric-pull", "vector_bits": 0, "threads": 2}),
        ("rocks", {"family": "sparse", "links": "three_pointers", "storage": "fp16s", "gather": "lanes"}),
    ],
)
def test_kernels_of_a_cpu(flow: str, knobs: dict[str, Any]) -> None:
    case, chosen = case_of(flow, "d2q9", "bgk"), config("cpu", **knobs)
    assert broken(case, chosen, LIMITS) is None
    program = render(case, chosen)
    assert verify(program, compile_cpu(program), open_cpu()).passed


@on_host
def test_pointers_that_are_not_exchanged_are_found_out() -> None:
    program = render(case_of("box", "d2q9", "bgk"), config("cuda", block="32x1x1"))
    binary, (even, _) = compile_on_host(program), program.period
    assert verify(program, binary, HostDevice()).passed
    assert not verify(replace(program, period=(even, even)), binary, HostDevice()).passed


@on_host
@pytest.mark.parametrize("family", ["direct", "sparse"])
def test_a_cut_link_must_not_follow_its_pointer(family: str) -> None:
    program = render(case_of("cavity", "d2q9", "bgk"), config("cuda", block="32x1x1", family=family))
    right = "populations + component(3, n)"
    assert right in program.source
    wrong = replace(program, source=program.source.replace(right, "pointer_3"))
    assert not verify(wrong, compile_on_host(wrong), HostDevice()).passed


@pytest.mark.parametrize(
    ("knobs", "reason"),
    [
        (
            {"scheme": "aa"},
            "pointer_swap=1 is not supported for scheme=aa (use pointer_swap=0): its steps differ in more than slots",
        ),
        (
            {"scheme": "pull"},
            "pointer_swap=1 is not supported for scheme=pull (use pointer_swap=0): its steps differ in more than slots",
        ),
        ({"pointer_swap": 2}, "(use 0 or 1)"),
    ],
)
@pytest.mark.parametrize("record", [cuda.Direct, cuda.Column, cuda.Sparse, cpu.Direct, cpu.Sparse])
def test_reasons(record: Any, knobs: dict[str, Any], reason: str) -> None:
    case, values = box("d2q9", "bgk", (64, 8, 1)), {"scheme": "esoteric-pull", "pointer_swap": 1, **knobs}
    assert reason in str(broken(case, record(**values), Limits()))


def test_several_steps_of_a_launch_have_one_set_of_pointers() -> None:
    case = box("d2q9", "bgk", (64, 8, 1))
    assert broken(case, cpu.Wavefront(scheme="esoteric-twist", steps=2, tile=(4, 1)), LIMITS) is None
    for record in (cpu.Wavefront, cpu.MomentsWavefront, cuda.TemporalBlocking, cuda.Persistent, cuda.FaceExchange):
        assert "pointer_swap" not in knobs_by_name(record)
    with pytest.raises(InputError, match=r"pointer_swap is not a knob of family wavefront \(families direct, sparse"):
        parse_config("family=wavefront,pointer_swap=1", "cpu")


def test_the_knob_acts_where_steps_differ_in_slots() -> None:
    for record in (cuda.Direct, cuda.Column, cuda.Sparse, cpu.Direct, cpu.Sparse):
        knob = knobs_by_name(record)["pointer_swap"]
        acting = {name for name in SCHEMES if knob.neutral({"scheme": name}) is None}
        assert acting == {one.name for one in ESOTERIC}
        assert knob.neutral({"scheme": "aa"}) == 0


def test_the_slots_of_a_file_start_where_the_layout_says() -> None:
    case = box("d2q9", "bgk", (48, 6, 1))
    for chosen in (cuda.Direct(layout=SoA(padding=8)), cuda.Direct(layout=AoS()), cpu.Direct(row_padding=3)):
        program = render(case, replace(chosen, scheme="esoteric-pull", pointer_swap=1))
        kernel = describe_kernel(program)
        names = dict(zip(("NX", "NY", "NZ"), program.frame.extents(case.domain)[:3], strict=True))
        extents = Extents(*names.values(), 9)
        found = {name: eval(formula, {}, names) for name, formula in kernel.slots.items()}
        assert found == {f"slot_{i}": chosen.memory.component(i, extents) for i in range(9)}
        assert found == program.slot_starts(case.domain)
    assert describe_kernel(render(case, cuda.Direct(scheme="esoteric-pull"))).slots == {}


@pytest.mark.filterwarnings("ignore:this kernel was tuned")
@pytest.mark.parametrize("record", [cpu.Direct, cpu.Sparse])
def test_a_flow_runs_from_its_file(record: Any, tmp_path: Path) -> None:
    chosen = record(compute="fp64", pointer_swap=1, scheme="esoteric-pull", storage="fp64", vector_bits=0)
    write_best(cpu_record(cavity("d2q9", "trt", (16, 12, 1), 1.4), chosen), tmp_path / "best.json")
    flow = lbmtune.load(tmp_path / "best.json", domain=(10, 14, 1))
    state = flow.populations()
    flow.step(5)
    for _ in range(5):
        state = oracle.step(state, flow.case)
    np.testing.assert_allclose(flow.populations(), state, atol=1e-13)


def test_no_other_launch_takes_slots() -> None:
    launches: list[Launch] = [
        one for step in render(case_of("box", "d2q9", "bgk"), cuda.Direct()).period for one in step
    ]
    assert not any(name.startswith("slot_") for launch in launches for name in launch.arguments)
