"""TRT: even parts relax with omega, odd parts with omega_minus, which the magic parameter fixes."""

from sympy import Expr, Rational, Symbol

from lbmtune.catalogue.collisions.operator import Assignment, Collision, Parameters, population, relaxed
from lbmtune.catalogue.collisions.pairwise import Halves, Moments, pair_difference, pair_sum, pairwise

_EVEN_PART, _ODD_PART = Symbol("even_part"), Symbol("odd_part")


def prologue(moments: Moments, forced: bool) -> list[Assignment]:
    """Return the assignments of 1 - omega/2 and 1 - omega_minus/2; none without a force."""
    if not forced:
        return []
    return [Assignment(_EVEN_PART, 1 - Parameters.omega / 2), Assignment(_ODD_PART, 1 - Parameters.omega_minus / 2)]


def rest(weight: Rational, moments: Moments, source: Expr) -> Expr:
    """Return the relaxed population of direction 0, which has an even part only."""
    return population(0) + Parameters.omega * (weight * moments.base - population(0)) + _EVEN_PART * source


def pair(i: int, equilibrium: Halves, source: Halves | None) -> list[Assignment]:
    """Return assignments that relax the even and the odd part of a pair, each with its own rate."""
    even, odd = Symbol(f"e{i}"), Symbol(f"o{i}")
    add_even = Parameters.omega * (equilibrium.even - pair_sum(i) / 2)
    add_odd = Parameters.omega_minus * (equilibrium.odd - pair_difference(i) / 2)
    if source:
        add_even, add_odd = add_even + _EVEN_PART * source.even, add_odd + _ODD_PART * source.odd
    return [
        Assignment(even, add_even),
        Assignment(odd, add_odd),
        Assignment(relaxed(i), population(i) + (even + odd)),
        Assignment(relaxed(i + 1), population(i + 1) + (even - odd)),
    ]


COLLISION = Collision(
    "trt", "two relaxation times", "Ginzburg et al. 2008", ("omega", "omega_minus"), pairwise(prologue, rest, pair)
)
