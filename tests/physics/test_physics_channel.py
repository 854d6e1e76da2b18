"""Poiseuille flow between two resting walls, driven by a body force: the parabola, and the order of its error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import channel
from tests.support.kernels.physics import FP64, start, viscosity

PEAK = 0.05
WIDTHS = (6, 12, 24)


def _case(collision: str, cells: int, omega: float, magic: float, lattice: str = "d2q9") -> Case:
    """A channel of that many cells across whose peak velocity is PEAK."""
    flat = lattice == "d2q9"
    case = channel(lattice, collision, (8, cells, 1 if flat else 3), omega)
    return replace(case, magic=magic, force=(8 * viscosity(case) * PEAK / cells**2, 0.0, 0.0))


def _error(case: Case, scheme: str) -> float:
    """Largest deviation from the parabola in the steady state, relative to the peak."""
    cells = case.domain[1]
    simulation = start(case, replace(FP64, scheme=scheme))
    simulation.step(round(30 * cells**2 / (np.pi**2 * viscosity(case))))  # the slowest transient has decayed by e^-30
    _, velocity = simulation.macroscopic()
    distance = np.arange(cells) + 0.5  # from the wall, which lies half a cell outside
    parabola = case.force[0] / (2 * viscosity(case)) * distance * (cells - distance)
    expected = np.zeros_like(velocity)
    expected[0] = parabola[:, np.newaxis]
    return float(np.abs(velocity - expected).max() / PEAK)


@pytest.mark.parametrize(
    ("collision", "magic", "scheme", "lattice"),
    [
        ("bgk", 3 / 16, "pull", "d2q9"),
        ("trt", 1 / 4, "aa", "d2q9"),
        ("trt", 1 / 12, "aa", "d2q9"),
        ("regularised", 3 / 16, "pull", "d2q9"),
        ("mrt", 3 / 16, "pull", "d2q9"),
        ("cumulant", 3 / 16, "pull", "d3q27"),
    ],
)
def test_error_is_of_second_order(collision: str, magic: float, scheme: str, lattice: str) -> None:
    errors = [_error(_case(collision, cells, 1.25, magic, lattice), scheme) for cells in WIDTHS]
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    np.testing.assert_allclose(orders, 2.0, atol=0.01)


@pytest.mark.parametrize(
    ("lattice", "omega", "scheme"),
    [("d2q9", 0.8, "aa"), ("d2q9", 1.6, "aa"), ("d3q19", 1.0, "esoteric-twist")],
)
def test_trt_with_magic_three_sixteenths_is_exact(lattice: str, omega: float, scheme: str) -> None:
    """The wall then lies half-way between the nodes for every viscosity (Ginzburg, d'Humieres 2003)."""
    assert _error(_case("trt", 16, omega, 3 / 16, lattice), scheme) < 1e-11
