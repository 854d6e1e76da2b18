"""The lid-driven cavity at Reynolds number 100 against the velocities of Ghia et al. on its centre lines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lbmtune.catalogue.problem.flows import cavity
from tests.support.kernels.physics import FP64, relaxation_rate, start

N, LID, REYNOLDS = 96, 0.1, 100
CROSSINGS = 20  # times that the lid moves by the width of the cavity

# Ghia, Ghia, Shin, J. Comput. Phys. 48 (1982) 387-411, tables I and II, Re = 100
U_ALONG_Y = [
    (0.0000, 0.00000),
    (0.0547, -0.03717),
    (0.0625, -0.04192),
    (0.0703, -0.04775),
    (0.1016, -0.06434),
    (0.1719, -0.10150),
    (0.2813, -0.15662),
    (0.4531, -0.21090),
    (0.5000, -0.20581),
    (0.6172, -0.13641),
    (0.7344, 0.00332),
    (0.8516, 0.23151),
    (0.9531, 0.68717),
    (0.9609, 0.73722),
    (0.9688, 0.78871),
    (0.9766, 0.84123),
    (1.0000, 1.00000),
]
V_ALONG_X = [
    (0.0000, 0.00000),
    (0.0625, 0.09233),
    (0.0703, 0.10091),
    (0.0781, 0.10890),
    (0.0938, 0.12317),
    (0.1563, 0.16077),
    (0.2266, 0.17507),
    (0.2344, 0.17527),
    (0.5000, 0.05454),
    (0.8047, -0.24533),
    (0.8594, -0.22445),
    (0.9063, -0.16914),
    (0.9453, -0.10313),
    (0.9531, -0.08864),
    (0.9609, -0.07391),
    (0.9688, -0.05906),
    (1.0000, 0.00000),
]


def _deviation(profile: np.ndarray, walls: tuple[float, float], table: list[tuple[float, float]]) -> float:
    """Largest distance from a table; cell centres lie at (i + 1/2) / N, the walls at 0 and 1."""
    centres = (np.arange(N) + 0.5) / N
    places, values = np.transpose(table)
    found = np.interp(places, [0.0, *centres, 1.0], [walls[0], *profile, walls[1]])
    return float(np.abs(found - values).max())


@pytest.mark.parametrize(("collision", "scheme"), [("bgk", "aa"), ("trt", "esoteric-pull")])
def test_centre_lines(collision: str, scheme: str) -> None:
    case = cavity("d2q9", collision, (N, N, 1), relaxation_rate(LID * N / REYNOLDS), LID)
    simulation = start(case, replace(FP64, scheme=scheme))
    simulation.step(round(CROSSINGS * N / LID))
    _, velocity = simulation.macroscopic()
    u, v = velocity[:2, 0] / LID
    middle = slice(N // 2 - 1, N // 2 + 1)  # the centre lines run between two cells
    assert _deviation(u[:, middle].mean(axis=1), (0.0, 1.0), U_ALONG_Y) < 0.02
    assert _deviation(v[middle].mean(axis=0), (0.0, 0.0), V_ALONG_X) < 0.02
