"""AA pattern: one lattice; even steps read and write at the cell, in opposite slots; odd steps at the neighbours."""

from lbmtune.catalogue.schemes.scheme import HERE, Phase, Place, Scheme, in_place_phase, upstream
from lbmtune.lattice import Lattice


def phase(lattice: Lattice, parity: int) -> Phase:
    """Return the pass of a step. Even: f_i is read at the cell. Odd: upstream, from the opposite slot."""

    def read_place(i: int, parity: int) -> Place:
        return Place(lattice.opposite[i], upstream(lattice, i)) if parity else Place(i, HERE)

    return in_place_phase(lattice, read_place, parity)


SCHEME = Scheme("aa", "AA pattern, in place", "Bailey et al. 2009", lattices=1, period=2, phase=phase)
