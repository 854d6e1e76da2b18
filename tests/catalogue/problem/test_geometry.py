"""Solid cells: the generators on any domain, the user's own voxels, and the links that they cut."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.catalogue.boundaries.cut_links import cut_kind, cut_kinds
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, porous
from lbmtune.catalogue.problem.geometries.packing import _centres
from lbmtune.catalogue.problem.geometry import check_solid, generator, identified, solid, voxels
from lbmtune.errors import InputError
from lbmtune.files.casefile import CaseFile, case_of
from lbmtune.files.studyfile import load_study, overridden, parse_study

DOMAINS = [(36, 5, 3), (24, 7, 1), (1, 1, 1), (33, 32, 31), (2, 9, 4)]
FRACTIONAL = ["packing:fraction=0.52:radius=3", "sandstone:fraction=0.7:grain=2", "blocks:fraction=0.4:size=3"]


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("geometry", FRACTIONAL)
def test_the_solid_fraction_is_met_to_the_cell_on_any_domain(geometry: str, domain: tuple[int, int, int]) -> None:
    found = voxels(geometry, domain)
    assert found.shape == domain[::-1]
    assert int(found.sum()) == round(float(geometry.split("fraction=")[1].split(":")[0]) * found.size)
    assert not found.flags.writeable


@pytest.mark.parametrize("geometry", FRACTIONAL)
def test_the_seed_decides(geometry: str) -> None:
    first, again, other = (voxels.__wrapped__(f"{geometry}:seed={seed}", (32, 16, 16)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.5, 0.95])
def test_blocks_reach_from_empty_to_nearly_full(fraction: float) -> None:
    assert voxels(f"blocks:fraction={fraction}", (10, 10, 10)).mean() == fraction


def test_a_packing_consists_of_spheres_that_hardly_overlap() -> None:
    centres = _centres((64, 64, 64), 0.5, 8.0, seed=1)
    apart = centres[:, None] - centres
    apart -= 64 * np.round(apart / 64)
    distance = np.sqrt((apart**2).sum(axis=-1))
    nearest = np.sort(distance, axis=1)[:, 1]
    assert len(centres) == 64
    assert nearest.min() > 0.75 * 16
    assert np.quantile(nearest, 0.1) > 0.95 * 16
    found = voxels("packing:fraction=0.5:radius=8", (64, 64, 64))
    runs = [len(run) for row in found.reshape(-1, 64) for run in "".join(map(str, row.astype(int))).split("0") if run]
    assert 9 < np.mean(runs) < 13  # the mean chord of a sphere is 4 R / 3 = 10.7


def test_a_sandstone_has_grains_of_the_length_asked_for() -> None:
    lengths = []
    for grain in (2, 4):
        found = voxels(f"sandstone:fraction=0.5:grain={grain}", (64, 64, 64))
        lengths.append(found.size / (found != np.roll(found, 1, 2)).sum())
    assert lengths[1] == pytest.approx(2 * lengths[0], rel=0.1)


@pytest.mark.parametrize("axis", "xyz")
def test_ducts_in_three_orientations_are_the_same_geometry(axis: str) -> None:
    found = voxels(f"ducts:axis={axis}", (128, 128, 128))
    turned = voxels("ducts:axis=x", (128, 128, 128))
    order = {"x": (0, 1, 2), "y": (1, 2, 0), "z": (2, 0, 1)}[axis]
    assert (found == turned.transpose(order)).all()
    # 20 x 20, 10 x 10 and 5 x 5, joined where the larger ones hold the smaller ones
    assert int((~found).sum()) == 400 * 128 + 100 * (128 - 20) + 25 * (128 - 20)


def test_one_duct_is_straight() -> None:
    found = voxels("ducts:sizes=4:axis=y", (8, 5, 8))
    assert int((~found).sum()) == 16 * 5
    assert (found[:, 0] == found[:, 3]).all()


def test_the_sphere_is_in_the_middle() -> None:
    found = voxels("sphere:diameter=0.5", (33, 32, 32))
    assert (found == found[::-1, ::-1, ::-1]).all()
    assert int(found.sum()) == pytest.approx(4 / 3 * np.pi * 8**3, rel=0.03)


@pytest.mark.parametrize("domain", [*DOMAINS, (4, 4, 4), (3, 3, 1), (40, 3, 3), (7, 5, 1)])
@pytest.mark.parametrize(
    "geometry",
    [
        *(f"sphere:diameter={d}" for d in (0.5, 1.0, 1.3, 1.5, 1.732, 2.0, 30.0)),
        *(f"blocks:fraction={f}" for f in (0.0, 0.5, 0.98, 0.99)),
        "packing:fraction=0.64",
        "sandstone:fraction=0.99",
        "ducts",
        "ducts:sizes=1",
    ],
)
def test_what_leaves_fluid_is_known_without_the_cells(geometry: str, domain: tuple[int, int, int]) -> None:
    assert generator(geometry).leaves_fluid(domain[::-1]) == (not voxels(geometry, domain).all())


def test_solid_cells_of_an_enormous_domain_are_not_made() -> None:
    for geometry in (*FRACTIONAL, "sphere", "ducts"):
        check_solid(porous("d3q19", "bgk", (2**31 - 1,) * 3, 1.2, geometry))
    with pytest.raises(InputError, match="leaves no fluid cell"):
        check_solid(porous("d3q19", "bgk", (2**31 - 1,) * 3, 1.2, "sphere:diameter=2"))


SAMPLE = np.arange(4 * 3 * 2).reshape(4, 3, 2) % 5 == 0


def _vti(kind: str) -> str:
    values = SAMPLE.astype(np.uint8)
    packed = base64.b64encode(np.uint32(values.size).tobytes() + values.tobytes()).decode()
    text = packed if kind == "binary" else " ".join(map(str, values.ravel()))
    return (
        '<VTKFile type="ImageData" byte_order="LittleEndian"><ImageData WholeExtent="0 2 0 3 0 4"><Piece><CellData>'
        f'<DataArray type="UInt8" format="{kind}">{text}</DataArray></CellData></Piece></ImageData></VTKFile>'
    )


@pytest.mark.parametrize("kind", ["npy", "raw", "ascii.vti", "binary.vti"])
def test_voxel_files_are_cut_off_or_repeated(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"sample.{kind}"
    if kind == "npy":
        np.save(path, SAMPLE)
    elif kind == "raw":
        path.write_bytes(SAMPLE.astype(np.uint8).tobytes())
    else:
        path.write_text(_vti(kind.split(".")[0]))
    geometry = identified(f"file:path={path}" + (":shape=2x3x4" if kind == "raw" else ""), Path())
    assert (voxels(geometry, (2, 3, 4)) == SAMPLE).all()
    assert (voxels(geometry, (5, 2, 4)) == np.tile(SAMPLE, (1, 1, 3))[:, :2, :5]).all()


def test_a_sample_that_is_smaller_than_the_domain_repeats_only_where_it_is_said(tmp_path: Path) -> None:
    np.save(tmp_path / "sample.npy", SAMPLE)
    file = CaseFile(flow="box", lattice="d3q19", domain="4x3x4", relaxation_rate=1.0)
    file = replace(file, geometry=f"file:path={tmp_path / 'sample.npy'}")
    with pytest.raises(
        InputError, match=r"has 2x3x4 cells and does not fill the domain 4x3x4; set domain to 2x3x4, or"
    ):
        case_of(file)
    repeated = case_of(replace(file, geometry=f"{file.geometry}:repeat=1"))
    assert (solid(repeated) == np.tile(SAMPLE, (1, 1, 2))).all()
    assert solid(case_of(replace(file, domain="2x2x4"))).shape == (4, 2, 2)


def test_a_changed_file_is_another_geometry(tmp_path: Path) -> None:
    path = tmp_path / "sample.npy"
    np.save(path, SAMPLE)
    geometry = identified(f"file:path={path}", Path())
    assert identified(geometry, Path()) == geometry
    np.save(path, ~SAMPLE)
    with pytest.raises(InputError, match="restore the file"):
        voxels(geometry, (2, 3, 4))


@pytest.mark.parametrize(
    ("geometry", "sentence"),
    [
        ("packng", "unknown geometry 'packng'; did you mean 'packing'?"),
        ("packing:frac=0.5", "unknown parameter of geometry packing 'frac'; did you mean 'fraction'?"),
        ("packing:0.5", "geometry part '0.5' is not of the form name=value"),
        ("packing:fraction=half", "geometry 'packing:fraction=half': fraction='half' is not a number"),
        ("packing:seed=1.5", "geometry 'packing:seed=1.5': seed='1.5' is not a whole number"),
        ("packing:fraction=0.9", "geometry packing: fraction=0.9 is not between 0 and 0.64"),
        ("sandstone:grain=-1", "geometry sandstone: grain=-1 is not positive"),
        ("ducts:sizes=1x2x3x4", "geometry ducts: sizes='1x2x3x4' is not one to three edges"),
        ("ducts:axis=w", "unknown axis of geometry ducts 'w'"),
        ("file", "geometry 'file' needs path; add :path=VALUE."),
    ],
)
def test_bad_geometries_are_bad_input_with_a_sentence(geometry: str, sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        replace(box("d3q19", "bgk", (8, 6, 4)), geometry=geometry)
    assert str(raised.value).startswith(sentence)


def test_files_that_are_none_are_bad_input(tmp_path: Path) -> None:
    for name, content, sentence in (
        ("a.npy", b"nothing", "cannot read the voxels"),
        ("a.raw", b"123", "3 bytes and shape=2x2"),
        ("a.vti", b"<x", "cannot read the voxels"),
        ("a.txt", b"", "is no voxel file of the kinds"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=sentence):
            generator(f"file:path={tmp_path / name}:shape=2x2").solid((2, 2, 2))
    with pytest.raises(InputError, match="No such file"):
        voxels(f"file:path={tmp_path / 'none.npy'}", (2, 2, 2))


def _brute_force(case: Case, cell: tuple[int, int, int], velocity: tuple[int, int, int]) -> int:
    """The link followed by hand."""
    rock, kinds = solid(case), []
    target = list(cell)
    for axis, (c, n) in enumerate(zip(velocity, case.domain, strict=True)):
        target[axis] = cell[axis] + c
        if not 0 <= target[axis] < n:
            kinds.append(case.faces[2 * axis + (c > 0)])
            target[axis] %= n
    if "moving" in kinds:
        return 2
    if "wall" in kinds:
        return 1
    return int(rock[tuple(target[::-1])])


LIDS = replace(
    cavity("d3q19", "bgk", (5, 4, 3), 1.3),
    faces=("periodic", "periodic", "wall", "moving", "moving", "wall"),
    geometry="blocks:fraction=0.3",
)


@pytest.mark.parametrize(
    "case",
    [
        LIDS,
        porous("d2q9", "bgk", (6, 5, 1), 1.3, "blocks:fraction=0.4"),
        porous("d3q27", "bgk", (3, 4, 5), 1.3, "sphere"),
    ],
    ids=lambda case: case.lattice,
)
def test_cut_links_against_following_each_by_hand(case: Case) -> None:
    kinds, rock = cut_kinds(case), solid(case)
    assert rock.any()
    for i, c in enumerate(case.stencil.velocities):
        for z, y, x in np.ndindex(*case.domain[::-1]):
            expected = 1 if rock[z, y, x] else _brute_force(case, (x, y, z), c)
            assert kinds[i, z, y, x] == expected


@given(st.data())
def test_a_window_is_a_part_of_the_whole(data: st.DataObject) -> None:
    window = []
    for axis, n in enumerate(LIDS.domain):
        beyond = 3 if axis == 0 else 0  # only x is periodic
        start = data.draw(st.integers(-beyond, n - 1))
        window.append(range(start, data.draw(st.integers(start + 1, n + beyond))))
    velocity = data.draw(st.sampled_from(LIDS.stencil.velocities))
    x, y, z = (np.array(part) % n for part, n in zip(window, LIDS.domain, strict=True))
    found = cut_kind(LIDS, velocity, (window[0], window[1], window[2]))
    assert (found == cut_kind(LIDS, velocity)[np.ix_(z, y, x)]).all()


def test_fluid_sites_are_those_that_count() -> None:
    assert LIDS.fluid_sites == int((~solid(LIDS)).sum()) < LIDS.sites
    assert box("d3q19", "bgk", (8, 6, 4)).fluid_sites == 8 * 6 * 4


STUDY = """
name = "stone"
[case]
flow = "porous"
lattice = "d3q19"
domain = "16x16x16"
relaxation_rate = 1.2
geometry = "sandstone:fraction=0.7"
axis = "y"
force = 1e-4
"""


def test_a_path_in_a_study_file_begins_there_and_that_of_an_override_here(tmp_path: Path, monkeypatch) -> None:
    for folder in ("there", "here"):
        (tmp_path / folder).mkdir()
        np.save(tmp_path / folder / "a,b.npy", np.zeros((16, 16, 16)))
    (tmp_path / "there" / "stone.toml").write_text(STUDY.replace("sandstone:fraction=0.7", "file:path=a,b.npy"))
    monkeypatch.chdir(tmp_path / "here")
    spec = load_study("../there/stone.toml")
    assert spec.case.geometry.startswith(f"file:path={tmp_path}/there/a,b.npy:digest=")
    given = load_study("../there/stone.toml", ["case.geometry=file:path=a,b.npy"])
    assert given.case.geometry.startswith(f"file:path={tmp_path}/here/a,b.npy:digest=")
    assert overridden(given, ["seed=2"]).case == given.case


@pytest.mark.parametrize("name", ["lid", "invalid", "domain", "flow", "force"])
def test_an_error_of_a_voxel_file_is_one_of_the_geometry_whatever_its_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.vti"
    for content, said in ((b"<x", "cannot read the voxels"), (None, "No such file")):
        path.unlink(missing_ok=True)
        if content:
            path.write_bytes(content)
        with pytest.raises(InputError, match=rf"^stone.toml, line 8: case.geometry: .*{said}"):
            parse_study(STUDY.replace("sandstone:fraction=0.7", f"file:path={path}"), "stone.toml")


def test_a_study_file_names_the_geometry_and_an_override_changes_it() -> None:
    spec = parse_study(STUDY, "stone.toml")
    assert spec.case.geometry == "sandstone:fraction=0.7"
    assert spec.case.force == (0.0, 1e-4, 0.0)
    assert overridden(spec, ["seed=2"]).case == spec.case
    changed = parse_study(STUDY, "stone.toml", ["case.geometry=packing:fraction=0.5:radius=4"])
    assert changed.case.geometry == "packing:fraction=0.5:radius=4"
    with pytest.raises(InputError, match=r"line 8.*unknown geometry 'sandstne'"):
        parse_study(STUDY.replace("sandstone", "sandstne"), "stone.toml")
