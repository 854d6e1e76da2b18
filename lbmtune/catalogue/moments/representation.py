"""What a cell keeps: its populations, or the moments of them that regularised collision depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from lbmtune.catalogue.moments.basis import orders
from lbmtune.catalogue.precision import Storage
from lbmtune.errors import unknown
from lbmtune.lattice import Lattice


class Representation(Protocol):
    """Values of a cell: how many, how large, and how they lie. `runtime.states` maps populations to them and back."""

    @property
    def name(self) -> str:
        """What configurations call it."""

    @property
    def rings(self) -> bool:
        """Whether the lanes of a warp form a ring where a row fits into it: another path through a kernel."""

    @property
    def reads_moving(self) -> bool:
        """Whether kernels that read flags read the words of moving walls, too; the others know them by their place."""

    def values(self, lattice: Lattice) -> int:
        """Values that a cell keeps."""

    def moved(self, touched: int, lattice: Lattice) -> int:
        """Values of a cell that a pass reads and writes which touches so many populations."""

    def scale(self, storage: Storage) -> float:
        """The density one, as stored."""

    def row_unit(self, cells: int) -> int:
        """Cells that a row of storage is a multiple of, where so many are moved at once."""


@dataclass(frozen=True)
class Populations:
    """The q populations of a cell. groups: cells that a row is a multiple of whatever is moved at once."""

    name: str = "populations"
    rings: bool = True
    reads_moving: bool = True
    groups: int = 1

    def values(self, lattice: Lattice) -> int:
        """One for each direction."""
        return lattice.q

    def moved(self, touched: int, lattice: Lattice) -> int:
        """Those that are touched."""
        return touched

    def scale(self, storage: Storage) -> float:
        """That of the format."""
        return storage.scale

    def row_unit(self, cells: int) -> int:
        """What is moved at once."""
        return max(cells, self.groups)


@dataclass(frozen=True)
class Moments:
    """Density, momentum and second moments of a cell. See `catalogue.moments.basis`."""

    name: str = "moments"
    rings: bool = False
    reads_moving: bool = False

    def values(self, lattice: Lattice) -> int:
        """Ten in three dimensions, six in two."""
        return len(orders(lattice))

    def moved(self, touched: int, lattice: Lattice) -> int:
        """All of them: populations exist within a kernel alone."""
        return self.values(lattice)

    def scale(self, storage: Storage) -> float:
        """In 16 bits less than for populations: moments are up to 216 times what they are sums of."""
        return min(storage.scale, 128.0)

    def row_unit(self, cells: int) -> int:
        """Rows of whole groups, each of which starts where the widest access may."""
        return _GROUPS


_GROUPS = 8
"""Values of a cell that lie together, at most."""
POPULATIONS = Populations()
FUSED = Populations(rings=False, reads_moving=False, groups=_GROUPS)
"""The same in kernels of several steps per launch, whose blocks march as those of moments do."""
_ALL: Mapping[str, Representation] = {one.name: one for one in (POPULATIONS, Moments())}
REPRESENTATIONS = tuple(_ALL)
"""Names of them."""


def representation(name: str) -> Representation:
    """A representation by name. Raises InputError."""
    if name not in _ALL:
        raise unknown("representation", name, _ALL)
    return _ALL[name]
