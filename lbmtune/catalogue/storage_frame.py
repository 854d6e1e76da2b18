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
        needed = (_with_ghosts(n, more, block) for n, more, block in zip(domain, outer, blocks, strict=True))
        x, y, z = (_multiple(n, unit) for n, unit in zip(needed, self.align, strict=True))
        return Extents(x, y, z, self.q)

    def coordinate(self, axis: int, i: Int) -> Int:
        """Return the storage coordinate of cell i of the domain along an axis; beyond the domain, of a ghost cell."""
        block = self.blocks[axis] if self.blocks else 0
        if not block:
            return i + self.origin[axis]
        return i // block * (block + self.origin[axis] + self.tail[axis]) + i % block + self.origin[axis]


def _with_ghosts(extent: Int, more: int, block: int) -> Int:
    """Return an extent with `more` cells added once, or per block, the last one possibly partial."""
    return (extent + (block - 1)) // block * (block + more) if block else extent + more


def _multiple(extent: Int, unit: int) -> Int:
    """Return the smallest multiple of a unit that is not smaller."""
    return (extent + (unit - 1)) // unit * unit if unit > 1 else extent


def aligned(align: Tile, values: int) -> StorageFrame:
    """Return a frame without ghost cells, whose extents are multiples of `align`."""
    return StorageFrame((False,) * 3, (0, 0, 0), (0, 0, 0), align, values)
