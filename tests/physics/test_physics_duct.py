"""Flow through a square duct of solid cells against its series, with kernels that read flags."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lbmtune.catalogue.problem.flows import porous
from lbmtune.catalogue.problem.geometry import solid
from tests.support.kernels.physics import FP64, start, viscosity

FORCE = 1e-6


def _series(edge: int, nu: float) -> np.ndarray:
    """Velocity (edge, edge) at the cell centres. Source: White, Viscous Fluid Flow, 1991, equation 3-48."""
    a = edge / 2
    place = (np.arange(edge) + 0.5 - a) / a
    y, z = place[:, None], place[None, :]
    total = np.zeros((edge, edge))
    for i in range(1, 80, 2):
        half = i * np.pi / 2
        total += (-1) ** ((i - 1) // 2) / i**3 * (1 - np.cosh(half * z) / np.cosh(half)) * np.cos(half * y)
    return 16 * a**2 * FORCE / (nu * np.pi**3) * total


def _error(edge: int, axis: str, scheme: str) -> float:
    """Relative L2 error of the steady profile."""
    sides = dict.fromkeys("xyz", edge + 2) | {axis: 8}
    domain = (max(8, -(-sides["x"] // 4) * 4), sides["y"], sides["z"])
    along = "xyz".index(axis)
    force = tuple(FORCE * (n == along) for n in range(3))
    case = porous("d3q19", "trt", domain, 1.0, f"ducts:sizes={edge}:axis={axis}", (force[0], force[1], force[2]))
    running = start(case, replace(FP64, flags="memory", scheme=scheme))
    running.step(2 * round(3 * edge**2))
    across = (~solid(case)).take(0, axis=2 - along)
    plane = running.macroscopic()[1][along].take(3, axis=2 - along)[across].reshape(edge, edge)
    expected = _series(edge, viscosity(case))
    return float(np.linalg.norm(plane - expected) / np.linalg.norm(expected))


def test_the_error_falls_with_the_square_of_the_cell() -> None:
    coarse, fine = _error(8, "x", "pull"), _error(16, "x", "pull")
    assert fine < 0.01
    assert coarse / fine == pytest.approx(4, rel=0.15)


@pytest.mark.parametrize("axis", "yz")
def test_ducts_along_the_other_axes_flow_alike(axis: str) -> None:
    assert _error(8, axis, "pull") == pytest.approx(_error(8, "x", "pull"), rel=1e-6)
