"""SymPy assignments as Python text: named constants, hoisted row invariants, no float64 in sight.

A literal in Python is float64 and would promote everything that it touches, so each number gets a name
(`c1_18` is 1/18) that the module defines once in the compute precision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import sympy
from sympy import Expr, Rational, Symbol

from lbmtune.catalogue.collisions.operator import Assignment, needed
from lbmtune.lattice import Lattice

_INVERSE, _ENERGY, _BASE = Symbol("inverse"), Symbol("energy"), Symbol("base")


@dataclass
class Constants:
    """The numbers that have been printed, by name."""

    values: dict[str, Rational] = field(default_factory=dict)

    def name(self, value: Rational) -> str:
        """The name of a positive number."""
        name = f"c{value.p}" if value.q == 1 else f"c{value.p}_{value.q}"
        self.values[name] = value
        return name

    def definitions(self) -> list[str]:
        """One line for each, smallest first."""
        ordered = sorted(self.values.items(), key=lambda item: item[1])
        return [f"{name} = real({v.p})" if v.q == 1 else f"{name} = real({v.p} / {v.q})" for name, v in ordered]


class Hoisted(NamedTuple):
    """invariants: assignments of a row; body: those of a cell."""

    invariants: tuple[Assignment, ...]
    body: tuple[Assignment, ...]


def divide_late(steps: Sequence[Assignment], lattice: Lattice) -> tuple[Assignment, ...]:
    """Replaces velocities by momenta times 1 / density, so that little has to wait for the division.

    c.u becomes (c.j) / density and j.u becomes j.j / density; what nobody uses any more is left out.
    """
    momenta = [Symbol(f"j{a}") for a in "xyz"[: lattice.dimensions]]
    velocities = {Symbol(f"u{a}"): j * _INVERSE for a, j in zip("xyz", momenta, strict=False)}
    projections = {Symbol(f"cu{i}"): Symbol(f"cj{i}") * _INVERSE for i, _ in lattice.pairs}
    others = sympy.Add(*(j**2 for j in momenta[1:]))
    replaced: list[Assignment] = []
    for step in steps:
        value = step.value.subs(projections)
        if step.name == _BASE:
            # j_x^2 = energy - (the other squares), which cancels them
            value = sympy.expand(sympy.expand(value.subs(velocities)).subs(momenta[0] ** 2, _ENERGY - others))
        if step.name == _INVERSE:
            replaced.append(Assignment(_ENERGY, momenta[0] ** 2 + others))
        replaced.append(Assignment(step.name, value))
    return needed(replaced, lattice.q)


def hoist(steps: Sequence[Assignment], parameters: Iterable[Symbol]) -> Hoisted:
    """Moves everything that depends on parameters alone out of the loop over cells.

    Each value becomes a sum of products; a coefficient made of parameters is worked out once per row, and a
    product of one that several values share once per cell.
    """
    constant = set(parameters)
    invariants: dict[Expr, Symbol] = {}
    definitions: dict[Symbol, Expr] = {}
    body: list[Assignment] = []
    for step in steps:
        value = step.value.subs(definitions)
        if value.free_symbols <= constant:
            definitions[step.name] = value
        else:
            body.append(Assignment(step.name, _with_named_coefficients(value, constant, invariants)))
    named = tuple(Assignment(name, value) for value, name in invariants.items())
    return Hoisted(named, tuple(_share_products(body, set(invariants.values()))))


def _with_named_coefficients(value: Expr, constant: set[Symbol], invariants: dict[Expr, Symbol]) -> Expr:
    if not value.free_symbols & constant or value.is_Pow:
        return sympy.factor_terms(value)
    terms: dict[Expr, Expr] = {}
    for term in sympy.Add.make_args(sympy.expand(value)):
        factor, variable = term.as_independent(*(term.free_symbols - constant), as_Add=False)
        terms[variable] = terms.get(variable, sympy.Integer(0)) + factor
    return sympy.Add(*(_coefficient(c, constant, invariants) * v for v, c in terms.items()))


def _coefficient(value: Expr, constant: set[Symbol], invariants: dict[Expr, Symbol]) -> Expr:
    if not value.free_symbols & constant:
        return value
    if value in constant:
        return value
    negative = value.could_extract_minus_sign()
    name = invariants.setdefault(-value if negative else value, Symbol(f"k{len(invariants)}"))
    return -name if negative else name


def _share_products(body: list[Assignment], names: set[Symbol]) -> Iterable[Assignment]:
    """Names the products of an invariant and a variable that occur more than once, where they first occur."""
    counts = Counter(product for step in body for product in _products(step.value, names))
    shared: dict[Expr, Symbol] = {}
    for step in body:
        value = step.value
        for product in _products(value, names):
            if counts[product] > 1:
                if product not in shared:
                    shared[product] = Symbol("_".join(sorted(map(str, product.args))))
                    yield Assignment(shared[product], product)
                value = value.subs(product, shared[product])
        yield Assignment(step.name, value)


def _products(value: Expr, names: set[Symbol]) -> list[Expr]:
    """An invariant times one other symbol, wherever a term contains both."""
    terms = (sympy.Mul.make_args(term) for term in sympy.Add.make_args(value))
    found = {k * v for term in terms for k in term if k in names for v in term if v.is_Symbol and v != k}
    return sorted(found, key=str)


def text(value: Expr, constants: Constants) -> str:
    """The expression as Python text; sums as balanced trees, which round less and wait less than chains."""
    if value.is_Add:
        return _sum(_in_order(value), constants)
    if value.is_Mul:
        return _product(value, constants)
    if value.is_Pow:
        return _power(value, constants)
    if value.is_Symbol:
        return str(value.name)
    assert value.is_Rational, value
    return f"-{constants.name(-value)}" if value < 0 else constants.name(value)


@lru_cache(maxsize=4096)
def _in_order(value: Expr) -> tuple[Expr, ...]:
    """Terms of a sum, those that are subtracted last. Rows of many kernels have the same sums."""
    return tuple(sorted(value.as_ordered_terms(), key=_negative))


def _negative(term: Expr) -> bool:
    return bool(term.as_coeff_Mul()[0] < 0)


def _sum(terms: Sequence[Expr], constants: Constants) -> str:
    if len(terms) == 1:
        return text(terms[0], constants)
    if len(terms) <= 3:
        rest = (f" - {_opposite(t, constants)}" if _negative(t) else f" + {text(t, constants)}" for t in terms[1:])
        return text(terms[0], constants) + "".join(rest)
    half = (len(terms) + 1) // 2
    left, right = terms[:half], terms[half:]
    if all(map(_negative, right)):
        return f"({_sum(left, constants)}) - ({_sum([-t for t in right], constants)})"
    return f"({_sum(left, constants)}) + ({_sum(right, constants)})"


def _product(value: Expr, constants: Constants) -> str:
    number, rest = value.as_coeff_Mul()
    return f"-{_opposite(value, constants)}" if number < 0 else _product_of(number, rest, constants)


def _opposite(term: Expr, constants: Constants) -> str:
    # not text(-term), because SymPy would distribute the sign over a sum
    number, rest = term.as_coeff_Mul()
    return _product_of(-number, rest, constants) if rest != 1 else constants.name(-number)


def _product_of(number: Rational, rest: Expr, constants: Constants) -> str:
    factors = [_factor(f, constants) for f in sympy.Mul.make_args(rest)]
    return " * ".join(factors if number == 1 else [constants.name(number), *factors])


def _factor(value: Expr, constants: Constants) -> str:
    inner = text(value, constants)
    return f"({inner})" if value.is_Add or value.is_Pow else inner


def _power(value: Expr, constants: Constants) -> str:
    base, exponent = value.as_base_exp()
    if exponent == -1:
        return f"{constants.name(sympy.Integer(1))} / {_factor(base, constants)}"
    assert exponent.is_Integer, value
    assert exponent > 1, value
    return " * ".join([_factor(base, constants)] * int(exponent))
