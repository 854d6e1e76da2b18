"""A program on the parts of a domain, which exchange what crosses their faces through the memory of the host.

Each part has the unmodified kernel on its own cells and those of its halo, which it computes redundantly. This is the
reference of faster ways to exchange (`runtime.parts.coupled`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Binary, PeerDevice
from lbmtune.catalogue.boundaries.cut_links import cells_around
from lbmtune.catalogue.schemes.scheme import HERE
from lbmtune.codegen.program import Program
from lbmtune.decomposition.parts import Decomposition, Part, case_of
from lbmtune.errors import InputError
from lbmtune.runtime.parts.messages import Message, halo_elements, messages
from lbmtune.runtime.simulation import Simulation

Array = Any


class DecomposedSimulation:
    """The state of a domain in parts, each on its device.

    own: the parts of this process, all unless others have some; parts: their simulations, in that order. poisons:
    whether halos are poisoned before each exchange, so that a population that is missing in it shows.
    """

    def __init__(
        self,
        program: Program,
        binary: Binary,
        devices: Sequence[PeerDevice] | Mapping[int, PeerDevice],
        found: Decomposition,
        *,
        poisons: bool = False,
        own: Sequence[Part] | None = None,
    ) -> None:
        """Load the program on each device and allocate its parts. Raises as `Simulation` does."""
        self.decomposition, self._poisons = found, poisons
        self.own = found.parts if own is None else tuple(own)
        self.devices = [devices[one.device] for one in self.own]
        self.parts: list[Simulation] = []
        for part, device in zip(self.own, self.devices, strict=True):
            case = case_of(found.case, part)
            of_part = replace(program, case=case)  # sites of an index list are those of its own solid cells
            with device.current():
                self.parts.append(Simulation(of_part, binary, device, case))
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
        for _ in range(self._exchanges(steps)):
            for _, one in self._each():
                one.step(self.decomposition.steps)
            self.exchange()

    def _exchanges(self, steps: int) -> int:
        between = self.decomposition.steps
        if steps % between:
            raise InputError(
                f"steps={steps} is not supported (use a multiple of {between}): parts exchange after each."
            )
        return steps // between

    def exchange(self) -> None:
        """Copy what crosses the faces after a step, all values being taken before any is put."""
        self.synchronize()
        taken = []
        for message in self._sent:
            source = self.parts[message.source]
            with self.devices[message.source].current():
                taken.append(_on_host(source.state[source.xp.asarray(message.taken)], source.xp))
        if self._poisons:
            for (_, one), halo in zip(self._each(), self._halos, strict=True):
                one.state[halo] = one.program.config.stored.poison
        for message, values in zip(self._sent, taken, strict=True):
            target = self.parts[message.target]
            with self.devices[message.target].current():
                target.state[target.xp.asarray(message.put)] = target.xp.asarray(values)
        self.synchronize()

    def synchronize(self) -> None:
        """Wait for all devices."""
        for _, one in self._each():
            one.device.synchronize()

    def populations(self) -> Array:
        """Return all f_i as float64, not shifted, shape (q, nz, ny, nx), numpy; NaN in parts of other processes."""
        case = self.decomposition.case
        whole = np.full((case.stencil.q, *case.domain[::-1]), np.nan)
        self.synchronize()
        for part, one in self._each():
            x, y, z = (slice(of.start, of.stop) for of in part.box.window)
            blocks = [_on_host(block, one.xp) for block in one.population_blocks(part.local(part.box).window)]
            whole[:, z, y, x] = np.concatenate(blocks)
        return whole

    @property
    def device_count(self) -> int:
        """Return the number of devices that parts are on."""
        return len({id(device) for device in self.devices})

    def largest(self, value: float) -> float:
        """Return the largest value of all processes that have parts."""
        return value

    @property
    def held(self) -> Array:
        """Return which cells of the domain lie in parts of this process: bool, (nz, ny, nx), numpy."""
        cells = np.zeros(self.decomposition.case.domain[::-1], bool)
        for part in self.own:
            cells[tuple(slice(of.start, of.stop) for of in reversed(part.box.window))] = True
        return cells

    @property
    def _sent(self) -> list[Message]:
        """The messages after the step that was the last one, made once for each parity."""
        return self.messages_before(self.parts[0].parity)

    def messages_before(self, parity: int) -> list[Message]:
        """Return the messages before a step of a parity."""
        if parity not in self._messages:
            period = self.decomposition.config.propagation.period
            here = {part.number for part in self.own}
            self._messages[parity] = list(messages(self.decomposition, here, (parity - 1) % period))
        return self._messages[parity]

    @cached_property
    def halos(self) -> list[Array]:
        """Return the elements of all values of the cells of the halo of each part, in host memory."""
        return [halo_elements(*each) for each in zip(self.own, self.parts, strict=True)]

    @cached_property
    def _halos(self) -> list[Array]:
        """Return the elements of the halo of each part, on its device."""
        return [one.xp.asarray(halo) for (_, one), halo in zip(self._each(), self.halos, strict=True)]

    def _each(self) -> Iterator[tuple[Part, Simulation]]:
        """Yield each part while its device is the current one."""
        for part, one, device in zip(self.own, self.parts, self.devices, strict=True):
            with device.current():
                yield part, one


def _on_host(values: Array, xp: Any) -> Array:
    return values if xp is np else xp.asnumpy(values)
