"""Density, velocity, equilibrium and collision operators of the oracle, from their definitions in float64.

A collision takes populations (q, nz, ny, nx), not shifted, the case, and the array module. Sums over directions or
moments are loops or matrices written as their definition, without the symbolic derivations.
Source: Krueger et al., The Lattice Boltzmann Method, 2017, chapters 3 and 6.
"""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import product
from math import comb, prod
from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.catalogue.problem.case import Case
from lbmtune.lattice import Lattice

Array = Any
"""A numpy or cupy array of float64."""
_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""The axes of second moments."""
Order = tuple[int, ...]
"""Exponents of a moment along x, y and z."""


def density(f: Array) -> Array:
    """Return rho, shape (nz, ny, nx)."""
    return f.sum(axis=0)


def velocity(f: Array, case: Case, xp: ModuleType = np) -> Array:
    """Return u = (sum c_i f_i + F/2) / rho, shape (3, nz, ny, nx)."""
    momentum = _times(_velocities(case.stencil).T, f, xp)
    if any(case.force):
        momentum += 0.5 * xp.asarray(case.force).reshape(-1, 1, 1, 1)
    momentum /= density(f)
    return momentum


def equilibrium(rho: Array, u: Array, lattice: Lattice, xp: ModuleType = np) -> Array:
    """Return the second-order equilibrium, shape (q, nz, ny, nx), of rho (nz, ny, nx) and u (3, nz, ny, nx).

    w_i rho (1 + 3 c.u + 9/2 (c c - I/3) : u u), one matrix times its ten moments, because each operation has an
    overhead.
    """
    return _times(_expansion(lattice), _ten_moments(rho, u, xp), xp)


def _ten_moments(rho: Array, u: Array, xp: ModuleType) -> Array:
    """Return rho, rho u_a and rho u_a u_b of each pair, shape (10, nz, ny, nx)."""
    moments = xp.empty((1 + 3 + len(_PAIRS), *rho.shape))
    moments[0] = rho
    xp.multiply(rho, u, out=moments[1:4])
    for n, (a, b) in enumerate(_PAIRS, 4):
        xp.multiply(moments[1 + a], u[b], out=moments[n])
    return moments


def guo_source(u: Array, case: Case, xp: ModuleType = np) -> Array:
    """Return Guo's source term without its relaxation prefactor, (q, nz, ny, nx); without a force (q, 1, 1, 1)."""
    if not any(case.force):
        return xp.zeros((case.stencil.q, 1, 1, 1))
    at_rest, of_velocity = _forcing(case.stencil, case.force)
    source = _times(of_velocity, u, xp)
    source += xp.asarray(at_rest).reshape(-1, 1, 1, 1)
    return source


def bgk(f: Array, case: Case, xp: ModuleType) -> Array:
    """Return f - omega (f - f_eq) + (1 - omega/2) S. Source: Krueger et al. 2017, equations 3.9 and 6.14."""
    u = velocity(f, case, xp)
    omega, source = case.relaxation_rate, guo_source(u, case, xp)
    departure = _departure(f, case, u, xp)
    departure *= omega
    after = xp.subtract(f, departure, out=departure)
    after += (1 - omega / 2) * source
    return after


def trt(f: Array, case: Case, xp: ModuleType) -> Array:
    """Relax even and odd parts of f - f_eq with two rates of a given magic parameter. Source: Ginzburg et al. 2008."""
    u = velocity(f, case, xp)
    omega, source = case.relaxation_rate, guo_source(u, case, xp)
    departure = _departure(f, case, u, xp)
    omega_minus = 1 / (case.magic / (1 / omega - 0.5) + 0.5)
    (even, odd), (source_even, source_odd) = (_halves(values, case.stencil) for values in (departure, source))
    return f - omega * even - omega_minus * odd + (1 - omega / 2) * source_even + (1 - omega_minus / 2) * source_odd


def _halves(values: Array, lattice: Lattice) -> tuple[Array, Array]:
    """Return the even and the odd part of values of all directions."""
    turned = values[list(lattice.opposite)]
    return (values + turned) / 2, (values - turned) / 2


def _departure(f: Array, case: Case, u: Array, xp: ModuleType) -> Array:
    rest = equilibrium(density(f), u, case.stencil, xp)
    return xp.subtract(f, rest, out=rest)


def regularised(f: Array, case: Case, xp: ModuleType) -> Array:
    """Keep second-order departures: f_eq + (1 - omega) w (3 c.n + 9/2 (c c - I/3) : N) + (1 - omega/2) S.

    n, N: first and second moments of f - f_eq; n is not zero but -F/2 if a force acts. They have the factors that
    rho u and rho u u have in f_eq, so that all ten are summed first.
    Source: Latt, Chopard 2006.
    """
    lattice, omega = case.stencil, case.relaxation_rate
    found = _times(_ten_sums(lattice), f, xp)
    rho, u = found[0], (found[1:4] + 0.5 * xp.asarray(case.force).reshape(-1, 1, 1, 1)) / found[0]
    moments = _ten_moments(rho, u, xp)
    departures = found[1:] - moments[1:]
    departures[3 : 3 + lattice.dimensions] -= rho / 3  # n, and N without the second moments rho (u u + I/3)
    departures *= 1 - omega
    moments[1:] += departures
    out = _times(_expansion(lattice), moments, xp)
    if any(case.force):
        out += (1 - omega / 2) * guo_source(u, case, xp)
    return out


_COLUMNS = 16
"""Columns that a library multiplies at once; it rounds the remaining ones differently."""


def _times(matrix: Array, values: Array, xp: ModuleType) -> Array:
    """Return a matrix (m, n) times values (n, nz, ny, nx); on a host rounded alike for any number of cells."""
    if xp is not np:
        return xp.tensordot(xp.asarray(matrix), values, axes=1)
    rows = values.reshape(len(values), -1)
    cells, out = rows.shape[1], np.empty((len(matrix), rows.shape[1]))
    rest = cells % _COLUMNS
    if cells > rest:
        np.matmul(matrix, rows[:, : cells - rest], out=out[:, : cells - rest])
    if rest:
        last = np.zeros((len(values), _COLUMNS))
        last[:, :rest] = rows[:, cells - rest :]
        out[:, cells - rest :] = (matrix @ last)[:, :rest]
    return out.reshape(len(matrix), *values.shape[1:])


@cache
def _expansion(lattice: Lattice) -> Any:
    """Return the factors of rho, rho u_a and rho u_a u_b in the equilibrium, shape (q, 10); a pair occurs twice."""
    weights, c = np.array([float(w) for w in lattice.weights]), _velocities(lattice)
    second = [4.5 * (c[:, a] * c[:, b] - 1 / 3 if a == b else 2 * c[:, a] * c[:, b]) for a, b in _PAIRS]
    return weights[:, None] * np.stack([np.ones(lattice.q), *(3 * c.T), *second], axis=1)


@cache
def _velocities(lattice: Lattice) -> Any:
    """Return the components of all c_i, shape (q, 3)."""
    return np.array(lattice.velocities, dtype=float)


@cache
def _forcing(lattice: Lattice, force: tuple[float, float, float]) -> tuple[Any, Any]:
    """Return Guo's source w (3 (c - u) + 9 (c.u) c) . F at u = 0, shape (q,), and its factors of u, shape (q, 3)."""
    weights, c, acting = np.array([float(w) for w in lattice.weights]), _velocities(lattice), np.array(force)
    along = c @ acting
    return weights * 3 * along, weights[:, None] * (9 * along[:, None] * c - 3 * acting)


@cache
def _ten_sums(lattice: Lattice) -> Any:
    """Return the factors of f_i in density, momentum and the second moment of each pair, shape (10, q)."""
    c = _velocities(lattice)
    return np.array([np.ones(lattice.q), *c.T, *(c[:, a] * c[:, b] for a, b in _PAIRS)])


def central_moments(f: Array, case: Case, xp: ModuleType) -> Array:
    """Relax shear moments with omega; set all others to those of the Maxwellian with half the force.

    k_n = sum f_i (c_i - u)^n for all exponents n of the lattice; rest: those of the Maxwellian over rho, products of
    1, 0, 1/3. The force adds (1 - rate/2) R_n with R_n = sum over a of F_a n_a rest_(n - e_a), which is the moment of
    -F . grad_c of the Maxwellian, integrated by parts.
    Source: De Rosis 2017; Fei, Luo, Li 2018.
    """
    lattice, omega, flat = case.stencil, case.relaxation_rate, case.stencil.dimensions
    orders, rho, u = _orders(lattice), density(f), velocity(f, case, xp)
    before = {_sum(a, b): _central(f, lattice, _sum(a, b), u) for a in range(flat) for b in range(flat)}
    trace = sum(before[n] for n in before if 2 in n)
    after = {}
    for n in orders:
        rate = omega if sum(n) == 2 else 1.0
        forced = sum(case.force[a] * n[a] * _gaussian(_less(n, a)) for a in range(3) if n[a])
        after[n] = rho * _gaussian(n) + (1 - rate / 2) * forced
        if sum(n) == 2:
            after[n] = after[n] + (1 - omega) * (before[n] - (trace / flat if 2 in n else 0.0))
    return _populations({n: _raw(after, n, u) for n in orders}, lattice, xp)


def _orders(lattice: Lattice) -> list[Order]:
    """Return the exponents of q independent moments: component 1 stands for one, -1 for two."""
    return [(c[0] % 3, c[1] % 3, c[2] % 3) for c in lattice.velocities]


def _less(n: Order, axis: int) -> Order:
    return tuple(m - (a == axis) for a, m in enumerate(n))


def _gaussian(n: Order) -> float:
    """Return a central moment of the Maxwellian with density one and c_s^2 = 1/3, for exponents up to 2."""
    return prod((1.0, 0.0, 1 / 3)[m] for m in n)


def _central(f: Array, lattice: Lattice, n: Order, u: Array | tuple[float, ...]) -> Array:
    return sum(f[i] * prod((c[a] - u[a]) ** n[a] for a in range(3)) for i, c in enumerate(lattice.velocities))


def _raw(central: Mapping[Order, Array], n: Order, u: Array) -> Array:
    """Return sum f_i c_i^n by the binomial theorem for c = (c - u) + u."""
    return sum(
        central[m] * prod(comb(n[a], m[a]) * u[a] ** (n[a] - m[a]) for a in range(3))
        for m in product(*(range(k + 1) for k in n))
    )


def _populations(raw: Mapping[Order, Array], lattice: Lattice, xp: ModuleType) -> Array:
    """Return the populations with these raw moments, by the inverse of the matrix of all c_i^n."""
    orders = list(raw)
    inverse = np.linalg.inv([[float(prod(c[a] ** n[a] for a in range(3))) for c in lattice.velocities] for n in orders])
    return xp.stack([sum(float(inverse[i, k]) * raw[n] for k, n in enumerate(orders)) for i in range(lattice.q)])


def cumulants(f: Array, case: Case, xp: ModuleType) -> Array:
    """Relax second-order cumulants, add the force to the mean, set higher cumulants to zero (D3Q27).

    Cumulants c_n from moments mu_n (both over rho) and back by their recursive definition, for any axis j of n:
    mu_n = sum over m <= n - e_j of binomial(n - e_j, m) mu_m c_(n - m).
    Source: Geier et al. 2015, with rates one of the trace and of higher orders.
    """
    lattice, omega, rho, u = case.stencil, case.relaxation_rate, density(f), velocity(f, case, xp)
    orders = sorted(_orders(lattice), key=sum)
    moments = {n: _central(f, lattice, n, (0.0, 0.0, 0.0)) / rho for n in orders}
    found: dict[Order, Array] = {}
    for n in orders[1:]:
        found[n] = moments[n] - _mixed(n, moments, found)
    after = {n: 0.0 * found[n] for n in found}
    for axis, n in enumerate(((1, 0, 0), (0, 1, 0), (0, 0, 1))):
        after[n] = found[n] + case.force[axis] / rho
    for a, b in ((0, 1), (0, 2), (1, 2)):
        after[_sum(a, b)] = (1 - omega) * found[_sum(a, b)]
    xx, yy, zz = (found[_sum(a, a)] for a in range(3))
    slope_x = -omega / 2 * (2 * xx - yy - zz) - (xx + yy + zz - 1) / 2
    slope_y = slope_x + 3 * omega / 2 * (xx - yy)
    slope_z = slope_x + 3 * omega / 2 * (xx - zz)
    x, y, z = u[0] ** 2 * slope_x, u[1] ** 2 * slope_y, u[2] ** 2 * slope_z
    x_y = (1 - omega) * (xx - yy) - 3 * (1 - omega / 2) * (x - y)
    x_z = (1 - omega) * (xx - zz) - 3 * (1 - omega / 2) * (x - z)
    trace = 1 - 3 * (1 - 1 / 2) * (x + y + z)
    after[2, 0, 0] = (trace + x_y + x_z) / 3
    after[0, 2, 0] = (trace - 2 * x_y + x_z) / 3
    after[0, 0, 2] = (trace + x_y - 2 * x_z) / 3
    relaxed = {orders[0]: 1.0 + 0.0 * rho}
    for n in orders[1:]:
        relaxed[n] = after[n] + _mixed(n, relaxed, after)
    return _populations({n: rho * relaxed[n] for n in orders}, lattice, xp)


def _sum(a: int, b: int) -> Order:
    """Return the exponents of c_a c_b."""
    return tuple(int(a == axis) + int(b == axis) for axis in range(3))


def _mixed(n: Order, moments: Mapping[Order, Array], cumulants_: Mapping[Order, Array]) -> Array:
    """Return the products of cumulants in mu_n: the sum of the definition without c_n."""
    j = next(axis for axis in range(3) if n[axis])
    less = _less(n, j)
    return sum(
        prod(comb(less[a], m[a]) for a in range(3)) * moments[m] * cumulants_[tuple(n[a] - m[a] for a in range(3))]
        for m in product(*(range(k + 1) for k in less))
        if any(m)
    )


COLLISIONS: Mapping[str, Callable[[Array, Case, ModuleType], Array]] = {
    "bgk": bgk,
    "trt": trt,
    "regularised": regularised,
    "mrt": central_moments,
    "cumulant": cumulants,
}
"""The formulas by the name of the collision."""
