"""Raw and central moments of a cell, transformed one axis at a time.

A moment m_abc = sum f c_x^a c_y^b c_z^c has the exponents (a, b, c), each 0, 1 or 2; a central moment has c - u in
place of c. Both are deviations from the state of density one, whose moments are products over the axes of 1, 0, 1/3
for the exponents 0, 1, 2: raw moments from this state at rest, central moments from it moving with u. A shift by u
then never adds a small number to one, which preserves single precision.

Source: Geier et al. 2015, appendix (factorised transforms); Geier, Pasquali, Schonherr 2017 (deviations).
"""

from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple

import sympy
from sympy import Expr, Integer, Rational, Symbol

from lbmtune.catalogue.collisions.operator import Assignment, Parameters, population, relaxed
from lbmtune.lattice import Lattice, Vector

Values = Mapping[Vector, Expr]
"""Values by velocity or by exponents; missing ones are zero."""

ZERO, ONE, THIRD = Integer(0), Integer(1), Rational(1, 3)
_LETTERS = {-1: "m", 0: "0", 1: "1", 2: "2"}


class Workings:
    """Collects the assignments of an operator in order and names each value once."""

    def __init__(self) -> None:
        self.steps: list[Assignment] = []
        self._named_values: dict[Expr, Symbol] = {}

    def let(self, name: str, value: Expr) -> Expr:
        """Return a symbol for the value, assigned on first use; a symbol or number is returned as it is."""
        value = sympy.sympify(value)
        if value.is_Symbol or value.is_number:
            return value
        if value not in self._named_values:
            self._named_values[value] = Symbol(name)
            self.steps.append(Assignment(self._named_values[value], value))
        return self._named_values[value]


class Flow(NamedTuple):
    """Macroscopic values of a cell: density deviation, inverse density, momentum, velocity and half of the force.

    Momentum and velocity include half of the force.
    """

    density: Expr
    inverse: Expr
    momentum: tuple[Expr, ...]
    velocity: tuple[Expr, ...]
    half_force: tuple[Expr, ...]


def exponents(lattice: Lattice) -> tuple[Vector, ...]:
    """Return the exponents of the q independent moments; a velocity component of -1 stands for the exponent 2."""
    return tuple((x % 3, y % 3, z % 3) for x, y, z in lattice.velocities)


def axes(order: Vector) -> list[int]:
    """Return the axes whose exponent is not zero."""
    return [axis for axis in range(3) if order[axis]]


def unit_vector(*chosen: int) -> Vector:
    """Return exponents that count how often each axis is given: (0, 0, 1) gives (2, 1, 0)."""
    return (chosen.count(0), chosen.count(1), chosen.count(2))


def at_rest(order: Vector) -> Rational:
    """Return the moment of the weights: the product over the axes of 1, 0, 1/3 for the exponents 0, 1, 2."""
    return prod((ONE, ZERO, THIRD)[n] for n in order)


def raw_moments(lattice: Lattice, work: Workings) -> Values:
    """Return the moments of the populations, from sums and differences along z, y and x."""
    values: Values = {c: population(i) for i, c in enumerate(lattice.velocities)}
    for axis in reversed(range(lattice.dimensions)):
        values = {key: value for key, value in _summed(values, axis, work).items() if value != 0}
    return values


def flow(lattice: Lattice, raw: Values, forced: bool, work: Workings) -> Flow:
    """Return the macroscopic values from raw moments. Source of the half force: Guo et al. 2002."""
    dimensions = range(lattice.dimensions)
    half = tuple(work.let(f"half_{'xyz'[a]}", Parameters.force[a] / 2) if forced else ZERO for a in dimensions)
    momentum = tuple(work.let(f"j{'xyz'[a]}", raw[unit_vector(a)] + half[a]) for a in dimensions)
    inverse = work.let("inverse", 1 / (Parameters.unit + raw[0, 0, 0]))
    velocity = tuple(work.let(f"u{'xyz'[a]}", momentum[a] * inverse) for a in dimensions)
    return Flow(raw[0, 0, 0], inverse, momentum, velocity, half)


def shifted(
    lattice: Lattice, values: Values, velocity: Iterable[Expr], first: Iterable[Expr], work: Workings, name: str
) -> Values:
    """Return moments in a frame that moves with -velocity: raw ones from central ones, or the reverse for -u.

    first: the moments of first order in that frame, given exactly.
    """
    known = {unit_vector(a): value for a, value in enumerate(first)}
    for axis, u in enumerate(velocity):
        values = _shifted(exponents(lattice), values, axis, u, known, work, f"{name}_{'xyz'[axis]}")
    return values


def write_populations(lattice: Lattice, raw: Values, work: Workings) -> list[Assignment]:
    """Return all assignments, last those of the relaxed populations from their raw moments."""
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
    """Return one key for each line along the axis."""
    return list(dict.fromkeys(_at(key, axis, 0) for key in keys))


def _named(stage: str, key: Vector) -> str:
    return f"{stage}_{''.join(_LETTERS[n] for n in key)}"


def _summed(values: Values, axis: int, work: Workings) -> Values:
    """Transform velocities along the axis to exponents."""
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
    """Transform exponents along the axis to velocities; values of non-zero velocities are doubled."""
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
    """Shift along one axis: m_1 + u m_0 and m_2 + 2 u m_1 + u^2 m_0, with m_0 that of the full populations."""
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
