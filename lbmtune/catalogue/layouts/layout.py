"""What a memory layout is: an integer function from a storage cell and a component to an element index.

The functions are written once and called in two ways: with ints (or integer arrays) they are the oracle, with
a tracing value (`lbmtune.codegen.trace`) they print C or Python. Every layout here is additive,

    index(x, y, z, q) = along_x(x) + along_y(y) + along_z(z) + component(q),

so that a kernel works each part out once and reuses it for all q populations.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

Int = Any
"""An int, an integer array, or a traced integer expression: anything with + * // %."""


class Extents(NamedTuple):
    """Storage cells along each axis (domain, ghost cells and padding together) and the number of components."""

    x: Int
    y: Int
    z: Int
    q: int


Tile = tuple[int, int, int]


class Layout(Protocol):
    """An additive layout over `Extents`; indices count elements."""

    @property
    def name(self) -> str: ...
    @property
    def run(self) -> int:
        """How many cells of a row are adjacent in memory for one component; 0: the whole row."""
        ...

    @property
    def tile(self) -> Tile:
        """What the storage extents along x, y and z have to be multiples of."""
        ...

    @property
    def together(self) -> int:
        """How many components, one after the other, share an array of all cells; 0: all of them."""
        ...

    def along_x(self, x: Int, extents: Extents) -> Int: ...
    def along_y(self, y: Int, extents: Extents) -> Int: ...
    def along_z(self, z: Int, extents: Extents) -> Int: ...
    def component(self, q: Int, extents: Extents) -> Int: ...
    def length(self, extents: Extents) -> Int:
        """Elements to allocate."""
        ...


def index(layout: Layout, extents: Extents, x: Int, y: Int, z: Int, q: Int) -> Int:
    """The element index of component q of storage cell (x, y, z)."""
    return (
        layout.along_x(x, extents)
        + layout.along_y(y, extents)
        + layout.along_z(z, extents)
        + layout.component(q, extents)
    )


def arrays(layout: Layout, q: int) -> int:
    """How many arrays of all cells the layout has for q components."""
    return -(-q // layout.together) if layout.together else 1


def array_length(layout: Layout, extents: Extents) -> Int:
    """Elements from the start of one array of all cells to that of the next."""
    return layout.component(layout.together, extents) if layout.together else layout.length(extents)
