"""Conversion of populations to the moments that a kernel stores, and back.

The moments of regularised collision do not determine the populations of a cell: the conversion back returns those with
the same density, momentum and second moments, and no others. A step depends on nothing else.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.catalogue.boundaries.cut_links import Window, whole
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.moments.basis import powers, shares
from lbmtune.catalogue.problem.case import Case
from lbmtune.lattice import Lattice

Array = Any
_FEW_VALUES = 1 << 18
"""Moments of a window whose places are computed at once."""


def moments_of(shifted: Array, lattice: Lattice, xp: ModuleType) -> Iterable[Array]:
    """Return M_n of each order from f_i - w_i, shape (q, nz, ny, nx), in units of the smallest weight.

    In one array if they are few; on a GPU they follow one by one if they are many.
    """
    products: Iterable[Array] = _products(_powers(lattice), shifted, xp)
    return products


def populations_of(moments: Array, lattice: Lattice, xp: ModuleType) -> Iterable[Array]:
    """Return each f_i, not shifted, of the state with some moments, shape (moments, nz, ny, nx), as `moments_of`."""
    products, weights = _products(polynomials(lattice), moments, xp), xp.asarray(weights_of(lattice))
    if isinstance(products, Iterator):
        return (w + found for w, found in zip(weights, products, strict=True))
    products += weights
    at_once: Iterable[Array] = products
    return at_once


def seen(populations: Array, lattice: Lattice, xp: ModuleType) -> Array:
    """Return the populations that remain of a state stored as moments: shape (q, nz, ny, nx), not shifted."""
    moments = joined(moments_of(populations - xp.asarray(weights_of(lattice)), lattice, xp), xp)
    return joined(populations_of(moments, lattice, xp), xp)


def joined(values: Iterable[Array], xp: ModuleType) -> Array:
    """Return values that follow one by one in one array."""
    return xp.stack(list(values)) if isinstance(values, Iterator) else values


def moved_by_moments(shifted: Sequence[float], lattice: Lattice) -> list[float]:
    """Return how far f_i moves at most if every moment is off by its own size: sum_n |a_in| sum_j |c_j^n| |f_j - w_j|.

    shifted: the largest |f_j - w_j| of each direction.
    """
    moved: list[float] = (np.abs(polynomials(lattice)) @ (np.abs(_powers(lattice)) @ np.array(shifted))).tolist()
    return moved


def _products(matrix: Array, values: Array, xp: ModuleType) -> Any:
    """Return a matrix (m, n) times values (n, nz, ny, nx): on a GPU row by row, unless they are few."""
    if xp is np:
        return np.tensordot(matrix, values, axes=1)
    rows = xp.asarray(matrix).reshape(*matrix.shape, 1, 1, 1)
    return (rows * values).sum(axis=1) if values.size <= _FEW_VALUES else ((row * values).sum(axis=0) for row in rows)


@cache
def weights_of(lattice: Lattice) -> Array:
    """Return w_i, (q, 1, 1, 1)."""
    return np.array([float(w) for w in lattice.weights]).reshape(-1, 1, 1, 1)


@cache
def _powers(lattice: Lattice) -> Array:
    """Return c_i^n over the smallest weight, (moments, q)."""
    return np.array(powers(lattice))


@cache
def polynomials(lattice: Lattice) -> Array:
    """Return the share of moments in f_i - w_i, (q, moments) (`shares`)."""
    return np.array(shares(lattice))


@lru_cache(maxsize=4)
def few_places(case: Case, config: KernelConfig, window: Window | None) -> Array | None:
    """Return the places of all values, (moments, nz, ny, nx), if the cells of a window are few; None otherwise.

    They are computed on the host, because so many small operations are slow on a GPU.
    """
    extents = config.stored_extents(case)
    if window is None or extents.q * prod(map(len, window)) > _FEW_VALUES:
        return None
    x, y, z = _coordinates(case, np, window)
    k = np.arange(extents.q).reshape(-1, 1, 1, 1)
    return config.value_index(k, x, y, z, extents, case.stencil)


def places(
    case: Case,
    config: KernelConfig,
    xp: ModuleType,
    window: Window | None = None,
    values: Iterable[int] | None = None,
) -> Iterator[Array]:
    """Yield the element index of each value of the cells of a window, for families that never move a value.

    int64, shape (nz, ny, nx). values: numbers of the wanted ones; None: all.
    """
    extents = config.stored_extents(case)
    x, y, z = _coordinates(case, xp, window or whole(case.domain))
    for k in range(extents.q) if values is None else values:
        yield config.value_index(k, x, y, z, extents, case.stencil)


def _coordinates(case: Case, xp: ModuleType, window: Window) -> tuple[Array, Array, Array]:
    """Return the coordinates of cells along x, y and z, (nx,), (ny, 1) and (nz, 1, 1), within the domain."""
    x, y, z = (xp.arange(r.start, r.stop, dtype=xp.int64) % n for r, n in zip(window, case.domain, strict=True))
    return x, y[:, None], z[:, None, None]
