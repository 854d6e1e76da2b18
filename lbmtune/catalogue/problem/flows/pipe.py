"""Channel from an inlet of given velocity to an outlet of given pressure."""

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Faces
from lbmtune.catalogue.problem.flows.flow import Domain, Flow, Parameters

_INLET = 0.05
"""Velocity of the inlet, in lattice units."""


def pipe(lattice_name: str, collision: str, domain: Domain, relaxation_rate: float, inlet: float = _INLET) -> Case:
    """Return a channel with a velocity inlet at x-, a pressure outlet at x+, and walls at y- and y+."""
    faces: Faces = ("velocity", "pressure", "wall", "wall", "periodic", "periodic")
    velocity = (inlet, 0.0, 0.0)
    return Case("pipe", lattice_name, collision, domain, relaxation_rate, faces, inlet_velocity=velocity)


def _viscosity(parameters: Parameters, reynolds: float) -> float:
    """Return nu = ny u / Re with the mean velocity, which is that of the inlet."""
    speed = _INLET if parameters.inlet is None else abs(parameters.inlet)
    return parameters.domain[1] * speed / reynolds


FLOW = Flow(
    name="pipe",
    title="channel from an inlet of given velocity to an outlet of given pressure (Zou, He)",
    build=pipe,
    viscosity=_viscosity,
)
