"""Cuts of a domain into boxes, with their text: 'z:2' (slabs), '2x1x4' (a grid of boxes), 'bisection:8'.

Source of the recursive bisection by fluid sites: Robertsen 2018, section 5.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from math import isqrt, prod
from typing import TYPE_CHECKING

from lbmtune.decomposition.boxes import Box, Cells
from lbmtune.errors import InputError

if TYPE_CHECKING:
    from lbmtune.catalogue.problem.geometries.shape import Voxels

AXES = "xyz"
MOST_PARTS = 1024
"""Parts whose faces are listed in a few seconds: each pair of parts is looked at."""
FORMS = "z:2 for slabs, 2x1x4 for boxes, or bisection:8"
"""Examples of texts of cuts."""
_SLABS, _GRID, _BISECTION = r"([xyz]):(\d{1,6})", r"(\d{1,6})x(\d{1,6})x(\d{1,6})", r"bisection(?::(\d{1,6}))?"


@dataclass(frozen=True)
class Grid:
    """Boxes of equal extents, up to one cell. along: their number along each axis."""

    along: Cells

    @property
    def parts(self) -> int:
        """Return the number of parts."""
        return prod(self.along)

    def boxes(self, domain: Cells, solid: Voxels | None = None) -> tuple[Box, ...]:
        """Return the boxes of a domain, those along x next to each other, then y, then z. Solid cells change none."""
        x, y, z = (_equal(cells, parts) for cells, parts in zip(domain, self.along, strict=True))
        return tuple(Box((a[0], b[0], c[0]), (a[1], b[1], c[1])) for c, b, a in product(z, y, x))

    def __str__(self) -> str:
        """Return 'z:2' if one axis is cut, else '2x1x4'."""
        cut = [axis for axis, parts in enumerate(self.along) if parts > 1]
        return f"{AXES[cut[0]]}:{self.along[cut[0]]}" if len(cut) == 1 else "x".join(map(str, self.along))


@dataclass(frozen=True)
class Bisection:
    """Boxes with as many fluid cells each as whole planes allow: each cut halves the parts, across the longest axis."""

    parts: int

    def boxes(self, domain: Cells, solid: Voxels | None = None) -> tuple[Box, ...]:
        """Return the boxes of a domain. solid: its solid cells, (nz, ny, nx); None: all cells are fluid.

        Raises InputError if a box has fewer planes than parts.
        """
        return tuple(self._halved(Box((0, 0, 0), domain), self.parts, solid))

    def _halved(self, box: Box, parts: int, solid: Voxels | None) -> Iterator[Box]:
        if parts == 1:
            yield box
            return
        axis = max(range(3), key=lambda axis: (box.extents[axis], axis))  # of equal ones z: its planes are contiguous
        if box.extents[axis] < 2:
            raise InputError(
                f"cut={self} is not supported for this domain (use fewer parts): a part has no two planes."
            )
        first = parts // 2
        at = box.low[axis] + _plane(_fluid_of_planes(box, axis, solid), first / parts)
        yield from self._halved(_with(box, axis, high=at), first, solid)
        yield from self._halved(_with(box, axis, low=at), parts - first, solid)

    def __str__(self) -> str:
        """Return 'bisection:8'."""
        return f"bisection:{self.parts}"


Cut = Grid | Bisection


def parse_cut(text: str, parts: int | None = None) -> Cut:
    """Return the cut of a text. parts: for 'bisection' without a number; all others have to be as many.

    Raises InputError.
    """
    found = _read(text.strip(), parts)
    if parts is not None and found.parts != parts:
        raise InputError(
            f"cut={text} is not supported for {parts} parts (leave one of them out): it has {found.parts}."
        )
    return found


def _read(text: str, parts: int | None) -> Cut:
    slabs, grid, halves = (re.fullmatch(form, text) for form in (_SLABS, _GRID, _BISECTION))
    numbers = [int(one) for found in (slabs, grid, halves) if found for one in found.groups() if one and one.isdigit()]
    if min(numbers, default=1) >= 1:
        if slabs:
            x, y, z = (numbers[0] if axis == slabs[1] else 1 for axis in AXES)
            return Grid((x, y, z))
        if grid:
            x, y, z = numbers
            return Grid((x, y, z))
        if halves and (count := numbers[0] if numbers else parts):
            return Bisection(count)
    raise InputError(f"cut={text} is not supported (use {FORMS}): it is no cut into boxes.")


@lru_cache(maxsize=1024)
def grids(parts: int) -> tuple[Grid, ...]:
    """Return all grids of a number of boxes, slabs along z first."""
    small = [n for n in range(1, isqrt(parts) + 1) if parts % n == 0]
    divisors = sorted({*small, *(parts // n for n in small)})
    return tuple(Grid((x, y, parts // (x * y))) for x, y in product(divisors, divisors) if parts % (x * y) == 0)


def _equal(cells: int, parts: int) -> list[tuple[int, int]]:
    return list(pairwise(n * cells // parts for n in range(parts + 1)))


def _fluid_of_planes(box: Box, axis: int, solid: Voxels | None) -> list[int]:
    """Return the fluid cells of each plane of a box across an axis."""
    planes = box.extents[axis]
    if solid is None:
        return [box.cells // planes] * planes
    x, y, z = (slice(one.start, one.stop) for one in box.window)
    others = tuple(2 - other for other in range(3) if other != axis)
    counts: list[int] = (box.cells // planes - solid[z, y, x].sum(axis=others)).tolist()
    return counts


def _plane(counts: list[int], share: float) -> int:
    """Return how many planes, but not all, hold nearest to a share of what all planes hold."""
    best, found, held, wanted = float("inf"), 1, 0, share * sum(counts)
    for planes, count in enumerate(counts[:-1], 1):
        held += count
        if abs(held - wanted) < best:
            best, found = abs(held - wanted), planes
    return found


def _with(box: Box, axis: int, low: int | None = None, high: int | None = None) -> Box:
    """Return a box with another limit along an axis."""
    x, y, z = (low if low is not None and a == axis else n for a, n in enumerate(box.low))
    u, v, w = (high if high is not None and a == axis else n for a, n in enumerate(box.high))
    return Box((x, y, z), (u, v, w))
