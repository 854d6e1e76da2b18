"""Moments of a cell, about rest and about its velocity, one axis at a time.

A moment m_abc = sum f c_x^a c_y^b c_z^c is known by its exponents (a, b, c), each 0, 1 or 2; a central moment has
c - u in place of c. Both are of deviations from the state of density one: from the moments of w, which are
1, 0, 1/3 to the power of one axis each, at rest for the former, moving with u for the latter. A shift by u then
never adds a small number to one, and single precision keeps its accuracy.

Source: Geier et al. 2015, appendix (factorised transforms); Geier, Pasquali, Schonherr 2017 (deviations).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple

import sympy
from sympy import Expr, Integer, Rational, Symbol

from lbmtune.catalogue.collisions.operator import Assignment, Parameters, population, relaxed
from lbmtune.lattice import Lattice, Vector

Values = Mapping[Vector, Expr]
"""By velocity or exponents along each axis; what is missing is zero."""

ZERO, ONE, THIRD = Integer(0), Integer(1), Rational(1, 3)
_LETTERS = {-1: "m", 0: "0", 1: "1", 2: "2"}


class Workings:
    """The assignments of an operator, as they are written down."""

    def __init__(self) -> None:
        self.steps: list[Assignment] = []
        self._known: dict[Expr, Symbol] = {}

    def let(self, name: str, value: Expr) -> Expr:
        """A name for the value; the one that it has already, or the value itself where that is as short."""
        value = sympy.sympify(value)
        if value.is_Symbol or value.is_number:
            return value
        if value not in self._known:
            self._known[value] = Symbol(name)
            self.steps.append(Assignment(self._known[value], value))
        return self._known[value]


class Flow(NamedTuple):
    """Density (its deviation), momentum and velocity, both with half the force, and that half, of a cell."""

    density: Expr
    inverse: Expr
    momentum: tuple[Expr, ...]
    velocity: tuple[Expr, ...]
    half_force: tuple[Expr, ...]


def exponents(lattice: Lattice) -> tuple[Vector, ...]:
    """Those of the q independent moments: a velocity component -1 stands for the exponent 2."""
    return tuple((x % 3, y % 3, z % 3) for x, y, z in lattice.velocities)


def axes(order: Vector) -> list[int]:
    """The axes along which there is an exponent."""
    return [axis for axis in range(3) if order[axis]]


def unit_vector(*chosen: int) -> Vector:
    """Exponents with one for each mention of an axis: those of (0, 0, 1) are (2, 1, 0)."""
    return (chosen.count(0), chosen.count(1), chosen.count(2))


def at_rest(order: Vector) -> Rational:
    """The moment of w: 1, 0 and 1/3 for the exponents 0, 1 and 2 of each axis."""
    return prod((ONE, ZERO, THIRD)[n] for n in order)


def raw_moments(lattice: Lattice, work: Workings) -> Values:
    """Moments of the populations, by sums and differences along z, y and x."""
    values: Values = {c: population(i) for i, c in enumerate(lattice.velocities)}
    for axis in reversed(range(lattice.dimensions)):
        values = _without_zeros(_summed(values, axis, work))
    return values


def flow(lattice: Lattice, raw: Values, forced: bool, work: Workings) -> Flow:
    """Macroscopic values from raw moments; Guo et al. 2002 for the half of the force."""
    dimensions = range(lattice.dimensions)
    half = tuple(work.let(f"half_{'xyz'[a]}", Parameters.force[a] / 2) if forced else ZERO for a in dimensions)
    momentum = tuple(work.let(f"j{'xyz'[a]}", raw[unit_vector(a)] + half[a]) for a in dimensions)
    inverse = work.let("inverse", 1 / (Parameters.unit + raw[0, 0, 0]))
    velocity = tuple(work.let(f"u{'xyz'[a]}", momentum[a] * inverse) for a in dimensions)
    return Flow(raw[0, 0, 0], inverse, momentum, velocity, half)


def shifted(
    lattice: Lattice, values: Values, velocity: Iterable[Expr], first: Iterable[Expr], work: Workings, name: str
) -> Values:
    """Moments seen from a frame that moves with -velocity: from central to raw ones, from raw to central with -u.

    first: the moments of first order there, which are known without rounding.
    """
    known = {unit_vector(a): value for a, value in enumerate(first)}
    for axis, u in enumerate(velocity):
        values = _shifted(exponents(lattice), values, axis, u, known, work, f"{name}_{'xyz'[axis]}")
    return values


def write_populations(lattice: Lattice, raw: Values, work: Workings) -> list[Assignment]:
    """All assignments, those of the relaxed populations from their moments last."""
    values = raw
    for axis in range(lattice.dimensions):
        values = _spread(values, axis, work)
    return work.steps + [
        Assignment(relaxed(i), Rational(1, 2 ** len(axes(c))) * values[c]) for i, c in enumerate(lattice.velocities)
    ]


def _at(base: Vector, axis: int, n: int) -> Vector:
    x, y, z = (n if a == axis else value for a, value in enumerate(base))
    return (x, y, z)


def _bases(keys: Iterable[Vector], axis: int) -> list[Vector]:
    """One key for each line along the axis."""
    return list(dict.fromkeys(_at(key, axis, 0) for key in keys))


def _named(stage: str, key: Vector) -> str:
    return f"{stage}_{''.join(_LETTERS[n] for n in key)}"


def _without_zeros(values: Values) -> Values:
    return {key: value for key, value in values.items() if value != 0}


def _summed(values: Values, axis: int, work: Workings) -> Values:
    """From velocities along the axis to exponents."""
    out: dict[Vector, Expr] = {}
    for base in _bases(values, axis):
        minus, plus = (values.get(_at(base, axis, n), ZERO) for n in (-1, 1))
        first, second = _at(base, axis, 1), _at(base, axis, 2)
        stage = f"raw_{'xyz'[axis]}"
        out[second] = work.let(_named(stage, second), plus + minus)
        out[first] = work.let(_named(stage, first), plus - minus)
        out[base] = work.let(_named(stage, base), values.get(base, ZERO) + out[second])
    return out


def _spread(values: Values, axis: int, work: Workings) -> Values:
    """From exponents along the axis to velocities; twice the value for those other than zero."""
    out: dict[Vector, Expr] = {}
    for base in _bases(values, axis):
        minus, plus = _at(base, axis, -1), _at(base, axis, 1)
        first, second = (values.get(_at(base, axis, n), ZERO) for n in (1, 2))
        stage = f"out_{'xyz'[axis]}"
        out[plus] = work.let(_named(stage, plus), second + first)
        out[minus] = work.let(_named(stage, minus), second - first)
        out[base] = work.let(_named(stage, base), values.get(base, ZERO) - second)
    return out


def _shifted(
    basis: Iterable[Vector], values: Values, axis: int, u: Expr, known: Values, work: Workings, stage: str
) -> Values:
    """Along one axis: m_1 + u m_0 and m_2 + 2 u m_1 + u^2 m_0, where m_0 is that of the full populations."""
    out: dict[Vector, Expr] = dict(values)
    for base in _bases(basis, axis):
        first, second = _at(base, axis, 1), _at(base, axis, 2)
        if first not in basis:
            continue
        before, squared = values.get(first, ZERO), values.get(second, ZERO)
        if first in known:
            after = known[first]
        else:
            whole = work.let(_named(f"{stage}_whole", base), values.get(base, ZERO) + at_rest(base) * Parameters.unit)
            after = work.let(_named(stage, first), before + u * whole)
        both = work.let(_named(f"{stage}_both", first), before + after)
        out[first], out[second] = after, work.let(_named(stage, second), squared + u * both)
    return out
