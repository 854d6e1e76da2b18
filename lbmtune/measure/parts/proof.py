"""Prove parts of a domain against one device: the same random state, some steps, and the populations of both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lbmtune.catalogue.boundaries.cut_links import solid_in, whole
from lbmtune.measure.verification.oracle import random_state
from lbmtune.runtime.parts.decomposed import DecomposedSimulation
from lbmtune.runtime.simulation import Simulation

_ROUNDING = 64
"""Units in the last place by which sums may differ that are added up in another order."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The differences between parts and one device after some steps.

    different: share of the populations of fluid cells that are not equal bit for bit, in the process that has most of
    them; worst: largest difference; bound: largest one by rounding; NaN where poison was read.
    """

    steps: int
    different: float
    worst: float
    bound: float

    @property
    def passed(self) -> bool:
        """Return whether all populations are equal to rounding."""
        return self.worst <= self.bound


def agreement(alone: Simulation, parts: DecomposedSimulation, exchanges: int = 4) -> Agreement:
    """Set one device and parts to the same random state, advance both, and compare them.

    exchanges: after which they are compared. Of parts that other processes have nothing is compared.
    """
    case, state = parts.decomposition.case, random_state(parts.decomposition.case)
    steps = exchanges * parts.decomposition.steps
    with parts.devices[0].current():
        alone.initialise(alone.xp.asarray(state))
        alone.step(steps)
        expected = alone.populations()
        expected = expected if alone.xp is np else alone.xp.asnumpy(expected)
    parts.initialise(state)
    parts.step(steps)
    fluid = parts.held & ~solid_in(case, whole(case.domain))
    apart = np.abs(parts.populations() - expected)[:, fluid]
    return Agreement(
        steps=steps,
        different=parts.largest(float((apart != 0).mean())),
        worst=parts.largest(float(apart.max())),
        bound=_ROUNDING * float(np.finfo(alone.program.config.computed.dtype).eps),
    )
