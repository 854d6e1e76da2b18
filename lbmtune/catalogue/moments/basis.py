"""The moment representation: a cell is its density, momentum and second moments, nothing else.

That is all that regularised collision keeps of a cell, so a kernel of that collision may store these 10 numbers
(6 in two dimensions) instead of q populations, and the next step is the same to rounding.

What is stored is M_abc = sum over i of c_x^a c_y^b c_z^c f_i / w_min with a + b + c <= 2, before collision: in units
of the smallest weight, in which what a direction carries is p(c_i) times a small whole number u_i = w_i / w_min. A
stage of a kernel relaxes them into the coefficients of that polynomial p,

    p(c) = base + 3 w_min (j.c + c.N.c / 2),     f_i after collision = w_i p(c_i),

moves w_i p(c_i) along c_i, and sums up what arrives.

Source: Latt, Chopard 2006 (regularised collision); Gounley et al. 2022 and Ferrari et al. 2023 (moments as the state).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product

from lbmtune.lattice import Lattice, Vector

Order = tuple[int, int, int]
"""Exponents of a moment along x, y and z."""


def directions(lattice: Lattice) -> tuple[int, ...]:
    """Axes that something moves along."""
    return tuple(axis for axis in range(3) if any(c[axis] for c in lattice.velocities))


@cache
def upright(lattice: Lattice) -> Lattice:
    """The lattice with the axis along which warps march as its third: in two dimensions c_y stands for c_z."""
    if lattice.dimensions == 3:
        return lattice
    return replace(lattice, velocities=tuple((x, z, y) for x, y, z in lattice.velocities))


@cache
def orders(lattice: Lattice) -> tuple[Order, ...]:
    """The moments that a cell has: density, momentum, diagonal and mixed second moments."""
    axes = directions(lattice)
    units = [tuple(int(a == b) for b in range(3)) for a in range(3)]
    diagonal = [tuple(2 * n for n in units[a]) for a in axes]
    mixed = [tuple(n + m for n, m in zip(units[a], units[b], strict=True)) for a, b in combinations(axes, 2)]
    return tuple((n[0], n[1], n[2]) for n in ((0, 0, 0), *(units[a] for a in axes), *diagonal, *mixed))


@cache
def smallest_weight(lattice: Lattice) -> Fraction:
    """w_min, the unit of moments."""
    return min(lattice.weights)


@cache
def unit_weight(lattice: Lattice, velocity: Vector) -> int:
    """u_i = w_i / w_min of a direction; 0 where the lattice has no such direction."""
    if velocity not in lattice.velocities:
        return 0
    share = lattice.weights[lattice.velocities.index(velocity)] / smallest_weight(lattice)
    assert share.denominator == 1
    return share.numerator


@cache
def rows(lattice: Lattice) -> tuple[tuple[int, int], ...]:
    """(c_y, c_z) of the directions, each once."""
    return tuple(
        (y, z) for y, z in product((-1, 0, 1), repeat=2) if any(unit_weight(lattice, (x, y, z)) for x in (0, 1))
    )
