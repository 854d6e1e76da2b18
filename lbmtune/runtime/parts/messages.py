"""Messages between parts: which elements of the state of one part go to which of another one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lbmtune.catalogue.boundaries.cut_links import OPEN, Window, cells_around, cut_kind, seen_by
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import HERE, Place
from lbmtune.catalogue.sparse.nodes import nodes
from lbmtune.decomposition.boxes import Box
from lbmtune.decomposition.parts import Decomposition, Face, Part, case_of
from lbmtune.decomposition.transfers import Transfer, transfers
from lbmtune.lattice import negate
from lbmtune.runtime.moments import places
from lbmtune.runtime.placement import ElementIndices, PopulationPlaces
from lbmtune.runtime.simulation import Simulation

Array = Any


@dataclass(frozen=True)
class Message:
    """The message of one part to another: elements of the states of both, in the order of the source, numpy.

    Both follow from the decomposition, so that two processes put values into a message in the same order.
    """

    source: int
    target: int
    taken: Array
    put: Array

    @cached_property
    def runs(self) -> Array:
        """Return the elements that follow one another in both states, in the order of the source: int64, (runs, 3).

        Columns are the first element in the source, that in the target, and the number of elements.
        """
        return runs_of(self.taken, self.put)


def runs_of(taken: Array, put: Array) -> Array:
    """Return the elements that follow one another in both of two arrays of them (`Message.runs`)."""
    if not len(taken):
        return np.empty((0, 3), np.int64)
    breaks = np.flatnonzero((np.diff(taken) != 1) | (np.diff(put) != 1)) + 1
    first = np.concatenate([[0], breaks]).astype(np.int64)
    counts = np.diff(np.concatenate([first, [len(taken)]]))
    return np.stack([taken[first], put[first], counts], axis=1)


def messages(found: Decomposition, numbers: Collection[int], parity: int) -> Iterator[Message]:
    """Yield the messages after a step of a parity to and from the parts of some numbers."""
    for face in found.faces:
        if face.source in numbers or face.target in numbers:
            yield _message(found, face, parity)


def _message(found: Decomposition, face: Face, parity: int) -> Message:
    source, target = (case_of(found.case, found.parts[number]) for number in (face.source, face.target))
    crossing = [(one, _open(found, one)) for one in transfers(found, face, parity)]
    taken = joined([_elements(source, found.config, one.slot, one.source)[open_] for one, open_ in crossing])
    put = joined([_elements(target, found.config, one.slot, one.target)[open_] for one, open_ in crossing])
    order = np.argsort(taken, kind="stable")
    return Message(face.source, face.target, taken[order], put[order])


def joined(elements: Sequence[Array]) -> Array:
    """Return elements one after another; of none, an empty array."""
    return np.concatenate([np.empty(0, np.int64), *elements])


def _open(found: Decomposition, one: Transfer) -> Array:
    """Return which of the links of a transfer no wall cuts: bool, (nz, ny, nx)."""
    if one.direction is None or one.readers is None:
        return np.ones(one.source.extents[::-1], bool)
    case = seen_by(found.case, found.config)
    return cut_kind(case, negate(case.stencil.velocities[one.direction]), one.readers.window) == OPEN


def halo_elements(part: Part, one: Simulation) -> Array:
    """Return the elements of all values of cells of the halo, but for those that links of own cells have to themselves.

    A scheme may keep the population of a cut link at the neighbour's cell, where no other cell accesses it.
    """
    stored, own = part.local(part.stored), part.local(part.box).window
    halo = np.ones(stored.extents[::-1], bool)
    halo[tuple(slice(of.start, of.stop) for of in reversed(own))] = False
    config = one.program.config
    slots = range(config.kept.values(one.case.stencil))
    elements = np.concatenate([_elements(one.case, config, slot, stored)[halo] for slot in slots])
    return np.setdiff1d(elements[elements >= 0], _of_cut_links(one, own))


def _of_cut_links(one: Simulation, window: Window) -> Array:
    """Return the elements of populations that arrive by cut links at the cells of a window, at every parity."""
    case, config = one.case, one.program.config
    if config.place_source == "fixed":
        return np.empty(0, np.int64)
    seen = seen_by(case, config)
    read = zip(case.stencil.velocities, PopulationPlaces(case, config, 0, np, window).each(), strict=True)
    return np.concatenate([place.indices[cut_kind(seen, negate(c), window) != OPEN] for c, place in read])


def _elements(case: Case, config: KernelConfig, slot: int, cells: Box) -> Array:
    """Return the element of a slot, or of a value, at each cell of the storage of a part: int64, (nz, ny, nx)."""
    return _BY_SOURCE[config.place_source](case, config, slot, cells)


def _by_scheme(case: Case, config: KernelConfig, slot: int, cells: Box) -> Array:
    return ElementIndices(case, config, cells.window, np)(Place(slot, HERE), wrap=True)


def _fixed(case: Case, config: KernelConfig, value: int, cells: Box) -> Array:
    return next(places(case, config, np, cells.window, (value,)))


def _of_sites(case: Case, config: KernelConfig, slot: int, cells: Box) -> Array:
    """Return the elements of nodes; below 0 at cells that are none."""
    node = cells_around(nodes(case, config, np).at, case.domain, cells.window, HERE, np).astype(np.int64)
    extents = config.stored_extents(case)
    elements = config.memory.along_x(node, extents) + int(config.memory.component(slot, extents))
    return np.where(node >= 0, elements, -1)


_BY_SOURCE: Mapping[str, Callable[[Case, KernelConfig, int, Box], Array]] = {
    "scheme": _by_scheme,
    "fixed": _fixed,
    "list": _of_sites,
}
