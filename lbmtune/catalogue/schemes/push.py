"""Two lattices, push: read at the cell, write to the neighbours. The lattices are swapped every step."""

from lbmtune.catalogue.schemes.scheme import HERE, Access, Phase, Place, Scheme
from lbmtune.lattice import Lattice


def phase(lattice: Lattice, parity: int) -> Phase:
    """Return the pass, equal for all steps; a cut link writes its population at the cell, in the opposite slot."""

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
