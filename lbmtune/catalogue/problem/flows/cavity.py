"""Lid-driven cavity."""

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Face, Faces
from lbmtune.catalogue.problem.flows.flow import Domain, Flow
from lbmtune.lattice import lattice


def cavity(lattice_name: str, collision: str, domain: Domain, relaxation_rate: float, lid: float = 0.1) -> Case:
    """Return a cavity whose face y+ moves along x with speed `lid`; in two dimensions z is periodic."""
    z: Face = "periodic" if lattice(lattice_name).dimensions == 2 else "wall"
    faces: Faces = ("wall", "wall", "wall", "moving", z, z)
    return Case("cavity", lattice_name, collision, domain, relaxation_rate, faces, wall_velocity=(lid, 0.0, 0.0))


FLOW = Flow(
    name="cavity",
    title="lid-driven cavity with bounce-back walls and a moving lid",
    build=cavity,
    options=lambda given: {"lid": given.lid},
    # nu = ny u / Re with the speed of the lid
    viscosity=lambda given, reynolds: given.domain[1] * given.lid / reynolds,
)
