"""Random contents for large arrays: hardware moves and computes zeros faster and with less power than real data."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

import numpy as np

from lbmtune.backend.protocol import Array
from lbmtune.catalogue.precision import Storage

_TILE_ELEMENTS = (1 << 20) - 3


def fill_with_noise(array: Array, amplitude: float, xp: ModuleType, stored: Storage | None = None) -> None:
    """Fills a flat array with values between 0.5 and 1.5 amplitudes; they repeat after about a million elements.

    stored: the format that the array holds deviations in; None: plain numbers of its type.
    """
    tile = _tile(amplitude, str(array.dtype), xp, stored)
    whole = array.size // tile.size
    array[: whole * tile.size].reshape(whole, tile.size)[:] = tile
    array[whole * tile.size :] = tile[: array.size - whole * tile.size]


@lru_cache(maxsize=8)
def _tile(amplitude: float, dtype: str, xp: ModuleType, stored: Storage | None) -> Array:
    """The values that repeat; on a device they are made once, since every trial asks for them."""
    noise = amplitude * np.random.default_rng(1).uniform(0.5, 1.5, _TILE_ELEMENTS)
    return xp.asarray(stored.stored(noise, np) if stored else noise.astype(dtype))
