"""The oracle of a part is a part of the oracle, and its matrices are the sums that define them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from lbmtune.catalogue.boundaries.second_order import Walls
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.measure.verification import oracle

DOMAIN = (7, 6, 5)
LID = cavity("d3q19", "bgk", DOMAIN, 1.2)
CASES = {
    "periodic": (box("d3q19", "trt", DOMAIN), Walls.HALF_WAY),
    "lid": (LID, Walls.HALF_WAY),
    "periodic along z": (replace(LID, faces=(*LID.faces[:4], "periodic", "periodic")), Walls.HALF_WAY),
    "porous": (replace(box("d3q27", "bgk", DOMAIN), geometry="blocks:fraction=0.3"), Walls.HALF_WAY),
    "implicit": (replace(box("d3q19", "bgk", DOMAIN), geometry="blocks:fraction=0.3"), Walls.IMPLICIT),
    "interpolated": (
        replace(box("d3q19", "bgk", DOMAIN), geometry="sphere:diameter=3.5", walls="interpolated"),
        Walls.INTERPOLATED,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_step_of_a_part_is_a_part_of_the_step(name: str) -> None:
    """Of each part, be it inside, at a rim or across one: what comes over a periodic rim comes to either."""
    case, walls = CASES[name]
    f = oracle.random_state(case)
    after = oracle.step(f, case, walls=walls)
    assert len(np.unique(after)) > 0.9 * after.size  # no two cells are alike
    for x, y, z in product(*((range(n), range(1, n - 1), range(2), range(n - 2, n)) for n in DOMAIN)):
        found = oracle.step(f, case, walls=walls, part=(x, y, z))
        np.testing.assert_array_equal(found, after[:, z.start : z.stop, y.start : y.stop, x.start : x.stop])


@pytest.mark.parametrize("lattice", ["d2q9", "d3q19", "d3q27"])
@pytest.mark.parametrize("force", [(0.0, 0.0, 0.0), (2e-3, -1e-3, 0.0)])
def test_regularised_departures_are_those_of_the_definition(lattice: str, force: tuple[float, float, float]) -> None:
    case = replace(box(lattice, "regularised", (5, 3, 1 if lattice == "d2q9" else 2), 1.3), force=force)
    f = oracle.random_state(case)
    np.testing.assert_allclose(oracle.collide(f, case), regularised(f, case), rtol=0, atol=1e-15)


def regularised(f: np.ndarray, case: Case) -> np.ndarray:
    """Latt and Chopard 2006 with the force of Guo: sums over directions and axes, cell by cell."""
    directions = [
        (np.array(c, dtype=float), float(w)) for c, w in zip(case.stencil.velocities, case.stencil.weights, strict=True)
    ]
    after, force, omega = np.empty_like(f), np.array(case.force), case.relaxation_rate
    for cell in np.ndindex(f.shape[1:]):
        rho, momentum, first, second = 0.0, force / 2, np.zeros(3), np.zeros((3, 3))
        for i, (c, _) in enumerate(directions):
            rho, momentum = rho + f[i, *cell], momentum + f[i, *cell] * c
        u = momentum / rho
        rest = [w * rho * (1 + 3 * c @ u + 4.5 * (c @ u) ** 2 - 1.5 * u @ u) for c, w in directions]
        for i, (c, _) in enumerate(directions):
            first += (f[i, *cell] - rest[i]) * c
            second += (f[i, *cell] - rest[i]) * np.outer(c, c)
        for i, (c, w) in enumerate(directions):
            departure = w * (3 * c @ first + 4.5 * ((np.outer(c, c) - np.eye(3) / 3) * second).sum())
            source = w * (3 * (c - u) + 9 * (c @ u) * c) @ force
            after[i, *cell] = rest[i] + (1 - omega) * departure + (1 - omega / 2) * source
    return after
