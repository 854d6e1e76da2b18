"""Rows of components: a row of cells for one component, then the same row for the next one.

All values of a cell lie within one row, at constant distances from one address. Components may be adjacent in groups,
which moments use; the last group may be smaller.
"""

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.layouts.layout import Extents, Int, Layout


@dataclass(frozen=True)
class Rows(Layout):
    """index = ((z * ny + y) * Q + q - q % G) * nx + G * x + q % G; for a smaller last group, G is its size.

    group: adjacent components of a cell.
    """

    name: ClassVar[str] = "rows"

    group: int = 1

    def run_in(self, row: int) -> int:
        """Return the whole row, after which that of the next component begins."""
        return row

    def along_x(self, x: Int, extents: Extents) -> Int:
        """Return the offset of cell x in a row of groups; not valid for a smaller last group."""
        return x * self.group

    def component(self, q: Int, extents: Extents) -> Int:
        """Return the offset of component q: that of its group's row, and its place in the group."""
        return q // self.group * self.group * extents.x + q % self.group
