"""The geometry `window`: what a part of a domain has of the solid cells of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from lbmtune.catalogue.problem.geometry import generator, voxels
from lbmtune.errors import InputError

WHOLE = "packing:fraction=0.5:radius=3:seed=2"


def test_a_window_has_the_cells_of_the_whole_and_is_repeated_beyond_it() -> None:
    whole = voxels(WHOLE, (12, 10, 8))
    found = voxels(f'window:of="{WHOLE}":domain=12x10x8:first=10x0x5', (5, 10, 6))
    x, y, z = np.arange(10, 15) % 12, np.arange(10), np.arange(5, 11) % 8
    assert np.array_equal(found, whole[np.ix_(z, y, x)])
    assert 0 < found.sum() < found.size


def test_a_window_may_have_no_fluid_cell() -> None:
    of = "window:of=sphere:domain=16x16x16:first=7x7x7"
    assert not generator(of).leaves_fluid((2, 2, 2))
    assert generator(of).leaves_fluid((9, 2, 2))


@pytest.mark.parametrize("text", ["domain=12x10:first=0x0x0", "domain=12x0x8:first=0x0x0", "domain=8x8x8:first=-1x0x0"])
def test_a_window_has_three_numbers_each(text: str) -> None:
    with pytest.raises(InputError, match=r"geometry window: (domain|first)=.* is not three numbers from [01] on"):
        generator(f"window:of=sphere:{text}")


def test_a_window_of_an_unknown_geometry_is_refused() -> None:
    with pytest.raises(InputError, match="unknown geometry 'sponge'"):
        voxels("window:of=sponge:domain=8x8x8:first=0x0x0", (4, 4, 4))
