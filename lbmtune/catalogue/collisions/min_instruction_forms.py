"""Collision operators in few instructions, for kernels that are bound by instruction issue.

Each form is algebraically equal to the operator of that name and differs in rounding only. Memory-bound kernels use
the usual form, with which their recorded measurements were made.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

import sympy
from sympy import Expr, Rational, Symbol

from lbmtune.catalogue.collisions.operator import (
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
from lbmtune.catalogue.collisions.pairwise import pair_difference, pair_sum
from lbmtune.lattice import Lattice, Vector

_KEEP, _INVERSE, _LEVEL, _DENSITY, _ENERGY = sympy.symbols("keep inverse level density energy")
_PART, _ODD_PART = sympy.symbols("part odd_part")
_SLOPE, _CURVED = sympy.symbols("slope curved")
_MOMENTUM = sympy.symbols("jx jy jz")


@lru_cache(maxsize=64)
def leanest(collision: Collision, lattice: Lattice, forced: bool) -> tuple[Assignment, ...]:
    """Return the assignments of the form with the fewest instructions, in execution order."""
    steps = _LEAN.get(collision.name)
    return needed(steps(lattice, forced), lattice.q) if steps else assignments(collision, lattice, forced)


@lru_cache(maxsize=64)
def by_axes(collision: Collision, lattice: Lattice, forced: bool) -> tuple[Assignment, ...]:
    """Return a form with fewer instructions than `leanest` but longer dependency chains: axes share values.

    It exists for BGK without a force; other operators get the form of `leanest`.
    """
    if collision.name != "bgk" or forced:
        return leanest(collision, lattice, forced)
    return needed(_bgk_by_axes(lattice), lattice.q)


def _bgk(lattice: Lattice, forced: bool) -> list[Assignment]:
    """Return BGK as g_i = keep f_i + omega f_eq_i + part S_i, with f_eq and S as in `catalogue.collisions.pairwise`."""
    steps = [*_sums_by_axes(lattice, forced), *_shared(lattice, forced)]
    for i, o in lattice.pairs:
        found, even, odd = _pair(lattice, i, forced, Parameters.omega, _PART)
        steps += found
        steps.append(Assignment(relaxed(i), _KEEP * population(i) + even + odd))
        steps.append(Assignment(relaxed(o), _KEEP * population(o) + even - odd))
    return steps


def _bgk_by_axes(lattice: Lattice) -> Iterator[Assignment]:
    """Yield BGK as g_i = keep f_i + b + q (c.j)^2 + k c.j, where b, q and k have one value per weight.

    Let b and q be the values for directions along one axis; those of weight w are r b and r q, with r the ratio of the
    weights. Along several axes a, the even part is r b + r q sum_a j_a^2; each axis adds c_a j_a (k + 2 r q c.j), with
    c.j over the axes before it.
    """
    w_axis, dimensions = weight(lattice, 1), lattice.dimensions
    yield from _sums_by_axes(lattice, False)
    yield Assignment(_KEEP, 1 - Parameters.omega)
    yield Assignment(_ENERGY, sympy.Add(*(j**2 for j in _MOMENTUM[:dimensions])))
    yield Assignment(_SLOPE, Rational(9, 2) * w_axis * Parameters.omega * _INVERSE)
    yield Assignment(_CURVED, _SLOPE * _ENERGY)
    yield Assignment(_LEVEL, w_axis * Parameters.omega * _DENSITY - _CURVED / 3)
    yield Assignment(relaxed(0), _KEEP * population(0) + weight(lattice, 0) / w_axis * _LEVEL)
    for axis, j in enumerate(_MOMENTUM[:dimensions]):
        yield Assignment(_along("slope", axis), _SLOPE * j)
        yield Assignment(_along("even", axis), _LEVEL + _along("slope", axis) * j)
    named = set[Symbol]()
    for i, c in enumerate(lattice.velocities[1:], start=1):
        axes = tuple(axis for axis in range(dimensions) if c[axis])
        for step in (*_even(axes, dimensions, weight(lattice, i) / w_axis), *_moved(lattice, i, axes)):
            if step.name not in named:
                yield step
            named.add(step.name)


def _even(axes: tuple[int, ...], dimensions: int, ratio: Rational) -> Iterator[Assignment]:
    """Yield the even part of directions along several axes, from all axes or from the missing one."""
    if len(axes) == dimensions:
        yield Assignment(_along("even", *axes), ratio * _LEVEL + ratio * _CURVED)
    elif len(axes) > 1:
        (other,) = set(range(dimensions)) - set(axes)
        yield Assignment(Symbol("even_two"), 2 * ratio * _LEVEL + ratio * _CURVED)
        yield Assignment(_along("even", *axes), Symbol("even_two") - ratio * _along("even", other))


def _moved(lattice: Lattice, i: int, axes: tuple[int, ...]) -> Iterator[Assignment]:
    """Yield the relaxed population of a direction, one axis after the other; equal signs share names."""
    c, w = lattice.velocities[i], weight(lattice, i)
    value, steepness = _along("even", *axes), 3 * w * Parameters.omega
    *others, last = axes
    for n, axis in enumerate(others):
        signs = "".join(f"{'p' if c[a] > 0 else 'm'}{'xyz'[a]}" for a in others[: n + 1])
        to, along_next = _along(f"to_{signs}", *axes), Symbol(f"steep{len(axes)}_{signs}")
        yield Assignment(to, value + c[axis] * _MOMENTUM[axis] * steepness)
        yield Assignment(along_next, steepness + 2 * w / weight(lattice, 1) * c[axis] * _along("slope", axis))
        value, steepness = to, along_next
    rest = Symbol(f"t{i}")
    yield Assignment(rest, _KEEP * population(i) + value)
    yield Assignment(relaxed(i), rest + c[last] * _MOMENTUM[last] * steepness)


def _along(name: str, *axes: int) -> Symbol:
    return Symbol(f"{name}_{''.join('xyz'[axis] for axis in axes)}")


def _trt(lattice: Lattice, forced: bool) -> list[Assignment]:
    """Return TRT: the even part of a pair relaxes with omega, the odd part with omega_minus."""
    steps = [*_sums_by_pairs(lattice, forced), *_shared(lattice, forced)]
    keep_even, keep_odd = sympy.symbols("keep_even keep_odd")
    steps.append(Assignment(keep_even, Rational(1, 2) - Parameters.omega / 2))
    steps.append(Assignment(keep_odd, Rational(1, 2) - Parameters.omega_minus / 2))
    if forced:
        steps.append(Assignment(_ODD_PART, 1 - Parameters.omega_minus / 2))
    for i, o in lattice.pairs:
        found, even, odd = _pair(lattice, i, forced, Parameters.omega_minus, _ODD_PART)
        whole_even, whole_odd = sympy.symbols(f"even{i} odd{i}")
        steps += found
        steps.append(Assignment(whole_even, even + keep_even * pair_sum(i)))
        steps.append(Assignment(whole_odd, odd + keep_odd * pair_difference(i)))
        steps.append(Assignment(relaxed(i), whole_even + whole_odd))
        steps.append(Assignment(relaxed(o), whole_even - whole_odd))
    return steps


def _shared(lattice: Lattice, forced: bool) -> Iterable[Assignment]:
    """Yield the values that all pairs share, and direction 0.

    c.u is c.j over the density, so that a pair needs c.j only: the even part of omega f_eq is b + (q c.j) c.j, where b
    and q have one value per weight.
    """
    yield Assignment(_KEEP, 1 - Parameters.omega)
    yield Assignment(_ENERGY, sympy.Add(*(j**2 for j in _MOMENTUM[: lattice.dimensions])))
    level = Parameters.omega * (_DENSITY - Rational(3, 2) * _INVERSE * _ENERGY)
    if forced:
        yield Assignment(_PART, 1 - Parameters.omega / 2)
        along_force = zip(Parameters.force[: lattice.dimensions], _MOMENTUM, strict=False)
        level -= _INVERSE * sympy.Add(*(3 * _PART * f * j for f, j in along_force))
    yield Assignment(_LEVEL, level)
    yield Assignment(relaxed(0), _KEEP * population(0) + weight(lattice, 0) * _LEVEL)
    for w in dict.fromkeys(weight(lattice, i) for i, _ in lattice.pairs):
        yield Assignment(_of_weight("b", w), w * _LEVEL)
        yield Assignment(_of_weight("q", w), Rational(9, 2) * w * Parameters.omega * _INVERSE)


def _pair(
    lattice: Lattice, i: int, forced: bool, odd_rate: Symbol, odd_part: Symbol
) -> tuple[list[Assignment], Expr, Expr]:
    """Return the assignments of a pair, and the even and odd part that equilibrium and force add to it."""
    c, w = lattice.velocities[i], weight(lattice, i)
    cj, even = sympy.symbols(f"cj{i} e{i}")
    steps = [Assignment(cj, along(c, _MOMENTUM))]
    slope, odd = _of_weight("q", w) * cj, 3 * w * odd_rate * cj
    if forced:
        push, odd_push = sympy.symbols(f"part_push{i} odd_part_push{i}")
        steps.append(Assignment(push, 9 * w * _PART * along(c, Parameters.force)))
        steps.append(Assignment(odd_push, 3 * w * odd_part * along(c, Parameters.force)))
        slope, odd = slope + push * _INVERSE, odd + odd_push
    steps.append(Assignment(even, _of_weight("b", w) + cj * slope))
    return steps, even, odd


def _of_weight(name: str, w: Rational) -> Symbol:
    return Symbol(f"{name}_{w.q}")


def _sums_by_axes(lattice: Lattice, forced: bool) -> Iterable[Assignment]:
    """Yield density deviation, momentum with half of the force and inverse density, summed axis by axis."""
    values: Mapping[Vector, Expr] = {c: population(i) for i, c in enumerate(lattice.velocities)}
    for axis in range(lattice.dimensions):
        differences: list[Expr] = []
        summed: dict[Vector, Expr] = {}
        for n, c in enumerate(sorted({_with(c, axis, 0) for c in values})):
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
        yield Assignment(_MOMENTUM[axis], sympy.Add(*differences, _half_force(axis, forced)))
        values = summed
    yield Assignment(_DENSITY, values[0, 0, 0])
    yield Assignment(_INVERSE, 1 / (Parameters.unit + _DENSITY))


def _sums_by_pairs(lattice: Lattice, forced: bool) -> Iterable[Assignment]:
    """Yield the values of `_sums_by_axes` from the sums and differences of pairs, which TRT relaxes separately."""
    for i, o in lattice.pairs:
        yield Assignment(pair_sum(i), population(i) + population(o))
        yield Assignment(pair_difference(i), population(i) - population(o))
    for axis in range(lattice.dimensions):
        moved = (lattice.velocities[i][axis] * pair_difference(i) for i, _ in lattice.pairs)
        yield Assignment(_MOMENTUM[axis], sympy.Add(*moved, _half_force(axis, forced)))
    yield Assignment(_DENSITY, sympy.Add(population(0), *(pair_sum(i) for i, _ in lattice.pairs)))
    yield Assignment(_INVERSE, 1 / (Parameters.unit + _DENSITY))


def _half_force(axis: int, forced: bool) -> Expr:
    return Parameters.force[axis] / 2 if forced else sympy.Integer(0)


def _with(c: Vector, axis: int, step: int) -> Vector:
    x, y, z = (step if n == axis else component for n, component in enumerate(c))
    return (x, y, z)


_LEAN: Mapping[str, Callable[[Lattice, bool], list[Assignment]]] = {"bgk": _bgk, "trt": _trt}
