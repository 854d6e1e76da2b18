"""Tables of where the values of a state lie that density and momentum are sums of, and what else belongs to these.

They follow from the same functions as the initial state (`runtime.placement`, `runtime.moments`), whatever the family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from lbmtune.catalogue.boundaries.cut_links import MOVING, OPEN, Window, cut_kind, may_cut, seen_by, solid_in, whole
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.moments.basis import orders, smallest_weight
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import conditions, walls
from lbmtune.catalogue.schemes.scheme import Place
from lbmtune.lattice import negate
from lbmtune.runtime.placement import ElementIndices, PopulationPlaces, gain_of

Array = Any
_SOLID = 31


class Boxed(NamedTuple):
    """The elements of the values of a cell as sums of one offset for each axis.

    along: int64, (2, values, nx + ny + nz), of open links and of cut ones; words: uint32 of each cell, or None: bit k:
    value k lies where a cut link has it; the highest: the cell is solid.
    """

    along: Array
    words: Array | None


class Listed(NamedTuple):
    """The elements of the values of listed sites: int64, (values, sites), and the cells of the sites: int64."""

    places: Array
    cells: Array


class Gains(NamedTuple):
    """The gains of density and momentum at moving walls, (4, cells), of a number of cells: int64."""

    cells: Array
    added: Array


class Slab(NamedTuple):
    """A layer of cells whose populations are completed at inlets and outlets. indices: (q, nz, ny, nx) of the window.

    gain: what moving walls add to each population; solid: cells, or None.
    """

    window: Window
    indices: Array
    gain: Array
    solid: Array | None


@dataclass(frozen=True)
class Places:
    """The tables of a parity."""

    found: Boxed | Listed
    gains: Gains | None = None
    slabs: tuple[Slab, ...] = ()


def factors(case: Case, config: KernelConfig) -> list[list[float]]:
    """Return the factor of each stored value in density and momentum, (4, values), the number one left out.

    Values of moments that are in none of them are left out as well.
    """
    if config.of_moments:
        unit = float(smallest_weight(case.stencil)) / config.unit
        low = [n for n in orders(case.stencil) if sum(n) <= 1]
        along = [[unit * n[axis] for n in low] for axis in range(3)]
        return [[unit * (sum(n) == 0) for n in low], *along]
    scale = 1 / config.stored.scale
    return [[scale] * case.stencil.q, *([scale * c[axis] for c in case.stencil.velocities] for axis in range(3))]


def places_of(case: Case, config: KernelConfig, parity: int, xp: ModuleType) -> Places:
    """Return the tables of the states before steps of a parity."""
    slabs = tuple(_slabs(case, config, parity, xp))
    if config.place_source == "list":
        return Places(_listed(case, config, parity, xp), _gains(case, config, parity, xp), slabs)
    if config.of_moments or config.place_source == "fixed":
        return Places(Boxed(_of_values(case, config, xp), _words(case, config, {}, xp)), None, slabs)
    seen, phase = seen_by(case, config), config.propagation.phase(case.stencil, parity)
    opened, cut, kinds = [np.empty(0)] * case.stencil.q, [np.empty(0)] * case.stencil.q, {}
    for access in phase.accesses:
        i = access.direction
        opened[i] = _along(case, partial(_at, case, config, access.read, wrap=True))
        cut[i] = _along(case, partial(_at, case, config, access.cut_read, wrap=False))
        if may_cut(seen, negate(case.stencil.velocities[i])):
            kinds[i] = negate(case.stencil.velocities[i])
    found = Boxed(xp.asarray(np.array([opened, cut], np.int64)), _words(case, config, kinds, xp))
    return Places(found, _gains(case, config, parity, xp), slabs)


def vectors(found: Boxed, nx: int, lanes: int) -> tuple[Array, Array]:
    """Return the first cells of vectors that cover a row, which may overlap, and the cells that are in none: uint32.

    The elements of a value follow each other in the cells of a vector, for every value.
    """
    steps = (np.diff(found.along[0, :, :nx]) == 1).all(axis=0)
    starts = [x for x in range(nx - lanes + 1) if steps[x : x + lanes - 1].all()]
    runs, others, x = list[int](), list[int](), 0
    while x < nx:
        start = max((one for one in starts if x - lanes < one <= x), default=None)
        (others if start is None else runs).append(x if start is None else start)
        x = x + 1 if start is None else start + lanes
    return np.array(runs, np.uint32), np.array(others, np.uint32)


def _at(case: Case, config: KernelConfig, place: Place, window: Window, *, wrap: bool) -> Array:
    return ElementIndices(case, config, window, np)(place, wrap=wrap)


def _along(case: Case, at: Callable[[Window], Array]) -> Array:
    """Return the offsets along x, y and z, one after another, of an index that is a sum of one for each axis."""
    nx, ny, nz = case.domain
    one = range(1)
    x, y, z = (at(w).reshape(-1) for w in ((range(nx), one, one), (one, range(ny), one), (one, one, range(nz))))
    return np.concatenate([x, y - y[0], z - z[0]])


def _of_values(case: Case, config: KernelConfig, xp: ModuleType) -> Array:
    """Return the offsets of the values of families that never move one."""
    extents, lattice = config.stored_extents(case), case.stencil
    low = [k for k, n in enumerate(orders(lattice)) if sum(n) <= 1]

    def at(k: int, window: Window) -> Array:
        x, y, z = (np.arange(part.start, part.stop, dtype=np.int64) for part in window)
        return config.value_index(k, x, y[:, None], z[:, None, None], extents, lattice)

    each = [_along(case, partial(at, k)) for k in (low if config.of_moments else range(extents.q))]
    return xp.asarray(np.array([each, each], np.int64))


def _words(case: Case, config: KernelConfig, links: dict[int, Any], xp: ModuleType) -> Array | None:
    """Return the words of cells. links: the velocity of the link by which each value arrives that may be cut."""
    if not links and not case.geometry:
        return None
    seen, words = seen_by(case, config), xp.zeros(case.domain[::-1], xp.uint32)
    for i, link in links.items():
        words |= (cut_kind(seen, link, None, xp) != OPEN).astype(xp.uint32) << xp.uint32(i)
    if case.geometry:
        words |= solid_in(case, whole(case.domain), xp).astype(xp.uint32) << xp.uint32(_SOLID)
    return words.reshape(-1)


def _listed(case: Case, config: KernelConfig, parity: int, xp: ModuleType) -> Listed:
    solid = solid_in(case, whole(case.domain), xp) if case.geometry else xp.zeros(case.domain[::-1], bool)
    cells = xp.flatnonzero(~solid).astype(xp.int64)
    places = xp.empty((case.stencil.q, len(cells)), xp.int64)
    for i, place in enumerate(PopulationPlaces(case, config, parity, xp).each()):
        places[i] = place.indices.reshape(-1)[cells]
    return Listed(places, cells)


def _gains(case: Case, config: KernelConfig, parity: int, xp: ModuleType) -> Gains | None:
    """Return what moving walls add on reading; None if that is nothing."""
    phase, seen = config.propagation.phase(case.stencil, parity), seen_by(case, config)
    if not walls(case) or phase.wall_term != "read":
        return None
    window, added = whole(case.domain), xp.zeros((4, case.sites))
    for access in phase.accesses:
        c = case.stencil.velocities[access.direction]
        if not may_cut(seen, negate(c)):
            continue
        moving = (cut_kind(seen, negate(c), window, xp) == MOVING).reshape(-1)
        gain = (moving.reshape(case.domain[::-1]) * gain_of(seen, access.direction, window, xp)).reshape(-1)
        for d, factor in enumerate((1, *c)):
            added[d] += factor * gain
    if case.geometry:
        added *= ~solid_in(case, window, xp).reshape(-1)
    cells = xp.flatnonzero(abs(added).max(axis=0)).astype(xp.int64)
    return Gains(cells, added[:, cells]) if len(cells) else None


def _slabs(case: Case, config: KernelConfig, parity: int, xp: ModuleType) -> Iterator[Slab]:
    """Yield a layer for each face at which populations are completed."""
    for face in sorted({condition.face for condition in conditions(case)}):
        axis, high = divmod(face, 2)
        parts = list(whole(case.domain))
        parts[axis] = range(case.domain[axis] - 1, case.domain[axis]) if high else range(1)
        window = (parts[0], parts[1], parts[2])
        found = list(PopulationPlaces(case, config, parity, np, window).each())
        indices = np.stack([place.indices for place in found])
        gain = np.stack([np.broadcast_to(place.gain, indices.shape[1:]) for place in found])
        solid = solid_in(case, window, xp) if case.geometry else None
        yield Slab(window, xp.asarray(indices), xp.asarray(gain), solid)
