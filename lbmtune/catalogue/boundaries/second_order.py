"""Walls of second order: where along its link a wall lies, and what interpolation makes of the populations there.

Linear interpolation of Bouzidi, Firdaouss, Lallemand 2001: with q the part of the link from the cell to the wall,

    f_opp(x, t + 1) = 2 q f*_i(x) + (1 - 2 q) f*_i(x - c_i)                    for q < 1/2
    f_opp(x, t + 1) = f*_i(x) / (2 q) + (1 - 1 / (2 q)) f*_opp(x)              for q >= 1/2

of post-collision populations f*. After streaming with half-way bounce-back, f*_i(x) has become f_opp(x), f*_i(x - c_i)
has become f_i(x), and f*_opp(x) has become f_opp(x - c_i). So a pass of its own may follow each step: it replaces
f_opp(x) by a weighted mean of itself and of one other population, which no link changes (`Means`).

A link whose cell behind it, x - c_i, is solid stays half-way.
"""

from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

from lbmtune.catalogue.boundaries.cut_links import Window, cells_around, solid_in, whole
from lbmtune.catalogue.byte_lru_cache import remembered
from lbmtune.catalogue.problem.case import Case
from lbmtune.lattice import Vector, negate

Array = Any
HALF = 0.5
_LEVELS_BYTES = 1 << 29


class Walls(StrEnum):
    """The rule of solid cells: half-way, full-way (skipped cells), or interpolated in a pass after the step."""

    HALF_WAY = "half-way"
    IMPLICIT = "implicit"
    INTERPOLATED = "interpolated"


class Means(NamedTuple):
    """Links of one direction i. cells: numbers of their fluid cells, x fastest; part: q of each.

    behind: numbers of the cells x - c_i.
    """

    direction: int
    cells: Array
    behind: Array
    part: Array

    @property
    def near(self) -> Array:
        """Return whether the wall lies in the first half of the link, so that the other population is f_i(x)."""
        return self.part < HALF

    def share(self, xp: ModuleType) -> Array:
        """Return the weights of f_opp(x) itself; the other populations have the rest."""
        return xp.where(self.near, 2 * self.part, HALF / xp.maximum(self.part, HALF))


def link_count(case: Case) -> int:
    """Return the number of links that are interpolated; it is counted once for a geometry on a domain."""
    return _counted(geometry_alone(case)) if case.interpolates else 0


def most_links(case: Case) -> int:
    """Return an upper bound of the number of links, which does not need the geometry."""
    return (case.stencil.q - 1) * case.sites if case.interpolates else 0


def geometry_alone(case: Case) -> Case:
    """Return a case with the same solid cells, lattice and domain, and all else the same for all."""
    return Case("", case.lattice, "bgk", case.domain, 1.0, geometry=case.geometry, walls=case.walls)


@lru_cache(maxsize=256)
def _counted(case: Case) -> int:
    import numpy as np  # here: the command line starts without it

    of_each = (interpolated(case, c, whole(case.domain), np) for c in case.stencil.velocities if any(c))
    return sum(int(np.count_nonzero(one)) for one in of_each)


def interpolated(case: Case, velocity: Vector, window: Window, xp: ModuleType) -> Array:
    """Return whether the link along a velocity of each cell of a window is interpolated: bool, (nz, ny, nx)."""
    solid = solid_in(case, whole(case.domain), xp)
    here, ahead, behind = (cells_around(solid, case.domain, window, c, xp) for c in _line(velocity))
    return ~here & ahead & ~behind


def _line(velocity: Vector) -> tuple[Vector, Vector, Vector]:
    return (0, 0, 0), velocity, negate(velocity)


def wall_parts(case: Case, velocity: Vector, window: Window, xp: ModuleType) -> Array:
    """Return q of the link along a velocity of each cell of a window, float64; only where it is cut is it meant.

    The squared distance from the centre of a sphere is a quadratic of q, which its values at both ends determine.
    """
    level = _levels_on(case.geometry, case.domain, xp)
    both = (cells_around(level, case.domain, window, c, xp) for c in _line(velocity)[:2])
    start, end = (one.astype(xp.float64) for one in both)
    length = float(sum(c * c for c in velocity))
    known = (start > 0) & (end <= 0) & xp.isfinite(start)
    start, end = xp.where(known, start, length), xp.where(known, end, -length)
    slope = (end - start - length) / 2
    root = xp.sqrt(xp.maximum(slope * slope - length * start, 0))
    # the smaller root, in the form without cancellation; the slope is negative, because the values fall to the wall
    return xp.where(known, xp.clip(start / (root - slope), 0, 1), HALF)


@remembered(_LEVELS_BYTES)
def _levels_on(geometry: str, domain: tuple[int, int, int], xp: ModuleType) -> Array:
    from lbmtune.catalogue.problem.geometry import levels  # here: it imports numpy

    return xp.asarray(levels(geometry, domain))


def means(case: Case, xp: ModuleType) -> Iterator[Means]:
    """Yield the interpolated links of the domain, direction by direction."""
    nx, ny, nz = case.domain
    for i, c in enumerate(case.stencil.velocities):
        if not any(c):
            continue
        chosen = interpolated(case, c, whole(case.domain), xp)
        cells = xp.flatnonzero(chosen)
        x, y, z = cells % nx, cells // nx % ny, cells // (nx * ny)
        behind = ((z - c[2]) % nz * ny + (y - c[1]) % ny) * nx + (x - c[0]) % nx
        part = wall_parts(case, c, whole(case.domain), xp).reshape(-1)[cells]
        yield Means(i, cells, behind, part)
