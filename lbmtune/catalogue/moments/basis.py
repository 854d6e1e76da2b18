"""The basis of the moment representation: a cell stores density, momentum and second moments.

Regularised collision depends on nothing else, so its kernels may store these 10 numbers (6 in two dimensions) instead
of q populations; the next step is equal to rounding.

A cell stores M_abc = sum over i of c_x^a c_y^b c_z^c f_i / w_min with a + b + c <= 2, before collision. In this unit,
the smallest weight, direction i carries p(c_i) times a small integer u_i = w_i / w_min. A kernel relaxes the moments to
the coefficients of the polynomial p,

    p(c) = base + 3 w_min (j.c + c.N.c / 2),     f_i after collision = w_i p(c_i),

streams w_i p(c_i) along c_i, and sums up the arriving moments.

Source: Latt, Chopard 2006 (regularised collision); Gounley et al. 2022 and Ferrari et al. 2023 (moments as the state).
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product

from lbmtune.lattice import Lattice, Vector

Order = tuple[int, int, int]
"""Exponents of a moment along x, y and z."""


def directions(lattice: Lattice) -> tuple[int, ...]:
    """Return the axes along which the lattice has velocities."""
    return tuple(axis for axis in range(3) if any(c[axis] for c in lattice.velocities))


@cache
def upright(lattice: Lattice) -> Lattice:
    """Return the lattice with the axis along which warps advance as its third: in two dimensions c_y becomes c_z."""
    if lattice.dimensions == 3:
        return lattice
    return replace(lattice, velocities=tuple((x, z, y) for x, y, z in lattice.velocities))


@cache
def orders(lattice: Lattice) -> tuple[Order, ...]:
    """Return the exponents of a cell's moments: density, momentum, diagonal and mixed second moments."""
    axes = directions(lattice)
    units = [tuple(int(a == b) for b in range(3)) for a in range(3)]
    diagonal = [tuple(2 * n for n in units[a]) for a in axes]
    mixed = [tuple(n + m for n, m in zip(units[a], units[b], strict=True)) for a, b in combinations(axes, 2)]
    return tuple((n[0], n[1], n[2]) for n in ((0, 0, 0), *(units[a] for a in axes), *diagonal, *mixed))


@cache
def smallest_weight(lattice: Lattice) -> Fraction:
    """Return w_min, the unit of moments."""
    return min(lattice.weights)


@cache
def powers(lattice: Lattice) -> tuple[tuple[float, ...], ...]:
    """Return c_i^n over the smallest weight for each order n and direction i."""
    unit = 1 / float(smallest_weight(lattice))
    return tuple(tuple(unit * _power(c, n) for c in lattice.velocities) for n in orders(lattice))


@cache
def shares(lattice: Lattice) -> tuple[tuple[float, ...], ...]:
    """Return the share of each moment in each f_i - w_i: w_i (rho + 3 c.j + 9/2 (c c - I/3) : (Pi - I rho / 3))."""
    unit, found = float(smallest_weight(lattice)), []
    for c, w in zip(lattice.velocities, lattice.weights, strict=True):
        factors = [_factor(c, n) for n in orders(lattice)]
        factors[0] = 1 - sum(f / 3 for f, n in zip(factors, orders(lattice), strict=True) if 2 in n)
        found.append(tuple(float(w) * unit * factor for factor in factors))
    return tuple(found)


def _factor(c: Vector, n: Order) -> float:
    """Return the factor of momentum or a second moment; off-diagonal ones occur twice in the sum."""
    if sum(n) == 1:
        return 3.0 * _power(c, n)
    return 4.5 * (_power(c, n) - 1 / 3) if 2 in n else 9.0 * _power(c, n)


def _power(c: Vector, n: Order) -> int:
    return int(c[0] ** n[0] * c[1] ** n[1] * c[2] ** n[2])


@cache
def unit_weight(lattice: Lattice, velocity: Vector) -> int:
    """Return u_i = w_i / w_min of a velocity; 0 if the lattice does not have it."""
    if velocity not in lattice.velocities:
        return 0
    share = lattice.weights[lattice.velocities.index(velocity)] / smallest_weight(lattice)
    assert share.denominator == 1
    return share.numerator


@cache
def rows(lattice: Lattice) -> tuple[tuple[int, int], ...]:
    """Return the distinct (c_y, c_z) of the directions."""
    return tuple(
        (y, z) for y, z in product((-1, 0, 1), repeat=2) if any(unit_weight(lattice, (x, y, z)) for x in (0, 1))
    )


def handed_on(lattice: Lattice) -> int:
    """Return the sums that a row of cells hands on along y, each way."""
    upward = [row for row in rows(lattice) if row[0] == 1]
    return sum(3 if unit_weight(lattice, (1, *row)) else 1 for row in upward)


def rising_sums(lattice: Lattice) -> int:
    """Return the sums of the directions that go up along z."""
    return len(sums_of_powers(upright(lattice), 1))


def sums_of_powers(lattice: Lattice, c_z: int) -> list[tuple[int, int]]:
    """Return the powers of c_x and c_y whose sums over the directions of one c_z are not always zero."""
    found = [c for c in lattice.velocities if c[2] == c_z]
    return [(x, y) for x in range(3) for y in range(3 - x) if any(c[0] ** x * c[1] ** y for c in found)]
