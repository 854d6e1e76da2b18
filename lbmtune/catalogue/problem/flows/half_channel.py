"""Half of a Poiseuille channel, driven by a body force."""

from dataclasses import replace

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows.channel import channel
from lbmtune.catalogue.problem.flows.flow import Domain, Flow


def half_channel(
    lattice_name: str, collision: str, domain: Domain, relaxation_rate: float, force: float = 1e-5
) -> Case:
    """Return half of a Poiseuille channel: symmetry plane at y-, wall at y+, a body force along x."""
    whole = channel(lattice_name, collision, domain, relaxation_rate, force)
    return replace(whole, flow="half-channel", faces=(*whole.faces[:2], "slip", *whole.faces[3:]))


FLOW = Flow(
    name="half-channel",
    title="half of a Poiseuille channel, with a free slip face in its middle",
    build=half_channel,
    options=lambda given: {"force": given.force},
    viscosity="that of half a channel is not built here",
)
