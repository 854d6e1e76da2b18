"""Maps of populations to the content of a buffer and back, one per representation.

A state is f_i, not shifted, shape (q, nz, ny, nx) of the domain or of a window of it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Device
from lbmtune.catalogue.boundaries.cut_links import Window, whole
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.moments.basis import orders, smallest_weight
from lbmtune.catalogue.problem.case import Case
from lbmtune.lattice import Lattice
from lbmtune.runtime import moments
from lbmtune.runtime.placement import Placement, PopulationPlaces

Array = Any
Sums = tuple[Array, tuple[Array, Array, Array]]
"""Density, and momentum without the share of a force, as float64 arrays (nz, ny, nx); zeros may be numbers."""
_FEW_SITES = 1 << 18
"""Most sites of a domain whose element indices are cached (a few megabytes)."""


def summed(populations: Iterable[Array], lattice: Lattice) -> Sums:
    """Return the sums of f_i and c_i f_i from f_0, f_1, ..."""
    rho: Array = 0.0
    momentum: list[Array] = [0.0, 0.0, 0.0]
    for f, c in zip(populations, lattice.velocities, strict=True):
        rho = rho + f
        momentum = [m + along * f if along else m for m, along in zip(momentum, c, strict=True)]
    x, y, z = momentum
    return rho, (x, y, z)


@dataclass(frozen=True)
class State(ABC):
    """The map of a representation, for one case."""

    case: Case
    config: KernelConfig
    xp: ModuleType
    numbered_by: ModuleType
    """The module that numbers listed sites of the whole domain: that of the device."""

    @abstractmethod
    def put(self, populations: Array, buffer: Array, window: Window | None = None) -> None:
        """Write a state at time 0 to a buffer."""

    @abstractmethod
    def blocks(self, buffer: Array, parity: int, window: Window | None = None) -> Iterator[Array]:
        """Yield all f_i in order as float64, k at a time: (k, nz, ny, nx)."""

    @abstractmethod
    def totals(self, buffer: Array, parity: int, window: Window, fluid: Array | None) -> tuple[Array, Array]:
        """Return the sum of f_i - w_i over a window and a bound of its largest size, each of every direction, (q,).

        fluid: whether a cell counts, (nz, ny, nx); None: all do. The results are arrays of the host: products of few
        values would load a library of the device.
        """

    def sums(self, buffer: Array, parity: int) -> Sums:
        """Return the sums of f_i and c_i f_i of the whole domain."""
        return summed((f for block in self.blocks(buffer, parity) for f in block), self.case.stencil)

    def seen(self, populations: Array) -> Array:
        """Return what remains of a state that is written and read again in full precision."""
        return populations

    @cached_property
    def weights(self) -> Array:
        """Return the weights w_i, shape (q, 1, 1, 1)."""
        return self.xp.asarray(moments.weights_of(self.case.stencil))


class PopulationState(State):
    """Each f_i - w_i, or f_i without a shift, at a place that changes with the parity (`runtime.placement`)."""

    def put(self, populations: Array, buffer: Array, window: Window | None = None) -> None:
        first, xp = 0, self.xp
        for place in PopulationPlaces(self.case, self.config, 0, xp, window, self.numbered_by).blocks():
            part = slice(first, first := first + len(place.indices))
            values = xp.asarray(populations[part])
            values = values - self.weights[part] if self.config.stored.shifted else values
            buffer[place.indices] = self.config.stored.stored(values - place.gain, xp)

    def blocks(self, buffer: Array, parity: int, window: Window | None = None) -> Iterator[Array]:
        """Yield all f_i; k is q if the cells are few and 1 otherwise, so that a large state is not held twice."""
        first = 0
        for f in self._deviations(buffer, parity, window):
            part = slice(first, first := first + len(f))
            yield f + self.weights[part]

    def totals(self, buffer: Array, parity: int, window: Window, fluid: Array | None) -> tuple[Array, Array]:
        """Return the sums and the largest sizes."""
        return _totals(self._deviations(buffer, parity, window), fluid, self.xp)

    def _deviations(self, buffer: Array, parity: int, window: Window | None) -> Iterator[Array]:
        """Yield f_i - w_i as `blocks` yields f_i."""
        first = 0
        for place in self._placements(parity, window):
            part = slice(first, first := first + len(place.indices))
            found = self.config.stored.deviations(buffer[place.indices], self.xp) + place.gain
            yield found if self.config.stored.shifted else found - self.weights[part]

    def _placements(self, parity: int, window: Window | None) -> Iterator[Placement]:
        """Yield the placements of a window; those of few cells are kept, as a part of them is often read next."""
        known = self._kept.get(parity)
        if window and known and (cells := _cells_in(window, known[0])):
            yield known[1].within(cells)
            return
        for place in PopulationPlaces(self.case, self.config, parity, self.xp, window, self.numbered_by).blocks():
            if window and len(place.indices) == self.case.stencil.q:
                self._kept[parity] = window, place
            yield place

    @cached_property
    def _kept(self) -> dict[int, tuple[Window, Placement]]:
        """Return the last window of few cells and the placement of all directions there, by parity."""
        return {}


def _cells_in(part: Window, window: Window) -> tuple[slice, slice, slice] | None:
    """Return the slices of a part of a window in it, along z, y and x; None if it is not within."""
    if any(p.start < w.start or p.stop > w.stop for p, w in zip(part, window, strict=True)):
        return None
    x, y, z = (slice(p.start - w.start, p.stop - w.start) for p, w in zip(part, window, strict=True))
    return z, y, x


class MomentState(State):
    """Moments of f_i - w_i, always at the same places (`runtime.moments`)."""

    def put(self, populations: Array, buffer: Array, window: Window | None = None) -> None:
        values_of = moments.moments_of(self.xp.asarray(populations) - self.weights, self.case.stencil, self.xp)
        for indices, values in zip(self._places(window), values_of, strict=True):
            buffer[indices] = self.config.stored.stored(values, self.xp, self.config.unit)

    def blocks(self, buffer: Array, parity: int, window: Window | None = None) -> Iterator[Array]:
        """Yield all f_i from the moments: at once if the cells are few, else one at a time."""
        few = moments.few_places(self.case, self.config, window)
        if few is not None:
            held = self._value(buffer, self.xp.asarray(few))
            yield moments.joined(moments.populations_of(held, self.case.stencil, self.xp), self.xp)
            return
        held = self.xp.stack([self._value(buffer, at) for at in self._places(window)])
        for population in moments.populations_of(held, self.case.stencil, self.xp):
            yield population[None]

    def totals(self, buffer: Array, parity: int, window: Window, fluid: Array | None) -> tuple[Array, Array]:
        """Return the sums and bounds of the largest sizes, from those of the moments."""
        values = (self._value(buffer, at)[None] for at in self._places(window))
        sums, sizes = _totals(values, fluid, self.xp)
        matrix = moments.polynomials(self.case.stencil)
        return matrix @ sums, np.abs(matrix) @ sizes

    def sums(self, buffer: Array, parity: int) -> Sums:
        """Return density and momentum, which are stored."""
        places = zip(orders(self.case.stencil), self._places(None), strict=True)
        values = {n: self._value(buffer, at) for n, at in places if sum(n) <= 1}
        unit = float(smallest_weight(self.case.stencil))
        along = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
        x, y, z = (unit * values[n] if n in values else 0.0 for n in along)
        return 1 + unit * values[0, 0, 0], (x, y, z)

    def _value(self, buffer: Array, places: Array) -> Array:
        return self.config.stored.deviations(buffer[places], self.xp, self.config.unit)

    def seen(self, populations: Array) -> Array:
        """Return the populations of the same moments."""
        return moments.seen(populations, self.case.stencil, self.xp)

    def _places(self, window: Window | None) -> Iterable[Array]:
        """Return the element indices of each moment; those of a small domain are computed once."""
        if self.case.sites <= _FEW_SITES and window in (None, whole(self.case.domain)):
            return self._all_places
        return moments.places(self.case, self.config, self.xp, window)

    @cached_property
    def _all_places(self) -> list[Array]:
        return list(moments.places(self.case, self.config, self.xp))


def _totals(blocks: Iterable[Array], fluid: Array | None, xp: ModuleType) -> tuple[Array, Array]:
    """Return the sum and the largest size of all values of blocks (k, nz, ny, nx), each (k,), on the host."""
    found: list[tuple[float, ...]] = []
    for block in blocks:
        values = block if fluid is None else xp.where(fluid, block, 0.0)
        # rows first: a GPU is slow at reducing many values to one; both have two axes, for which it has one kernel
        rows = values.reshape(-1, values.shape[-1])
        of_rows = rows.sum(axis=1), rows.max(axis=1), rows.min(axis=1)
        total, highest, lowest = (one.reshape(len(values), -1) for one in of_rows)
        each = total.sum(axis=1), highest.max(axis=1), lowest.min(axis=1)
        found += zip(*(one.tolist() for one in each), strict=True)
    totals, highest, lowest = np.array(found).T
    return totals, np.maximum(highest, -lowest)


_STATES: Mapping[str, type[State]] = {"populations": PopulationState, "moments": MomentState}


def state_of(case: Case, config: KernelConfig, xp: ModuleType, numbered_by: ModuleType | None = None) -> State:
    """Return the map of a configuration's representation. numbered_by: None for xp."""
    return _STATES[config.kept.name](case, config, xp, numbered_by or xp)


@dataclass(frozen=True)
class HostCopies:
    """A buffer of a device whose elements the host reads and writes, those of one index array at once."""

    buffer: Array
    device: Device

    def __getitem__(self, indices: Array) -> Array:
        """Return the elements, an array of the host."""
        return self.device.gathered(self.buffer, indices)

    def __setitem__(self, indices: Array, values: Array) -> None:
        """Write elements of the buffer."""
        asarray = self.device.xp.asarray
        self.buffer[asarray(indices)] = asarray(values)
