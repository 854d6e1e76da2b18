"""Fill large arrays with random values: hardware is faster and needs less power on zeros than on real data."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

import numpy as np

from lbmtune.backend.protocol import Array
from lbmtune.catalogue.precision import Storage

_TILE_ELEMENTS = (1 << 20) - 3


def fill_random(array: Array, amplitude: float, xp: ModuleType, stored: Storage | None = None) -> None:
    """Fill a flat array with values of 0.5 to 1.5 amplitudes, which repeat after about a million elements.

    stored: the format of deviations in the array; None: plain numbers of its type.
    """
    tile = _tile(amplitude, str(array.dtype), xp, stored)
    whole = array.size // tile.size
    array[: whole * tile.size].reshape(whole, tile.size)[:] = tile
    array[whole * tile.size :] = tile[: array.size - whole * tile.size]


@lru_cache(maxsize=8)
def _tile(amplitude: float, dtype: str, xp: ModuleType, stored: Storage | None) -> Array:
    """Return the values that repeat; cached, because every trial needs them."""
    noise = amplitude * np.random.default_rng(1).uniform(0.5, 1.5, _TILE_ELEMENTS)
    return xp.asarray(stored.stored(noise, np) if stored else noise.astype(dtype))
