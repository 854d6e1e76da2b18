"""Velocity sets: weights, opposites, isotropy, order of the pairs."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from lbmtune.errors import InputError
from lbmtune.lattice import LATTICES, Lattice, lattice, negate

CS2 = Fraction(1, 3)
each_lattice = pytest.mark.parametrize("stencil", LATTICES.values(), ids=LATTICES)


def _moment(stencil: Lattice, *axes: int) -> Fraction:
    """Sum over i of w_i times the product of the components of c_i along the axes."""
    total = Fraction(0)
    for c, w in zip(stencil.velocities, stencil.weights, strict=True):
        term = w
        for axis in axes:
            term *= c[axis]
        total += term
    return total


@each_lattice
def test_name_counts_dimensions_and_directions(stencil: Lattice) -> None:
    assert stencil.name == f"d{stencil.dimensions}q{stencil.q}"
    assert len(set(stencil.velocities)) == len(stencil.weights) == stencil.q
    assert all(c[axis] == 0 for c in stencil.velocities for axis in range(stencil.dimensions, 3))


@each_lattice
def test_weights_sum_to_one_and_odd_moments_vanish(stencil: Lattice) -> None:
    assert sum(stencil.weights) == 1
    assert min(stencil.weights) > 0
    for axes in product(range(3), repeat=3):
        assert _moment(stencil, axes[0]) == _moment(stencil, *axes) == 0


@each_lattice
def test_isotropy_to_fourth_order(stencil: Lattice) -> None:
    """<c_a c_b> = c_s^2 d_ab and <c_a c_b c_c c_d> = c_s^4 (d_ab d_cd + d_ac d_bd + d_ad d_bc)."""
    axes = range(stencil.dimensions)
    for a, b in product(axes, repeat=2):
        assert _moment(stencil, a, b) == CS2 * (a == b)
    for a, b, c, d in product(axes, repeat=4):
        expected = (a == b) * (c == d) + (a == c) * (b == d) + (a == d) * (b == c)
        assert _moment(stencil, a, b, c, d) == CS2**2 * expected


@each_lattice
def test_opposites(stencil: Lattice) -> None:
    for i, o in enumerate(stencil.opposite):
        assert stencil.velocities[o] == negate(stencil.velocities[i])
        assert stencil.opposite[o] == i
        assert stencil.weights[o] == stencil.weights[i]
    assert stencil.opposite[0] == 0


@each_lattice
def test_pairs_are_adjacent_and_positive_first(stencil: Lattice) -> None:
    assert [i for pair in stencil.pairs for i in pair] == list(range(1, stencil.q))
    for i, o in stencil.pairs:
        assert stencil.opposite[i] == o
        assert next(a for a in stencil.velocities[i] if a) > 0
    speeds = [sum(a * a for a in c) for c in stencil.velocities]
    assert speeds == sorted(speeds)


@pytest.mark.parametrize(
    ("name", "weights_by_speed2"),
    [
        ("d2q9", {0: "4/9", 1: "1/9", 2: "1/36"}),
        ("d3q19", {0: "1/3", 1: "1/18", 2: "1/36"}),
        ("d3q27", {0: "8/27", 1: "2/27", 2: "1/54", 3: "1/216"}),
    ],
)
def test_weights_of_the_literature(name: str, weights_by_speed2: dict[int, str]) -> None:
    """Krueger et al. 2017, tables 3.3 to 3.6."""
    for c, w in zip(lattice(name).velocities, lattice(name).weights, strict=True):
        assert w == Fraction(weights_by_speed2[sum(a * a for a in c)])


def test_unknown_lattice_is_bad_input_with_a_suggestion() -> None:
    with pytest.raises(InputError, match="unknown lattice 'd3q18'; did you mean 'd3q19'"):
        lattice("d3q18")
