"""The place of f_i(x, t) in a buffer: element indices for a whole domain, from scheme, layout and frame.

The same indices initialise a buffer and gather it. They are computed for whole fields, with numpy or cupy.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from math import prod
from operator import or_
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from lbmtune.catalogue.boundaries.cut_links import MOVING, OPEN, Window, cells_around, cut_kind, may_cut, seen_by, whole
from lbmtune.catalogue.byte_lru_cache import current_device
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.patches import wall_velocity
from lbmtune.catalogue.schemes.scheme import HERE, Place
from lbmtune.catalogue.sparse.nodes import nodes
from lbmtune.catalogue.storage_frame import Domain
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

    def within(self, cells: tuple[slice, slice, slice]) -> "Placement":
        """Return the placement of some of the cells: slices along z, y and x."""
        z, y, x = cells
        gain = self.gain if isinstance(self.gain, float) else self.gain[..., z, y, x]
        return Placement(self.indices[..., z, y, x], gain)


@dataclass(frozen=True)
class PopulationPlaces:
    """The cells whose populations are placed in a state of a configuration after a number of steps of a parity.

    xp: the module whose arrays are returned; window: None: the domain; numbered_by: the module that holds the numbering
    of listed sites; None: xp.
    """

    case: Case
    config: KernelConfig
    parity: int
    xp: ModuleType
    window: Window | None = None
    numbered_by: ModuleType | None = None

    @property
    def cells(self) -> Window:
        """Return the window, or the whole domain."""
        return self.window or whole(self.case.domain)

    @property
    def numbering(self) -> ModuleType:
        """Return the module that holds the numbering of listed sites."""
        return self.numbered_by or self.xp

    def each(self) -> Iterator[Placement]:
        """Yield one Placement per direction, in order."""
        return _BY_SOURCE[self.config.place_source](self)

    def blocks(self) -> Iterator[Placement]:
        """Yield placements with a leading axis for directions: one for all if the cells are few, else one each."""
        q = self.case.stencil.q
        if self.cells == whole(self.case.domain) and q * self.case.sites <= _FEW_VALUES:
            yield _at_once(self.case, self.config, self.parity, self.xp, current_device(self.xp))
        elif q * prod(map(len, self.cells)) <= _VALUES_OF_FEW_CELLS:
            yield self.stacked()
        else:
            yield from (Placement(place.indices[None], place.gain) for place in self.each())

    def stacked(self) -> Placement:
        """Return one placement for all directions, computed on the host: small operations are slow on a GPU."""
        each = list(replace(self, xp=np, numbered_by=self.numbering).each())
        indices = np.stack([place.indices for place in each])
        gains = [place.gain for place in each]
        if all(isinstance(gain, float) and not gain for gain in gains):
            return Placement(self.xp.asarray(indices), 0.0)
        gains_of_all = np.stack([np.broadcast_to(gain, indices.shape[1:]) for gain in gains])
        return Placement(self.xp.asarray(indices), self.xp.asarray(gains_of_all))


@lru_cache(maxsize=8)
def _at_once(case: Case, config: KernelConfig, parity: int, xp: ModuleType, _device: int) -> Placement:
    """Return one placement for all directions of a whole domain, on the current device."""
    return PopulationPlaces(case, config, parity, xp, None, np).stacked()


def _fixed(of: PopulationPlaces) -> Iterator[Placement]:
    return (Placement(indices, 0.0) for indices in places(of.case, of.config, of.xp, of.cells))


def _by_scheme(of: PopulationPlaces) -> Iterator[Placement]:
    """Yield the places that the scheme's table names, of cells of a box."""
    case, config, xp, window = of.case, of.config, of.xp, of.cells
    seen, phase = seen_by(case, config), config.propagation.phase(case.stencil, of.parity)
    element_indices = ElementIndices(case, config, window, xp)
    for access in phase.accesses:
        i = access.direction
        indices = element_indices(access.read, wrap=True)
        link = negate(case.stencil.velocities[i])
        gain: Array | float = 0.0
        if may_cut(seen, link):
            kind = cut_kind(seen, link, window, xp)
            private = element_indices(access.cut_read, wrap=False)
            indices = xp.where(kind != OPEN, private, indices)
            if phase.wall_term == "read":
                gain = (kind == MOVING) * gain_of(seen, i, window, xp)
        yield Placement(indices, gain)


def _of_sites(of: PopulationPlaces) -> Iterator[Placement]:
    """Yield the places that the scheme's table names, of listed sites; what is no node shares a spare node.

    They follow from the table and the numbering of nodes, not from the index list that a kernel reads.
    """
    case, config, xp, window, numbered_by = of.case, of.config, of.xp, of.cells, of.numbering
    numbering, layout = nodes(case, config, numbered_by), config.memory
    extents = config.stored_extents(case)
    x, y, z = (range(r.start - 1, r.stop + 1) for r in window)
    around = cells_around(numbering.at, case.domain, (x, y, z), HERE, numbered_by)
    around = around if xp is numbered_by else numbered_by.asnumpy(around)
    own, flat, seen = _at(around, HERE), around.reshape(-1), seen_by(case, config)
    phase = config.propagation.phase(case.stencil, of.parity)
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


def gain_of(case: Case, i: int, window: Window, xp: ModuleType) -> Array | float:
    """Return what reading f_i over a moving wall adds to it, at each cell of a window."""
    c, w = case.stencil.velocities[i], float(case.stencil.weights[i])
    return 6 * w * sum(a * u for a, u in zip(c, wall_velocity(case, window, xp), strict=True))


class ElementIndices:
    """The index of a place for every cell of a window: the sum of one along each axis, which many places share."""

    def __init__(self, case: Case, config: KernelConfig, window: Window, xp: ModuleType) -> None:
        """Take the frame and the layout of a configuration."""
        self._domain, self._window, self._xp = case.domain, window, xp
        self._frame, layout = config.frame(case.stencil), config.memory
        self._extents = self._frame.extents(Domain(*case.domain))
        self._layout, self._by_axis = layout, (layout.along_x, layout.along_y, layout.along_z)
        self._known: dict[tuple[int, int, bool], Array] = {}

    def __call__(self, place: Place, *, wrap: bool) -> Array:
        """Return the indices, int64, (nz, ny, nx). wrap: whether ghost coordinates stand for their image."""
        x, y, z = (self._along(axis, offset, wrap=wrap) for axis, offset in enumerate(place.offset))
        return z[:, None, None] + y[:, None] + (x + int(self._layout.component(place.slot, self._extents)))

    def _along(self, axis: int, offset: int, *, wrap: bool) -> Array:
        wrap = wrap or not self._frame.ghost[axis]
        if (known := self._known.get((axis, offset, wrap))) is not None:
            return known
        n, cells = self._domain[axis], self._window[axis]
        moved = self._xp.arange(cells.start, cells.stop, dtype=self._xp.int64) % n + offset
        found = self._by_axis[axis](self._frame.coordinate(axis, moved % n if wrap else moved), self._extents)
        found = self._known[axis, offset, wrap] = self._xp.broadcast_to(found, moved.shape)
        return found
