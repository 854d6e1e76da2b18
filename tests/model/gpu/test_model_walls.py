"""Walls lengthen a march: rows at faces, planes in which all links are asked for, blocks that end late, by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, porous
from lbmtune.catalogue.problem.geometry import voxels
from lbmtune.model.gpu.temporal_blocking import walls
from lbmtune.model.gpu.temporal_blocking.instruction_issue import efficiency
from lbmtune.model.gpu.temporal_blocking.walls import evenness

MARCH = cuda.TemporalBlocking(pack=4, representation="moments", rows=3, steps=3)
PERIODIC = box("d3q19", "regularised", (256, 256, 256))
FIRST = 4
"""Planes of a chunk that not all of three stages take, of 68."""
CORNER = (1 + 0.71 * 9 / 5) / 1.71
"""Nine links of a row are cut there, of D3Q19, and five beside one face."""
ALONE = 1.71 * (2.2 + 12 * 11 / 235)
"""Cycles of an instruction's place in the text for anything, of a warp alone."""


def walled(*axes: int) -> Case:
    """With walls at both faces across these axes."""
    return replace(PERIODIC, faces=tuple("wall" if face // 2 in axes else "periodic" for face in range(6)))


def taken(case: Case, config: CudaConfig = MARCH) -> float:
    """Of the longest block, in planes: all blocks begin at once."""
    x, y, z = config.blocks(case)
    return 68 / evenness(case, config, x * y * z, 1)


def behind(alone: float, cycles: float, issued: float = 1.0) -> float:
    """Of a stage with a warp that takes this alone and waits a slot as often as others issue, solved step by step."""
    found = alone
    for _ in range(200):
        found = (found + alone + alone / cycles * issued / found) / 2
    return found


def test_a_periodic_march_is_as_even_as_its_waves() -> None:
    assert efficiency(PERIODIC, MARCH, 660, 1).wave == 600 / 660
    assert efficiency(walled(0), MARCH, 660, 1).wave == evenness(walled(0), MARCH, 660, 1) < 600 / 660


def test_blocks_at_a_face_across_x_have_more_instructions() -> None:
    """And in the first planes a warp of two on a scheduler, whose faces meet there, takes three rows alone."""
    assert MARCH.blocks(walled(0)) == (10, 15, 4)
    assert taken(walled(0)) == pytest.approx((68 - FIRST) * 1.22 + FIRST * CORNER * ALONE / 2)


def test_a_block_at_a_face_across_y_waits_for_one_warp() -> None:
    """Of the first block the second warp has rows 0 to 2; of the last one, from row 252, the third has 255 alone."""
    assert taken(walled(1)) == pytest.approx(68 * behind(ALONE / 2, ALONE / 1.71))
    assert [walls._rows_at_faces(walled(1), MARCH, y) for y in (0, 1, 14)] == [3, 0, 1]
    four_on_each = replace(MARCH, block=(32, 16, 1), rows=2)
    assert taken(walled(1), four_on_each) == pytest.approx(68 - FIRST + FIRST * 1.71), "one row, while four take two"
    assert taken(walled(2), four_on_each) == pytest.approx(68 + 8 * 0.71), "more instructions than one alone takes"


def test_faces_across_z_are_asked_about_in_the_planes_beside_them() -> None:
    """The first chunk has three planes more than what not all stages take, the last one four."""
    assert taken(walled(2)) == pytest.approx(68 + 8 * (ALONE / 2 - 1))


def test_blocks_begin_where_one_has_ended() -> None:
    """Two places share 600 blocks: as many as there are if all are alike, and hardly less where a few take longer."""
    open_planes = 68 + FIRST * (ALONE / 2 - 1)
    rows = walls._blocks(walled(1), MARCH, 1)
    assert rows.count(pytest.approx(open_planes)) == 10 * 13 * 4
    one_row = open_planes + 64 * (behind(ALONE / 6, ALONE / 1.71) - 1)
    assert rows.count(pytest.approx(one_row)) == 10 * 4, "the last blocks, whose warp at the face has one row of three"
    assert evenness(walled(1), MARCH, 2, 1) == pytest.approx(600 * 68 / sum(rows), rel=1e-3)


def test_of_populations_all_warps_at_a_face_have_the_text_for_anything() -> None:
    """2.6 times the instructions, of which a warp takes one in 2.2 cycles: 64 planes and three more, of which two are
    those that not all of two stages take."""
    two = replace(MARCH, representation="populations", steps=2, pack=1)
    x, y, z = two.blocks(walled(0))
    alone = 2.6 * 2.2 / 2
    assert 67 / evenness(walled(0), two, x * y * z, 1) == pytest.approx(67 * behind(alone, 2.2, issued=2.6))
    assert 67 / evenness(walled(1), two, x * y * z, 1) == pytest.approx(67 * behind(alone, 2.2)), "all rows of one warp"
    four_on_each = replace(two, block=(32, 16, 1), rows=2)
    x, y, z = four_on_each.blocks(walled(0))
    assert 67 / evenness(walled(0), four_on_each, x * y * z, 1) == pytest.approx(67 * 2.6)
    longest = 67 / evenness(walled(1), four_on_each, x * y * z, 1)
    assert longest == pytest.approx((67 - 2) * behind(alone / 2, 2.2) + 2 * 2.6)
    assert efficiency(walled(0), two, 132, 1).wave < efficiency(PERIODIC, two, 132, 1).wave


# solid cells


def counted(case: Case, config: CudaConfig) -> list[float]:
    """What blocks take longer because of solid cells, cell by cell, of one block on a multiprocessor with two warps on
    each scheduler."""
    nx, ny, nz = case.domain
    solid = voxels(case.geometry, case.domain)
    beside = {
        (x, y, z)
        for z, y, x in product(range(nz), range(ny), range(nx))
        if any(solid[(z + k) % nz, (y + j) % ny, (x + i) % nx] for i, j, k in case.stencil.velocities)
    }
    across, along, _ = config.blocks(case)
    width, height, found, begin = -(-nx // (8 * across)) * 8, -(-ny // along), list[float](), 0
    for planes in (nz // 2, nz // 2):
        for by, bx in product(range(along), range(across)):
            longer = 0.0
            for z in range(begin + 1, begin + planes + 3):  # the two planes before have that text anyway
                mixed = 0
                for warp in range(8):
                    lanes = product(range(32), range(3), range(4))
                    mixed += any(
                        ((bx * width - 3 + x) % nx, (by * height - 3 + 3 * warp + y) % ny, (z - t) % nz) in beside
                        for x, y, t in lanes
                    )
                longer += max(ALONE / 2 if mixed else 1.0, 1 + 0.71 * mixed / 8) - 1
            found.append(longer)
        begin += planes
    return found


def test_warps_beside_solid_cells_ask_about_all_links() -> None:
    """On a sphere of which most blocks know nothing."""
    case = porous("d3q19", "regularised", (72, 54, 24), 1.0, "sphere:diameter=0.4")
    config = replace(MARCH, chunk_planes=12, pack=1)
    expected = counted(case, config)
    assert config.blocks(case) == (3, 3, 2)
    assert walls._at_solids(case, config, 1) == pytest.approx(expected)
    assert 0 < sum(one > 0 for one in expected) < len(expected)


def test_solid_cells_are_computed_and_not_counted() -> None:
    case = porous("d3q19", "regularised", PERIODIC.domain, 1.0, "sphere")
    bare, found = efficiency(PERIODIC, MARCH, 132, 1), efficiency(case, MARCH, 132, 1)
    marched = 256 / (256 + 4 * (2 * 3 - 2))  # of stages that leave planes out, where links can be cut
    assert found.cells == pytest.approx(bare.x * bare.y * marched * case.fluid_sites / case.sites)
    assert 0.6 * bare.wave < found.wave < bare.wave
