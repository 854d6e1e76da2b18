"""One kernel for all parities, whose pointers to slots are exchanged between steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lbmtune.catalogue.axes import completed, neutral

import lbmtune
from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.catalogue.config import CpuConfig, CudaConfig, KernelConfig, cpu, cuda, from_flat
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
from lbmtune.export import write_best
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.verify import verify
from tests.records.test_export import cpu_record
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.choices import LIMITS, case_of

on_host = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
ESOTERIC = [SCHEMES[name] for name in ("esoteric-twist", "esoteric-pull")]


def config(backend: str, **axes: Any) -> KernelConfig:
    return from_flat(completed({"backend": backend, "scheme": "esoteric-twist", "parity": "pointers", **axes}, LIMITS))


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
    one, two = (render(case, config(backend, parity=parity)) for parity in ("pointers", "kernels"))
    assert (one.source.count(entry), two.source.count(entry)) == (1, 2)
    even, odd = (launch.arguments for (launch,) in one.period)
    assert even[:10] == ("f0", *(f"slot_{i}" for i in range(9)))
    assert odd[:10] == ("f0", *(f"slot_{i}" for i in case.stencil.opposite))
    assert even[10:] == odd[10:] == two.period[0][0].arguments[1:]


def test_bytes_are_those_of_kernels_for_each_parity_but_for_flags() -> None:
    case = case_of("grinder", "d3q19", "bgk")
    still = replace(case, wall_velocity=(0.0, 0.0, 0.0), faces=("wall",) * 6)
    one, two = (config("cuda", parity=parity) for parity in ("pointers", "kernels"))
    assert footprint_bytes(case, one) == footprint_bytes(case, two)
    assert traffic(case, one) == traffic(case, two)
    one, two = (replace(other, flags="memory") for other in (one, two))
    assert (traffic(still, one).flags, traffic(still, two).flags) == (4, 2), "an even step alone need not know walls"
    one, two = (replace(other, flags="compiled", addressing="indirect") for other in (one, two))
    assert (traffic(still, one).flags, traffic(still, two).flags) == (4, 2)
    assert traffic(still, one).index == traffic(still, two).index == 24, "six octants"
    assert footprint_bytes(still, one) == footprint_bytes(still, two)


SAMPLES = [
    ("grinder", "d2q9", {"cells_per_thread": 2, "block": "16x2x1"}),
    ("cavity", "d3q19", {"scheme": "esoteric-pull", "wrap": "ghost", "block": "32x1x1"}),
    ("solids", "d2q9", {"flags": "memory", "layout": "aosoa", "width": 16, "storage": "fp16s", "cells_per_thread": 4}),
    ("grinder", "d2q9", {"scheme": "esoteric-pull", "layout": "bundle", "group": 3, "load_hint": "streaming"}),
    ("channel", "d3q19", {"march": 3, "prefetch": 1, "storage": "fp64"}),
    ("box", "d2q9", {"macroscopics": "every-step", "launch": "dependent"}),
    ("rocks", "d2q9", {"flags": "memory", "boundary": "implicit", "cells_per_thread": 2}),
    ("grinder", "d2q9", {"addressing": "indirect", "cells_per_thread": 4, "layout": "aosoa", "width": 16}),
    (
        "solids",
        "d2q9",
        {"addressing": "indirect", "scheme": "esoteric-pull", "storage": "fp16s", "store_hint": "streaming"},
    ),
    ("rocks", "d3q19", {"addressing": "indirect", "neighbours": "chase", "march": 4, "prefetch": 1, "fetch": "shared"}),
]


@on_host
@pytest.mark.parametrize(("flow", "lattice", "axes"), SAMPLES)
def test_kernels_of_a_gpu(flow: str, lattice: str, axes: dict[str, Any]) -> None:
    case, chosen = case_of(flow, lattice, "bgk"), config("cuda", **{"block": "32x1x1", **axes})
    assert broken(case, chosen, LIMITS) is None
    program = render(case, chosen)
    assert verify(program, compile_on_host(program), HostDevice()).passed


@pytest.mark.parametrize(
    ("flow", "axes"),
    [
        ("grinder", {}),
        ("solids", {"flags": "memory", "scheme": "esoteric-pull", "layout": "aosoa", "width": 16}),
        ("cavity", {"reads": "twice", "storage": "fp64", "threads": 2}),
        ("channel", {"wrap": "select", "scheme": "esoteric-pull"}),
        ("solids", {"addressing": "indirect", "layout": "bundle-aosoa", "group": 3, "width": 16}),
        ("grinder", {"addressing": "indirect", "scheme": "esoteric-pull", "vector_bits": 0, "threads": 2}),
        ("rocks", {"addressing": "indirect", "neighbours": "chase", "storage": "fp16s", "gather": "lanes"}),
    ],
)
def test_kernels_of_a_cpu(flow: str, axes: dict[str, Any]) -> None:
    case, chosen = case_of(flow, "d2q9", "bgk"), config("cpu", **axes)
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
@pytest.mark.parametrize("addressing", ["direct", "indirect"])
def test_a_cut_link_must_not_follow_its_pointer(addressing: str) -> None:
    program = render(case_of("cavity", "d2q9", "bgk"), config("cuda", block="32x1x1", addressing=addressing))
    right = "populations + component(3, n)"
    assert right in program.source
    wrong = replace(program, source=program.source.replace(right, "pointer_3"))
    assert not verify(wrong, compile_on_host(wrong), HostDevice()).passed


@pytest.mark.parametrize(
    ("axes", "reason"),
    [
        (
            {"scheme": "aa"},
            "f_1 is found at (0, 0, 0) in one step and at (-1, 0, 0) in the next, so steps differ in more",
        ),
        ({"scheme": "pull"}, "parity pointers with scheme pull: all its steps are alike"),
        ({"parity": "both"}, "parity 'both': kernels and pointers exist"),
    ],
)
def test_reasons(axes: dict[str, Any], reason: str) -> None:
    case, values = box("d2q9", "bgk", (64, 8, 1)), {"scheme": "esoteric-pull", "parity": "pointers", **axes}
    for kind in (CudaConfig, CpuConfig):
        assert reason in str(broken(case, kind(**values), Limits()))


def test_several_steps_of_a_launch_have_one_set_of_pointers() -> None:
    case = box("d2q9", "bgk", (64, 8, 1))
    swept = config("cpu", steps=2, loop="tile", tile_y=4, tile_z=1)
    assert broken(case, swept, LIMITS) == (
        "parity pointers with several steps in a launch: pointers are exchanged between launches"
    )
    assert broken(case, replace(swept, parity="kernels"), LIMITS) is None


def test_the_axis_acts_where_steps_differ_in_slots() -> None:
    assert neutral("parity", {"backend": "cpu", "scheme": "esoteric-twist", "addressing": "direct"}) is None
    assert neutral("parity", {"backend": "cpu", "scheme": "aa", "addressing": "direct"}) == "kernels"
    assert neutral("parity", {"backend": "cuda", "scheme": "esoteric-pull", "addressing": "indirect"}) is None


def test_the_slots_of_a_file_start_where_the_layout_says() -> None:
    case = box("d2q9", "bgk", (48, 6, 1))
    for chosen in (cuda.Direct(layout=SoA(padding=8)), cuda.Direct(layout=AoS()), cpu.Direct(row_padding=3)):
        program = render(case, replace(chosen, scheme="esoteric-pull", parity="pointers"))
        kernel = describe_kernel(program)
        names = dict(zip(("NX", "NY", "NZ"), program.frame.extents(case.domain)[:3], strict=True))
        extents = Extents(*names.values(), 9)
        found = {name: eval(formula, {}, names) for name, formula in kernel.slots.items()}
        assert found == {f"slot_{i}": chosen.memory.component(i, extents) for i in range(9)}
        assert found == program.slot_starts(case.domain)
    assert describe_kernel(render(case, cuda.Direct(scheme="esoteric-pull"))).slots == {}


@pytest.mark.filterwarnings("ignore:this kernel was tuned")
@pytest.mark.parametrize("addressing", ["direct", "indirect"])
def test_a_flow_runs_from_its_file(addressing: str, tmp_path: Path) -> None:
    chosen = cpu.Direct(compute="fp64", pointer_swap=1, scheme="esoteric-pull", storage="fp64", vector_bits=0)
    chosen = replace(chosen, addressing=addressing)
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
