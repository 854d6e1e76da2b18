"""Two lattices, push: read at home, write to the neighbours. The lattices change roles every step."""

from __future__ import annotations

from lbmtune.catalogue.schemes.scheme import HERE, Access, Phase, Place, Scheme
from lbmtune.lattice import Lattice


def phase(lattice: Lattice, parity: int) -> Phase:
    """The same in every step; a cut link hands its population back to the cell, reversed."""

    def access(i: int) -> Access:
        home = Place(i, HERE)
        return Access(
            i,
            read=home,
            write=Place(i, lattice.velocities[i]),
            cut_read=home,
            cut_write=Place(lattice.opposite[i], HERE),
        )

    return Phase(tuple(access(i) for i in range(lattice.q)), wall_term="write", target=1)


SCHEME = Scheme("push", "two lattices, push", "Wellein et al. 2006", lattices=2, period=1, phase=phase)
