"""Operators that relax one pair of opposite directions after the other, by their even and odd parts.

Equilibrium (second order): f_eq = w (rho + 3 c.j + 9/2 (c.j)(c.u) - 3/2 j.u), Qian et al. 1992, here for the
deviation of rho from one. Forcing: Guo, Zheng, Shi 2002, split into its even and odd part.
"""

from collections.abc import Callable
from typing import NamedTuple

import sympy
from sympy import Expr, Rational, Symbol

from lbmtune.catalogue.collisions.operator import Assignment, Parameters, along, population, relaxed, weight
from lbmtune.lattice import Lattice


class Moments(NamedTuple):
    """Symbols of the macroscopic values of a cell in an operator."""

    base: Symbol
    momentum: tuple[Symbol, Symbol, Symbol]
    velocity: tuple[Symbol, Symbol, Symbol]


class Halves(NamedTuple):
    """Even and odd part, under c -> -c, of a quantity of one pair of directions."""

    even: Expr
    odd: Expr


Prologue = Callable[[Moments, bool], list[Assignment]]
"""Writes the assignments before all pairs."""
Rest = Callable[[Rational, Moments, Expr], Expr]
"""Returns the relaxed population of direction 0."""
Pair = Callable[[int, Halves, Halves | None], list[Assignment]]
"""Writes the assignments that relax a pair, from its odd direction, equilibrium and force."""


def pairwise(prologue: Prologue, rest: Rest, pair: Pair) -> Callable[[Lattice, bool], list[Assignment]]:
    """Return the function that writes an operator from its prologue, its rest direction and its pairs."""

    def steps(lattice: Lattice, forced: bool) -> list[Assignment]:
        made, found = moments(lattice, forced)
        found += prologue(made, forced)
        source = -3 * weight(lattice, 0) * _power(lattice, made) if forced else sympy.Integer(0)
        found.append(Assignment(relaxed(0), rest(weight(lattice, 0), made, source)))
        for i, _ in lattice.pairs:
            named, equilibrium = _equilibrium(lattice, i, made)
            found += named
            found += pair(i, equilibrium, _source(lattice, i, made) if forced else None)
        return found

    return steps


def moments(lattice: Lattice, forced: bool) -> tuple[Moments, list[Assignment]]:
    """Return density deviation, momentum (with half of the force) and velocity from sums and differences of pairs."""
    steps: list[Assignment] = []
    for i, o in lattice.pairs:
        steps.append(Assignment(pair_sum(i), population(i) + population(o)))
        steps.append(Assignment(pair_difference(i), population(i) - population(o)))
    density = Symbol("density")
    steps.append(Assignment(density, sympy.Add(population(0), *(pair_sum(i) for i, _ in lattice.pairs))))
    momentum, velocity = (sympy.symbols(f"{n}x {n}y {n}z") for n in "ju")
    for axis in range(3):
        total = sympy.Add(*(lattice.velocities[i][axis] * pair_difference(i) for i, _ in lattice.pairs))
        half_force = Parameters.force[axis] / 2 if forced and axis < lattice.dimensions else sympy.Integer(0)
        steps.append(Assignment(momentum[axis], total + half_force))
    inverse, base = Symbol("inverse"), Symbol("base")
    steps.append(Assignment(inverse, 1 / (Parameters.unit + density)))
    steps += [Assignment(v, j * inverse) for v, j in zip(velocity, momentum, strict=True)]
    energy = sympy.Add(*(j * v for j, v in list(zip(momentum, velocity, strict=True))[: lattice.dimensions]))
    steps.append(Assignment(base, density - Rational(3, 2) * energy))
    return Moments(base, momentum, velocity), steps


def _equilibrium(lattice: Lattice, i: int, m: Moments) -> tuple[list[Assignment], Halves]:
    """Return the even and odd part of the equilibrium of a pair, with assignments of its projections c.j and c.u."""
    c, w = lattice.velocities[i], weight(lattice, i)
    cj, cu = Symbol(f"cj{i}"), Symbol(f"cu{i}")
    named = [Assignment(cj, along(c, m.momentum)), Assignment(cu, along(c, m.velocity))]
    return named, Halves(even=w * (m.base + Rational(9, 2) * cj * cu), odd=3 * w * cj)


def _source(lattice: Lattice, i: int, m: Moments) -> Halves:
    c, w = lattice.velocities[i], weight(lattice, i)
    cf, uf = along(c, Parameters.force), _power(lattice, m)
    return Halves(even=w * (9 * along(c, m.velocity) * cf - 3 * uf), odd=3 * w * cf)


def _power(lattice: Lattice, m: Moments) -> Expr:
    return sympy.Add(*(v * f for v, f in list(zip(m.velocity, Parameters.force, strict=True))[: lattice.dimensions]))


def pair_sum(i: int) -> Symbol:
    """Return the symbol of f_i plus f of the opposite direction, for odd i."""
    return Symbol(f"s{i}")


def pair_difference(i: int) -> Symbol:
    """Return the symbol of f_i minus f of the opposite direction, for odd i."""
    return Symbol(f"d{i}")
