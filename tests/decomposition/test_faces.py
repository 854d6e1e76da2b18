"""Populations that cross the faces between parts, against a list of all links of a small domain; places, bytes."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from lbmtune.catalogue.boundaries.cut_links import OPEN, cut_kinds
from lbmtune.catalogue.config import KernelConfig, parse_config
from lbmtune.catalogue.problem.flows import box, cavity, channel
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.decomposition.boxes import added
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import Decomposition, case_of, decomposed
from lbmtune.decomposition.transfers import face_bytes, sent_values, transfers
from lbmtune.lattice import LATTICES

DOMAIN = (5, 6, 7)
CASES = {
    "box": box("d3q19", "bgk", DOMAIN),
    "cavity": cavity("d3q27", "bgk", DOMAIN, 1.3),
    "channel": channel("d3q19", "bgk", DOMAIN, 1.3),
    "plane": box("d2q9", "bgk", (6, 7, 1)),
}
CUTS = ("z:2", "z:3", "x:2", "1x3x2", "2x2x2", "bisection:3", "bisection:5")
ONE_PASS = [
    name for name, scheme in SCHEMES.items() if not scheme.moves and not scheme.phase(LATTICES["d2q9"], 0).ordered
]
Link = tuple[int, int, int, tuple[int, int, int]]


def links_of(found: Decomposition) -> list[Link]:
    """Source, target, direction and reader of each population that the faces say crosses."""
    listed = []
    for face in found.faces:
        for i, cells in face.crossings:
            away = added(face.image, found.case.stencil.velocities[i])
            for cell in product(*cells.window):
                reader = tuple(n % extent for n, extent in zip(added(cell, away), found.case.domain, strict=True))
                listed.append((face.source, face.target, i, (reader[0], reader[1], reader[2])))
    return listed


def links_by_cell(found: Decomposition) -> list[Link]:
    """The same from every link of the domain: whose cell it leaves, and whose cell it reaches."""
    case, listed = found.case, []
    owner = {cell: part.number for part in found.parts for cell in product(*part.box.window)}
    for cell, (i, c) in product(owner, enumerate(case.stencil.velocities)):
        beyond = [axis for axis in range(3) if not 0 <= cell[axis] + c[axis] < case.domain[axis]]
        if any(case.walled_across(axis) for axis in beyond):
            continue
        x, y, z = (n % extent for n, extent in zip(added(cell, c), case.domain, strict=True))
        part = found.parts[owner[cell]]
        # a part that has all cells along an axis closes it within itself, any other one has its neighbour in a halo
        closed = owner[x, y, z] == part.number and all(part.spans[axis] for axis in beyond)
        if any(c) and not closed and (owner[x, y, z] != part.number or beyond):
            listed.append((owner[cell], owner[x, y, z], i, (x, y, z)))
    return listed


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("name", CASES)
def test_faces_list_the_links_between_parts_and_no_others(name: str, cut: str) -> None:
    case = CASES[name]
    if name == "plane" and cut in ("z:2", "z:3", "1x3x2", "2x2x2"):
        cut = {"z:2": "y:2", "z:3": "y:3", "1x3x2": "x:3", "2x2x2": "2x2x1"}[cut]
    found = decomposed(case, parse_config("scheme=pull"), parse_cut(cut))
    listed = links_of(found)
    assert sorted(listed) == sorted(links_by_cell(found))
    assert listed
    assert len(set(listed)) == len(listed)


@pytest.mark.parametrize(("lattice", "crossing"), [("d2q9", 3), ("d3q19", 5), ("d3q27", 9)])
@pytest.mark.parametrize("axis", [0, 1])
def test_through_a_plane_cross_the_populations_that_lead_through_it(lattice: str, crossing: int, axis: int) -> None:
    domain = (6, 8, 1) if lattice == "d2q9" else (6, 8, 5)
    found = decomposed(box(lattice, "bgk", domain), parse_config("scheme=aa"), parse_cut(f"{'xy'[axis]}:2"))
    assert len(found.faces) == 4
    for face in found.faces:
        assert len(face.crossings) == crossing
        assert len({np.sign(found.case.stencil.velocities[i][axis]) for i, _ in face.crossings}) == 1
        assert face.values == crossing * domain[1 - axis] * domain[2]
        assert face_bytes(found, face) == 4 * face.values


@pytest.mark.parametrize("lattice", LATTICES.values(), ids=lambda one: one.name)
@pytest.mark.parametrize("name", ONE_PASS)
def test_a_link_has_one_place_from_one_step_to_the_next(name: str, lattice: object) -> None:
    """What a step writes along c_i lies where the next step of the cell that it leads to reads it."""
    scheme, stencil = SCHEMES[name], LATTICES[lattice.name]  # type: ignore[attr-defined]
    for parity in range(scheme.period):
        now, later = (scheme.phase(stencil, (parity + n) % scheme.period).accesses for n in (0, 1))
        for i, c in enumerate(stencil.velocities):
            assert now[i].write == later[i].read._replace(offset=added(c, later[i].read.offset))


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_kernels_of_several_steps_send_planes_of_all_values(steps: int) -> None:
    config = parse_config(f"family=temporal-blocking,representation=moments,steps={steps}")
    found = decomposed(box("d3q19", "regularised", (32, 16, 24)), config, parse_cut("z:2"))
    assert (found.crossed, found.steps, found.depth) == ("cells", steps, steps)
    for face in found.faces:
        assert len(face.crossings) == 10
        assert {cells.extents for _, cells in face.crossings} == {(32, 16, steps)}
        assert face_bytes(found, face) == steps * 10 * 32 * 16 * 4


def test_a_deeper_halo_is_exchanged_less_often() -> None:
    config = parse_config("family=temporal-blocking,representation=moments,steps=2")
    found = decomposed(box("d3q19", "regularised", (32, 16, 24)), config, parse_cut("z:2"), depth=6)
    assert found.steps == 6
    assert {part.stored.extents for part in found.parts} == {(32, 16, 24)}
    assert {cells.extents[2] for face in found.faces for _, cells in face.crossings} == {6}


@pytest.mark.parametrize("text", ["family=sparse,scheme=aa", "scheme=pull,flags=memory"])
def test_links_that_solid_cells_cut_do_not_cross(text: str) -> None:
    case = replace(CASES["channel"], geometry="blocks:fraction=0.4")
    config: KernelConfig = parse_config(text)
    found = decomposed(case, config, parse_cut("2x1x2"))
    open_links = cut_kinds(case) == OPEN  # of the link along c_i from each cell
    expected = 0
    for _, _, i, (x, y, z) in links_of(found):
        expected += bool(open_links[case.stencil.opposite[i], z, y, x])
    sent = sum(sent_values(found, face) for face in found.faces)
    assert sent == expected < sum(face.values for face in found.faces)


@pytest.mark.parametrize("name", ONE_PASS)
def test_both_ends_of_a_transfer_are_in_storage(name: str) -> None:
    """A place may lie beyond a part's storage only along an axis that closes within the part."""
    found = decomposed(CASES["channel"], parse_config(f"scheme={name}"), parse_cut("1x2x2"))
    for face, parity in product(found.faces, range(found.config.propagation.period)):
        for one in transfers(found, face, parity):
            assert one.source.extents == one.target.extents
            for part, cells in ((face.source, one.source), (face.target, one.target)):
                stored = case_of(found.case, found.parts[part]).domain
                for axis in range(3):
                    if not found.parts[part].spans[axis]:
                        assert 0 <= cells.low[axis] < cells.high[axis] <= stored[axis]


def test_a_part_has_no_halo_at_walls_and_along_axes_that_it_spans() -> None:
    found = decomposed(CASES["cavity"], parse_config("scheme=pull"), parse_cut("z:3"))
    assert [(part.low, part.high) for part in found.parts] == [
        ((0, 0, 0), (0, 0, 1)),
        ((0, 0, 1), (0, 0, 1)),
        ((0, 0, 1), (0, 0, 0)),
    ]
    assert [part.stored.extents for part in found.parts] == [(5, 6, 3), (5, 6, 4), (5, 6, 4)]


def test_several_parts_may_have_one_device() -> None:
    parts = decomposed(CASES["box"], parse_config("scheme=pull"), parse_cut("z:5"), devices=2).parts
    assert [part.device for part in parts] == [0, 0, 0, 1, 1]
    assert [part.device for part in decomposed(CASES["box"], parse_config("scheme=pull"), parse_cut("z:3")).parts] == [
        *(0, 1, 2)
    ]
