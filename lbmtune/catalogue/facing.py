"""Launch arguments of faces whose cells complete what arrives over them; known without SymPy."""

from __future__ import annotations

from lbmtune.catalogue.case import Case

INLET = ("inlet_x", "inlet_y", "inlet_z")
EXCESS = "excess"
"""Density of 'pressure' faces less one, in storage units."""


def boundary_scalars(case: Case) -> tuple[str, ...]:
    """Names of those that the faces of a case use, but for the force."""
    kinds = {kind for _, kind in case.local_faces}
    inlet = INLET[: case.stencil.dimensions] if "velocity" in kinds else ()
    return (*inlet, *((EXCESS,) if "pressure" in kinds else ()))


def boundary_values(case: Case, unit: float) -> dict[str, float]:
    """Their values in storage units; velocities have none."""
    return {**dict(zip(INLET, case.inlet_velocity, strict=True)), EXCESS: (case.outlet_density - 1) * unit}
