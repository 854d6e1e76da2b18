"""Free slip, velocity and pressure faces: the oracle, the symbolic form, and generated kernels that must fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from lbmtune.api.inventory import catalogue
from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.boundaries.completion import arriving, reconstructed
from lbmtune.catalogue.boundaries.cut_links import cut_kinds
from lbmtune.catalogue.config import KernelConfig, cpu, cuda
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import conditions
from lbmtune.catalogue.problem.faces import FACES
from lbmtune.catalogue.problem.flows import box, half_channel, pipe
from lbmtune.catalogue.problem.geometries import GENERATORS
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.reference_states import reference_slabs, slabs
from lbmtune.measure.verification.textbook_boundaries import bounded
from lbmtune.measure.verification.verify import verify
from lbmtune.records import Resources
from lbmtune.runtime import Simulation
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.conformance.choices import ROOMY, case_of, local_faces
from tests.support.kernels.cpu_cases import LAYOUTS, InterpretingDevice, config_of, interpret, program_of
from tests.support.kernels.cuda_samples import SCHEME_NAMES, VECTOR_SCHEMES, config
from tests.support.paths import ROOT

FLOWS = ("opened", "slipping")


def _case(flow: str, lattice: str, size: tuple[int, int, int] = (6, 5, 4)) -> Case:
    return local_faces(flow, lattice, "bgk", (*size[:2], 1) if lattice == "d2q9" else size)


@pytest.mark.parametrize(("flow", "lattice"), list(product(FLOWS, LATTICES)))
def test_symbolic_form_is_that_of_the_oracle(flow: str, lattice: str) -> None:
    case = _case(flow, lattice)
    f = oracle.random_state(case)
    np.testing.assert_allclose(reconstructed(f, case, np), bounded(f, case), rtol=0, atol=1e-15)


@pytest.mark.parametrize("lattice", LATTICES)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("flip", [False, True])
def test_cells_have_the_velocity_or_the_density_that_is_given(lattice: str, axis: int, flip: bool) -> None:
    flat = lattice == "d2q9"
    if flat and axis == 2:
        return
    faces = ["periodic"] * 6
    faces[2 * axis : 2 * axis + 2] = ["pressure", "velocity"] if flip else ["velocity", "pressure"]
    given = (0.04, -0.03, 0.0 if flat else 0.02)
    case = replace(_case("opened", lattice), faces=tuple(faces), inlet_velocity=given)  # type: ignore[arg-type]
    f = bounded(oracle.random_state(case), case)
    rho, u = oracle.density(f), oracle.velocity(f, case)
    inlet, outlet = (np.moveaxis(a, -1 - axis, 0)[-1 if low == flip else 0] for a, low in ((u, True), (u, False)))
    np.testing.assert_allclose(inlet, np.broadcast_to(np.reshape(given, (3, 1, 1)), inlet.shape), atol=1e-15)
    np.testing.assert_allclose(np.moveaxis(rho, 2 - axis, 0)[0 if flip else -1], 1.02, atol=1e-15)
    np.testing.assert_allclose(np.delete(outlet, axis, axis=0), 0.0, atol=1e-15)


@pytest.mark.parametrize("lattice", LATTICES)
def test_nothing_but_what_arrives_over_a_face_is_changed(lattice: str) -> None:
    case = _case("slipping", lattice)
    f = oracle.random_state(case)
    changed = bounded(f, case) != f
    over = np.zeros_like(changed)
    for face in (condition.face for condition in conditions(case)):
        layer = np.moveaxis(over, 3 - face // 2, 1)
        layer[list(arriving(case.stencil, face)), -1 if face % 2 else 0] = True
    np.testing.assert_array_equal(changed, over)


@pytest.mark.parametrize("lattice", LATTICES)
def test_half_a_channel_is_half_of_the_whole(lattice: str) -> None:
    """The plane of symmetry goes through the cells of the slip face; both start at rest, and at noise that mirrors."""
    half = half_channel(lattice, "trt", (4, 5, 1 if lattice == "d2q9" else 3), 1.1, force=1e-3)
    faces = ("periodic", "periodic", "wall", "wall", "periodic", "periodic")
    full = replace(half, domain=(4, 9, half.domain[2]), faces=faces)
    mirror = [LATTICES[lattice].velocities.index((x, -y, z)) for x, y, z in half.stencil.velocities]
    f = oracle.random_state(half)
    f[:, :, 0] = (f[:, :, 0] + f[mirror, :, 0]) / 2
    whole = np.concatenate([f[mirror][:, :, :0:-1], f], axis=2)
    for _ in range(30):
        f, whole = oracle.step(f, half), oracle.step(whole, full)
    np.testing.assert_allclose(bounded(f, half), whole[:, :, 4:], rtol=0, atol=1e-14)
    assert np.abs(f - whole[:, :, 4:]).max() > 1e-6


@pytest.mark.parametrize("flow", FLOWS)
def test_slabs_of_a_domain_are_the_domain(flow: str) -> None:
    case = _case(flow, "d3q19", (4, 5, 7))
    case = replace(case, faces=(*case.faces[2:4], "wall", "slip", *case.faces[:2]))
    whole = next(slabs(case, case.sites))
    (expected,) = reference_slabs(case, [whole], 2, np)
    parts = [part.copy() for part in reference_slabs(case, list(slabs(case, 40)), 2, np)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), expected)


def test_streaming_takes_such_a_face_for_a_wall() -> None:
    case = pipe("d2q9", "bgk", (6, 5, 1), 1.0)
    walls = replace(case, faces=("wall",) * 4 + ("periodic",) * 2)
    np.testing.assert_array_equal(cut_kinds(case), cut_kinds(walls))


@pytest.mark.parametrize("sample", list(product(SCHEME_NAMES, FLOWS, ("d2q9", "d3q19"))), ids="-".join)
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.slow
def test_cuda_schemes(sample: tuple[str, str, str]) -> None:
    _on_shim(*sample)


@pytest.mark.parametrize("sample", list(product(SCHEME_NAMES, FLOWS, ("d2q9", "d3q19")))[::11], ids="-".join)
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_a_few_cuda_schemes(sample: tuple[str, str, str]) -> None:
    _on_shim(*sample)


def _on_shim(scheme: str, flow: str, lattice: str) -> None:
    cells = 4 if scheme in VECTOR_SCHEMES else 1
    case, one = _case(flow, lattice, (192, 64, 64)), config(scheme=scheme, cells_per_thread=cells)
    program = render(case, one)
    found = verify(program, compile_on_host(program), HostDevice())
    assert found.passed, found


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize(
    "axes",
    [
        {"macroscopics": "every-step", "scheme": "esoteric-pull", "storage": "fp64"},
        {"z_cells": 3, "prefetch_cells": 1, "scheme": "aa", "storage": "fp16s"},
        {"flags": "memory", "scheme": "aa", "cells_per_thread": 2},
        {"wrap": "ghost", "scheme": "push", "storage": "bf16"},
    ],
)
def test_other_kernels_on_the_shim(axes: dict[str, object]) -> None:
    case = _case("opened", "d3q19", (192, 64, 64))
    program = render(case, config(**axes))
    assert verify(program, compile_on_host(program), HostDevice()).passed


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (y + 1 == ny) at_y_high", "if (y + 2 == ny) at_y_high"),
        ("x + CELLS == nx && v == CELLS - 1", "x + CELLS == nx && v == 0"),
        ("= excess", "= -excess"),
    ],
)
def test_a_wrong_face_shows_in_the_coarsest_precision(old: str, new: str) -> None:
    case = _case("opened", "d2q9", (192, 64, 1))
    program = render(case, config(scheme="pull", storage="fp16s", cells_per_thread=2))
    source = program.source.replace(old, new)
    assert source != program.source
    wrong = replace(program, source=source)
    assert not verify(wrong, compile_on_host(wrong), HostDevice(), 1).passed


CPU = list(product(("pull", "push", "aa", "esoteric-twist", "esoteric-pull", "swap", "two-step"), LAYOUTS, FLOWS))


@pytest.mark.parametrize(("scheme", "layout", "flow"), CPU[::27])
@pytest.mark.parametrize("flags", ["compiled", "memory"])
def test_cpu_text(scheme: str, layout: str, flow: str, flags: str) -> None:
    case = _case(flow, "d2q9", (96, 5, 1))
    found = interpret(program_of(case, config_of(scheme, layout, flags=flags)), 1)
    assert found.passed, found


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize(
    ("scheme", "flags", "layout"),
    [("ghost-cell", "compiled", "soa"), ("ghost-cell", "memory", "aosoa"), ("swap-ordered", "compiled", "soa")],
)
def test_blocks_and_slabs(scheme: str, flags: str, layout: str, flow: str) -> None:
    case = _case(flow, "d3q19", (96, 5, 3))
    assert interpret(program_of(case, config_of(scheme, layout, flags=flags)), 1).passed


@pytest.mark.parametrize("scheme", ["aa", "esoteric-twist", "swap"])
def test_cut_links_in_ghost_columns_stay_where_no_flag_is_read(scheme: str) -> None:
    """With resting walls alone, passes that take nothing to another place read no flags."""
    case = replace(box("d2q9", "bgk", (96, 5, 1), 1.3), faces=("wall",) * 4 + ("periodic",) * 2)
    assert interpret(program_of(case, config_of(scheme, "soa", flags="memory")), 2).passed


def test_compiled_cpu_kernel_with_a_lane_at_the_face(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path))
    case = _case("opened", "d2q9", (96, 5, 1))
    program = program_of(case, config_of("pull", "soa-256"))
    assert "with_lane(f1, 0, end_f1)" in program.source
    assert verify(program, compile_cpu(program), open_cpu(), 2).passed
    assert not interpret(
        replace(program, source=program.source.replace("f1 = with_lane(f1, 0, end_f1)", "pass"))
    ).passed


def test_macroscopics_are_those_of_the_completed_state() -> None:
    case = _case("opened", "d2q9", (8, 5, 1))
    program = program_of(replace(case, domain=(96, 5, 1)), config_of("aa", "soa-select"))
    simulation = Simulation(program, Binary(b"", "", Resources()), InterpretingDevice(), case)
    simulation.initialise(oracle.random_state(case))
    rho, u = simulation.macroscopic()
    np.testing.assert_allclose(rho[0, 1:4, -1], 1.02, atol=1e-14)
    np.testing.assert_allclose(u[:2, 0, 2, 0], case.inlet_velocity[:2], atol=1e-14)


@pytest.mark.parametrize(
    ("faces", "changes", "reason"),
    [
        (("velocity", "wall", "pressure", "wall"), {}, "faces across x and y have a given velocity or pressure"),
        (("velocity", "wall", "wall", "wall"), {"inlet_velocity": (0.0, 0.0, 0.0)}, "is not between 0 and 0.5"),
        (("slip", "wall", "wall", "wall"), {"domain": (1, 5, 1)}, "has one cell between faces"),
        (("pressure", "wall", "wall", "wall"), {"outlet_density": 0.0}, "is not positive"),
    ],
)
def test_what_cannot_be_is_said(faces: tuple[str, ...], changes: dict[str, object], reason: str) -> None:
    case = pipe("d2q9", "bgk", (6, 5, 1), 1.0)
    with pytest.raises(InputError, match=reason):
        replace(case, faces=(*faces, "periodic", "periodic"), **changes)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has no velocity along z"):
        replace(case, faces=(*case.faces[:4], "slip", "slip"))


def test_kinds_of_faces_are_listed() -> None:
    assert set(catalogue()["faces"]) == set(FACES) >= {"slip", "velocity", "pressure", "moving", "wall", "periodic"}
    assert {"pipe", "half-channel"} <= set(catalogue()["flows"])
    assert set(catalogue()["geometries"]) == set(GENERATORS) >= {"ducts", "packing", "sandstone", "file"}


KINDS: dict[str, tuple[tuple[KernelConfig, ...], str]] = {
    "one step": ((cuda.Direct(block=(64, 1, 1)), cpu.Direct(vector_bits=0)), "bgk"),
    "several steps, populations": (
        (
            cuda.TemporalBlocking(chunk_planes=8, plane_fetch="none"),
            cpu.Wavefront(steps=2, tile=(4, 2), vector_bits=0),
        ),
        "bgk",
    ),
    "moments": (
        (
            cuda.TemporalBlocking(chunk_planes=8, plane_fetch="none", representation="moments", steps=1),
            cpu.MomentsWavefront(tile=(64, 4, 2), vector_bits=0),
        ),
        "regularised",
    ),
    "on chip (`family=persistent`)": ((cuda.Persistent(block=(64, 4, 1)),), "bgk"),
}
CONDITIONS: dict[str, Callable[[Case], Case]] = {
    "`wall`, `moving`, whole faces": lambda case: replace(
        case, faces=("wall", "moving", "wall", "wall", "wall", "wall"), wall_velocity=(0.0, 0.05, 0.0)
    ),
    "solid cells (`flags=memory`)": lambda case: replace(case, geometry="sphere"),
    "`slip`, `velocity`, `pressure`, whole faces": lambda case: replace(
        case, faces=("velocity", "pressure", "slip", "slip", "wall", "wall"), inlet_velocity=(0.05, 0.0, 0.0)
    ),
    "parts of faces, solid cells that move": lambda case: case_of("patched", case.lattice, case.collision),
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_table_of_kernels_says_what_the_rules_say(condition: str) -> None:
    page = (ROOT / "docs/guide/faces.md").read_text().split("## Which kernels")[1]
    head, *rows = [
        line.strip("| ").split(" | ") for line in page.split("\n") if line.startswith("| ") and " | " in line
    ]
    table = {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows if row[0] in CONDITIONS}
    for kind, (configs, collision) in KINDS.items():
        case = CONDITIONS[condition](box("d3q19", collision, (64, 16, 16), 1.3))
        flags = "memory" if case.geometry or case.patches else "compiled"
        legal = [one.backend for one in configs if not broken(case, replace(one, flags=flags), ROOMY)]
        said = ", ".join({"cuda": "GPU", "cpu": "CPU"}[name] for name in legal) or "no"
        assert table[condition][kind] == said, (kind, [broken(case, replace(c, flags=flags), ROOMY) for c in configs])
