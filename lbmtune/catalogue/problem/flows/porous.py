"""Periodic sample with solid cells, driven by a body force."""

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Real3
from lbmtune.catalogue.problem.flows.flow import Domain, Flow, along


def porous(
    lattice_name: str,
    collision: str,
    domain: Domain,
    relaxation_rate: float,
    geometry: str,
    force: Real3 = (1e-5, 0.0, 0.0),
) -> Case:
    """Return a periodic sample with solid cells, through which a body force drives the fluid."""
    return Case("porous", lattice_name, collision, domain, relaxation_rate, force=force, geometry=geometry)


FLOW = Flow(
    name="porous",
    title="periodic sample with solid cells, driven by a body force",
    build=porous,
    options=lambda given: {"geometry": given.geometry, "force": along(given.axis, given.force)},
    viscosity="a porous sample has no length to build it with",
)
