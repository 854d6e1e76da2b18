"""SymPy assignments as Python text: named constants, hoisted row invariants, no float64.

A literal in Python is float64 and would promote every operand, so each number has a name (`c1_18` is 1/18) that the
module defines once in the compute precision.
"""

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
        """Return the name of a positive number, and keep it for the definitions."""
        name = f"c{value.p}" if value.q == 1 else f"c{value.p}_{value.q}"
        self.values[name] = value
        return name

    def definitions(self) -> list[str]:
        """Return one definition per number, smallest first."""
        ordered = sorted(self.values.items(), key=lambda item: item[1])
        return [f"{name} = real({v.p})" if v.q == 1 else f"{name} = real({v.p} / {v.q})" for name, v in ordered]


class Hoisted(NamedTuple):
    """Assignments that are computed once per row (invariants) and once per cell (body)."""

    invariants: tuple[Assignment, ...]
    body: tuple[Assignment, ...]


def divide_late(steps: Sequence[Assignment], lattice: Lattice) -> tuple[Assignment, ...]:
    """Replace velocities by momenta times 1 / density, so that few values depend on the division.

    c.u becomes (c.j) / density and j.u becomes j.j / density; unused assignments are left out.
    """
    momenta = [Symbol(f"j{a}") for a in "xyz"[: lattice.dimensions]]
    velocities = {Symbol(f"u{a}"): j * _INVERSE for a, j in zip("xyz", momenta, strict=False)}
    projections = {Symbol(f"cu{i}"): Symbol(f"cj{i}") * _INVERSE for i, _ in lattice.pairs}
    others = sympy.Add(*(j**2 for j in momenta[1:]))
    replaced: list[Assignment] = []
    for step in steps:
        value = step.value.xreplace(projections)  # of symbols alone; many times as fast as `subs`
        if step.name == _BASE:
            # j_x^2 = energy - (the other squares), which cancels them
            value = sympy.expand(sympy.expand(value.xreplace(velocities)).subs(momenta[0] ** 2, _ENERGY - others))
        if step.name == _INVERSE:
            replaced.append(Assignment(_ENERGY, momenta[0] ** 2 + others))
        replaced.append(Assignment(step.name, value))
    return needed(replaced, lattice.q)


def hoist(steps: Sequence[Assignment], parameters: Iterable[Symbol]) -> Hoisted:
    """Move everything that depends on parameters alone out of the loop over cells.

    Each value becomes a sum of products. A coefficient made of parameters is computed once per row, and a product of
    such a coefficient that several values share once per cell.
    """
    constant = set(parameters)
    invariants: dict[Expr, Symbol] = {}
    definitions: dict[Symbol, Expr] = {}
    body: list[Assignment] = []
    for step in steps:
        value = step.value.xreplace(definitions)
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
    if not value.free_symbols & constant or value in constant:
        return value
    negative = value.could_extract_minus_sign()
    name = invariants.setdefault(-value if negative else value, Symbol(f"k{len(invariants)}"))
    return -name if negative else name


def _share_products(body: list[Assignment], names: set[Symbol]) -> Iterable[Assignment]:
    """Yield the assignments with names for products of an invariant and a variable that occur more than once."""
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
    """Return the products of an invariant and one other symbol that terms contain."""
    terms = (sympy.Mul.make_args(term) for term in sympy.Add.make_args(value))
    products = {k * v for term in terms for k in term if k in names for v in term if v.is_Symbol and v != k}
    return sorted(products, key=str)


def assigned(steps: Iterable[Assignment], constants: Constants) -> list[str]:
    """Return the lines of some assignments."""
    return [f"{step.name} = {text(step.value, constants)}" for step in steps]


def text(value: Expr, constants: Constants) -> str:
    """Return the expression as Python text; sums are balanced trees, with smaller errors and shorter chains."""
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
    """Return the terms of a sum, negative ones last; cached, because many kernels share their sums."""
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
