"""Layouts: the printed formula equals the integer function, and every element belongs to one population."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.catalogue.config import parse_config
from lbmtune.catalogue.knobs import own_knobs
from lbmtune.catalogue.layouts import LAYOUTS
from lbmtune.catalogue.layouts.layout import Extents, Layout, array_length, arrays, index
from lbmtune.codegen.trace import Traced
from lbmtune.errors import InputError

coordinates = st.integers(0, 10**6)
extents = st.integers(1, 4096)
edges = st.integers(1, 5)


def built(name: str, **parameters: Any) -> Layout:
    """A layout with those of the parameters that it has."""
    own = {one.name for one in own_knobs(LAYOUTS[name])}
    return LAYOUTS[name](**{parameter: value for parameter, value in parameters.items() if parameter in own})


layouts = st.builds(
    built,
    st.sampled_from(sorted(LAYOUTS)),
    width=st.sampled_from([2, 4, 8, 32]),
    padding=st.integers(0, 512),
    group=st.sampled_from([2, 3, 5, 9]),
    layout_tile=st.tuples(edges, edges, edges),
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


@given(layouts, st.tuples(edges, edges, edges), st.sampled_from([9, 19, 27]))
def test_every_element_belongs_to_one_population(layout_: Layout, tiles: tuple[int, int, int], q: int) -> None:
    shape = Extents(*(n * unit for n, unit in zip(tiles, layout_.tile, strict=True)), q)
    indices = index(layout_, shape, *np.indices(shape))
    assert np.unique(indices).size == indices.size
    assert indices.min() == 0
    assert indices.max() < layout_.length(shape)
    padding = arrays(layout_, q) * getattr(layout_, "padding", 0)
    unused = (-q % layout_.together if layout_.together else 0) * shape.x * shape.y * shape.z
    assert layout_.length(shape) - padding - unused == indices.size


@given(layouts, st.sampled_from([9, 19, 27]))
def test_arrays_follow_one_another(layout_: Layout, q: int) -> None:
    """What lets an index within an array be smaller than one of a whole buffer."""
    shape = Extents(*(2 * unit for unit in layout_.tile), q)
    number, each = arrays(layout_, q), array_length(layout_, shape)
    assert number * each == layout_.length(shape)
    array = index(layout_, shape, *np.indices(shape)) // each
    np.testing.assert_array_equal(array, np.indices(shape)[3] // (layout_.together or q))


def test_a_tile_is_a_stretch_of_memory() -> None:
    """Tran et al. 2017, figure 10 (b): the second row of a tile follows its first one."""
    layout_, shape = LAYOUTS["tiled"](layout_tile=(4, 2, 3)), Extents(8, 6, 3, 9)
    x, y, z = np.indices((4, 2, 3))
    tile = index(layout_, shape, x + 4, y + 2, z, 0)
    assert sorted(tile.reshape(-1)) == list(range(3 * 24, 4 * 24))
    assert list(index(layout_, shape, np.arange(4, 8), 3, 0, 0)) == list(range(3 * 24 + 4, 3 * 24 + 8))


def test_the_values_of_a_cell_in_a_bundle_are_adjacent() -> None:
    """Robertsen 2018, figure 3.8."""
    layout_, shape = LAYOUTS["bundle"](group=3), Extents(8, 3, 2, 9)
    found = index(layout_, shape, 5, 2, 1, np.arange(9)).reshape(3, 3)
    assert (np.diff(found, axis=1) == 1).all()
    assert (np.diff(found, axis=0) == 3 * 8 * 3 * 2).all()


def test_a_bundle_of_all_directions_is_aos_and_vectorised_an_aosoa() -> None:
    shape, where = Extents(16, 3, 2, 19), np.indices((16, 3, 2, 19))
    for name, width, other in (("bundle", 1, "aos"), ("bundle-aosoa", 4, "aosoa")):
        bundle = built(name, width=width, group=19)
        expected = index(built(other, width=width), shape, *where)
        np.testing.assert_array_equal(index(bundle, shape, *where), expected)


def test_a_flat_tile_of_all_directions_is_an_aosoa() -> None:
    shape, where = Extents(16, 3, 2, 19), np.indices((16, 3, 2, 19))
    tiles, groups = LAYOUTS["tiled-cells"](layout_tile=(4, 1, 1)), LAYOUTS["aosoa"](width=4)
    np.testing.assert_array_equal(index(tiles, shape, *where), index(groups, shape, *where))


@pytest.mark.parametrize(
    ("name", "run"),
    [("soa", 0), ("aos", 1), ("aosoa", 4), ("bundle", 1), ("bundle-aosoa", 4), ("tiled", 4), ("tiled-cells", 4)],
)
def test_run_is_the_stretch_of_adjacent_cells(name: str, run: int) -> None:
    layout_, shape = built(name, width=4, group=3, layout_tile=(4, 3, 2)), Extents(16, 3, 2, 9)
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
    np.testing.assert_array_equal(index(LAYOUTS["soa"](), shape, x, y, z, q), expected)


def test_unknown_layout_is_bad_input() -> None:
    with pytest.raises(InputError, match="unknown layout 'asoa'; did you mean"):
        parse_config("layout=asoa")
