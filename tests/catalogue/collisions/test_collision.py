"""The symbolic collision operators against the plain NumPy oracle, and the properties that follow from physics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
import sympy

from lbmtune.catalogue.collisions import COLLISIONS, collision
from lbmtune.catalogue.collisions.mrt import Rates, relaxing
from lbmtune.catalogue.collisions.operator import Collision, Parameters, assignments, population, relaxed, wall_gain
from lbmtune.catalogue.problem.case import Case, collides
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.program import omega_minus
from lbmtune.errors import InputError
from lbmtune.lattice import LATTICES, lattice
from lbmtune.measure.verification import oracle, verify

PAIRS = [(stencil, operator) for stencil, operator in product(LATTICES, COLLISIONS) if collides(operator, stencil)]
COMBINATIONS = [(*pair, forced) for pair in PAIRS for forced in (False, True)]
each_operator = pytest.mark.parametrize(("stencil", "operator", "forced"), COMBINATIONS)
SCALE = 2.0**15
MAXWELLIAN = ("mrt", "cumulant")
"""Operators whose equilibrium is no polynomial of second order."""
ONE_RATE = replace(collision("mrt"), steps=relaxing(Rates(bulk=Parameters.omega, higher=Parameters.omega)))


def _case(stencil: str, operator: str, forced: bool) -> Case:
    flat = stencil == "d2q9"
    case = box(stencil, operator, (5, 4, 1 if flat else 3), relaxation_rate=1.7)
    return replace(case, magic=0.11, force=(2e-3, -1e-3, 0.0 if flat else 3e-3)) if forced else case


@cache
def _compiled(stencil: str, operator: Collision, forced: bool) -> Callable[..., Any]:
    """The assignments, executed in their order: (populations..., parameters...) -> relaxed populations."""
    lattice_ = lattice(stencil)
    inputs = [population(i) for i in range(lattice_.q)]
    parameters = [Parameters.omega, Parameters.omega_minus, Parameters.unit, *Parameters.force]
    outputs = [relaxed(i) for i in range(lattice_.q)]
    lines = [f"    {name} = {sympy.pycode(value)}" for name, value in assignments(operator, lattice_, forced)]
    arguments = ", ".join(map(str, inputs + parameters))
    text = "\n".join([f"def run({arguments}):", *lines, f"    return [{', '.join(map(str, outputs))}]"])
    scope: dict[str, Any] = {}
    exec(text, scope)
    return scope["run"]  # type: ignore[no-any-return]


def _relax(f: np.ndarray, case: Case, scale: float = 1.0, operator: Collision | None = None) -> np.ndarray:
    """Unshifted populations in and out; inside, deviations times `scale`, as a kernel stores them."""
    weights = np.array([float(w) for w in case.stencil.weights]).reshape(-1, 1, 1, 1)
    return _relax_deviations((f - weights) * scale, case, scale, operator) / scale + weights


def _relax_deviations(h: np.ndarray, case: Case, scale: float = 1.0, operator: Collision | None = None) -> np.ndarray:
    run = _compiled(case.lattice, operator or collision(case.collision), case.forced)
    force = [scale * value for value in case.force]
    return np.array(run(*h, case.relaxation_rate, omega_minus(case), scale, *force))


@each_operator
def test_operator_equals_the_oracle(stencil: str, operator: str, forced: bool) -> None:
    case = _case(stencil, operator, forced)
    f = oracle.random_state(case)
    np.testing.assert_allclose(_relax(f, case), oracle.collide(f, case), rtol=0, atol=2e-15)


@each_operator
def test_operator_is_homogeneous_in_the_storage_scale(stencil: str, operator: str, forced: bool) -> None:
    """Scaling by a power of two changes no mantissa: the result is the same to the last bit."""
    case = _case(stencil, operator, forced)
    f = oracle.random_state(case)
    np.testing.assert_array_equal(_relax(f, case, SCALE), _relax(f, case))


@each_operator
def test_mass_is_kept_and_momentum_gains_the_force(stencil: str, operator: str, forced: bool) -> None:
    case = _case(stencil, operator, forced)
    f = oracle.random_state(case)
    change = _relax(f, case) - f
    velocities = np.array(case.stencil.velocities, dtype=float)
    np.testing.assert_allclose(change.sum(axis=0), 0.0, atol=5e-16)
    gained = np.tensordot(velocities.T, change, axes=1)
    expected = np.broadcast_to(np.reshape(case.force, (3, 1, 1, 1)), gained.shape)
    np.testing.assert_allclose(gained, expected, atol=5e-16)


@pytest.mark.parametrize(("stencil", "operator"), PAIRS)
def test_equilibrium_is_left_alone(stencil: str, operator: str) -> None:
    case = _case(stencil, operator, forced=False)
    f = _maxwellian(case) if operator in MAXWELLIAN else oracle.equilibrium(*_flow(case), case.stencil)
    np.testing.assert_allclose(_relax(f, case), f, rtol=0, atol=1e-15)


def _flow(case: Case) -> tuple[np.ndarray, np.ndarray]:
    rng, d = np.random.default_rng(3), case.stencil.dimensions
    u = rng.uniform(-0.1, 0.1, (3, *case.domain[::-1]))
    u[d:] = 0.0
    return 1 + rng.uniform(-0.05, 0.05, case.domain[::-1]), u


def _maxwellian(case: Case, rho: Any = None, u: Any = None) -> np.ndarray:
    """The populations whose moments of all exponents of the lattice are those of the Maxwellian, u and u^2 + 1/3."""
    if u is None:
        rho, u = _flow(case)
    c = np.array(case.stencil.velocities, float)
    orders = c.astype(int) % 3
    matrix = np.stack([np.prod(c**n, axis=1) for n in orders])
    along = np.stack([np.ones_like(u), u, u * u + 1 / 3])
    moments = np.stack([rho * np.prod([along[n[a], a] for a in range(3)], axis=0) for n in orders])
    return np.tensordot(np.linalg.inv(matrix), moments, 1)


@each_operator
def test_single_precision_rounds_deviations_only(stencil: str, operator: str, forced: bool) -> None:
    """A state 1e-4 from rest comes out with the error that verification allows: small beside 1e-4, not beside one."""
    case = replace(_case(stencil, operator, forced), domain=(20, 10, 1 if stencil == "d2q9" else 10))
    case = replace(case, force=(1e-6, -2e-6, 0.0)) if forced else case
    weights = np.array([float(w) for w in case.stencil.weights]).reshape(-1, 1, 1, 1)
    h = np.float32(1e-4 * weights * np.random.default_rng(8).uniform(-1, 1, (case.stencil.q, *case.domain[::-1])))
    single, double = _relax_deviations(h, case), _relax_deviations(h.astype(np.float64), case)
    assert single.dtype == np.float32
    roundings = verify.STORED_ROUNDINGS + verify.COMPUTED_ROUNDINGS
    assert abs(single - double).max() < roundings * 2.0**-24 * 1e-4 * weights.max()


@pytest.mark.parametrize("stencil", LATTICES)
def test_moments_with_one_rate_relax_to_the_maxwellian(stencil: str) -> None:
    """With every rate omega, central moments are BGK with the Maxwellian as equilibrium, at any velocity."""
    case = _case(stencil, "mrt", forced=False)
    f = oracle.random_state(case)
    rho, u = oracle.density(f), oracle.velocity(f, case)
    expected = f - case.relaxation_rate * (f - _maxwellian(case, rho, u))
    np.testing.assert_allclose(_relax(f, case, operator=ONE_RATE), expected, rtol=0, atol=2e-15)


@pytest.mark.parametrize("stencil", LATTICES)
@pytest.mark.parametrize("forced", [False, True])
def test_moments_with_one_rate_are_bgk_at_rest(stencil: str, forced: bool) -> None:
    """Where u = 0, with half the force, the Maxwellian and its force are the second-order ones."""
    case = _case(stencil, "mrt", forced)
    f, c = oracle.random_state(case), np.array(case.stencil.velocities, float)
    momentum = np.tensordot(c.T, f, 1) + np.reshape(case.force, (3, 1, 1, 1)) / 2
    weights = np.array([float(w) for w in case.stencil.weights]).reshape(-1, 1, 1, 1)
    f -= 3 * weights * np.tensordot(c, momentum, 1)
    bgk = _relax(f, replace(case, collision="bgk"))
    np.testing.assert_allclose(_relax(f, case, operator=ONE_RATE), bgk, rtol=0, atol=2e-15)
    assert abs(_relax(f, case) - bgk).max() > 1e-4


@pytest.mark.parametrize("stencil", LATTICES)
@pytest.mark.parametrize("forced", [False, True])
def test_trt_with_equal_rates_is_bgk(stencil: str, forced: bool) -> None:
    case = _case(stencil, "trt", forced)
    case = replace(case, magic=(1 / case.relaxation_rate - 0.5) ** 2)
    f = oracle.random_state(case)
    np.testing.assert_allclose(_relax(f, case), _relax(f, replace(case, collision="bgk")), rtol=0, atol=2e-15)


@pytest.mark.parametrize("stencil", LATTICES)
@pytest.mark.parametrize("forced", [False, True])
def test_regularised_is_bgk_where_only_second_moments_depart_from_equilibrium(stencil: str, forced: bool) -> None:
    """Such states are what it makes: once regularised, with omega = 1 and no force, they stay themselves."""
    case = _case(stencil, "regularised", forced)
    f = _with_second_moments(case)
    np.testing.assert_allclose(_relax(f, case), _relax(f, replace(case, collision="bgk")), rtol=0, atol=2e-15)
    noisy = oracle.random_state(case)
    assert abs(_relax(noisy, case) - _relax(noisy, replace(case, collision="bgk"))).max() > 1e-4


def _with_second_moments(case: Case) -> np.ndarray:
    """An equilibrium plus w (9/2 (c c - I/3) : N - 3 c.F/2) with any symmetric N."""
    rng, lattice_ = np.random.default_rng(4), case.stencil
    d, cells = lattice_.dimensions, case.domain[::-1]
    u = np.zeros((3, *cells))
    u[:d] = rng.uniform(-0.1, 0.1, (d, *cells))
    f = oracle.equilibrium(1 + rng.uniform(-0.05, 0.05, cells), u, lattice_)
    stress = rng.uniform(-0.02, 0.02, (3, 3, *cells))
    for i, c in enumerate(np.array(lattice_.velocities, float)):
        tensor = 4.5 * (np.outer(c, c) - np.eye(3) / 3)[:d, :d]
        odd = 1.5 * c @ np.array(case.force)
        f[i] += float(lattice_.weights[i]) * (np.tensordot(tensor, (stress + stress.swapaxes(0, 1))[:d, :d], 2) - odd)
    return f


@pytest.mark.parametrize("forced", [False, True])
def test_cumulants_with_omega_one_are_the_maxwellian_of_the_moved_fluid(forced: bool) -> None:
    """With every rate one nothing but mass and momentum is left; the correction of order u^2 is its only addition."""
    case = replace(_case("d3q27", "cumulant", forced), relaxation_rate=1.0)
    still = _without_stress(oracle.random_state(case), case)
    rho = oracle.density(still)
    moved = oracle.velocity(still, case) + np.reshape(case.force, (3, 1, 1, 1)) / (2 * rho)
    np.testing.assert_allclose(_relax(still, case), _maxwellian(case, rho, moved), rtol=0, atol=1e-15)


def _without_stress(f: np.ndarray, case: Case) -> np.ndarray:
    """The state with the second central moments, about its own mean, of the Maxwellian; higher ones stay noise."""
    free = replace(case, force=(0.0, 0.0, 0.0))
    rho, u = oracle.density(f), oracle.velocity(f, free)
    weights = np.array([float(w) for w in case.stencil.weights])
    c = np.array(case.stencil.velocities, float)
    excess = np.einsum("i...,ia,ib->ab...", f - _maxwellian(case, rho, u), c, c)
    tensors = 4.5 * (np.einsum("ia,ib->iab", c, c) - np.eye(3) / 3)
    return f - np.einsum("i,iab,ab...->i...", weights, tensors, excess)


@pytest.mark.parametrize("forced", [False, True])
def test_cumulants_leave_a_gaussian(forced: bool) -> None:
    """Without cumulants above the second, all central moments are sums over pairings of covariances (Isserlis 1918)."""
    case = _case("d3q27", "cumulant", forced)
    g = _relax(oracle.random_state(case), case)
    rho, c = g.sum(axis=0), np.array(case.stencil.velocities, float)
    relative = c.reshape(27, 3, 1, 1, 1) - np.einsum("i...,ia->a...", g, c) / rho
    for order in product(range(3), repeat=3):
        found = (g * np.prod([relative[:, a] ** n for a, n in enumerate(order)], axis=0)).sum(axis=0) / rho
        mentions = [a for a in range(3) for _ in range(order[a])]
        covariance = np.einsum("i...,ia...,ib...->ab...", g, relative, relative) / rho
        np.testing.assert_allclose(found, _pairings(mentions, covariance), rtol=0, atol=1e-15)


def _pairings(mentions: list[int], covariance: np.ndarray) -> Any:
    """The sum over all ways to pair the mentions of the products of their covariances."""
    if not mentions:
        return 1.0
    first, *others = mentions
    return sum(
        (
            covariance[first, other] * _pairings([*others[:k], *others[k + 1 :]], covariance)
            for k, other in enumerate(others)
        ),
        start=0.0 * covariance[0, 0],
    )


@pytest.mark.parametrize("stencil", LATTICES)
def test_wall_gain_is_odd_and_sums_to_the_wall_momentum(stencil: str) -> None:
    """Sum over i of c_i 6 w_i c_i . u = 2 u (density one, c_s^2 = 1/3)."""
    lattice_ = lattice(stencil)
    gains = [wall_gain(lattice_, i) for i in range(lattice_.q)]
    assert all(sympy.expand(gains[i] + gains[o]) == 0 for i, o in enumerate(lattice_.opposite))
    for axis in range(lattice_.dimensions):
        total = sum(c[axis] * gain for c, gain in zip(lattice_.velocities, gains, strict=True))
        assert sympy.expand(total - 2 * Parameters.wall[axis]) == 0


@each_operator
def test_every_name_is_assigned_once_before_its_use(stencil: str, operator: str, forced: bool) -> None:
    lattice_ = lattice(stencil)
    known = {population(i) for i in range(lattice_.q)} | {Parameters.unit}
    known |= {sympy.Symbol(name) for name in collision(operator).parameters}
    known |= set(Parameters.force) if forced else set()
    for name, value in assignments(collision(operator), lattice_, forced):
        assert name not in known
        assert value.free_symbols <= known
        known.add(name)
    assert {relaxed(i) for i in range(lattice_.q)} <= known


def test_unknown_operator_is_bad_input() -> None:
    with pytest.raises(InputError, match="unknown collision 'bgg'; did you mean 'bgk'"):
        collision("bgg")
