"""Layouts: the printed formula equals the integer function, and every element belongs to one population."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.catalogue.layout import Extents, Layout, LayoutParameters, index
from lbmtune.catalogue.layouts import LAYOUTS, layout
from lbmtune.codegen.trace import Traced
from lbmtune.errors import InputError

coordinates = st.integers(0, 10**6)
extents = st.integers(1, 4096)
layouts = st.builds(
    lambda name, width, padding: layout(name, LayoutParameters(width, padding)),
    st.sampled_from(sorted(LAYOUTS)),
    st.sampled_from([2, 4, 8, 32]),
    st.integers(0, 512),
)


def _printed(layout_: Layout, division: str) -> str:
    x, y, z, q, nx, ny, nz = (Traced(name, division) for name in ("x", "y", "z", "q", "nx", "ny", "nz"))
    return str(index(layout_, Extents(nx, ny, nz, 19), x, y, z, q))


@given(layouts, coordinates, coordinates, coordinates, st.integers(0, 18), extents, extents, extents)
def test_printed_formula_equals_the_function(
    layout_: Layout, x: int, y: int, z: int, q: int, nx: int, ny: int, nz: int
) -> None:
    values = {"x": x, "y": y, "z": z, "q": q, "nx": nx, "ny": ny, "nz": nz}
    expected = index(layout_, Extents(nx, ny, nz, 19), x, y, z, q)
    assert eval(_printed(layout_, "//"), values) == expected
    assert _printed(layout_, "/").replace("/", "//") == _printed(layout_, "//")


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_element_belongs_to_one_population(name: str) -> None:
    layout_, shape = layout(name, LayoutParameters(4, 5)), Extents(8, 3, 5, 9)
    x, y, z, q = np.meshgrid(*(np.arange(n) for n in shape), indexing="ij")
    indices = index(layout_, shape, x, y, z, q)
    assert np.unique(indices).size == indices.size
    assert indices.min() == 0
    assert indices.max() < layout_.length(shape) <= indices.size + 9 * 5


@pytest.mark.parametrize(("name", "run"), [("soa", 0), ("aos", 1), ("aosoa", 4)])
def test_run_is_the_stretch_of_adjacent_cells(name: str, run: int) -> None:
    layout_, shape = layout(name, LayoutParameters(4)), Extents(16, 3, 2, 9)
    assert layout_.run == run
    along = np.array([index(layout_, shape, x, 1, 1, 3) for x in range(16)])
    breaks = np.flatnonzero(np.diff(along) != 1) + 1
    assert list(breaks) == ([] if run == 0 else list(range(run, 16, run)))


def test_neutral_elements_are_not_printed() -> None:
    x = Traced("x")
    assert str(x + 0) == str(0 + x) == str(x * 1) == str(1 * x) == str(x // 1) == str(x - 0) == "x"
    assert x * 0 == 0 * x == x % 1 == 0


def test_operators_print_with_their_operands_in_order() -> None:
    for text, value in {
        "(x + 2)": Traced("x") + 2,
        "(2 + x)": 2 + Traced("x"),
        "(x - 2)": Traced("x") - 2,
        "(3 * x)": 3 * Traced("x"),
        "(x / 4)": Traced("x") // 4,
        "(x // 4)": Traced("x", "//") // 4,
        "((x % 4) * y)": Traced("x") % 4 * Traced("y"),
    }.items():
        assert str(value) == text


@pytest.mark.parametrize(("nx", "ny"), list(product((1, 7), (1, 5))))
def test_soa_is_the_row_major_order_of_numpy(nx: int, ny: int) -> None:
    shape = Extents(nx, ny, 3, 9)
    expected = np.arange(9 * 3 * ny * nx).reshape(9, 3, ny, nx)
    q, z, y, x = np.indices(expected.shape)
    np.testing.assert_array_equal(index(layout("soa"), shape, x, y, z, q), expected)


def test_unknown_layout_is_bad_input() -> None:
    with pytest.raises(InputError, match="unknown layout 'asoa'; did you mean"):
        layout("asoa")
