"""Boxes of cells."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from lbmtune.catalogue.boundaries.cut_links import Window

Cells = tuple[int, int, int]


class Box(NamedTuple):
    """The cells from `low` on, up to but without `high`, along x, y and z; empty if that leaves none."""

    low: Cells
    high: Cells

    @property
    def extents(self) -> Cells:
        """Return the cells along each axis."""
        x, y, z = (max(0, high - low) for low, high in zip(self.low, self.high, strict=True))
        return x, y, z

    @property
    def cells(self) -> int:
        """Return the number of cells."""
        return prod(self.extents)

    @property
    def window(self) -> Window:
        """Return the ranges of its cells along each axis."""
        x, y, z = (range(low, high) for low, high in zip(self.low, self.high, strict=True))
        return x, y, z

    def moved(self, by: Cells) -> Box:
        """Return the box moved by a number of cells along each axis."""
        return Box(added(self.low, by), added(self.high, by))

    def grown(self, low: Cells, high: Cells) -> Box:
        """Return the box with layers of cells added on its low and on its high sides."""
        return Box(added(self.low, negative(low)), added(self.high, high))

    def __str__(self) -> str:
        """Return the cells along each axis as '0..63 x 0..63 x 32..63'."""
        return " x ".join(f"{low}..{high - 1}" for low, high in zip(self.low, self.high, strict=True))


def added(one: Cells, other: Cells) -> Cells:
    """Return the sum of two vectors."""
    x, y, z = (a + b for a, b in zip(one, other, strict=True))
    return x, y, z


def negative(one: Cells) -> Cells:
    """Return the opposite vector."""
    x, y, z = (-a for a in one)
    return x, y, z
