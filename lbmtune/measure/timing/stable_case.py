"""Values of a case with which no flow diverges while it is timed."""

from __future__ import annotations

from dataclasses import replace

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Real3

_HIGHEST_RATE = 1.8


def stable_case(case: Case) -> Case:
    """Return the case with a tenth of its velocities and pressure differences, and a relaxation rate up to 1.8.

    These values are launch arguments, so the kernel and its speed are the same.
    """
    patches = (replace(p, velocity=_tenth(p.velocity), density=1 + (p.density - 1) / 10) for p in case.patches)
    return replace(
        case,
        relaxation_rate=min(case.relaxation_rate, _HIGHEST_RATE),
        wall_velocity=_tenth(case.wall_velocity),
        inlet_velocity=_tenth(case.inlet_velocity),
        outlet_density=1 + (case.outlet_density - 1) / 10,
        patches=tuple(patches),
    )


def _tenth(velocity: Real3) -> Real3:
    x, y, z = (u / 10 for u in velocity)
    return x, y, z
