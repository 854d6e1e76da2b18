"""No collision: populations stream only. The reference for the cost of collision in a kernel."""

from lbmtune.catalogue.collisions.operator import Assignment, Collision, population, relaxed
from lbmtune.lattice import Lattice


def steps(lattice: Lattice, forced: bool) -> list[Assignment]:
    """Return assignments that leave each population unchanged."""
    return [Assignment(relaxed(i), population(i)) for i in range(lattice.q)]


COLLISION = Collision("none", "nothing but streaming", "", (), steps)
