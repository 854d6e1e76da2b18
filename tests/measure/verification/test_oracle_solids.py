"""The oracle with solid cells against a loop over cells and links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, porous
from lbmtune.catalogue.problem.geometry import solid
from lbmtune.measure.verification import oracle

CASES = [
    porous("d2q9", "bgk", (6, 5, 1), 1.3, "blocks:fraction=0.4"),
    porous("d3q19", "trt", (4, 5, 3), 1.3, "blocks:fraction=0.3", force=(0.0, 1e-3, 0.0)),
    replace(cavity("d3q27", "bgk", (4, 5, 3), 1.3), geometry="blocks:fraction=0.3"),
]


def _pushed(g: np.ndarray, case: Case) -> np.ndarray:
    """Every population of a fluid cell goes along its link, or comes back."""
    out, rock, velocities = np.zeros_like(g), solid(case), case.stencil.velocities
    for i, c in enumerate(velocities):
        for z, y, x in zip(*np.nonzero(~rock), strict=True):
            kinds, there = [], []
            for at, move, n, axis in zip((x, y, z), c, case.domain, range(3), strict=True):
                there.append((at + move) % n)
                if not 0 <= at + move < n and case.faces[2 * axis + (move > 0)] != "periodic":
                    kinds.append(case.faces[2 * axis + (move > 0)])
            if not kinds and not rock[there[2], there[1], there[0]]:
                out[i, there[2], there[1], there[0]] = g[i, z, y, x]
                continue
            gain = 6 * float(case.stencil.weights[i]) * np.dot(c, case.wall_velocity) if "moving" in kinds else 0.0
            out[case.stencil.opposite[i], z, y, x] = g[i, z, y, x] - gain
    return out


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.lattice)
def test_three_steps_against_a_loop_over_cells_and_links(case: Case) -> None:
    fluid = ~solid(case)
    state = looped = oracle.random_state(case)
    for _ in range(3):
        state, looped = oracle.step(state, case), _pushed(oracle.collide(looped, case), case)
        looped[:, ~fluid] = 1.0
        np.testing.assert_allclose(state[:, fluid], looped[:, fluid], rtol=0, atol=1e-15)


def test_the_mass_of_the_fluid_stays() -> None:
    case = replace(box("d3q19", "bgk", (7, 6, 5)), geometry="blocks:fraction=0.5")
    fluid = ~solid(case)
    state = oracle.random_state(case)
    before = state[:, fluid].sum()
    for _ in range(20):
        state = oracle.step(state, case)
    assert state[:, fluid].sum() == pytest.approx(before, rel=1e-13)
    assert np.isfinite(state).all()
