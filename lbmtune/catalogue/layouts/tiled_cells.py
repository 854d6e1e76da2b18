"""Tiles that hold all directions: the q populations of all cells of a box of tx x ty x tz together.

Source: Tran, Lee, Hong 2017, section 4.2.2; a tile of tx x 1 x 1 is the AoSoA of that width.
"""

from __future__ import annotations

from lbmtune.catalogue.layouts.layout import LayoutParameters
from lbmtune.catalogue.layouts.tiled import Tiled


def build(parameters: LayoutParameters) -> Tiled:
    """Tiles of any shape, directions together."""
    return Tiled(parameters.tile, "tiled-cells", together=0)
