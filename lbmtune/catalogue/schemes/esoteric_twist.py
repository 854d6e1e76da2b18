"""Esoteric Twist: one lattice; a population lies at the corner of the positive octant that its link touches."""

from lbmtune.catalogue.schemes.scheme import Phase, Place, Scheme, in_place_phase
from lbmtune.lattice import Lattice


def phase(lattice: Lattice, parity: int) -> Phase:
    """Return the pass of a step: f_i lies at the cell, moved by one along every axis on which c_i is negative.

    Slots of opposite directions are exchanged every step.
    """

    def read_place(i: int, parity: int) -> Place:
        x, y, z = (int(c < 0) for c in lattice.velocities[i])
        return Place(lattice.opposite[i] if parity else i, (x, y, z))

    return in_place_phase(lattice, read_place, parity)


SCHEME = Scheme(
    "esoteric-twist", "Esoteric Twist, in place", "Geier, Schoenherr 2017", lattices=1, period=2, phase=phase
)
