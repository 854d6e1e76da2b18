"""Esoteric Pull: one lattice; of each pair of directions one member is at home and one at the neighbour."""

from __future__ import annotations

from lbmtune.catalogue.schemes.scheme import HERE, Phase, Place, Scheme, in_place_phase, upstream
from lbmtune.lattice import Lattice


def phase(lattice: Lattice, parity: int) -> Phase:
    """Odd i at home in the slot of its opposite, even i upstream in its opposite's; slots swap every step."""

    def read_place(i: int, parity: int) -> Place:
        slot = i if parity else lattice.opposite[i]
        return Place(slot, upstream(lattice, i) if i and i % 2 == 0 else HERE)

    return in_place_phase(lattice, read_place, parity)


SCHEME = Scheme("esoteric-pull", "Esoteric Pull, in place", "Lehmann 2022", lattices=1, period=2, phase=phase)
