"""Two lattices, pull: read from the neighbours, write at the cell. The lattices are swapped every step."""

from lbmtune.catalogue.schemes.scheme import HERE, Access, Phase, Place, Scheme, upstream
from lbmtune.lattice import Lattice


def phase(lattice: Lattice, parity: int) -> Phase:
    """Return the pass, equal for all steps; a cut link reads the cell's own population of the opposite direction."""

    def access(i: int) -> Access:
        home = Place(i, HERE)
        return Access(
            i,
            read=Place(i, upstream(lattice, i)),
            write=home,
            cut_read=Place(lattice.opposite[i], HERE),
            cut_write=home,
        )

    return Phase(tuple(access(i) for i in range(lattice.q)), wall_term="read", target=1)


SCHEME = Scheme("pull", "two lattices, pull", "Wellein et al. 2006", lattices=2, period=1, phase=phase)
