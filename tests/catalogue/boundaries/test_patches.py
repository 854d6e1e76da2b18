"""Parts of faces, and types of cells of a voxel file: which cells, what their words say, kernels, and a jet."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbmtune.api.inventory import catalogue
from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.boundaries.cell_flags import MOVING_WORDS, WORDS, words
from lbmtune.catalogue.boundaries.completion import reconstructed
from lbmtune.catalogue.boundaries.cut_links import cut_kinds
from lbmtune.catalogue.config import cpu, cuda
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.footprint import footprint_bytes, traffic
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import conditions, layout
from lbmtune.catalogue.problem.faces import FACES, Face, Patch
from lbmtune.catalogue.problem.flows import box, cavity, pipe
from lbmtune.catalogue.problem.geometry import solid
from lbmtune.catalogue.problem.patch_checks import check_cells
from lbmtune.catalogue.problem.patches import holds, owners, types
from lbmtune.codegen.describe import describe_kernel
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.files.casefile import CaseFile, case_of
from lbmtune.files.studyfile import overridden, parse_study
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.reference_states import reference_slabs, slabs
from lbmtune.measure.verification.textbook_boundaries import bounded
from lbmtune.measure.verification.verify import verify
from lbmtune.records import Resources
from lbmtune.records.best_json.kernel import CellType
from lbmtune.runtime import Simulation
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.conformance.choices import patched
from tests.support.kernels.cpu_cases import InterpretingDevice, config_of, interpret, program_of
from tests.support.kernels.cuda_samples import VECTOR_SCHEMES, config

needs_a_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
WALLS: tuple[Face, ...] = ("wall",) * 6


def _case(lattice: str, size: tuple[int, int, int] = (8, 7, 6)) -> Case:
    return patched(lattice, "bgk", (*size[:2], 1) if lattice == "d2q9" else size)


def _walled(*patches: Patch, size: tuple[int, int, int] = (8, 6, 4)) -> Case:
    return replace(box("d3q19", "bgk", size, 1.3), faces=WALLS, patches=patches)


# which cells


def test_a_rectangle_is_a_range_of_shares_of_its_face() -> None:
    case = _walled(Patch("slip", "rectangle:y=0.5..1:z=0..0.25", "x-"), Patch("slip", "rectangle:x=0.25..0.5", "z+"))
    assert owners(case, 0).tolist() == [[0, 0, 0, 1, 1, 1], *[[0] * 6] * 3]
    assert owners(case, 5).tolist() == [[0, 0, 2, 2, 0, 0, 0, 0]] * 6
    assert not owners(case, 1).any()


def test_a_disc_lies_around_its_point() -> None:
    case = _walled(Patch("slip", "disc:x=0.5:y=0.5:radius=0.5", "z-"), size=(6, 4, 4))
    assert owners(case, 4).tolist() == [[0, 0, 1, 1, 0, 0], [0, 1, 1, 1, 1, 0], [0, 1, 1, 1, 1, 0], [0, 0, 1, 1, 0, 0]]


def test_the_smallest_patch_holds_one_cell() -> None:
    small = (Patch("slip", "disc:radius=0.01", "x-"), Patch("slip", "rectangle:y=0.99..1:z=0.99..1", "x+"))
    case = _walled(*small, size=(3, 3, 5))
    assert [int((owners(case, face) > 0).sum()) for face in (0, 1)] == [1, 1]
    assert owners(case, 1)[4, 2] == 2


def test_the_later_patch_counts_where_a_small_domain_lets_them_meet() -> None:
    halves = (Patch("slip", "rectangle:y=0..0.5", "x-"), Patch("moving", "rectangle:y=0.5..1", "x-", (0.0, 0.1, 0.0)))
    assert owners(_walled(*halves, size=(4, 2, 2)), 0).tolist() == [[1, 2]] * 2
    assert owners(_walled(*halves, size=(4, 1, 2)), 0).tolist() == [[2]] * 2


# words


def test_a_word_has_a_field_for_each_axis_and_a_bit_for_each_moving_wall() -> None:
    case = _case("d3q27")
    fields = [field for _, field in layout(case, everywhere=False).conditions]
    # slip on y; then two velocities and a pressure on x; two moving walls
    assert [(f.shift, f.bits, f.number) for f in fields] == [(27, 2, 1), (27, 2, 2), (27, 2, 3), (29, 1, 1)]
    assert [field.shift for _, field in layout(case, everywhere=False).walls] == [30, 31]
    everywhere = layout(case, everywhere=True)
    assert [f.shift for _, f in everywhere.conditions] == [0, 0, 0, 2, 3]
    assert everywhere.bits == 6


def test_words_say_what_a_cell_does() -> None:
    case = _case("d3q19")
    flags = words(case, WORDS, np).reshape(case.domain[::-1])
    plain = words(replace(case, patches=()), WORDS, np).reshape(case.domain[::-1])
    assert (flags & (2**19 - 1) == plain).all()
    # at x- the second inlet, at the middle the first one, at x+ the outlet, at y- free slip; bit 22 moving faces,
    # bit 23 the wall of the fourth patch
    assert [int(flags[3, y, 0]) >> 19 for y in (6, 3, 0)] == [0b10010, 0b00001, 0b01000]
    assert [int(flags[3, y, 7]) >> 19 for y in (6, 3, 0)] == [0b01000, 0b00011, 0b01000]
    assert [int(flags[3, 0, x]) >> 19 for x in (1, 3, 6)] == [0b01000, 0b00100, 0b01000]
    assert not (flags[1:-1, 1:-1, 1:-1]).any()


@pytest.mark.parametrize("lattice", LATTICES)
def test_a_patch_all_over_a_face_is_the_face(lattice: str) -> None:
    """Whatever its kind: the oracle's steps, and the words that say which links are cut."""
    flat = lattice == "d2q9"
    whole = replace(
        pipe(lattice, "bgk", (6, 5, 1 if flat else 4), 1.2), outlet_density=1.02, wall_velocity=(0.03, 0, 0)
    )
    whole = replace(whole, faces=("velocity", "pressure", "moving", "slip", *whole.faces[4:]))
    kinds: dict[str, Any] = {"velocity": {"velocity": whole.inlet_velocity}, "pressure": {"density": 1.02}}
    kinds |= {"moving": {"velocity": whole.wall_velocity}, "slip": {}}
    sides = zip(("x-", "x+", "y-", "y+"), whole.faces[:4], strict=True)
    parts = tuple(Patch(kind, "rectangle", side, **kinds[kind]) for side, kind in sides)
    case = replace(whole, faces=("wall",) * 4 + whole.faces[4:], patches=parts)
    check_cells(case)
    np.testing.assert_array_equal(cut_kinds(case), cut_kinds(whole))
    f = oracle.random_state(case)
    np.testing.assert_array_equal(oracle.step(oracle.step(f, case), case), oracle.step(oracle.step(f, whole), whole))


@pytest.mark.parametrize("lattice", LATTICES)
def test_symbolic_form_is_that_of_the_oracle(lattice: str) -> None:
    case = _case(lattice)
    f = oracle.random_state(case)
    np.testing.assert_allclose(reconstructed(f, case, np), bounded(f, case), rtol=0, atol=1e-15)


@pytest.mark.parametrize("lattice", LATTICES)
def test_cells_of_a_patch_have_what_is_given_and_others_what_they_had(lattice: str) -> None:
    case = replace(_case(lattice), faces=(*("wall",) * 4, *_case(lattice).faces[4:]))
    case = replace(case, faces=(*case.faces[:4], *("periodic",) * 2), patches=case.patches[:4])
    before = oracle.random_state(case)
    f = bounded(before, case)
    u, rho = oracle.velocity(f, case), oracle.density(f)
    for condition in conditions(case):
        x, given = -(condition.face % 2), case.patches[condition.patch - 1]
        cells = holds(case, condition)
        if condition.kind == "velocity":
            wanted = np.broadcast_to(np.reshape(given.velocity, (3, 1)), (3, int(cells.sum())))
            np.testing.assert_allclose(u[..., x][:, cells], wanted, atol=1e-15)
        else:
            np.testing.assert_allclose(rho[..., x][cells], given.density, atol=1e-15)
    changed = (f != before).any(axis=0)
    assert changed.sum() == sum(holds(case, c).sum() for c in conditions(case))


def test_slabs_of_a_domain_are_the_domain() -> None:
    case = replace(_case("d3q19", (4, 5, 7)), patches=(*_case("d3q19").patches, Patch("slip", "disc", "z+")))
    whole = next(slabs(case, case.sites))
    (expected,) = reference_slabs(case, [whole], 2, np)
    parts = [part.copy() for part in reference_slabs(case, list(slabs(case, 40)), 2, np)]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), expected)


# kernels


def _on_shim(scheme: str, lattice: str, axes: dict[str, Any]) -> None:
    case, one = _case(lattice, (192, 64, 64)), config(**{"scheme": scheme, "block": (16, 1, 1), **axes})
    assert broken(case, one, Limits()) is None
    program = render(case, one)
    found = verify(program, compile_on_host(program), HostDevice(), 2)
    assert found.passed, found


SAMPLES = list(product(VECTOR_SCHEMES, ("d2q9", "d3q19"), ({"flags": "memory"}, {}, {"family": "sparse"})))


@needs_a_compiler
@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "lattice", "axes"), SAMPLES)
@pytest.mark.parametrize("cells", [1, 2])
def test_cuda_schemes(scheme: str, lattice: str, axes: dict[str, Any], cells: int) -> None:
    _on_shim(scheme, lattice, {**axes, "cells_per_thread": cells})


@needs_a_compiler
@pytest.mark.parametrize(
    ("scheme", "axes"),
    [
        ("aa", {"flags": "memory", "cells_per_thread": 2}),
        pytest.param("push", {"flags": "memory", "boundary": "predicated"}, marks=pytest.mark.slow),
        ("esoteric-twist", {"family": "sparse", "cells_per_thread": 2, "storage": "fp16s"}),
        ("esoteric-pull", {"cells_per_thread": 2}),
    ],
)
def test_a_few_cuda_schemes(scheme: str, axes: dict[str, Any]) -> None:
    _on_shim(scheme, "d2q9", axes)


@needs_a_compiler
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("== 2u) at_x_low_velocity", "== 1u) at_x_low_velocity", marks=pytest.mark.slow),
        pytest.param("excess_3", "-excess_3", marks=pytest.mark.slow),
        ("of_wall(moving, flags.cut, 13, 1u, 1u)", "of_wall(moving, flags.cut, 12, 1u, 1u)"),
    ],
)
def test_a_wrong_patch_shows_in_the_coarsest_precision(old: str, new: str) -> None:
    program = render(_case("d2q9", (192, 64, 1)), config(scheme="pull", storage="fp16s", flags="memory"))
    head, entry = program.source.split("extern", 1)
    assert old in entry
    wrong = replace(program, source=f"{head}extern{entry.replace(old, new).replace('const Real -', 'const Real ')}")
    assert not verify(wrong, compile_on_host(wrong), HostDevice(), 1).passed


SHAPES = (
    Patch("velocity", "disc:y=0.5:z=0.31:radius=0.35", "x-", (0.04, 0.0, 0.0)),
    Patch("moving", "disc:y=0:z=1:radius=0.01", "x+", (0.0, 0.03, 0.0)),
    Patch("moving", "rectangle:x=0.13..0.5:z=0.5..0.51", "y+", (0.05, 0.0, 0.0)),
    Patch("slip", "rectangle:x=0.3..0.9:y=0.2..0.8", "z-"),
    Patch("pressure", "disc:radius=0.5", "z+", density=1.02),
)
"""Of every face across an axis, with small ones that overlap on no domain."""


@needs_a_compiler
@pytest.mark.parametrize("case", [_case("d2q9"), replace(_case("d3q19"), faces=WALLS, patches=SHAPES)])
def test_words_that_are_worked_out_are_those_in_memory(case: Case) -> None:
    """Bit for bit, on extents that round in every way."""
    program = render(replace(case, domain=(192, 64, case.domain[2])), config(scheme="pull", block=(1, 1, 1)))
    body = program.source.index("{", program.source.index("step_0("))
    at = "const int x = blockIdx.x, y = blockIdx.y, z = blockIdx.z, at = (z * ny + y) * nx + x;"
    leave = "auto words = reinterpret_cast<Word*>(target) + 2 * at; words[0] = words_here(x, y, z, nx, ny, nz).of[0];"
    leave += " words[1] = moving_here(x, y, z, nx, ny, nz).of[0]; source; return;"
    asked = replace(program, source=f"{program.source[: body + 1]} {{ {at} {leave} }} {program.source[body + 1 :]}")
    executable, (launch,) = HostDevice().load(asked, compile_on_host(asked)), program.period[0]
    for domain in ((2, 3, 4), (5, 8, 2), (9, 6, 7), (16, 11, 13), (31, 4, 10)):
        here = replace(case, domain=(*domain[:2], min(domain[2], case.domain[2])))
        found = np.zeros((here.sites, 2), np.uint32)
        reals = [np.float32(0)] * (len(launch.arguments) - 5)
        executable.launch(launch, here.domain, [found, found, *map(np.int32, here.domain), *reals])
        np.testing.assert_array_equal(found[:, 0], words(here, WORDS, np))
        np.testing.assert_array_equal(found[:, 1], words(here, MOVING_WORDS, np))


def test_words_that_are_worked_out_are_no_bytes() -> None:
    case = _case("d3q19", (64, 64, 64))
    here, listed = config(), config(flags="memory")
    assert (traffic(case, here).flags, traffic(case, listed).flags) == (0, 4)
    assert footprint_bytes(case, listed) - footprint_bytes(case, here) == 2 * 4 * 64**3
    assert (describe_kernel(render(case, here)).types, len(describe_kernel(render(case, listed)).types)) == ((), 6)


@pytest.mark.parametrize(("scheme", "layout_name"), [("pull", "aosoa"), ("aa", "soa-select")])
def test_cpu_text(scheme: str, layout_name: str) -> None:
    case = _case("d2q9", (96, 5, 1))
    found = interpret(program_of(case, config_of(scheme, layout_name, flags="memory")), 1)
    assert found.passed, found


def test_cpu_text_of_sites() -> None:
    one = cpu.Sparse(compute="fp64", scheme="esoteric-twist", storage="fp64", vector_bits=256)
    assert interpret(program_of(_case("d2q9", (24, 5, 1)), one), 1).passed


@pytest.mark.slow
def test_compiled_cpu_kernel_of_sites(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path))
    one = cpu.Sparse(scheme="aa", vector_bits=256)
    program = program_of(_case("d2q9", (24, 5, 1)), one)
    assert "end_f1 = lane(f1, k)" in program.source
    assert verify(program, compile_cpu(program), open_cpu(), 2).passed


def test_macroscopics_are_those_of_the_completed_state() -> None:
    case = _case("d2q9", (96, 8, 1))
    program = program_of(case, config_of("aa", "soa-select", flags="memory"))
    simulation = Simulation(program, Binary(b"", "", Resources()), InterpretingDevice(), case)
    simulation.initialise(oracle.random_state(case))
    rho, u = simulation.macroscopic()
    np.testing.assert_allclose(u[:2, 0, 2:6, 0], np.reshape((0.04, -0.03), (2, 1)) * np.ones(4), atol=1e-14)
    np.testing.assert_allclose(rho[0, 4, -1], 1.02, atol=1e-14)
    assert abs(rho[0, 0, -1] - 1.02) > 1e-6


def test_types_of_sites_are_a_row_of_the_list() -> None:
    lid = replace(cavity("d3q19", "bgk", (16, 16, 16), 1.3), faces=WALLS)
    half = replace(lid, patches=(Patch("moving", "rectangle:x=0..0.5", "y+", (0.1, 0.0, 0.0)),))
    jet = replace(lid, patches=(Patch("velocity", "disc", "x-", (0.05, 0.0, 0.0)),))
    pull = cuda.Sparse(compute="fp64", storage="fp64")
    # one wall that moves needs no type
    assert [traffic(case, pull).flags for case in (lid, half, jet)] == [0, 0, 4]
    spare = 4 * (16**3 + 128)
    assert footprint_bytes(jet, pull) - footprint_bytes(lid, pull) == spare
    direct = cuda.Direct(compute="fp64", flags="memory", storage="fp64")
    assert footprint_bytes(jet, direct) == footprint_bytes(lid, direct)
    assert footprint_bytes(half, direct) - footprint_bytes(lid, direct) == 4 * 16**3


def test_the_description_says_what_the_bits_are() -> None:
    direct, sites = (
        describe_kernel(render(_case("d3q19", (64, 64, 64)), one))
        for one in (cuda.Direct(flags="memory"), cuda.Sparse())
    )
    assert direct.types[2] == CellType(kind="pressure", face="x+", patch=3, shift=19, bits=2, number=3)
    assert direct.types[-1] == CellType(kind="moving", face="", patch=4, shift=23, bits=1, number=1)
    assert [t.patch for t in sites.types] == [1, 2, 3, 5, 0, 0, 4]
    assert sites.arguments["wall_x_4"].value == direct.arguments["wall_x_4"].value == 0.05
    assert not describe_kernel(render(_walled(), cuda.Direct(flags="memory"))).types


# voxel files


def _typed(tmp_path: Path) -> CaseFile:
    """A duct of solid cells (1) with an inlet (2) and an outlet (3) at its ends, and a block that moves (4)."""
    cells = np.ones((5, 6, 8), np.uint8)
    cells[1:-1, 1:-1] = 0
    cells[1:-1, 1:-1, 0], cells[1:-1, 1:-1, -1], cells[2, 1, 4] = 2, 3, 4
    np.save(tmp_path / "duct.npy", cells)
    patches = (
        Patch("velocity", "cells:value=2", "x-", (0.05, 0.0, 0.0)),
        Patch("pressure", "cells:value=3", "x+", density=1.01),
        Patch("moving", "cells:value=4", velocity=(0.02, 0.0, 0.0)),
    )
    geometry = f"file:path={tmp_path / 'duct.npy'}"
    file = CaseFile(flow="box", lattice="d3q19", domain="8x6x5", relaxation_rate=1.2, geometry=geometry)
    return replace(file, faces=WALLS, patches=patches)


def test_cells_of_a_voxel_file_have_types(tmp_path: Path) -> None:
    case = case_of(_typed(tmp_path))
    assert ":fluid=2+3:" in case.geometry
    assert int(solid(case).sum()) == 8 * (6 * 5 - 4 * 3) + 1
    assert int(holds(case, conditions(case)[0]).sum()) == int(holds(case, conditions(case)[1]).sum()) == 12
    kinds = cut_kinds(case)
    below, beside = case.stencil.velocities.index((0, -1, 0)), case.stencil.velocities.index((1, 0, 0))
    assert kinds[below, 2, 2, 4] == kinds[beside, 2, 1, 3] == 2
    assert kinds[below, 2, 1, 3] == 1
    assert not types(case, everywhere=True)[solid(case)].any()
    larger = replace(case, domain=(12, 7, 7))
    assert int(holds(larger, conditions(larger)[0]).sum()) == 25


@needs_a_compiler
@pytest.mark.parametrize("axes", [pytest.param({"flags": "memory"}, marks=pytest.mark.slow), {"family": "sparse"}])
def test_kernels_of_typed_cells(axes: dict[str, Any], tmp_path: Path) -> None:
    case = case_of(_typed(tmp_path))
    program = render(case, config(scheme="pull", block=(8, 1, 1), storage="fp64", compute="fp64", **axes))
    assert verify(program, compile_on_host(program), HostDevice(), 2).passed


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"domain": "8x6x6"}, r"has 8x6x5 cells and faces of its own; set domain to 8x6x5"),
        (
            {"face": "x+"},
            r"cell \(0, 1, 1\) has cells:value=2 and is not at face x\+; give the value to cells",
        ),
        ({"where": "cells:value=9"}, r"number 1: cells:value=9 holds no fluid cell at x-"),
    ],
)
def test_typed_cells_that_cannot_be(change: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    file = _typed(tmp_path)
    if "domain" in change:
        file = replace(file, **change)
    else:
        file = replace(file, patches=(replace(file.patches[0], **change), *file.patches[1:]))
    with pytest.raises(InputError, match=sentence):
        case_of(file)


# study files

STUDY = """\
name = "jet"
[case]
flow = "box"
lattice = "d3q19"
domain = "64x32x32"
relaxation_rate = 1.2
faces = ["wall", "pressure", "wall", "wall", "wall", "wall"]

[[case.patches]]
face = "x-"
kind = "velocity"
where = "disc:radius=0.25"
velocity = [0.05, 0.0, 0.0]

[[case.patches]]
face = "y+"
kind = "moving"
where = "rectangle:x=0.5..1"
velocity = [0.1, 0.0, 0.0]
"""


def test_a_study_file_has_a_table_for_each_patch() -> None:
    spec = parse_study(STUDY, "jet.toml")
    assert [patch.kind for patch in spec.case.patches] == ["velocity", "moving"]
    assert spec.case.patches[1] == Patch("moving", "rectangle:x=0.5..1", "y+", (0.1, 0.0, 0.0))
    again = overridden(spec, ["case.relaxation_rate=1.1"])
    assert again.case == replace(spec.case, relaxation_rate=1.1)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("radius=0.25", "radius=2", "line 9: case.patches[1]: patches: number 1: radius=2 of a disc is not between"),
        ("radius=0.25", "x=0.1", "number 1: x=0.1 of a disc: give its centre along y and z only."),
        ("disc:", "dsc:", "number 1: unknown patch 'dsc'; did you mean 'disc'?"),
        ("x=0.5..1", "x=0.5..1.5", "line 15: case.patches[2]: patches: number 2: x=0.5..1.5 of a rectangle exceeds"),
        ("x=0.5..1", "x=half", "number 2: x=half of a rectangle is not a range"),
        ('"y+"', '"y"', "number 2: unknown face 'y'"),
        ("velocity = [0.1, 0.0, 0.0]", "", "number 2: velocity [0.0, 0.0, 0.0] of kind moving is not between 0 and"),
        ("velocity = [0.1, 0.0, 0.0]", "density = 1.1", "number 2: velocity [0.0, 0.0, 0.0] of kind moving is not"),
        ("velocity = [0.1, 0.0, 0.0]", 'velocity = "fast"', "line 19: case.patches[2].velocity"),
        ('kind = "moving"', 'kind = "mving"', "case.patches[2].kind"),
        ('where = "rectangle:x=0.5..1"', "", "case.patches[2].where: is missing"),
        ("where = ", "were = ", "case.patches[1].were: unknown key; did you mean 'where'?"),
        ('"y+"', '"x-"\ndensity = 2.0', "number 2: density 2.0 with kind moving: leave it out"),
        ('face = "y+"\nkind = "moving"\nwhere = "rectangle:x=0.5..1"', 'face = "x-"\nkind = "moving"\nwhere = "disc"',
         "patches: numbers 1 and 2 overlap on face x-; give each cell one."),
        ('face = "y+"\nkind = "moving"\nwhere = "rectangle:x=0.5..1"',
         'face = "y+"\nkind = "velocity"\nwhere = "rectangle:x=0.5..1"',
         "cells at both face y+ and face x+ have a given velocity or pressure"),
        ('face = "y+"\n', "", "number 2: where rectangle:x=0.5..1 needs a face"),
        ('"rectangle:x=0.5..1"', '"cells:value=2"', "number 2: where cells:value=2 needs a voxel file"),
        ('"wall", "wall", "wall", "wall"]', '"periodic", "periodic", "wall", "wall"]', "number 2: face y+ is periodic"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(old: str, new: str, sentence: str) -> None:
    assert old in STUDY
    with pytest.raises(InputError) as raised:
        parse_study(STUDY.replace(old, new), "jet.toml")
    assert sentence in str(raised.value)


def test_a_word_of_a_lattice_holds_so_much() -> None:
    inlets = [Patch("velocity", f"rectangle:y={n / 8}..{(n + 1) / 8}", "x-", (0.01 + n / 100, 0, 0)) for n in range(8)]
    lids = [Patch("moving", f"rectangle:x={n / 8}..{(n + 1) / 8}", "y+", (0.01 + n / 100, 0, 0)) for n in range(8)]
    case = replace(_walled(*inlets, *lids), domain=(8, 8, 8))
    assert layout(case, everywhere=False).bits == 4 + 8
    with pytest.raises(InputError, match="take 12 bits of a cell's word, which has 5 besides the links of d3q27"):
        replace(case, lattice="d3q27")


def test_shapes_are_listed() -> None:
    assert set(catalogue()["patches"]) == {"rectangle", "disc", "cells"}
    assert set(FACES) == {"periodic", "wall", "moving", "slip", "velocity", "pressure"}


# physics


def test_what_a_jet_brings_in_leaves_at_the_outlet() -> None:
    """An inlet in the middle of a wall: in the end the same mass crosses every plane, the inlet and the outlet."""
    speed, nx, ny = 1e-3, 8, 8
    inlet = Patch("velocity", "rectangle:y=0.25..0.75", "x-", (speed, 0.0, 0.0))
    case = replace(pipe("d2q9", "trt", (nx, ny, 1), 0.6), patches=(inlet,))
    case = replace(case, faces=("wall", *case.faces[1:]))
    f = oracle.equilibrium(np.ones((1, ny, nx)), np.zeros((3, 1, ny, nx)), case.stencil)
    for _ in range(500):
        f = oracle.step(f, case)
    f = bounded(f, case)
    after = oracle.collide(f, case)
    forth, back = ([i for i, c in enumerate(case.stencil.velocities) if c[0] == sign] for sign in (1, -1))
    crossing = after * (cut_kinds(case) == 0)
    across = crossing[forth][..., :-1].sum(axis=(0, 1, 2)) - crossing[back][..., 1:].sum(axis=(0, 1, 2))
    np.testing.assert_allclose(across, across[0], rtol=1e-9)
    brought = (f[forth].sum(axis=0) - after[back].sum(axis=0))[0, 2:6, 0].sum()
    np.testing.assert_allclose(brought, across[0], rtol=1e-9)
    np.testing.assert_allclose(brought, 4 * speed, rtol=0.03)
    rest = oracle.velocity(f, case)[0, 0, [0, 1, 6, 7], 0]
    assert np.abs(rest).max() < 0.2 * speed
