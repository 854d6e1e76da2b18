"""AA: one lattice; even steps stay in the cell and reverse, odd steps exchange with the neighbours."""

from __future__ import annotations

from lbmtune.catalogue.schemes.scheme import HERE, Phase, Place, Scheme, in_place_phase, upstream
from lbmtune.lattice import Lattice


def phase(lattice: Lattice, parity: int) -> Phase:
    """Even: f_i at home. Odd: f_i where its upstream neighbour left it, in the opposite slot."""

    def read_place(i: int, parity: int) -> Place:
        return Place(lattice.opposite[i], upstream(lattice, i)) if parity else Place(i, HERE)

    return in_place_phase(lattice, read_place, parity)


SCHEME = Scheme("aa", "AA pattern, in place", "Bailey et al. 2009", lattices=1, period=2, phase=phase)
