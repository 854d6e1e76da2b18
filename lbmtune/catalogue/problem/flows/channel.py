"""Poiseuille channel driven by a body force."""

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Faces
from lbmtune.catalogue.problem.flows.flow import Domain, Flow


def channel(lattice_name: str, collision: str, domain: Domain, relaxation_rate: float, force: float = 1e-5) -> Case:
    """Return a channel with walls at y- and y+, driven along x by a body force."""
    faces: Faces = ("periodic", "periodic", "wall", "wall", "periodic", "periodic")
    return Case("channel", lattice_name, collision, domain, relaxation_rate, faces, force=(force, 0.0, 0.0))


FLOW = Flow(
    name="channel",
    title="Poiseuille channel driven by a body force",
    build=channel,
    options=lambda given: {"force": given.force},
    # Re = u H / nu with u = F H^2 / (8 nu) on the axis, so that Re = F H^3 / (8 nu^2)
    viscosity=lambda given, reynolds: (abs(given.force) * given.domain[1] ** 3 / (8 * reynolds)) ** 0.5,
)
