"""Two-step: one kernel collides from the lattice to a second one, another streams back to the first."""

from dataclasses import replace

from lbmtune.catalogue.schemes import pull
from lbmtune.catalogue.schemes.scheme import HERE, Access, Phase, Place, Scheme
from lbmtune.lattice import Lattice


def phase(lattice: Lattice, parity: int) -> Phase:
    """Return the pass that collides: every population is read and written at the cell."""
    return Phase(tuple(Access(i, *[Place(i, HERE)] * 4) for i in range(lattice.q)), wall_term="none", target=1)


def moves(lattice: Lattice, parity: int) -> tuple[Phase, ...]:
    """Return the pass of pull from the second lattice to the first, without collision."""
    return (replace(pull.phase(lattice, parity), collides=False, source=1, target=0),)


SCHEME = Scheme(
    "two-step",
    "two lattices, collide and stream apart",
    "Tran et al. 2017",
    lattices=2,
    period=1,
    phase=phase,
    moves=moves,
)
