"""Cumulants on D3Q27: second orders relax, all higher ones are set to zero.

The off-diagonal and the traceless diagonal second-order cumulants relax with omega, the trace and all higher orders
with one. With N_a the deviation of kappa_aa from rho/3 and delta_a = N_a - trace N / 3, the dependence of viscosity on
velocity is removed with the velocity gradients G_a = rho d_a u_a that the deviations imply:

    G_a  = -3/2 omega delta_a - 1/2 trace N
    N'_a = (1 - omega) delta_a - 3 (1 - omega/2) (X_a - trace X / 3) - 1/2 trace X,    X_a = u_a^2 G_a

Central moments of fourth and sixth order follow from vanishing cumulants: they are those of a Gaussian with the
relaxed covariance. A force adds F/rho to the mean velocity, the cumulant of first order, half of it before and half
after collision; it changes no other cumulant.

Source: Geier, Schonherr, Pasquali, Krafczyk, The cumulant lattice Boltzmann equation in three dimensions: theory
and validation, 2015, with all further rates one.
"""

from itertools import combinations

import sympy
from sympy import Expr, Rational

from lbmtune.catalogue.collisions.central_moments import (
    THIRD,
    ZERO,
    Flow,
    Values,
    Workings,
    flow,
    raw_moments,
    shifted,
    unit_vector,
    write_populations,
)
from lbmtune.catalogue.collisions.operator import Assignment, Collision, Parameters
from lbmtune.lattice import Lattice, Vector

_AT_MEAN = (ZERO, ZERO, ZERO)


def steps(lattice: Lattice, forced: bool) -> list[Assignment]:
    """Return the assignments of the cumulant operator."""
    work = Workings()
    raw = raw_moments(lattice, work)
    made = flow(lattice, raw, forced, work)
    kicks = [work.let(f"kick_{a}", half * made.inverse) for a, half in zip("xyz", made.half_force, strict=True)]
    before, after = (
        [work.let(f"{name}_{a}", u + sign * kick) for a, u, kick in zip("xyz", made.velocity, kicks, strict=True)]
        for name, sign in (("before", -1), ("after", 1))
    )
    central = shifted(lattice, raw, [-u for u in before], _AT_MEAN, work, "central")
    momentum = [work.let(f"new_{a}", j + h) for a, j, h in zip("xyz", made.momentum, made.half_force, strict=True)]
    gaussian = _gaussian(made, *_relaxed(central, made, work), work)
    return write_populations(lattice, shifted(lattice, gaussian, after, momentum, work, "back"), work)


def _relaxed(central: Values, made: Flow, work: Workings) -> tuple[list[Expr], list[Expr]]:
    """Return the relaxed deviations N' of the diagonal, and the moments yz, xz, xy off it."""
    omega = Parameters.omega
    keep, part = work.let("keep", 1 - omega), work.let("part", 1 - omega / 2)
    diagonal = [central[unit_vector(a, a)] for a in range(3)]
    total = work.let("total", sympy.Add(*diagonal))
    mean, half_trace = work.let("mean", THIRD * total), work.let("half_trace", (total - made.density) / 2)
    deltas = [work.let(f"delta_{'xyz'[a]}", diagonal[a] - mean) for a in range(3)]
    gradients = [work.let(f"slope_{'xyz'[a]}", Rational(3, 2) * omega * deltas[a] + half_trace) for a in range(3)]
    squares = [work.let(f"square_{'xyz'[a]}", made.velocity[a] ** 2) for a in range(3)]
    # X with the other sign: the slopes are those of -G
    excess = [work.let(f"excess_{'xyz'[a]}", squares[a] * gradients[a]) for a in range(3)]
    all_excess = work.let("all_excess", sympy.Add(*excess))
    third_excess, half_excess = work.let("third_excess", THIRD * all_excess), work.let("half_excess", all_excess / 2)
    departures = [
        work.let(f"departure_{'xyz'[a]}", keep * deltas[a] + 3 * part * (excess[a] - third_excess) + half_excess)
        for a in range(3)
    ]
    pairs = [unit_vector(*(b for b in range(3) if b != a)) for a in range(3)]
    shear = [work.let(f"shear_{_digits(pair)}", keep * central[pair]) for pair in pairs]
    return departures, shear


def _gaussian(made: Flow, n: list[Expr], s: list[Expr], work: Workings) -> Values:
    """Return central moments without cumulants above second order.

    n: N of each axis; s: for each axis the moment of the other two.
    """
    out: dict[Vector, Expr] = {(0, 0, 0): made.density}
    third = work.let("third", THIRD * made.density)
    thirds = [work.let(f"third_{'xyz'[a]}", THIRD * n[a]) for a in range(3)]
    for a in range(3):
        out[unit_vector(a, a)] = work.let(f"gauss_{'xyz'[a]}", third + n[a])
    quadratic: list[Expr] = [ZERO] * 3
    mixed: list[Expr] = [ZERO] * 3
    ninth = work.let("ninth", THIRD * third)
    for a, b in combinations(range(3), 2):
        c = 3 - a - b
        out[unit_vector(a, b)] = s[c]
        quadratic[c] = work.let(f"quadratic_{'xyz'[c]}", (n[a] * n[b] + 2 * s[c] ** 2) * made.inverse)
        mixed[c] = work.let(f"mixed_{'xyz'[c]}", (n[c] * s[c] + 2 * s[a] * s[b]) * made.inverse)
        out[unit_vector(a, a, b, b)] = work.let(
            f"gauss_{_digits(unit_vector(a, a, b, b))}", ninth + thirds[a] + thirds[b] + quadratic[c]
        )
        out[unit_vector(a, b, c, c)] = work.let(f"gauss_{_digits(unit_vector(a, b, c, c))}", THIRD * s[c] + mixed[c])
    ninths = work.let("ninths", ninth + sympy.Add(*thirds, *quadratic))
    cubic = work.let("cubic", n[2] * quadratic[2] + 2 * s[0] * mixed[0] + 2 * s[1] * mixed[1])
    out[2, 2, 2] = work.let("gauss_222", THIRD * ninths + made.inverse * cubic)
    return out


def _digits(order: Vector) -> str:
    return "".join(map(str, order))


COLLISION = Collision("cumulant", "cumulants, all rates but omega one", "Geier et al. 2015", ("omega",), steps)
