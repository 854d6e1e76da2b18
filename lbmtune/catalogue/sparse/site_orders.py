"""Orders in which the fluid sites of a domain are numbered: each gives a key by which cells are sorted.

Cells that are close in space should be close in memory. The keys use operators only, so that arrays of any module
work. Sources: Morton 1966; Hilbert 1891 by the transposed form of Skilling 2004, 'Programming the Hilbert curve'.
"""

from collections.abc import Callable, Mapping
from typing import Any

from lbmtune.errors import named

Array = Any
TILE = 8
"""Cells along each edge of the cubes of 'tile'."""
STRIPES = 16
"""Parts of a row in 'stripe': the values that old devices load in one transaction."""


def row(x: Array, y: Array, z: Array) -> Array:
    """Return the key of rows along x, then y, then z; coordinates and key are int64 arrays of one shape."""
    return (z << 42) | (y << 21) | x


def tile(x: Array, y: Array, z: Array) -> Array:
    """Return the key of cubes with edges of TILE cells; cubes, and cells within a cube, are in the order of rows."""
    inside = ((z % TILE) * TILE + y % TILE) * TILE + x % TILE
    return row(x // TILE, y // TILE, z // TILE) * TILE**3 + inside


def stripe(x: Array, y: Array, z: Array) -> Array:
    """Return the key of rows in STRIPES parts: the first cell of each part, then the second of each, and so on.

    Neighbours along x are STRIPES sites apart, so that aligned groups of STRIPES sites access aligned groups. Source:
    EsoStripe, Geier and Schoenherr 2017, section 4.2.
    """
    cells = -(-(int(x.max()) + 1) // STRIPES) if x.size else 1
    return row(x % cells * STRIPES + x // cells, y, z)


def morton(x: Array, y: Array, z: Array) -> Array:
    """Return the Morton key: the bits of the coordinates interleaved, those of x lowest."""
    return _interleaved([z, y, x])


def hilbert(x: Array, y: Array, z: Array) -> Array:
    """Return the place on the Hilbert curve of the smallest cube (square if all z are 0) that holds all cells."""
    axes = [x, y, z] if _largest(z) else [x, y]
    return _interleaved(_transposed([axis.copy() for axis in axes]))


def _transposed(axes: list[Array]) -> list[Array]:
    """Return Skilling's AxestoTranspose: in place, from the highest bit down, then Gray code."""
    bits = _bits(axes)
    for place in range(bits - 1, 0, -1):
        low = (1 << place) - 1
        for n, axis in enumerate(axes):
            inverts = (axis >> place) & 1
            exchanged = (axes[0] ^ axis) & (low * (1 - inverts))
            axes[0] ^= low * inverts | exchanged
            if n:
                axes[n] ^= exchanged
    for n in range(1, len(axes)):
        axes[n] ^= axes[n - 1]
    flips = axes[0] * 0
    for place in range(bits - 1, 0, -1):
        flips ^= ((axes[-1] >> place) & 1) * ((1 << place) - 1)
    return [axis ^ flips for axis in axes]


def _bits(axes: list[Array]) -> int:
    """Return the bits of the largest coordinate, at least one."""
    return max(1, max(map(_largest, axes)).bit_length())


def _largest(axis: Array) -> int:
    """Return the largest coordinate. CuPy has `max` precompiled; it compiles `any` for seconds."""
    return int(axis.max()) if axis.size else 0


def _interleaved(axes: list[Array]) -> Array:
    """Return one number from the interleaved bits of all axes, those of the first axis highest."""
    key = axes[0] * 0
    for bit in range(_bits(axes)):
        for place, axis in enumerate(reversed(axes)):
            key |= ((axis >> bit) & 1) << (bit * len(axes) + place)
    return key


ORDERS: Mapping[str, Callable[[Array, Array, Array], Array]] = {
    "row": row,
    "morton": morton,
    "hilbert": hilbert,
    "tile": tile,
    "stripe": stripe,
}


def order(name: str) -> Callable[[Array, Array, Array], Array]:
    """Return the order of that name. Raises InputError for an unknown one."""
    return named("order", name, ORDERS)
