"""Representations: a cell stores its populations, or the moments on which regularised collision depends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from lbmtune.catalogue.moments.basis import orders
from lbmtune.catalogue.precision import Storage
from lbmtune.errors import named
from lbmtune.lattice import Lattice


class Representation(Protocol):
    """The values that a cell stores: number, scale and grouping. `runtime.states` converts them."""

    @property
    def name(self) -> str:
        """The name in configurations."""

    @property
    def rings(self) -> bool:
        """Whether kernels have a path in which the lanes of a warp exchange in a ring, if a row fits into it."""

    @property
    def reads_moving(self) -> bool:
        """Whether kernels that read flags also read those of moving walls; others find moving walls by coordinates."""

    def values(self, lattice: Lattice) -> int:
        """Return the number of values that a cell stores."""

    def moved(self, touched: int, lattice: Lattice) -> int:
        """Return the values of a cell that a pass over `touched` populations reads and writes."""

    def scale(self, storage: Storage) -> float:
        """Return the stored value of density one."""

    def row_unit(self, cells: int) -> int:
        """Return the number of which the cells of a stored row are a multiple, if `cells` are accessed together."""


@dataclass(frozen=True)
class Populations:
    """The q populations of a cell. groups: a number of which the cells of a row are always a multiple."""

    name: str = "populations"
    rings: bool = True
    reads_moving: bool = True
    groups: int = 1

    def values(self, lattice: Lattice) -> int:
        """Return q, one value per direction."""
        return lattice.q

    def moved(self, touched: int, lattice: Lattice) -> int:
        """Return the number of accessed populations."""
        return touched

    def scale(self, storage: Storage) -> float:
        """Return the scale of the storage format."""
        return storage.scale

    def row_unit(self, cells: int) -> int:
        """Return the cells that are accessed together, at least `groups`."""
        return max(cells, self.groups)


@dataclass(frozen=True)
class Moments:
    """Density, momentum and second moments of a cell. See `catalogue.moments.basis`."""

    name: str = "moments"
    rings: bool = False
    reads_moving: bool = False

    def values(self, lattice: Lattice) -> int:
        """Return 10 in three dimensions, 6 in two."""
        return len(orders(lattice))

    def moved(self, touched: int, lattice: Lattice) -> int:
        """Return the number of all values: populations exist only within a kernel."""
        return self.values(lattice)

    def scale(self, storage: Storage) -> float:
        """Return the scale; at most 128, since a moment is up to 216 times the populations that it sums."""
        return min(storage.scale, 128.0)

    def row_unit(self, cells: int) -> int:
        """Return the size of a group: rows are whole groups, aligned for the widest access."""
        return _GROUPS


_GROUPS = 8
"""The most values of a cell that are adjacent."""
POPULATIONS = Populations()
FUSED = Populations(rings=False, reads_moving=False, groups=_GROUPS)
"""Populations in kernels of several steps per launch, which share the structure of those of moments."""
_ALL: Mapping[str, Representation] = {one.name: one for one in (POPULATIONS, Moments())}
REPRESENTATIONS = tuple(_ALL)
"""Names of the representations."""


def representation(name: str) -> Representation:
    """Return the representation of that name. Raises InputError for an unknown one."""
    return named("representation", name, _ALL)
