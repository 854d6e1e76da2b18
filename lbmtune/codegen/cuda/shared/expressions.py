"""SymPy expressions as C text in the type Real, and device functions.

Constants and launch arguments come first in a product, so that they form one factor that does not depend on the cell
and that the compiler computes once.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from sympy import Add, Expr, Integer, Mul, Pow, Rational, Symbol

_NUMBER = re.compile(r"(\d+)")


def function(head: str, lines: Iterable[str], returns: str = "void") -> str:
    """Return a device function. head: its name and parameters."""
    return "\n".join((f"__device__ __forceinline__ {returns} {head} {{", *(f"    {line}" for line in lines), "}"))


def reals(names: Iterable[str]) -> list[str]:
    """Return the declarations of parameters of the compute precision."""
    return [f"const Real {name}" for name in names]


def word(links: Iterable[int]) -> str:
    """Return the constant with the bits of some links."""
    return f"{sum(1 << i for i in links):#x}u"


@lru_cache(maxsize=4096)
def text(value: Expr) -> str:
    """Return the C text of a sum, product, reciprocal, power, symbol or rational number."""
    if isinstance(value, Add):
        return _sum(value)
    if isinstance(value, Mul):
        return _product(value)
    if isinstance(value, Pow):
        return _power(value)
    if isinstance(value, Integer):
        return f"Real({value.p})"
    if isinstance(value, Rational):
        return f"Real({value.p}.0 / {value.q})"
    assert isinstance(value, Symbol), value
    return str(value)


def _sum(value: Expr) -> str:
    """Return the terms in reading order, a positive one first."""
    terms = sorted(value.args, key=lambda term: (_negative(term), _natural(text(abs_term(term)))))
    first, *rest = ((_negative(term), text(abs_term(term))) for term in terms)
    return ("-" if first[0] else "") + first[1] + "".join(f" {'-' if minus else '+'} {t}" for minus, t in rest)


def abs_term(term: Expr) -> Expr:
    """Return the term without its sign."""
    return -term if _negative(term) else term


def _negative(term: Expr) -> bool:
    return bool(term.as_coeff_Mul()[0] < 0)


def _product(value: Expr) -> str:
    coefficient, rest = value.as_coeff_Mul()
    factors = sorted(Mul.make_args(rest), key=_order)
    printed = " * ".join(_factor(factor) for factor in factors)
    if coefficient == 1:
        return printed
    return f"-{printed}" if coefficient == -1 else f"{text(coefficient)} * {printed}"


def _power(value: Pow) -> str:
    if value.exp == -1:
        return f"Real(1) / {_factor(value.base)}"
    assert value.exp.is_Integer, value
    assert value.exp > 1, value
    return " * ".join([_factor(value.base)] * int(value.exp))


def _factor(value: Expr) -> str:
    return f"({text(value)})" if isinstance(value, Add) else text(value)


def _order(factor: Expr) -> tuple[int, list[tuple[int, str]]]:
    """Return a sort key: launch arguments and what depends on them alone, then symbols of the cell, then sums."""
    uniform = str(factor).startswith(("omega", "keep", "part", "even_part", "odd_part", "force", "wall"))
    return (0 if uniform else 2 if isinstance(factor, Add) else 1), _natural(text(factor))


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key by which f9 precedes f10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in _NUMBER.split(name)]
