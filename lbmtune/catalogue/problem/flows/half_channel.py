"""Half of a Poiseuille channel, driven by a body force."""

from __future__ import annotations

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Faces
from lbmtune.catalogue.problem.flows.flow import Flow, Parameters


def half_channel(
    lattice_name: str, collision: str, domain: tuple[int, int, int], relaxation_rate: float, force: float = 1e-5
) -> Case:
    """Return half of a Poiseuille channel: symmetry plane at y-, wall at y+, a body force along x."""
    faces: Faces = ("periodic", "periodic", "slip", "wall", "periodic", "periodic")
    return Case("half-channel", lattice_name, collision, domain, relaxation_rate, faces, force=(force, 0.0, 0.0))


def _case(parameters: Parameters, relaxation_rate: float) -> Case:
    return half_channel(parameters.lattice, parameters.collision, parameters.domain, relaxation_rate, parameters.force)


_viscosity = "that of half a channel is not built here"


FLOW = Flow(
    name="half-channel",
    title="half of a Poiseuille channel, with a free slip face in its middle",
    case=_case,
    viscosity=_viscosity,
)
