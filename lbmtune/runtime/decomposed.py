"""A program on the parts of a domain, which exchange what crosses their faces through the memory of the host.

Each part has the unmodified kernel on its own cells and those of its halo, which it computes redundantly. This is the
reference of faster ways to exchange.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from lbmtune.backend.protocol import Binary, Device
from lbmtune.catalogue.boundaries.cut_links import OPEN, Window, cells_around, cut_kind, seen_by
from lbmtune.catalogue.schemes.scheme import HERE, Place
from lbmtune.catalogue.sparse.nodes import nodes
from lbmtune.codegen.program import Program
from lbmtune.decomposition.boxes import Box
from lbmtune.decomposition.parts import Decomposition, Part, case_of
from lbmtune.decomposition.transfers import Transfer, transfers
from lbmtune.errors import InputError
from lbmtune.lattice import negate
from lbmtune.runtime.moments import places
from lbmtune.runtime.placement import ElementIndices, PopulationPlaces
from lbmtune.runtime.simulation import Simulation

Array = Any


class Message(NamedTuple):
    """The message of one part to another: elements of the states of both, in the same order."""

    source: int
    target: int
    taken: Array
    put: Array


class DecomposedSimulation:
    """The state of a domain in parts, each on its device.

    parts: the simulation of each part, in order. poisons: whether halos are poisoned before each exchange, so that a
    population that is missing in it shows.
    """

    def __init__(
        self,
        program: Program,
        binary: Binary,
        devices: Sequence[Device],
        found: Decomposition,
        *,
        poisons: bool = False,
    ) -> None:
        """Load the program on each device and allocate its parts. Raises as `Simulation` does."""
        self.decomposition, self._poisons = found, poisons
        self.parts = [Simulation(program, binary, devices[one.device], case_of(found.case, one)) for one in found.parts]
        self._messages: dict[int, list[Message]] = {}

    def initialise(self, populations: Array) -> None:
        """Set the state at time 0: f_i of the whole domain, not shifted, shape (q, nz, ny, nx), numpy."""
        domain = self.decomposition.case.domain
        for part, one in self._each():
            window = part.stored.window
            state = np.stack([cells_around(f, domain, window, HERE, np) for f in populations])
            one.initialise(one.xp.asarray(state))
        self.exchange()

    def step(self, steps: int) -> None:
        """Advance by time steps, a multiple of those between two exchanges. Raises InputError for another number."""
        between = self.decomposition.steps
        if steps % between:
            raise InputError(
                f"steps={steps} is not supported (use a multiple of {between}): parts exchange after each."
            )
        for _ in range(steps // between):
            for one in self.parts:
                one.step(between)
            self.exchange()

    def exchange(self) -> None:
        """Copy what crosses the faces after a step, all values being taken before any is put."""
        taken = []
        for message in self._sent:
            source = self.parts[message.source]
            source.device.synchronize()
            taken.append(_on_host(source.state[message.taken], source.xp))
        if self._poisons:
            for one, halo in zip(self.parts, self._halos, strict=True):
                one.state[halo] = one.program.config.stored.poison
        for message, values in zip(self._sent, taken, strict=True):
            target = self.parts[message.target]
            target.state[message.put] = target.xp.asarray(values)

    def populations(self) -> Array:
        """Return all f_i as float64, not shifted, shape (q, nz, ny, nx), numpy."""
        case = self.decomposition.case
        whole = np.empty((case.stencil.q, *case.domain[::-1]))
        for part, one in self._each():
            x, y, z = (slice(of.start, of.stop) for of in part.box.window)
            blocks = [_on_host(block, one.xp) for block in one.population_blocks(part.local(part.box).window)]
            whole[:, z, y, x] = np.concatenate(blocks)
        return whole

    @property
    def _sent(self) -> list[Message]:
        """The messages after the step that was the last one, made once for each parity."""
        parity = self.parts[0].parity
        if parity not in self._messages:
            period = self.decomposition.config.propagation.period
            self._messages[parity] = list(self._made((parity - 1) % period))
        return self._messages[parity]

    def _made(self, parity: int) -> Iterator[Message]:
        for face in self.decomposition.faces:
            source, target = self.parts[face.source], self.parts[face.target]
            taken, put = [], []
            for one in transfers(self.decomposition, face, parity):
                open_ = self._open(one)
                taken.append(_elements(source, one.slot, one.source)[open_])
                put.append(_elements(target, one.slot, one.target)[open_])
            yield Message(
                face.source,
                face.target,
                source.xp.asarray(np.concatenate(taken)),
                target.xp.asarray(np.concatenate(put)),
            )

    def _open(self, one: Transfer) -> Array:
        """Return which of the links of a transfer no wall cuts: bool, (nz, ny, nx)."""
        if one.direction is None or one.readers is None:
            return np.ones(one.source.extents[::-1], bool)
        case = seen_by(self.decomposition.case, self.decomposition.config)
        return cut_kind(case, negate(case.stencil.velocities[one.direction]), one.readers.window) == OPEN

    @cached_property
    def _halos(self) -> list[Array]:
        """The elements of all values of the cells of each halo."""
        return [one.xp.asarray(_halo(part, one)) for part, one in self._each()]

    def _each(self) -> Iterator[tuple[Part, Simulation]]:
        return zip(self.decomposition.parts, self.parts, strict=True)


def _halo(part: Part, one: Simulation) -> Array:
    """Return the elements of all values of cells of the halo, but for those that links of own cells have to themselves.

    A scheme may keep the population of a cut link at the neighbour's cell, where no other cell accesses it.
    """
    stored, own = part.local(part.stored), part.local(part.box).window
    halo = np.ones(stored.extents[::-1], bool)
    halo[tuple(slice(of.start, of.stop) for of in reversed(own))] = False
    slots = range(one.program.config.kept.values(one.case.stencil))
    elements = np.concatenate([_elements(one, slot, stored)[halo] for slot in slots])
    return np.setdiff1d(elements[elements >= 0], _of_cut_links(one, own))


def _of_cut_links(one: Simulation, window: Window) -> Array:
    """Return the elements of populations that arrive by cut links at the cells of a window, at every parity."""
    case, config = one.case, one.program.config
    if config.place_source == "fixed":
        return np.empty(0, np.int64)
    seen = seen_by(case, config)
    read = zip(case.stencil.velocities, PopulationPlaces(case, config, 0, np, window).each(), strict=True)
    return np.concatenate([place.indices[cut_kind(seen, negate(c), window) != OPEN] for c, place in read])


def _elements(one: Simulation, slot: int, cells: Box) -> Array:
    """Return the element of a slot, or of a value, at each cell of the storage of a part: int64, (nz, ny, nx)."""
    return _BY_SOURCE[one.program.config.place_source](one, slot, cells)


def _by_scheme(one: Simulation, slot: int, cells: Box) -> Array:
    return ElementIndices(one.case, one.program.config, cells.window, np)(Place(slot, HERE), wrap=True)


def _fixed(one: Simulation, value: int, cells: Box) -> Array:
    return list(places(one.case, one.program.config, np, cells.window))[value]


def _of_sites(one: Simulation, slot: int, cells: Box) -> Array:
    """Return the elements of nodes; below 0 at cells that are none."""
    case, config = one.case, one.program.config
    node = cells_around(nodes(case, config, np).at, case.domain, cells.window, HERE, np).astype(np.int64)
    extents = config.stored_extents(case)
    elements = config.memory.along_x(node, extents) + int(config.memory.component(slot, extents))
    return np.where(node >= 0, elements, -1)


_BY_SOURCE: Mapping[str, Any] = {"scheme": _by_scheme, "fixed": _fixed, "list": _of_sites}


def _on_host(values: Array, xp: Any) -> Array:
    return values if xp is np else xp.asnumpy(values)
