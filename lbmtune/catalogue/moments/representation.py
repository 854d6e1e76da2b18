"""Representations: a cell stores its populations, or the moments on which regularised collision depends."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf

from lbmtune.catalogue.moments.basis import orders
from lbmtune.catalogue.precision import Storage
from lbmtune.errors import named
from lbmtune.lattice import Lattice

_GROUPS = 8
"""The most values of a cell that are adjacent, and the most cells that a thread accesses together."""


@dataclass(frozen=True)
class Representation:
    """The values that a cell stores: number, scale and grouping. `runtime.states` converts them.

    values: their number on a lattice; rings: kernels have a path in which the lanes of a warp exchange in a ring, if a
    row fits into it; reads_moving: kernels that read flags also read those of moving walls, which others find by
    coordinates; groups: a number of which the cells of a stored row are always a multiple; most_scale: largest scale.
    """

    name: str
    values: Callable[[Lattice], int]
    rings: bool = False
    reads_moving: bool = False
    groups: int = 1
    most_scale: float = inf

    def moved(self, touched: int, lattice: Lattice) -> int:
        """Return the values of a cell that a pass over `touched` populations moves: moments have no part of them."""
        return touched if self.name == "populations" else self.values(lattice)

    def scale(self, storage: Storage) -> float:
        """Return the stored value of density one."""
        return min(storage.scale, self.most_scale)

    def row_unit(self, cells: int) -> int:
        """Return the number of which the cells of a stored row are a multiple, if `cells` are accessed together."""
        return max(cells, self.groups)


POPULATIONS = Representation("populations", lambda lattice: lattice.q, rings=True, reads_moving=True)
FUSED = replace(POPULATIONS, rings=False, reads_moving=False, groups=_GROUPS)
"""Populations in kernels of several steps per launch, which share the structure of those of moments."""
_MOMENTS = Representation("moments", lambda lattice: len(orders(lattice)), groups=_GROUPS, most_scale=128.0)
"""See `catalogue.moments.basis`. A moment is up to 216 times the populations that it sums."""
_ALL: Mapping[str, Representation] = {one.name: one for one in (POPULATIONS, _MOMENTS)}
REPRESENTATIONS = tuple(_ALL)
"""Names of the representations."""


def representation(name: str) -> Representation:
    """Return the representation of that name. Raises InputError for an unknown one."""
    return named("representation", name, _ALL)
