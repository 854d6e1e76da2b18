"""BGK: g = (1 - omega) f + omega f_eq + (1 - omega/2) S."""

from sympy import Expr, Rational, Symbol

from lbmtune.catalogue.collisions.operator import Assignment, Collision, Parameters, population, relaxed
from lbmtune.catalogue.collisions.pairwise import Halves, Moments, pairwise

_KEEP, _OMEGA, _PART = Symbol("keep"), Parameters.omega, Symbol("part")


def prologue(moments: Moments, forced: bool) -> list[Assignment]:
    """Return assignments of 1 - omega and, with a force, of 1 - omega/2."""
    steps = [Assignment(_KEEP, 1 - _OMEGA)]
    return [*steps, Assignment(_PART, 1 - _OMEGA / 2)] if forced else steps


def rest(weight: Rational, moments: Moments, source: Expr) -> Expr:
    """Return the relaxed population of direction 0."""
    return _KEEP * population(0) + _OMEGA * (weight * moments.base) + _PART * source


def pair(i: int, equilibrium: Halves, source: Halves | None) -> list[Assignment]:
    """Return assignments that relax a pair of directions; the even and odd part of what is added are shared."""
    even, odd = Symbol(f"e{i}"), Symbol(f"o{i}")
    add_even, add_odd = _OMEGA * equilibrium.even, _OMEGA * equilibrium.odd
    if source:
        add_even, add_odd = add_even + _PART * source.even, add_odd + _PART * source.odd
    return [
        Assignment(even, add_even),
        Assignment(odd, add_odd),
        Assignment(relaxed(i), _KEEP * population(i) + (even + odd)),
        Assignment(relaxed(i + 1), _KEEP * population(i + 1) + (even - odd)),
    ]


COLLISION = Collision("bgk", "single relaxation time", "Qian et al. 1992", ("omega",), pairwise(prologue, rest, pair))
