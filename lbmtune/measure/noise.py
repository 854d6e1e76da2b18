"""Random contents for large arrays: hardware moves and computes zeros faster and with less power than real data."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from lbmtune.backend.protocol import Array
from lbmtune.catalogue.precision import Storage

_TILE_ELEMENTS = (1 << 20) - 3


def fill_with_noise(array: Array, amplitude: float, xp: ModuleType, stored: Storage | None = None) -> None:
    """Fills a flat array with values between 0.5 and 1.5 amplitudes; they repeat after about a million elements.

    stored: the format that the array holds deviations in; None: plain numbers of its type.
    """
    noise = amplitude * np.random.default_rng(1).uniform(0.5, 1.5, _TILE_ELEMENTS)
    tile = xp.asarray(stored.stored(noise, np) if stored else noise.astype(array.dtype))
    whole = array.size // tile.size
    array[: whole * tile.size].reshape(whole, tile.size)[:] = tile
    array[whole * tile.size :] = tile[: array.size - whole * tile.size]
