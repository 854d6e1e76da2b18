"""The element of a value of a cell, for families that keep each value of a cell at the same place in every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lbmtune.catalogue.families.cpu.moments_wavefront import kept_index
from lbmtune.catalogue.families.cuda.temporal_blocking import value_index as tile_index
from lbmtune.catalogue.layouts.layout import Extents, Int, index
from lbmtune.lattice import Lattice

ValueIndex = Callable[[Int, Int, Int, Int, Extents, Any, Lattice], Int]


def _with_row_offset(k: Int, x: Int, y: Int, z: Int, extents: Extents, config: Any, _lattice: Lattice) -> Int:
    return kept_index(k, x, y, z, extents, config)


def by_layout(k: Int, x: Int, y: Int, z: Int, extents: Extents, config: Any, _lattice: Lattice) -> Int:
    """Return the element of value k of cell (x, y, z) by the layout alone."""
    return index(config.memory, extents, x, y, z, k)


SLOT_INDEX: Mapping[str, ValueIndex] = {"temporal-blocking": tile_index}
"""Element of a slot of populations, by family; others find it by their layout (`by_layout`)."""
VALUE_INDEX: Mapping[str, ValueIndex] = {
    "temporal-blocking": tile_index,
    "persistent": by_layout,
    "face-exchange": by_layout,
    "moments-wavefront": _with_row_offset,
}
"""Element of value k of cell (x, y, z) in storage of some extents, by family; ints, arrays or traced values."""
