"""No collision at all: populations stream freely. What a kernel's own collision is measured against."""

from __future__ import annotations

from lbmtune.catalogue.collisions.operator import Assignment, Collision, population, relaxed
from lbmtune.lattice import Lattice


def steps(lattice: Lattice, forced: bool) -> list[Assignment]:
    """Nothing changes."""
    return [Assignment(relaxed(i), population(i)) for i in range(lattice.q)]


COLLISION = Collision("none", "nothing but streaming", "", (), steps)
