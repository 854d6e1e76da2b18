"""Plane Poiseuille flow from a velocity inlet to a pressure outlet: far from both, the parabola and its pressure."""

from __future__ import annotations

import numpy as np
import pytest

from lbmtune.catalogue.problem.flows import pipe
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.textbook_boundaries import bounded
from tests.support.kernels.physics import viscosity

CELLS, LENGTH, INLET = 4, 24, 1e-5


@pytest.mark.parametrize("lattice", ["d2q9", "d3q19", pytest.param("d3q27", marks=pytest.mark.slow)])
def test_uniform_inlet_becomes_the_parabola(lattice: str) -> None:
    """TRT with magic 3/16 has no error of its own; what is left is compressibility, of the order of the speed."""
    case = pipe(lattice, "trt", (LENGTH, CELLS, 1), 0.8, inlet=INLET)
    x, uniform = np.arange(LENGTH), np.zeros((3, 1, CELLS, LENGTH))
    uniform[0] = INLET
    # close to the pressure at the end, which takes longest to settle
    pressure = np.broadcast_to(12 * viscosity(case) * INLET / CELLS**2 * (LENGTH - 1 - x), uniform.shape[1:])
    f = oracle.equilibrium(1 + 3 * pressure, uniform, case.stencil)
    for _ in range(1500):
        f = oracle.step(f, case)
    f = bounded(f, case)
    density = oracle.density(f)[0]
    momentum = oracle.velocity(f, case)[:, 0] * density
    distance = np.arange(CELLS) + 0.5
    parabola = distance * (CELLS - distance)
    curvature = INLET * CELLS / parabola.sum()
    middle = LENGTH // 2
    np.testing.assert_allclose(momentum[0, :, middle] / INLET, curvature * parabola / INLET, atol=2e-4)
    flux = momentum[0].sum(axis=0)
    np.testing.assert_allclose(flux, flux[0], rtol=1e-6)
    curvature *= flux[0] / (INLET * CELLS)
    np.testing.assert_allclose(momentum[0, :, middle], curvature * parabola, rtol=1e-6)
    np.testing.assert_allclose(momentum[1:, :, middle], 0.0, atol=1e-6 * INLET)
    fall = (density[:, middle - 1] - density[:, middle + 1]) / 2 / 3
    np.testing.assert_allclose(fall, 2 * viscosity(case) * curvature, rtol=1e-5)
    np.testing.assert_allclose(density[:, -1], 1.0, rtol=1e-14)
