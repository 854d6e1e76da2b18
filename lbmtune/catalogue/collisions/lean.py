"""Operators in as few instructions as is known here, for kernels that the issue of instructions binds.

Each is the same operator as that of its name, exactly, and differs in rounding alone. Kernels that memory binds keep
the usual form, in which their recorded measurements were made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import sympy
from sympy import Expr, Rational, Symbol

from lbmtune.catalogue.collision import (
    Assignment,
    Collision,
    Parameters,
    along,
    assignments,
    needed,
    population,
    relaxed,
    weight,
)
from lbmtune.lattice import Lattice, Vector

_KEEP, _PART, _INVERSE, _LEVEL = sympy.symbols("keep part inverse level")
_MOMENTUM = sympy.symbols("jx jy jz")


@lru_cache(maxsize=64)
def leanest(collision: Collision, lattice: Lattice, forced: bool) -> tuple[Assignment, ...]:
    """The leanest form of an operator, in an order that can be executed."""
    steps = _LEAN.get(collision.name)
    return needed(steps(lattice, forced), lattice.q) if steps else assignments(collision, lattice, forced)


def _bgk(lattice: Lattice, forced: bool) -> list[Assignment]:
    """g_i = keep f_i + omega f_eq_i + part S_i, with f_eq and S as in `catalogue.pairwise`.

    c.u is c.j over the density, so that a pair needs c.j alone: omega f_eq = b + (q c.j) c.j +- 3 w omega c.j, where
    b and q have one value for each weight.
    """
    steps = [*_sums(lattice, forced), Assignment(_KEEP, 1 - Parameters.omega)]
    if forced:
        steps.append(Assignment(_PART, 1 - Parameters.omega / 2))
    energy = Symbol("energy")
    steps.append(Assignment(energy, sympy.Add(*(j**2 for j in _MOMENTUM[: lattice.dimensions]))))
    level = Parameters.omega * (Symbol("density") - Rational(3, 2) * _INVERSE * energy)
    if forced:
        work = sympy.Add(*(3 * _PART * f * j for f, j in _axes(lattice, Parameters.force, _MOMENTUM)))
        level -= _INVERSE * work
    steps.append(Assignment(_LEVEL, level))
    steps.append(Assignment(relaxed(0), _KEEP * population(0) + weight(lattice, 0) * _LEVEL))
    for w in dict.fromkeys(weight(lattice, i) for i, _ in lattice.pairs):
        steps.append(Assignment(_of_weight("b", w), w * _LEVEL))
        steps.append(Assignment(_of_weight("q", w), Rational(9, 2) * w * Parameters.omega * _INVERSE))
    return steps + [step for i, _ in lattice.pairs for step in _pair(lattice, i, forced)]


def _pair(lattice: Lattice, i: int, forced: bool) -> Iterable[Assignment]:
    c, w = lattice.velocities[i], weight(lattice, i)
    cj, even, push = sympy.symbols(f"cj{i} e{i} part{i}")
    slope: Expr = _of_weight("q", w) * cj
    yield Assignment(cj, along(c, _MOMENTUM))
    if forced:
        yield Assignment(push, 3 * w * _PART * along(c, Parameters.force))
        slope += 3 * push * _INVERSE
    yield Assignment(even, _of_weight("b", w) + cj * slope)
    for sign, direction in ((1, i), (-1, lattice.opposite[i])):
        odd = 3 * w * Parameters.omega * cj + (push if forced else 0)
        yield Assignment(relaxed(direction), _KEEP * population(direction) + even + sign * odd)


def _of_weight(name: str, w: Rational) -> Symbol:
    return Symbol(f"{name}_{w.q}")


def _sums(lattice: Lattice, forced: bool) -> Iterable[Assignment]:
    """Density (its deviation), momentum with half the force, and 1 over the density: one axis after the other."""
    values: Mapping[Vector, Expr] = {c: population(i) for i, c in enumerate(lattice.velocities)}
    for axis in range(lattice.dimensions):
        differences: list[Expr] = []
        summed: dict[Vector, Expr] = {}
        for n, c in enumerate(sorted({_without(c, axis) for c in values})):
            there = [values.get(_with(c, axis, step)) for step in (1, -1, 0)]
            plus, minus, rest = there
            if plus is not None and minus is not None:
                odd, even = sympy.symbols(f"odd_{'xyz'[axis]}{n} even_{'xyz'[axis]}{n}")
                yield Assignment(odd, plus - minus)
                yield Assignment(even, plus + minus + (rest or 0))
                differences.append(odd)
                summed[c] = even
            elif rest is not None:
                summed[c] = rest
        half_force = Parameters.force[axis] / 2 if forced else 0
        yield Assignment(_MOMENTUM[axis], sympy.Add(*differences, half_force))
        values = summed
    yield Assignment(Symbol("density"), values[0, 0, 0])
    yield Assignment(_INVERSE, 1 / (Parameters.unit + Symbol("density")))


def _without(c: Vector, axis: int) -> Vector:
    return _with(c, axis, 0)


def _with(c: Vector, axis: int, step: int) -> Vector:
    x, y, z = (step if n == axis else component for n, component in enumerate(c))
    return (x, y, z)


def _axes(lattice: Lattice, *vectors: tuple[Expr, ...]) -> Iterable[tuple[Expr, ...]]:
    return zip(*(vector[: lattice.dimensions] for vector in vectors), strict=True)


_LEAN: Mapping[str, Callable[[Lattice, bool], list[Assignment]]] = {"bgk": _bgk}
