"""Velocity sets: directions, weights, opposites.

Direction 0 is rest; then come opposite pairs (1, 2), (3, 4), ... with the member of a pair whose first
non-zero component is positive first, slower directions before faster ones. Two-dimensional lattices are
embedded with c_z = 0, so that one code path serves them all.

Source: Qian, d'Humieres, Lallemand 1992; Krueger et al. 2017, tables 3.1 to 3.6.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from lbmtune.errors import named

Vector = tuple[int, int, int]


@dataclass(frozen=True)
class Lattice:
    """A DdQq velocity set with c_s^2 = 1/3.

    velocities: q vectors (c_x, c_y, c_z), in lattice units; weights: q exact fractions that sum to one.
    """

    name: str
    dimensions: int
    velocities: tuple[Vector, ...]
    weights: tuple[Fraction, ...]

    def __hash__(self) -> int:
        """Return the hash of the name: fractions are slow to hash, and tables are cached by lattice."""
        return hash(self.name)

    @property
    def q(self) -> int:
        """Return the number of directions."""
        return len(self.velocities)

    @cached_property
    def opposite(self) -> tuple[int, ...]:
        """Return the index of -c_i for each direction i."""
        index = {c: i for i, c in enumerate(self.velocities)}
        return tuple(index[negate(c)] for c in self.velocities)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Return the (q - 1) / 2 pairs (i, opposite of i), i odd."""
        return tuple((i, i + 1) for i in range(1, self.q, 2))


def negate(c: Vector) -> Vector:
    """Return the opposite vector."""
    return (-c[0], -c[1], -c[2])


def _velocities(dimensions: int, max_speed2: int) -> tuple[Vector, ...]:
    ranges = [(-1, 0, 1)] * dimensions + [(0,)] * (3 - dimensions)
    found = [(x, y, z) for x, y, z in itertools.product(*ranges) if x * x + y * y + z * z <= max_speed2]
    half = sorted((c for c in found if c > (0, 0, 0)), key=lambda c: (_speed2(c), tuple(-a for a in c)))
    return ((0, 0, 0), *(v for c in half for v in (c, negate(c))))


def _speed2(c: Vector) -> int:
    return c[0] ** 2 + c[1] ** 2 + c[2] ** 2


def _lattice(dimensions: int, max_speed2: int, weight_by_speed2: tuple[Fraction, ...]) -> Lattice:
    velocities = _velocities(dimensions, max_speed2)
    weights = tuple(weight_by_speed2[_speed2(c)] for c in velocities)
    return Lattice(f"d{dimensions}q{len(velocities)}", dimensions, velocities, weights)


_F = Fraction
LATTICES: Mapping[str, Lattice] = {
    lattice.name: lattice
    for lattice in (
        _lattice(2, 2, (_F(4, 9), _F(1, 9), _F(1, 36))),
        _lattice(3, 2, (_F(1, 3), _F(1, 18), _F(1, 36))),
        _lattice(3, 3, (_F(8, 27), _F(2, 27), _F(1, 54), _F(1, 216))),
    )
}


def lattice(name: str) -> Lattice:
    """Return the lattice of a name ('d2q9', 'd3q19', 'd3q27'). Raises InputError for an unknown one."""
    return named("lattice", name, LATTICES)
