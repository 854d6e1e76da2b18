"""Regularised collision of a cell that keeps moments, derived in SymPy. See catalogue.moments for what they are."""

from __future__ import annotations

import sympy
from sympy import Expr, Rational, Symbol

from lbmtune.catalogue.collision import Assignment, Parameters
from lbmtune.catalogue.moments import Order, orders, smallest_weight
from lbmtune.lattice import Lattice, Vector


def moment(n: Order) -> Symbol:
    """M_n, summed up."""
    return Symbol("m" + "".join(map(str, n)))


def coefficient(n: Order) -> Symbol:
    """The coefficient that M_n relaxes into: base, J, N or K."""
    return Symbol("p" + "".join(map(str, n)))


def coefficients(lattice: Lattice, forced: bool) -> list[Assignment]:
    """Regularised collision with Guo's forcing, from moments to coefficients.

    J = 3 (j + F/2), N_a = 9/2 P_aa, K_ab = 9/2 P_ab and base = rho - tr N / 3 with P as in collisions.regularised.
    """
    w, omega = Rational(*smallest_weight(lattice).as_integer_ratio()), Parameters.omega
    axes, force = range(lattice.dimensions), Parameters.force if forced else (sympy.Integer(0),) * 3
    density, inverse, half_rate = Symbol("density"), Symbol("inverse"), Symbol("half_rate")
    steps = [Assignment(density, w * moment((0, 0, 0)))]
    steps.append(Assignment(inverse, 1 / (Parameters.unit + density)))  # a reciprocal alone is one instruction
    steps.append(Assignment(half_rate, omega / 2 * inverse))
    steps.append(Assignment(Symbol("keep"), Rational(9, 2) * w * (1 - omega)))
    steps.append(Assignment(Symbol("lost"), Rational(3, 2) * (1 - omega) * density))
    momentum = [Symbol(f"j{'xyz'[a]}") for a in axes]
    for a in axes:
        # three times j + F/2, of which the velocity is made; J itself has the other half of the force, too
        steps.append(Assignment(momentum[a], 3 * w * moment(_unit(a)) + Rational(3, 2) * force[a]))
        steps.append(Assignment(Symbol(f"u{'xyz'[a]}"), half_rate * momentum[a]))
        steps.append(Assignment(coefficient(_unit(a)), momentum[a] + Rational(3, 2) * force[a]))
    if forced:
        steps += _forcing(lattice, inverse)
    for n in orders(lattice):
        if sum(n) == 2:
            steps.append(Assignment(coefficient(n), _second(n, momentum, forced)))
    trace = sympy.Add(*(coefficient(_twice(a)) for a in axes))
    steps.append(Assignment(coefficient((0, 0, 0)), density - Rational(1, 3) * trace))
    return steps


def _second(n: Order, momentum: list[Symbol], forced: bool) -> Expr:
    """9/2 P_ab = 9/2 ((1 - omega) (Pi_ab - rho/3 delta_ab) + omega j_a u_b), and what the force adds."""
    a, b = _axes(n)
    held = Symbol("keep") * moment(n) - (Symbol("lost") if a == b else 0)
    value = held + Symbol(f"u{'xyz'[a]}") * momentum[b]
    if forced:
        fa, fb = Symbol(f"push{'xyz'[a]}"), Symbol(f"push{'xyz'[b]}")
        value += fa * momentum[b] + fb * momentum[a]
    return value


def _forcing(lattice: Lattice, inverse: Symbol) -> list[Assignment]:
    """3/2 (1 - omega/2) F / rho: with three times j it makes 9/2 (1 - omega/2) u F."""
    rate = Symbol("force_rate")
    steps = [Assignment(rate, (Rational(3, 2) - Rational(3, 4) * Parameters.omega) * inverse)]
    return steps + [
        Assignment(Symbol(f"push{'xyz'[a]}"), rate * Parameters.force[a]) for a in range(lattice.dimensions)
    ]


def _unit(axis: int) -> Order:
    return (int(axis == 0), int(axis == 1), int(axis == 2))


def _twice(axis: int) -> Order:
    x, y, z = _unit(axis)
    return (2 * x, 2 * y, 2 * z)


def _axes(n: Order) -> tuple[int, int]:
    """The two axes of a second moment."""
    first, second = (axis for axis in range(3) for _ in range(n[axis]))
    return first, second


def polynomial(lattice: Lattice, c: Vector) -> Expr:
    """P(c) from the coefficients; w_i p(c_i) are the populations after collision."""
    terms = []
    for n in orders(lattice):
        power = 1
        for component, exponent in zip(c, n, strict=True):
            power *= component**exponent
        terms.append(power * (2 if 1 in n and sum(n) == 2 else 1) * coefficient(n))
    return sympy.Add(*terms)
