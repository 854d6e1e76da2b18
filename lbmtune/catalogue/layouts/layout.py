"""Memory layouts: integer functions from a storage cell and a component to an element index.

The functions serve two purposes: with ints (or integer arrays) they are the oracle, with traced values
(`lbmtune.codegen.trace`) they print C or Python. Every layout is additive,

    index(x, y, z, q) = along_x(x) + along_y(y) + along_z(z) + component(q),

so that a kernel computes each part once and uses it for all q populations.
"""

from typing import Any, ClassVar, NamedTuple

Int = Any
"""An int, an integer array, or a traced integer expression: anything with + * // %."""


class Extents(NamedTuple):
    """Storage cells along each axis (domain, ghost cells and padding together) and the number of components."""

    x: Int
    y: Int
    z: Int
    q: int


Tile = tuple[int, int, int]


class Layout:
    """An additive layout over `Extents`; indices count elements. Subclasses are frozen records of their parameters.

    What stands here is for whole rows, one after another, of cells in groups of `run`, with a run for each component.
    """

    name: ClassVar[str]

    @property
    def run(self) -> int:
        """Return the adjacent cells of a row for one component; 0: the whole row."""
        return 0

    def run_in(self, row: int) -> int:
        """Return the adjacent cells of one component before another one begins, in rows of that many; 0: all cells."""
        return self.run

    @property
    def tile(self) -> Tile:
        """Return the numbers of which the storage extents along x, y and z must be multiples."""
        return (max(self.run, 1), 1, 1)

    @property
    def together(self) -> int:
        """Return the consecutive components that share an array of all cells; 0: all of them."""
        return 0

    def along_x(self, x: Int, extents: Extents) -> Int:
        """Return the offset of cell x in its row: that of its group, and its place in a run."""
        if not self.run:
            return x
        return (x // self.run) * (self.run * (self.together or extents.q)) + x % self.run

    def along_y(self, y: Int, extents: Extents) -> Int:
        """Return the offset of row y in its plane; a row has nx cells of the components that are together."""
        return y * (extents.x * (self.together or extents.q))

    def along_z(self, z: Int, extents: Extents) -> Int:
        """Return the offset of plane z; a plane has ny rows."""
        return z * (extents.x * extents.y * (self.together or extents.q))

    def component(self, q: Int, extents: Extents) -> Int:
        """Return the offset of component q: that of its run."""
        return q * self.run

    def length(self, extents: Extents) -> Int:
        """Return the number of elements to allocate."""
        return extents.x * extents.y * extents.z * extents.q


def index(layout: Layout, extents: Extents, x: Int, y: Int, z: Int, q: Int) -> Int:
    """Return the element index of component q of storage cell (x, y, z)."""
    return (
        layout.along_x(x, extents)
        + layout.along_y(y, extents)
        + layout.along_z(z, extents)
        + layout.component(q, extents)
    )


def arrays(layout: Layout, q: int) -> int:
    """Return the number of arrays of all cells that the layout has for q components."""
    return -(-q // layout.together) if layout.together else 1


def array_length(layout: Layout, extents: Extents) -> Int:
    """Return the elements from the start of one array of all cells to the start of the next."""
    return layout.component(layout.together, extents) if layout.together else layout.length(extents)
