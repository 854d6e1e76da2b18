"""The memory layouts: one file each, built by name and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from lbmtune.catalogue.layouts import aos, aosoa, bundle, bundle_aosoa, rows, soa, tiled, tiled_cells
from lbmtune.catalogue.layouts.layout import Layout, LayoutParameters
from lbmtune.errors import unknown

LAYOUTS: Mapping[str, Callable[[LayoutParameters], Layout]] = {
    "soa": soa.build,
    "aos": aos.build,
    "aosoa": aosoa.build,
    "rows": rows.build,
    "bundle": bundle.build,
    "bundle-aosoa": bundle_aosoa.build,
    "tiled": tiled.build,
    "tiled-cells": tiled_cells.build,
}


@lru_cache(maxsize=4096)
def layout(name: str, parameters: LayoutParameters | None = None) -> Layout:
    """The layout of that name with its parameters. Raises InputError for an unknown one."""
    if name not in LAYOUTS:
        raise unknown("layout", name, LAYOUTS)
    return LAYOUTS[name](parameters or LayoutParameters())
