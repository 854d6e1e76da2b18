"""Regularised collision in moments, derived in SymPy. `catalogue.moments.basis` defines the moments."""

import sympy
from sympy import Expr, Rational, Symbol

from lbmtune.catalogue.collisions.operator import Assignment, Parameters
from lbmtune.catalogue.moments.basis import Order, orders, smallest_weight
from lbmtune.lattice import Lattice, Vector


def moment(n: Order) -> Symbol:
    """Return the symbol of M_n."""
    return Symbol("m" + "".join(map(str, n)))


def coefficient(n: Order) -> Symbol:
    """Return the symbol of the coefficient to which M_n relaxes: base, j or N."""
    return Symbol("p" + "".join(map(str, n)))


def coefficients(lattice: Lattice, forced: bool, relaxes: bool = True) -> list[Assignment]:
    """Return the assignments of regularised collision with Guo's forcing, from moments to coefficients.

    In units of w_min: j is the momentum with all of the force, N_ab = 3 P_ab with P as in collisions.regularised, and
    base = w_min (rho - tr N / 2). Without relaxation the coefficients are those of populations with the same moments.
    """
    if not relaxes:
        return _unrelaxed(lattice)
    w, omega = Rational(*smallest_weight(lattice).as_integer_ratio()), Parameters.omega
    axes, force = range(lattice.dimensions), Parameters.force if forced else (sympy.Integer(0),) * 3
    density, inverse, rate = moment((0, 0, 0)), Symbol("inverse"), Symbol("rate")
    steps = [Assignment(inverse, 1 / (Parameters.unit / w + density))]  # a reciprocal alone is one instruction
    steps.append(Assignment(rate, 3 * omega * inverse))
    steps.append(Assignment(Symbol("keep"), 3 - 3 * omega))
    steps.append(Assignment(Symbol("lost"), (1 - omega) * density))
    momentum = [Symbol(f"j{'xyz'[a]}") for a in axes]
    for a in axes:
        # j + F/2, of which the velocity is made; what goes on has the other half of the force, too
        steps.append(Assignment(momentum[a], moment(_unit(a)) + force[a] / (2 * w)))
        steps.append(Assignment(Symbol(f"u{'xyz'[a]}"), rate * momentum[a]))
        steps.append(Assignment(coefficient(_unit(a)), momentum[a] + force[a] / (2 * w)))
    if forced:
        steps += _forcing(lattice, inverse, w)
    for n in orders(lattice):
        if sum(n) == 2:
            steps += _second(n, momentum, forced)
    return [*steps, *_base(lattice)]


def _base(lattice: Lattice) -> list[Assignment]:
    w, trace = Rational(*smallest_weight(lattice).as_integer_ratio()), Symbol("trace")
    return [
        Assignment(trace, sympy.Add(*(coefficient(_twice(a)) for a in range(lattice.dimensions)))),
        Assignment(coefficient((0, 0, 0)), w * moment((0, 0, 0)) - w / 2 * trace),
    ]


def _unrelaxed(lattice: Lattice) -> list[Assignment]:
    """Return the coefficients without relaxation: N_ab = 3 Pi_ab - rho delta_ab, as for omega = 0."""
    steps = []
    for n in orders(lattice):
        lost = moment((0, 0, 0)) if 2 in n else 0
        if any(n):
            steps.append(Assignment(coefficient(n), 3 * moment(n) - lost if sum(n) == 2 else moment(n)))
    return [*steps, *_base(lattice)]


def _second(n: Order, momentum: list[Symbol], forced: bool) -> list[Assignment]:
    """Return N_ab = 3 ((1 - omega) (Pi_ab - rho/3 delta_ab) + omega j_a u_b), and the part of the force.

    The share of the second moment comes first, so that each other term is one fused multiply-add.
    """
    a, b = _axes(n)
    value, steps = Symbol("keep") * moment(n), []
    if a == b:
        held = Symbol(f"held_{'xyz'[a]}")
        steps, value = [Assignment(held, value - Symbol("lost"))], held
    value += Symbol(f"u{'xyz'[a]}") * momentum[b]
    if forced:
        fa, fb = Symbol(f"push{'xyz'[a]}"), Symbol(f"push{'xyz'[b]}")
        value += fa * momentum[b] + fb * momentum[a]
    return [*steps, Assignment(coefficient(n), value)]


def _forcing(lattice: Lattice, inverse: Symbol, w: Rational) -> list[Assignment]:
    """Return the assignments of 3 (1 - omega/2) F / rho."""
    rate = Symbol("force_rate")
    steps = [Assignment(rate, (3 - Rational(3, 2) * Parameters.omega) / w * inverse)]
    return steps + [
        Assignment(Symbol(f"push{'xyz'[a]}"), rate * Parameters.force[a]) for a in range(lattice.dimensions)
    ]


def _unit(axis: int) -> Order:
    return (int(axis == 0), int(axis == 1), int(axis == 2))


def _twice(axis: int) -> Order:
    x, y, z = _unit(axis)
    return (2 * x, 2 * y, 2 * z)


def _axes(n: Order) -> tuple[int, int]:
    first, second = (axis for axis in range(3) for _ in range(n[axis]))
    return first, second


def step(lattice: Lattice) -> Rational:
    """Return the factor of j and N in the polynomial: 3 w_min."""
    return 3 * Rational(*smallest_weight(lattice).as_integer_ratio())


def polynomial(lattice: Lattice, c: Vector) -> Expr:
    """Return p(c) in the coefficients; w_i p(c_i) are the populations after collision."""
    terms = []
    for n in orders(lattice):
        power = sympy.Integer(1)
        for component, exponent in zip(c, n, strict=True):
            power *= component**exponent
        share = step(lattice) if any(n) else 1
        terms.append(power * share * (Rational(1, 2) if 2 in n else 1) * coefficient(n))
    return sympy.Add(*terms)
