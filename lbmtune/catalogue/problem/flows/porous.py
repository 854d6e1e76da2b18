"""Periodic sample with solid cells, driven by a body force."""

from __future__ import annotations

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Real3
from lbmtune.catalogue.problem.flows.flow import Flow, Parameters, along


def porous(
    lattice_name: str,
    collision: str,
    domain: tuple[int, int, int],
    relaxation_rate: float,
    geometry: str,
    force: Real3 = (1e-5, 0.0, 0.0),
) -> Case:
    """Return a periodic sample with solid cells, through which a body force drives the fluid."""
    return Case("porous", lattice_name, collision, domain, relaxation_rate, force=force, geometry=geometry)


def _case(parameters: Parameters, relaxation_rate: float) -> Case:
    force = along(parameters.axis, parameters.force)
    return porous(
        parameters.lattice, parameters.collision, parameters.domain, relaxation_rate, parameters.geometry, force
    )


_viscosity = "a porous sample has no length to build it with"


FLOW = Flow(
    name="porous", title="periodic sample with solid cells, driven by a body force", case=_case, viscosity=_viscosity
)
