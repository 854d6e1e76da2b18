"""Tiles of all directions: the q populations of all cells of a box of tx x ty x tz are adjacent.

Source: Tran, Lee, Hong 2017, section 4.2.2; a tile of tx x 1 x 1 is the AoSoA of that width.
"""

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.layouts.tiled import Tiled


@dataclass(frozen=True)
class TiledCells(Tiled):
    """The tiles of `Tiled`, each of which holds all directions, one after the other."""

    name: ClassVar[str] = "tiled-cells"
    together: ClassVar[int] = 0
