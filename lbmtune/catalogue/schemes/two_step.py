"""Two-step: one kernel collides from the lattice to a second one, another streams back to the first."""

from lbmtune.catalogue.schemes.scheme import HERE, Access, Phase, Place, Scheme, upstream
from lbmtune.lattice import Lattice


def phase(lattice: Lattice, parity: int) -> Phase:
    """Return the pass that collides: every population is read and written at the cell."""
    accesses = (_access(i, Place(i, HERE), Place(i, HERE)) for i in range(lattice.q))
    return Phase(tuple(accesses), wall_term="none", target=1)


def moves(lattice: Lattice, parity: int) -> tuple[Phase, ...]:
    """Return the pass that streams from the upstream neighbour; a cut link reads the cell's own opposite population."""
    accesses = (_access(i, Place(i, upstream(lattice, i)), Place(lattice.opposite[i], HERE)) for i in range(lattice.q))
    return (Phase(tuple(accesses), wall_term="read", collides=False, source=1),)


def _access(i: int, read: Place, cut_read: Place) -> Access:
    home = Place(i, HERE)
    return Access(i, read=read, write=home, cut_read=cut_read, cut_write=home)


SCHEME = Scheme(
    "two-step",
    "two lattices, collide and stream apart",
    "Tran et al. 2017",
    lattices=2,
    period=1,
    phase=phase,
    moves=moves,
)
