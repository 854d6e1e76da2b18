"""Lid-driven cavity."""

from __future__ import annotations

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Face, Faces
from lbmtune.catalogue.problem.flows.flow import Flow, Parameters
from lbmtune.lattice import lattice


def cavity(
    lattice_name: str, collision: str, domain: tuple[int, int, int], relaxation_rate: float, lid: float = 0.1
) -> Case:
    """Return a cavity whose face y+ moves along x with speed `lid`; in two dimensions z is periodic."""
    z: Face = "periodic" if lattice(lattice_name).dimensions == 2 else "wall"
    faces: Faces = ("wall", "wall", "wall", "moving", z, z)
    return Case("cavity", lattice_name, collision, domain, relaxation_rate, faces, wall_velocity=(lid, 0.0, 0.0))


def _case(parameters: Parameters, relaxation_rate: float) -> Case:
    return cavity(parameters.lattice, parameters.collision, parameters.domain, relaxation_rate, parameters.lid)


def _viscosity(parameters: Parameters, reynolds: float) -> float:
    """Return nu = ny u / Re with the speed of the lid."""
    return parameters.domain[1] * parameters.lid / reynolds


FLOW = Flow(
    name="cavity", title="lid-driven cavity with bounce-back walls and a moving lid", case=_case, viscosity=_viscosity
)
