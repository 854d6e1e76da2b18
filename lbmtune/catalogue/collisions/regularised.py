"""Regularised BGK: the non-equilibrium part is replaced by its second-order moments.

With Pi_ab = sum c_a c_b f, j = rho u = sum c f + F/2 and Guo's forcing the relaxed populations are

    g = w (rho + 3 c.(j + F/2) + 9/2 (c c - I/3) : P)
    P = (1 - omega) (Pi - I rho/3) + omega j u + (1 - omega/2) (u F + F u)

here for deviations from w, where Pi and rho are reduced by I/3 and 1.
Source: Latt, Chopard, Lattice Boltzmann method with regularized pre-collision distribution functions, 2006.
"""

from itertools import combinations, combinations_with_replacement

import sympy
from sympy import Expr, Rational, Symbol

from lbmtune.catalogue.collisions.operator import Assignment, Collision, Parameters, along, relaxed, weight
from lbmtune.catalogue.collisions.pairwise import Moments, moments, pair_sum
from lbmtune.lattice import Lattice, Vector

_KEEP, _PART, _THIRD, _TRACE = sympy.symbols("keep part third trace")
_ISOTROPIC = Symbol("isotropic")
"""The term of all directions: density - 3/2 trace P."""


def steps(lattice: Lattice, forced: bool) -> list[Assignment]:
    """Return the assignments of the regularised operator."""
    made, found = moments(lattice, forced)
    found += [Assignment(_KEEP, 1 - Parameters.omega), Assignment(_PART, 1 - Parameters.omega / 2)]
    found.append(Assignment(_THIRD, Rational(1, 3) * Symbol("density")))
    for a, b in combinations_with_replacement(range(lattice.dimensions), 2):
        found += _relaxed_moment(lattice, made, a, b, forced)
    found.append(Assignment(_TRACE, sympy.Add(*(_moment(a, a) for a in range(lattice.dimensions)))))
    found.append(Assignment(_ISOTROPIC, Symbol("density") - Rational(3, 2) * _TRACE))
    return found + _momentum_after(made, forced) + _populations(lattice)


def _moment(a: int, b: int, name: str = "relaxed") -> Symbol:
    return Symbol(f"{name}_{'xyz'[a]}{'xyz'[b]}")


def _momentum_after(made: Moments, forced: bool) -> list[Assignment]:
    force = Parameters.force if forced else (0, 0, 0)
    return [Assignment(n, j + f / 2) for n, j, f in zip(_after(), made.momentum, force, strict=True)]


def _after() -> tuple[Symbol, Symbol, Symbol]:
    return sympy.symbols("after_x after_y after_z")  # type: ignore[no-any-return]


def _relaxed_moment(lattice: Lattice, made: Moments, a: int, b: int, forced: bool) -> list[Assignment]:
    """Return the assignments of P_ab; off the diagonal, of 2 P_ab."""
    held = sympy.Add(*(lattice.velocities[i][a] * lattice.velocities[i][b] * pair_sum(i) for i, _ in lattice.pairs))
    departure, value = _moment(a, b, "second"), made.momentum[a] * made.velocity[b]
    after = _KEEP * departure + Parameters.omega * value
    if forced:
        after += _PART * (made.velocity[a] * Parameters.force[b] + made.velocity[b] * Parameters.force[a])
    if a == b:
        return [Assignment(departure, held - _THIRD), Assignment(_moment(a, b), after)]
    single = _moment(a, b, "single")
    return [Assignment(departure, held), Assignment(single, after), Assignment(_moment(a, b), 2 * single)]


def _populations(lattice: Lattice) -> list[Assignment]:
    found = [Assignment(relaxed(0), weight(lattice, 0) * _ISOTROPIC)]
    for i, o in lattice.pairs:
        c, w = lattice.velocities[i], weight(lattice, i)
        cj, cp, even, odd = sympy.symbols(f"cj{i} cp{i} e{i} o{i}")
        found += [
            Assignment(cj, along(c, _after())),
            Assignment(cp, _projection(c)),
            Assignment(even, w * _ISOTROPIC + Rational(9, 2) * w * cp),
            Assignment(odd, 3 * w * cj),
            Assignment(relaxed(i), even + odd),
            Assignment(relaxed(o), even - odd),
        ]
    return found


def _projection(c: Vector) -> Expr:
    """Return c c : P."""
    diagonal = (_moment(a, a) for a in range(3) if c[a])
    return sympy.Add(*diagonal, *(c[a] * c[b] * _moment(a, b) for a, b in combinations(range(3), 2)))


COLLISION = Collision("regularised", "regularised single relaxation time", "Latt, Chopard 2006", ("omega",), steps)
