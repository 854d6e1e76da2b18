"""Multiple relaxation times in central moments.

Central moments relax to those of the Maxwellian: rho/3 for each exponent 2, zero for each exponent 1. The shear moments
(k_ab and the differences of k_aa) relax with omega; the trace and all higher orders with one, which sets them to
equilibrium. A force F adds (1 - rate/2) R with R the central moments of -F . grad_c of the Maxwellian: F_a at first
order, F_a/3 and F_a/9 for exponents 2 along the other axes.

Source: De Rosis, Nonorthogonal central-moments-based lattice Boltzmann scheme in three dimensions, 2017; Fei, Luo, Li,
Three-dimensional cascaded lattice Boltzmann method: improved implementation and consistent forcing scheme, 2018.
"""

from collections.abc import Callable
from dataclasses import dataclass

import sympy
from sympy import Expr

from lbmtune.catalogue.collisions.central_moments import (
    ONE,
    THIRD,
    ZERO,
    Flow,
    Values,
    Workings,
    at_rest,
    exponents,
    flow,
    raw_moments,
    shifted,
    unit_vector,
    write_populations,
)
from lbmtune.catalogue.collisions.operator import Assignment, Collision, Parameters
from lbmtune.lattice import Lattice, Vector


@dataclass(frozen=True)
class Rates:
    """Relaxation rates besides omega. bulk: of the trace of second order; higher: of all orders above."""

    bulk: Expr = ONE
    higher: Expr = ONE


def relaxing(rates: Rates) -> Callable[[Lattice, bool], list[Assignment]]:
    """Return the function that writes the operator with these rates."""

    def steps(lattice: Lattice, forced: bool) -> list[Assignment]:
        work = Workings()
        raw = raw_moments(lattice, work)
        made = flow(lattice, raw, forced, work)
        before = [-half for half in made.half_force]
        central = shifted(lattice, raw, [-u for u in made.velocity], before, work, "central")
        after = relaxed_moments(lattice, central, made, rates, work)
        momentum = [
            work.let(f"after_{a}", j + h) for a, j, h in zip("xyz", made.momentum, made.half_force, strict=False)
        ]
        return write_populations(lattice, shifted(lattice, after, made.velocity, momentum, work, "back"), work)

    return steps


def relaxed_moments(lattice: Lattice, central: Values, made: Flow, rates: Rates, work: Workings) -> Values:
    """Return the central moments after collision."""
    keep = work.let("keep", 1 - Parameters.omega)
    diagonal = [central[unit_vector(a, a)] for a in range(lattice.dimensions)]
    mean = work.let("mean", work.let("trace", sympy.Add(*diagonal)) / lattice.dimensions)
    third = work.let("third", THIRD * made.density)
    bulk = work.let("bulk", third + (1 - rates.bulk) * (mean - third))
    out: dict[Vector, Expr] = {(0, 0, 0): made.density}
    out |= {unit_vector(a): half for a, half in enumerate(made.half_force)}
    for order in exponents(lattice):
        if sum(order) == 2:
            value = bulk + keep * (central[order] - mean) if 2 in order else keep * central[order]
        elif sum(order) > 2:
            value = _higher(order, central[order], made, rates.higher, work)
        else:
            continue
        out[order] = work.let(f"relaxed_{''.join(map(str, order))}", value)
    return out


def _higher(order: Vector, before: Expr, made: Flow, rate: Expr, work: Workings) -> Expr:
    rest = work.let(f"rest_{''.join(map(str, order))}", at_rest(order) * made.density)
    return rest + (1 - rate) * (before - rest) + (2 - rate) * _half_of_force(order, made)


def _half_of_force(order: Vector, made: Flow) -> Expr:
    """Return R/2: zero unless one exponent is odd."""
    odd = [axis for axis in range(3) if order[axis] == 1]
    if len(odd) != 1:
        return ZERO
    others = tuple(0 if axis == odd[0] else n for axis, n in enumerate(order))
    return at_rest((others[0], others[1], others[2])) * made.half_force[odd[0]]


COLLISION = Collision(
    "mrt", "multiple relaxation times in central moments", "De Rosis 2017", ("omega",), relaxing(Rates())
)
