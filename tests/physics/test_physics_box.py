"""Taylor-Green vortices in a periodic box decay at the rate that the viscosity says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, channel, initial_flow
from lbmtune.runtime import Simulation
from tests.support.kernels.physics import FP64, start, viscosity

N, UNIFORM = 32, 8
"""Cells along the axes of the vortices, and along the third one, where nothing changes."""
SPEED = 0.02
SETTLE_STEPS, DECAY_STEPS = 50, 150

# (lattice, collision, scheme, axes of the vortices)
RUNS = [
    ("d2q9", "bgk", "pull", (0, 1)),
    ("d2q9", "trt", "aa", (0, 1)),
    ("d3q19", "bgk", "esoteric-pull", (0, 1)),
    ("d3q19", "bgk", "esoteric-pull", (1, 2)),
    ("d3q19", "bgk", "esoteric-pull", (2, 0)),
    ("d3q19", "trt", "esoteric-twist", (1, 2)),
    ("d3q27", "bgk", "push", (2, 0)),
    ("d2q9", "regularised", "pull", (0, 1)),
    ("d3q19", "mrt", "aa", (1, 2)),
    ("d3q27", "cumulant", "pull", (2, 0)),
]


def _vortices(case: Case, axes: tuple[int, int]) -> list[np.ndarray]:
    """u_a = U cos(k a) sin(k b), u_b = -U sin(k a) cos(k b), constant along the third axis."""
    z, y, x = np.indices(case.domain[::-1])
    a, b = (2 * np.pi * (x, y, z)[axis] / N for axis in axes)
    velocity = [np.zeros_like(a) for _ in range(3)]
    velocity[axes[0]] = SPEED * np.cos(a) * np.sin(b)
    velocity[axes[1]] = -SPEED * np.sin(a) * np.cos(b)
    return velocity


def _amplitude(simulation: Simulation) -> float:
    """Root of the kinetic energy."""
    _, velocity = simulation.macroscopic()
    return float(np.sqrt((velocity**2).sum()))


@pytest.mark.parametrize(("lattice", "collision", "scheme", "axes"), RUNS)
@pytest.mark.parametrize("omega", [1.2, 1.7])
def test_decay_rate(lattice: str, collision: str, scheme: str, axes: tuple[int, int], omega: float) -> None:
    """Both components decay as exp(-2 nu k^2 t); an exact solution of the Navier-Stokes equations (Taylor 1923)."""
    nx, ny, nz = (N if axis in axes else UNIFORM for axis in range(3))
    case = box(lattice, collision, (nx, ny, 1 if lattice == "d2q9" else nz), omega)
    simulation = start(case, replace(FP64, scheme=scheme), _vortices(case, axes))
    simulation.step(SETTLE_STEPS)
    before = _amplitude(simulation)
    simulation.step(DECAY_STEPS)
    rate = np.log(before / _amplitude(simulation)) / DECAY_STEPS
    assert rate == pytest.approx(2 * viscosity(case) * (2 * np.pi / N) ** 2, rel=0.01)


@pytest.mark.parametrize(("nx", "ny"), [(32, 32), (64, 32)])
def test_the_initial_flow_of_a_flat_box_is_the_exact_solution(nx: int, ny: int) -> None:
    """Taylor 1923: the velocities keep their shape and decay as exp(-nu (k_x^2 + k_y^2) t)."""
    case = box("d2q9", "trt", (nx, ny, 1), 1.6)
    density, velocity = initial_flow(case)
    simulation = start(case, FP64, velocity, density)
    simulation.step(SETTLE_STEPS)
    before = simulation.macroscopic()[1]
    simulation.step(DECAY_STEPS)
    rate = viscosity(case) * ((2 * np.pi / nx) ** 2 + (2 * np.pi / ny) ** 2)
    expected = before * np.exp(-rate * DECAY_STEPS)
    np.testing.assert_allclose(simulation.macroscopic()[1], expected, atol=0.01 * np.abs(expected).max())


@pytest.mark.parametrize("domain", [(32, 24, 1), (32, 24, 40)])
def test_the_initial_flow_of_a_box_has_no_divergence_and_balances_its_pressure(domain: tuple[int, int, int]) -> None:
    """div u = 0, and the pressure solves laplace p = - d_a u_b d_b u_a; derivatives in Fourier space are exact here."""
    case = box("d2q9" if domain[2] == 1 else "d3q19", "bgk", domain)
    rho, u = initial_flow(case)
    waves = [2j * np.pi * np.fft.fftfreq(n) for n in domain]
    k = [wave.reshape([-1 if axis == 2 - a else 1 for axis in range(3)]) for a, wave in enumerate(waves)]

    def derivative(field: np.ndarray, axis: int) -> np.ndarray:
        return np.fft.ifftn(k[axis] * np.fft.fftn(field)).real

    gradient = [[derivative(u[b], a) for b in range(3)] for a in range(3)]
    np.testing.assert_allclose(sum(gradient[a][a] for a in range(3)), 0.0, atol=1e-15)
    laplacian = sum(derivative(derivative(rho / 3, a), a) for a in range(3))
    source = sum(gradient[a][b] * gradient[b][a] for a in range(3) for b in range(3))
    np.testing.assert_allclose(laplacian, -source, atol=1e-15)


@pytest.mark.parametrize("case", [cavity("d2q9", "bgk", (8, 6, 1), 1.2), channel("d3q19", "bgk", (8, 6, 4), 1.2)])
def test_other_flows_start_from_rest(case: Case) -> None:
    rho, velocity = initial_flow(case)
    assert rho.shape == case.domain[::-1]
    assert velocity.shape == (3, *rho.shape)
    assert (rho == 1).all()
    assert not velocity.any()


def test_mass_and_momentum_are_kept() -> None:
    case = box("d3q19", "trt", (N, 7, 5), 1.9)
    rng = np.random.default_rng(2)
    simulation = start(case, replace(FP64, scheme="aa"), rng.uniform(-0.05, 0.05, (3, 5, 7, N)))
    rho, velocity = simulation.macroscopic()
    mass, momentum = rho.sum(), (rho * velocity).sum(axis=(1, 2, 3))
    simulation.step(101)
    rho, velocity = simulation.macroscopic()
    assert rho.sum() == pytest.approx(mass, rel=1e-13)
    np.testing.assert_allclose((rho * velocity).sum(axis=(1, 2, 3)), momentum, atol=1e-11)
