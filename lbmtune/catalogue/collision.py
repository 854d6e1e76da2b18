"""Collision operators, derived once in SymPy and printed for every backend.

An operator is a list of assignments from the symbols f0..f{q-1} (deviations f_i - w_i, times the storage
scale) to g0..g{q-1}, with all common subexpressions named. Parameters are the symbols of `Parameters`; `unit`
is the density one in storage units, so that the same text serves scaled 16-bit storage.

Equilibrium (second order): f_eq = w (rho + 3 c.j + 9/2 (c.j)(c.u) - 3/2 j.u), Qian et al. 1992, here for the
deviation of rho from one. Forcing: Guo, Zheng, Shi 2002, split in its even and odd part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import sympy
from sympy import Expr, Rational, Symbol

from lbmtune.lattice import Lattice, Vector


class Assignment(NamedTuple):
    """name = value."""

    name: Symbol
    value: Expr


class Parameters:
    """Launch arguments that a collision operator or a wall may use."""

    omega = Symbol("omega")
    omega_minus = Symbol("omega_minus")
    unit = Symbol("unit")
    force = sympy.symbols("force_x force_y force_z")
    wall = sympy.symbols("wall_x wall_y wall_z")


class Moments(NamedTuple):
    """Names of the macroscopic values of a cell inside an operator."""

    base: Symbol
    momentum: tuple[Symbol, Symbol, Symbol]
    velocity: tuple[Symbol, Symbol, Symbol]


class Halves(NamedTuple):
    """Even and odd part, under c -> -c, of a quantity of one pair of directions."""

    even: Expr
    odd: Expr


@dataclass(frozen=True)
class Collision:
    """A collision operator. pair: assignments that relax one pair of directions; rest: those of direction 0.

    parameters: names of the launch arguments it uses besides the force.
    """

    name: str
    title: str
    source: str
    parameters: tuple[str, ...]
    prologue: Callable[[Moments, bool], list[Assignment]]
    rest: Callable[[Rational, Moments, Expr], Expr]
    pair: Callable[[int, Halves, Halves | None], list[Assignment]]


def population(i: int) -> Symbol:
    """f_i before collision."""
    return Symbol(f"f{i}")


def relaxed(i: int) -> Symbol:
    """f_i after collision."""
    return Symbol(f"g{i}")


def along(c: Vector, vector: tuple[Symbol, Symbol, Symbol]) -> Expr:
    """C . vector for integer c."""
    return sympy.Add(*(a * v for a, v in zip(c, vector, strict=True)))


@lru_cache(maxsize=64)
def assignments(collision: Collision, lattice: Lattice, forced: bool) -> tuple[Assignment, ...]:
    """The whole operator for a lattice, in an order that can be executed."""
    moments, steps = _moments(lattice, forced)
    steps += collision.prologue(moments, forced)
    steps.append(
        Assignment(relaxed(0), collision.rest(_weight(lattice, 0), moments, _rest_source(lattice, moments, forced)))
    )
    for i, _ in lattice.pairs:
        named, equilibrium = _equilibrium(lattice, i, moments)
        steps += named
        steps += collision.pair(i, equilibrium, _source(lattice, i, moments) if forced else None)
    return tuple(steps)


def wall_gain(lattice: Lattice, i: int) -> Expr:
    """What a population gains when a moving wall sends it back along c_i: 6 w_i c_i . u_wall (rho = 1).

    Source: Ladd 1994; the density at the wall is taken as one.
    """
    return 6 * _weight(lattice, i) * along(lattice.velocities[i], Parameters.wall)


def flops(steps: tuple[Assignment, ...]) -> int:
    """Additions, multiplications and divisions of one cell, as printed."""
    return sum(int(sympy.count_ops(step.value)) for step in steps)


def _weight(lattice: Lattice, i: int) -> Rational:
    return Rational(lattice.weights[i].numerator, lattice.weights[i].denominator)


def _moments(lattice: Lattice, forced: bool) -> tuple[Moments, list[Assignment]]:
    """Density deviation, momentum (with half the force) and velocity from sums and differences of pairs."""
    steps: list[Assignment] = []
    for i, o in lattice.pairs:
        steps.append(Assignment(_sum(i), population(i) + population(o)))
        steps.append(Assignment(_difference(i), population(i) - population(o)))
    density = Symbol("density")
    steps.append(Assignment(density, sympy.Add(population(0), *(_sum(i) for i, _ in lattice.pairs))))
    momentum, velocity = (sympy.symbols(f"{n}x {n}y {n}z") for n in "ju")
    for axis in range(3):
        total = sympy.Add(*(lattice.velocities[i][axis] * _difference(i) for i, _ in lattice.pairs))
        half_force = Parameters.force[axis] / 2 if forced and axis < lattice.dimensions else sympy.Integer(0)
        steps.append(Assignment(momentum[axis], total + half_force))
    inverse, base = Symbol("inverse"), Symbol("base")
    steps.append(Assignment(inverse, 1 / (Parameters.unit + density)))
    steps += [Assignment(v, j * inverse) for v, j in zip(velocity, momentum, strict=True)]
    energy = sympy.Add(*(j * v for j, v in list(zip(momentum, velocity, strict=True))[: lattice.dimensions]))
    steps.append(Assignment(base, density - Rational(3, 2) * energy))
    return Moments(base, momentum, velocity), [s for s in steps if _used(s, lattice)]


def _used(step: Assignment, lattice: Lattice) -> bool:
    return lattice.dimensions == 3 or str(step.name) not in ("jz", "uz")


def _equilibrium(lattice: Lattice, i: int, m: Moments) -> tuple[list[Assignment], Halves]:
    """Even and odd part of the equilibrium of a pair; its projections c.j and c.u get names."""
    c, w = lattice.velocities[i], _weight(lattice, i)
    cj, cu = Symbol(f"cj{i}"), Symbol(f"cu{i}")
    named = [Assignment(cj, along(c, m.momentum)), Assignment(cu, along(c, m.velocity))]
    return named, Halves(even=w * (m.base + Rational(9, 2) * cj * cu), odd=3 * w * cj)


def _source(lattice: Lattice, i: int, m: Moments) -> Halves:
    c, w = lattice.velocities[i], _weight(lattice, i)
    cf, uf = along(c, Parameters.force), _power(lattice, m)
    return Halves(even=w * (9 * along(c, m.velocity) * cf - 3 * uf), odd=3 * w * cf)


def _rest_source(lattice: Lattice, m: Moments, forced: bool) -> Expr:
    return -3 * _weight(lattice, 0) * _power(lattice, m) if forced else sympy.Integer(0)


def _power(lattice: Lattice, m: Moments) -> Expr:
    return sympy.Add(*(v * f for v, f in list(zip(m.velocity, Parameters.force, strict=True))[: lattice.dimensions]))


def _sum(i: int) -> Symbol:
    return Symbol(f"s{i}")


def _difference(i: int) -> Symbol:
    return Symbol(f"d{i}")


def pair_sum(i: int) -> Symbol:
    """f_i + f of its opposite, for odd i."""
    return _sum(i)


def pair_difference(i: int) -> Symbol:
    """f_i - f of its opposite, for odd i."""
    return _difference(i)
