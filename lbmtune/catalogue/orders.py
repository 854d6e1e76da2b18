"""The orders in which the fluid sites of a domain can be numbered: each gives a key by which its cells are sorted.

Cells that are near each other in space should be near each other in memory. Sources: Morton 1966; Hilbert 1891 by
the transposed form of Skilling 2004, 'Programming the Hilbert curve'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lbmtune.errors import unknown

Array = Any
TILE = 8
"""Cells along each edge of the cubes that 'tile' goes through one after the other."""


def row(x: Array, y: Array, z: Array) -> Array:
    """Rows along x, then y, then z; coordinates and key are int64 arrays of one shape."""
    return (z << 42) | (y << 21) | x


def tile(x: Array, y: Array, z: Array) -> Array:
    """Cubes of TILE cells along each edge, rows of cubes; within a cube by rows."""
    inside = ((z % TILE) * TILE + y % TILE) * TILE + x % TILE
    return row(x // TILE, y // TILE, z // TILE) * TILE**3 + inside


def morton(x: Array, y: Array, z: Array) -> Array:
    """The bits of the coordinates in turn, those of x lowest."""
    return _interleaved([z, y, x])


def hilbert(x: Array, y: Array, z: Array) -> Array:
    """The Hilbert curve through the smallest cube (square where all z are 0) that holds all cells."""
    axes = [x, y, z] if z.any() else [x, y]
    return _interleaved(_transposed([axis.copy() for axis in axes]))


def _transposed(axes: list[Array]) -> list[Array]:
    """Skilling's AxestoTranspose: in place, from the highest bit down, then Gray code."""
    import numpy as np  # here: the names of the orders are known without it

    bits = max(1, max(int(axis.max(initial=0)) for axis in axes).bit_length())
    for bit in (1 << n for n in range(bits - 1, 0, -1)):
        for n, axis in enumerate(axes):
            inverts = (axis & bit) != 0
            exchanged = np.where(inverts, 0, (axes[0] ^ axis) & (bit - 1))
            axes[0] ^= np.where(inverts, bit - 1, exchanged)
            axes[n] ^= exchanged if n else 0
    for n in range(1, len(axes)):
        axes[n] ^= axes[n - 1]
    flips = np.zeros_like(axes[0])
    for bit in (1 << n for n in range(bits - 1, 0, -1)):
        flips ^= np.where((axes[-1] & bit) != 0, bit - 1, 0)
    return [axis ^ flips for axis in axes]


def _interleaved(axes: list[Array]) -> Array:
    """One number from the bits of all, those of the first axis highest."""
    import numpy as np

    key = np.zeros_like(axes[0])
    for bit in range(21):
        for place, axis in enumerate(reversed(axes)):
            key |= ((axis >> bit) & 1) << (bit * len(axes) + place)
    return key


ORDERS: Mapping[str, Callable[[Array, Array, Array], Array]] = {
    "row": row,
    "morton": morton,
    "hilbert": hilbert,
    "tile": tile,
}


def order(name: str) -> Callable[[Array, Array, Array], Array]:
    """The order of that name. Raises InputError for an unknown one."""
    if name not in ORDERS:
        raise unknown("order", name, ORDERS)
    return ORDERS[name]
