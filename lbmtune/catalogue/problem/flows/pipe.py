"""Channel from an inlet of given velocity to an outlet of given pressure."""

from __future__ import annotations

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Faces
from lbmtune.catalogue.problem.flows.flow import Flow, Parameters

PIPE_INLET = 0.05
"""Velocity of the inlet, in lattice units."""


def pipe(
    lattice_name: str, collision: str, domain: tuple[int, int, int], relaxation_rate: float, inlet: float = PIPE_INLET
) -> Case:
    """Return a channel with a velocity inlet at x-, a pressure outlet at x+, and walls at y- and y+."""
    faces: Faces = ("velocity", "pressure", "wall", "wall", "periodic", "periodic")
    velocity = (inlet, 0.0, 0.0)
    return Case("pipe", lattice_name, collision, domain, relaxation_rate, faces, inlet_velocity=velocity)


def _case(parameters: Parameters, relaxation_rate: float) -> Case:
    return pipe(parameters.lattice, parameters.collision, parameters.domain, relaxation_rate)


def _viscosity(parameters: Parameters, reynolds: float) -> float:
    """Return nu = ny u / Re with the mean velocity, which is that of the inlet."""
    speed = PIPE_INLET if parameters.inlet is None else abs(parameters.inlet)
    return parameters.domain[1] * speed / reynolds


FLOW = Flow(
    name="pipe",
    title="channel from an inlet of given velocity to an outlet of given pressure (Zou, He)",
    case=_case,
    viscosity=_viscosity,
)
