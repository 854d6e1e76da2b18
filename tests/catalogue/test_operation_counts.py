"""Operations of the collision operators, counted by hand where that is short and beside the literature elsewhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sympy import Expr, Rational, Symbol, symbols

from lbmtune.catalogue.collisions import COLLISIONS
from lbmtune.catalogue.collisions.operator import Assignment, Parameters
from lbmtune.catalogue.operation_counts import flops, flops_per_update, operator_flops
from lbmtune.catalogue.problem.case import collides
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.lattice import LATTICES
from tests.support.paths import ROOT

X, Y, Z = symbols("x y z")
OMEGA, (FORCE, _, _) = Parameters.omega, Parameters.force


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (X + Y - Z, 2),
        (-X - Y, 1),
        (X * Y, 1),
        (-X * Y, 1),
        (X * Rational(3, 2), 1),
        (OMEGA * X * Rational(1, 18), 1),
        (OMEGA * (X + Y), 2),
        (FORCE / 2 + X + 1, 1),
        (1 / (X + Parameters.unit), 2),
        (X**2, 1),
        (X - Z * (X + Y), 3),
        (1 - OMEGA / 2, 0),
        (X, 0),
    ],
    ids=str,
)
def test_operations_of_an_expression(value: Expr, expected: int) -> None:
    assert flops([Assignment(Symbol("r"), value)]) == expected


def test_what_follows_from_arguments_is_known_beforehand() -> None:
    keep = Symbol("keep")
    assert flops([Assignment(keep, 1 - OMEGA), Assignment(Symbol("g"), FORCE * keep * X)]) == 1


# D2Q9 BGK by hand: 8 sums and differences of pairs, 4 for the density, 4 for the momentum, a sum and a reciprocal,
# 2 for the velocity, 6 for rho - 3/2 j.u, 3 for the rest direction, and for each pair 5 even, 1 odd and 6 to
# relax both, 2 more on the diagonals for c.j and c.u
BY_HAND = 8 + 4 + 4 + 2 + 2 + 6 + 3 + 4 * (5 + 1 + 6) + 2 * 2


@pytest.mark.parametrize(
    ("operator", "stencil", "plain", "forced"),
    [
        ("bgk", "d2q9", BY_HAND, 122),
        ("bgk", "d3q19", 176, 288),
        ("bgk", "d3q27", 264, 436),
        ("trt", "d2q9", 94, 135),
        ("trt", "d3q19", 204, 316),
        ("trt", "d3q27", 304, 476),
    ],
)
def test_bgk_and_trt(operator: str, stencil: str, plain: int, forced: int) -> None:
    """Robertsen 2018 counts about 160 for BGK and 213 to 257 for TRT, Wellein et al. 2006 about 200, all on D3Q19."""
    assert operator_flops(operator, stencil) == plain
    assert operator_flops(operator, stencil, forced=True) == forced


@pytest.mark.parametrize(
    ("operator", "stencil", "limit"),
    [("regularised", "d3q19", 200), ("mrt", "d3q19", 350), ("mrt", "d3q27", 500), ("cumulant", "d3q27", 500)],
)
def test_operators_stay_cheap(operator: str, stencil: str, limit: int) -> None:
    assert operator_flops(operator, stencil) <= limit


def test_a_case_counts_its_force_and_not_its_walls() -> None:
    case = box("d3q19", "trt", (8, 8, 8))
    assert flops_per_update(case) == flops_per_update(cavity("d3q19", "trt", (8, 8, 8), 1.2)) == 204
    assert flops_per_update(replace(case, force=(1e-5, 0.0, 0.0))) == 316


def test_the_table_of_the_documentation() -> None:
    page = (ROOT / "docs" / "guide" / "collisions.md").read_text(encoding="utf-8")
    for operator in COLLISIONS:
        counts = [str(operator_flops(operator, n)) if collides(operator, n) else "-" for n in LATTICES]
        assert f"| {operator} | {' | '.join(counts)} |\n" in page
