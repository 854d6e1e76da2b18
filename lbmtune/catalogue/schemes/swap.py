"""Swap: one lattice; one kernel collides and reverses within the cell, another exchanges with the neighbours."""

from lbmtune.catalogue.schemes.scheme import HERE, Access, Phase, Place, Scheme
from lbmtune.lattice import Lattice


def phase(lattice: Lattice, parity: int) -> Phase:
    """Return the pass that collides: f_i is read at the cell and written there in the slot of its opposite."""

    def access(i: int) -> Access:
        home, reversed_ = Place(i, HERE), Place(lattice.opposite[i], HERE)
        return Access(i, read=home, write=reversed_, cut_read=home, cut_write=reversed_)

    return Phase(tuple(access(i) for i in range(lattice.q)), wall_term="read")


def moves(lattice: Lattice, parity: int) -> tuple[Phase, ...]:
    """Return the pass that exchanges populations along one direction of each pair.

    The population that left along c_i lies in the opposite slot; the one that arrives along -c_i, in slot i of the
    neighbour. A cut link needs no exchange: the first pass has already reversed its population.
    """
    rows = tuple(row for i, _ in lattice.pairs for row in exchange(lattice, i))
    return (Phase(rows, wall_term="none", collides=False),)


def exchange(lattice: Lattice, i: int) -> tuple[Access, Access]:
    """Return the two accesses that exchange a population of a cell with one of its neighbour along c_i."""
    opposite = lattice.opposite[i]
    mine, theirs = Place(opposite, HERE), Place(i, lattice.velocities[i])
    return (
        Access(i, read=mine, write=theirs, cut_read=mine, cut_write=mine),
        Access(opposite, read=theirs, write=mine, cut_read=mine, cut_write=mine),
    )


SCHEME = Scheme(
    "swap", "one lattice, swap in two kernels", "Valero-Lara 2017", lattices=1, period=1, phase=phase, moves=moves
)
