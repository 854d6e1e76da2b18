"""Cuts: their text, boxes that hold each cell once, and how evenly they share out fluid cells."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbmtune.catalogue.config import parse_config
from lbmtune.catalogue.problem.case import Case
from lbmtune.decomposition.balance import imbalance, loads
from lbmtune.decomposition.boxes import Box
from lbmtune.decomposition.cuts import Bisection, Cut, Grid, grids, parse_cut
from lbmtune.decomposition.parts import decomposed
from lbmtune.errors import InputError

EXTENTS = st.tuples(*[st.integers(3, 12)] * 3)
CUTS = st.one_of(st.builds(Grid, st.tuples(*[st.integers(1, 3)] * 3)), st.builds(Bisection, st.integers(1, 9)))


@given(CUTS)
def test_the_text_of_a_cut_is_read_back(cut: Cut) -> None:
    assert parse_cut(str(cut)) == cut
    assert parse_cut(str(cut), cut.parts) == cut


def test_texts_of_cuts() -> None:
    assert [str(parse_cut(text)) for text in ("z:2", "x:3", "1x1x2", "2x1x4", "bisection:8", "1x1x1")] == [
        *("z:2", "x:3", "z:2", "2x1x4", "bisection:8", "1x1x1")
    ]
    assert parse_cut("bisection", 6) == Bisection(6)
    assert parse_cut(" y:4 ") == Grid((1, 4, 1))


@pytest.mark.parametrize("text", ["", "z", "z:0", "w:2", "2x2", "0x1x1", "bisection", "bisection:0", "z:-1", "z:²"])
def test_what_is_no_cut_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="use z:2 for slabs, 2x1x4 for boxes, or bisection:8"):
        parse_cut(text)


def test_a_cut_has_as_many_parts_as_are_asked_for() -> None:
    with pytest.raises(InputError, match="cut=z:3 is not supported for 2 parts"):
        parse_cut("z:3", 2)


@settings(max_examples=60, deadline=None)
@given(EXTENTS, CUTS, st.integers(0, 1 << 30))
def test_every_cell_lies_in_one_box(domain: tuple[int, int, int], cut: Cut, seed: int) -> None:
    solid = np.random.default_rng(seed).random(domain[::-1]) < 0.6
    try:
        boxes = cut.boxes(domain, solid)
    except InputError:
        assert isinstance(cut, Bisection)
        return
    assert len(boxes) == cut.parts
    cells = Counter(cell for box in boxes for cell in product(*box.window))
    assert set(cells.values()) == {1}
    assert len(cells) == prod(domain)


@given(EXTENTS, st.tuples(*[st.integers(1, 3)] * 3))
def test_boxes_of_a_grid_differ_by_one_cell_at_most(domain: tuple[int, int, int], along: tuple[int, int, int]) -> None:
    for axis in range(3):
        lengths = {box.extents[axis] for box in Grid(along).boxes(domain)}
        assert max(lengths) - min(lengths) <= 1


def test_the_boxes_of_a_grid_lie_side_by_side_along_x_first() -> None:
    assert Grid((2, 1, 2)).boxes((4, 3, 5)) == (
        Box((0, 0, 0), (2, 3, 2)),
        Box((2, 0, 0), (4, 3, 2)),
        Box((0, 0, 2), (2, 3, 5)),
        Box((2, 0, 2), (4, 3, 5)),
    )


@pytest.mark.parametrize("parts", [2, 3, 5, 8])
def test_bisection_halves_the_fluid_cells_as_well_as_planes_allow(parts: int) -> None:
    """Each box has the mean number, but for half a plane of each of the cuts that made it."""
    solid = np.zeros((48, 40, 32), bool)
    solid[:24] = np.random.default_rng(3).random((24, 40, 32)) < 0.8
    boxes = Bisection(parts).boxes((32, 40, 48), solid)
    fluid = [
        int((~solid[box.low[2] : box.high[2], box.low[1] : box.high[1], box.low[0] : box.high[0]]).sum())
        for box in boxes
    ]
    assert sum(fluid) == int((~solid).sum())
    assert max(abs(one - sum(fluid) / parts) for one in fluid) <= 40 * 48 / 2 * np.ceil(np.log2(parts))
    slabs = [int((~solid[box.low[2] : box.high[2]]).sum()) for box in Grid((1, 1, parts)).boxes((32, 40, 48))]
    assert imbalance(fluid) < 1.1 < imbalance(slabs)


def test_bisection_goes_across_the_longest_axis_and_across_z_of_equal_ones() -> None:
    assert Bisection(2).boxes((8, 8, 8)) == Grid((1, 1, 2)).boxes((8, 8, 8))
    assert Bisection(4).boxes((8, 8, 8)) == tuple(
        sorted(Grid((1, 2, 2)).boxes((8, 8, 8)), key=lambda box: box.low[::-1])
    )
    assert Bisection(2).boxes((9, 8, 8)) == Grid((2, 1, 1)).boxes((9, 8, 8))


def test_bisection_says_when_planes_run_out() -> None:
    with pytest.raises(InputError, match=r"cut=bisection:9 is not supported for this domain \(use fewer parts\)"):
        Bisection(9).boxes((2, 2, 2))


def test_the_loads_of_parts_are_their_fluid_cells() -> None:
    case = Case("porous", "d3q19", "bgk", (16, 12, 20), 1.2, force=(1e-5, 0.0, 0.0), geometry="blocks:fraction=0.4")
    config = parse_config("family=sparse")
    for cut in ("z:3", "2x2x1", "bisection:5"):
        found = loads(decomposed(case, config, parse_cut(cut)))
        assert sum(found) == case.fluid_sites
        assert 1 <= imbalance(found) < 1.2
    box = Case("box", "d3q19", "bgk", (16, 12, 20), 1.2)
    assert loads(decomposed(box, parse_config("scheme=aa"), parse_cut("z:3"))) == (
        16 * 12 * 6,
        16 * 12 * 7,
        16 * 12 * 7,
    )


def test_the_grids_of_a_number_of_parts() -> None:
    found = [one.along for one in grids(12)]
    assert found[0] == (1, 1, 12)
    assert len(found) == len(set(found)) == 18
    assert {prod(along) for along in found} == {12}
