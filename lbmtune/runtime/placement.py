"""The place of f_i(x, t) in a buffer: element indices for a whole domain, from scheme, layout and frame.

The same indices initialise a buffer and gather it. They are computed for whole fields, with numpy or cupy.
"""

from collections.abc import Iterator
from functools import lru_cache, reduce
from math import prod
from operator import or_
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from lbmtune.catalogue.boundaries.cut_links import MOVING, OPEN, Window, cells_around, cut_kind, may_cut, seen_by, whole
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.patches import wall_velocity
from lbmtune.catalogue.schemes.scheme import HERE, Place
from lbmtune.catalogue.sparse.nodes import nodes
from lbmtune.catalogue.storage_frame import Domain, StorageFrame
from lbmtune.lattice import Vector, negate
from lbmtune.runtime.moments import places

Array = Any
_FEW_VALUES, _VALUES_OF_FEW_CELLS = 1 << 22, 1 << 18
"""Populations of a whole domain, whose placement is cached, and of a window whose placement is made at once."""


class Placement(NamedTuple):
    """Element index of one population at every cell, and what a moving wall adds to it on reading.

    indices: int64, (nz, ny, nx) of the domain or window; gain: what reading adds, in lattice units of f (0 or an
    array of that shape).
    """

    indices: Array
    gain: Array | float


def placements(
    case: Case,
    config: KernelConfig,
    parity: int,
    xp: ModuleType,
    window: Window | None = None,
    numbered_by: ModuleType | None = None,
) -> Iterator[Placement]:
    """Yield one Placement per direction, in order, of the cells of a window (None: of the domain).

    numbered_by: the module that holds the numbering of listed sites; None: xp.
    """
    cells = window or whole(case.domain)
    return _BY_SOURCE[config.place_source](case, config, parity, xp, cells, numbered_by or xp)


def _fixed(
    case: Case, config: KernelConfig, _parity: int, xp: ModuleType, window: Window, _numbered_by: ModuleType
) -> Iterator[Placement]:
    return (Placement(indices, 0.0) for indices in places(case, config, xp, window))


def _by_scheme(
    case: Case, config: KernelConfig, parity: int, xp: ModuleType, window: Window, _numbered_by: ModuleType
) -> Iterator[Placement]:
    """Yield the places that the scheme's table names, of cells of a box."""
    seen, phase = seen_by(case, config), config.propagation.phase(case.stencil, parity)
    for access in phase.accesses:
        i = access.direction
        indices = element_indices(case, config, window, access.read, xp, wrap=True)
        link = negate(case.stencil.velocities[i])
        gain: Array | float = 0.0
        if may_cut(seen, link):
            kind = cut_kind(seen, link, window, xp)
            private = element_indices(case, config, window, access.cut_read, xp, wrap=False)
            indices = xp.where(kind != OPEN, private, indices)
            if phase.wall_term == "read":
                gain = (kind == MOVING) * gain_of(seen, i, window, xp)
        yield Placement(indices, gain)


def _of_sites(
    case: Case, config: KernelConfig, parity: int, xp: ModuleType, window: Window, numbered_by: ModuleType
) -> Iterator[Placement]:
    """Yield the places that the scheme's table names, of listed sites; what is no node shares a spare node.

    They follow from the table and the numbering of nodes, not from the index list that a kernel reads.
    """
    numbering, layout = nodes(case, config, numbered_by), config.memory
    extents = config.stored_extents(case)
    x, y, z = (range(r.start - 1, r.stop + 1) for r in window)
    around = cells_around(numbering.at, case.domain, (x, y, z), HERE, numbered_by)
    around = around if xp is numbered_by else numbered_by.asnumpy(around)
    own, flat, seen = _at(around, HERE), around.reshape(-1), seen_by(case, config)
    phase = config.propagation.phase(case.stencil, parity)
    # most cells may have no state; skipped solid nodes have those that lie in nodes beside them, too
    offsets = {at.offset for one in phase.accesses for at in (one.read, one.cut_read)} if config.implicit else {HERE}
    near = reduce(or_, (_at(around, offset) >= 0 for offset in offsets))
    cells = xp.flatnonzero(near if config.implicit else near & (own < numbering.fluid))
    at, spare = _padded(cells, own.shape), int(layout.along_x(numbering.fluid, extents))
    for access in phase.accesses:
        kinds = cut_kind(seen, negate(case.stencil.velocities[access.direction]), window, xp)
        cut, both = kinds.reshape(-1)[cells] != OPEN, (access.read, access.cut_read)
        opened, closed = (flat[at + _stride(place.offset, around.shape)] for place in both)
        start, other = (int(layout.component(place.slot, extents)) for place in both)
        node = xp.where(cut, closed, opened).astype(xp.int64)
        node = xp.where(node >= 0, node, numbering.fluid) if config.implicit else node
        indices = xp.full(own.shape, spare + start, xp.int64)
        indices.reshape(-1)[cells] = layout.along_x(node, extents) + (start + cut * (other - start))
        gain = (kinds == MOVING) * gain_of(seen, access.direction, window, xp) if phase.wall_term == "read" else 0.0
        yield Placement(indices, gain)


_BY_SOURCE = {"scheme": _by_scheme, "list": _of_sites, "fixed": _fixed}


def _at(around: Array, offset: Vector) -> Array:
    """Return the nodes at an offset from each cell of a window, from those in and around it."""
    x, y, z = (slice(1 + o, n - 1 + o) for o, n in zip(offset, reversed(around.shape), strict=True))
    return around[z, y, x]


def _padded(cells: Array, shape: tuple[int, int, int]) -> Array:
    """Return the positions of cells of a window among those in and around it."""
    _, ny, nx = shape
    z, rest = cells // (ny * nx), cells % (ny * nx)
    return ((z + 1) * (ny + 2) + rest // nx + 1) * (nx + 2) + rest % nx + 1


def _stride(offset: Vector, around: tuple[int, int, int]) -> int:
    """Return how far apart cells at an offset from each other lie among those in and around a window."""
    x, y, z = offset
    return (z * around[1] + y) * around[2] + x


def blocks(
    case: Case, config: KernelConfig, parity: int, xp: ModuleType, window: Window | None = None
) -> Iterator[Placement]:
    """Yield placements with a leading axis for directions: one for all if the cells are few, else one each."""
    window = window or whole(case.domain)
    if window == whole(case.domain) and case.stencil.q * case.sites <= _FEW_VALUES:
        yield _at_once(case, config, parity, xp)
        return
    if case.stencil.q * prod(map(len, window)) <= _VALUES_OF_FEW_CELLS:
        yield _stacked(case, config, parity, xp, window, xp)
        return
    for place in placements(case, config, parity, xp, window):
        yield Placement(place.indices[None], place.gain)


@lru_cache(maxsize=8)
def _at_once(case: Case, config: KernelConfig, parity: int, xp: ModuleType) -> Placement:
    """Return one placement for all directions of a whole domain."""
    return _stacked(case, config, parity, xp, whole(case.domain), np)


@lru_cache(maxsize=4)
def _stacked(
    case: Case, config: KernelConfig, parity: int, xp: ModuleType, window: Window, numbered_by: ModuleType
) -> Placement:
    """Return one placement for all directions, computed on the host: small operations are slow on a GPU.

    The last ones are cached, because the same cells are read before and after a step.
    """
    each = list(placements(case, config, parity, np, window, numbered_by))
    indices = np.stack([place.indices for place in each])
    gain = np.stack([np.broadcast_to(place.gain, indices.shape[1:]) for place in each])
    return Placement(xp.asarray(indices), xp.asarray(gain))


def gain_of(case: Case, i: int, window: Window, xp: ModuleType) -> Array | float:
    """Return what reading f_i over a moving wall adds to it, at each cell of a window."""
    c, w = case.stencil.velocities[i], float(case.stencil.weights[i])
    return 6 * w * sum(a * u for a, u in zip(c, wall_velocity(case, window, xp), strict=True))


def element_indices(
    case: Case, config: KernelConfig, window: Window, place: Place, xp: ModuleType, *, wrap: bool
) -> Array:
    """Return the index of a place for every cell of a window. wrap: whether ghost coordinates stand for their image."""
    storage, layout = config.frame(case.stencil), config.memory
    extents = storage.extents(Domain(*case.domain))
    x, y, z = (_coordinates(case.domain, window, storage, axis, place.offset, xp, wrap=wrap) for axis in range(3))
    along = (layout.along_z(z, extents), layout.along_y(y, extents), layout.along_x(x, extents))
    parts = [a if hasattr(a, "shape") else xp.full(x.shape, a) for a in along]
    rows = parts[0][:, None, None] + parts[1][None, :, None]
    return rows + parts[2][None, None, :] + int(layout.component(place.slot, extents))


def _coordinates(
    domain: tuple[int, int, int],
    window: Window,
    storage: StorageFrame,
    axis: int,
    offset: Vector,
    xp: ModuleType,
    *,
    wrap: bool,
) -> Array:
    """Return the storage coordinates along an axis of the cells of a window, moved by an offset."""
    cells = xp.arange(window[axis].start, window[axis].stop, dtype=xp.int64) % domain[axis]
    moved = cells + offset[axis]
    if wrap or not storage.ghost[axis]:
        moved = moved % domain[axis]
    return storage.coordinate(axis, moved)
