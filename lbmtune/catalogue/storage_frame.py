"""Position of a domain in storage: ghost cells, padding and periodic neighbours.

Along an axis with ghost cells a coordinate beyond the domain addresses the ghost cell, which stands for its periodic
image; along other axes it wraps. A population whose link is cut by a wall stays at its own place, so its coordinate is
not mapped to an image.
"""

from dataclasses import dataclass
from typing import NamedTuple

from lbmtune.catalogue.layouts.layout import Extents, Int, Tile


class Domain(NamedTuple):
    """Cells of the fluid box along each axis; ints or traced values."""

    x: Int
    y: Int
    z: Int


@dataclass(frozen=True)
class StorageFrame:
    """Constants that place a domain in storage: storage x = origin_x + x, extents multiples of `align`.

    ghost: per axis, whether ghost cells exist on both sides; tail: cells after the last one, per axis. blocks: extents
    of the blocks that have ghost cells around them, 0 along an axis without blocks; None: the domain has ghost cells
    around it.
    """

    ghost: tuple[bool, bool, bool]
    origin: tuple[int, int, int]
    tail: tuple[int, int, int]
    align: Tile
    q: int
    blocks: tuple[int, int, int] | None = None

    def extents(self, domain: Domain) -> Extents:
        """Return the storage extents of a domain; with traced values, their formulas."""
        outer = tuple(low + high for low, high in zip(self.origin, self.tail, strict=True))
        blocks = self.blocks or (0, 0, 0)
        found = []
        for n, more, block, unit in zip(domain, outer, blocks, self.align, strict=True):
            # ghost cells are added once, or per block, of which the last one may be partial
            needed = (n + (block - 1)) // block * (block + more) if block else n + more
            found.append((needed + (unit - 1)) // unit * unit if unit > 1 else needed)
        x, y, z = found
        return Extents(x, y, z, self.q)

    def coordinate(self, axis: int, i: Int) -> Int:
        """Return the storage coordinate of cell i of the domain along an axis; beyond the domain, of a ghost cell."""
        block = self.blocks[axis] if self.blocks else 0
        if not block:
            return i + self.origin[axis]
        return i // block * (block + self.origin[axis] + self.tail[axis]) + i % block + self.origin[axis]


def aligned(align: Tile, values: int) -> StorageFrame:
    """Return a frame without ghost cells, whose extents are multiples of `align`."""
    return StorageFrame((False,) * 3, (0, 0, 0), (0, 0, 0), align, values)
