"""Esoteric Pull: one lattice; of each pair of directions one lies at the cell and one at its neighbour."""

from lbmtune.catalogue.schemes.scheme import HERE, Phase, Place, Scheme, in_place_phase, upstream
from lbmtune.lattice import Lattice


def phase(lattice: Lattice, parity: int) -> Phase:
    """Return the pass of a step: f_i is read at the cell if i is odd, else upstream.

    In even steps f_i lies in the slot of its opposite; slots of opposite directions are exchanged every step.
    """

    def read_place(i: int, parity: int) -> Place:
        slot = i if parity else lattice.opposite[i]
        return Place(slot, upstream(lattice, i) if i and i % 2 == 0 else HERE)

    return in_place_phase(lattice, read_place, parity)


SCHEME = Scheme("esoteric-pull", "Esoteric Pull, in place", "Lehmann 2022", lattices=1, period=2, phase=phase)
