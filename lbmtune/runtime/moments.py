"""Populations as moments and back: what a kernel that keeps moments is given, and what it is asked for.

The moments of regularised collision do not tell all of a cell: what comes back are the populations that have the same
density, momentum and second moments and no others. A step takes nothing else of a state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CudaConfig, KernelConfig
from lbmtune.catalogue.links import Window, whole
from lbmtune.catalogue.march import value_index
from lbmtune.catalogue.moments import orders, smallest_weight
from lbmtune.catalogue.storage import stored_extents
from lbmtune.lattice import Lattice

Array = Any


def moments_of(shifted: Array, lattice: Lattice) -> Iterator[Array]:
    """M_n of each order from f_i - w_i, shape (q, nz, ny, nx): in units of the smallest weight."""
    unit = 1 / float(smallest_weight(lattice))
    for n in orders(lattice):
        yield unit * sum(_power(c, n) * shifted[i] for i, c in enumerate(lattice.velocities) if _power(c, n))


def population(i: int, moments: Sequence[Array], lattice: Lattice) -> Array:
    """f_i of the state that has these moments: w_i (1 + rho + 3 c.j + 9/2 (c c - I/3) : (Pi - I rho / 3))."""
    c, w, unit = lattice.velocities[i], float(lattice.weights[i]), float(smallest_weight(lattice))
    density, value = moments[0], 1 + unit * moments[0]
    for n, found in zip(orders(lattice)[1:], moments[1:], strict=True):
        if sum(n) == 1:
            value = value + 3 * unit * _power(c, n) * found
        elif 2 in n:
            value = value + 4.5 * unit * (_power(c, n) - 1 / 3) * (found - density / 3)
        elif _power(c, n):
            value = value + 9 * unit * _power(c, n) * found
    return w * value


def seen(populations: Array, lattice: Lattice, xp: ModuleType) -> Array:
    """What a kernel of moments makes of a state: shape (q, nz, ny, nx), not shifted."""
    weights = xp.asarray([float(w) for w in lattice.weights]).reshape(-1, 1, 1, 1)
    found = list(moments_of(populations - weights, lattice))
    return xp.stack([population(i, found, lattice) for i in range(lattice.q)])


def places(case: Case, config: KernelConfig, xp: ModuleType, window: Window | None = None) -> Iterator[Array]:
    """Element index of each value that a kernel of tiles keeps at every cell of a window: int64, shape (nz, ny, nx)."""
    assert isinstance(config, CudaConfig), "a CPU keeps none"
    extents = stored_extents(case, config)
    x, y, z = (xp.arange(r.start, r.stop, dtype=xp.int64) for r in window or whole(case.domain))
    for k in range(extents.q):
        yield value_index(k, x, y[:, None], z[:, None, None], extents, config, case.stencil)


def _power(c: tuple[int, int, int], n: tuple[int, int, int]) -> int:
    return int(c[0] ** n[0] * c[1] ** n[1] * c[2] ** n[2])
