"""Collision operators, derived once in SymPy and printed for every backend.

An operator is a list of assignments from the symbols f0..f{q-1} (deviations f_i - w_i, times the storage scale) to
g0..g{q-1}, with all common subexpressions named. `Parameters` has the symbols of its parameters; `unit` is the density
one in storage units, so that the same text serves scaled 16-bit storage.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import sympy
from sympy import Expr, Rational, Symbol

from lbmtune.lattice import Lattice, Vector


class Assignment(NamedTuple):
    """An assignment name = value."""

    name: Symbol
    value: Expr


class Parameters:
    """Launch arguments that a collision operator or a wall may use."""

    omega = Symbol("omega")
    omega_minus = Symbol("omega_minus")
    unit = Symbol("unit")
    force = sympy.symbols("force_x force_y force_z")
    wall = sympy.symbols("wall_x wall_y wall_z")


@dataclass(frozen=True)
class Collision:
    """A collision operator. steps: its assignments for a lattice, without or with a force, in execution order.

    parameters: names of the launch arguments that it uses besides the force.
    """

    name: str
    title: str
    source: str
    parameters: tuple[str, ...]
    steps: Callable[[Lattice, bool], list[Assignment]]


@cache
def population(i: int) -> Symbol:
    """Return the symbol of f_i before collision."""
    return Symbol(f"f{i}")


@cache
def relaxed(i: int) -> Symbol:
    """Return the symbol of f_i after collision."""
    return Symbol(f"g{i}")


def along(c: Vector, vector: tuple[Symbol, Symbol, Symbol]) -> Expr:
    """Return the dot product of an integer vector and a symbolic one."""
    return sympy.Add(*(a * v for a, v in zip(c, vector, strict=True)))


def weight(lattice: Lattice, i: int) -> Rational:
    """Return w_i as a SymPy rational."""
    return Rational(lattice.weights[i].numerator, lattice.weights[i].denominator)


@lru_cache(maxsize=64)
def assignments(collision: Collision, lattice: Lattice, forced: bool) -> tuple[Assignment, ...]:
    """Return the assignments of an operator on a lattice in execution order, without unused ones."""
    return needed(collision.steps(lattice, forced), lattice.q)


def needed(steps: Iterable[Assignment], q: int) -> tuple[Assignment, ...]:
    """Return the assignments on which the q relaxed populations depend, in order."""
    wanted, kept = {relaxed(i) for i in range(q)}, []
    for step in reversed(list(steps)):
        if step.name in wanted:
            wanted |= step.value.free_symbols
            kept.append(step)
    return tuple(reversed(kept))


def wall_gain(lattice: Lattice, i: int) -> Expr:
    """Return what a moving wall adds to the population that it reflects along c_i: 6 w_i c_i . u_wall (rho = 1).

    Source: Ladd 1994; the density at the wall is taken as one.
    """
    return 6 * weight(lattice, i) * along(lattice.velocities[i], Parameters.wall)
