"""A program on the parts of a domain whose devices exchange directly, while they compute."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

from lbmtune.backend.protocol import Binary, Compiler, PeerDevice
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import FIRST_PLANE, Program
from lbmtune.decomposition.coupling import Coupling, coupling_refusal
from lbmtune.decomposition.parts import Decomposition, Part, case_of
from lbmtune.errors import InputError
from lbmtune.runtime.parts.decomposed import DecomposedSimulation
from lbmtune.runtime.parts.schedule import Kept, Schedule, Traffic
from lbmtune.runtime.parts.transports import End, Movers, Way, way_of

Array = Any


class CoupledSimulation(DecomposedSimulation):
    """The state of a domain in parts on devices of this process, with the exchange that a coupling describes.

    program: takes planes (`codegen.render.render_on_planes`) if its launches are to leave out the halo along z.
    """

    apart = False
    """This says if each part has a process of its own."""

    def __init__(
        self,
        program: Program,
        binary: Binary,
        devices: Sequence[PeerDevice] | Mapping[int, PeerDevice],
        found: Decomposition,
        coupling: Coupling,
        compiler: Compiler,
        *,
        poisons: bool = False,
        own: Sequence[Part] | None = None,
    ) -> None:
        """Load the program on each device and allocate its parts. Raises InputError, and as `Simulation` does."""
        super().__init__(program, binary, devices, found, poisons=poisons, own=own)
        self._planes, self._movers = FIRST_PLANE in program.arguments, Movers(compiler)
        self._schedules: dict[Coupling, Schedule] = {}
        self.couple(coupling)

    def couple(self, coupling: Coupling) -> None:
        """Exchange in another way from the next step on. Raises InputError."""
        if reason := self._refusal(coupling):
            raise InputError(f"{reason}.")
        self.synchronize()
        if coupling not in self._schedules:
            self._schedules[coupling] = Schedule(
                self, coupling, self._traffic(coupling), planes=self._planes, poisons=self._poisons
            )
        self._schedule = self._schedules[coupling]

    def _refusal(self, coupling: Coupling) -> str | None:
        found, planes, reached = self.decomposition, self._planes, not self.apart and self._reached
        return coupling_refusal(found, coupling, planes=planes, reached=reached, apart=self.apart)

    @cached_property
    def _reached(self) -> bool:
        pairs = ((self.devices[face.source], self.devices[face.target]) for face in self.decomposition.faces)
        return all(source.reaches(target) for source, target in pairs)

    def _traffic(self, coupling: Coupling) -> Traffic:
        """Return the messages: one for each face, in a queue of the device that sends it."""
        ends = [(face.source, face.target) for face in self.decomposition.faces]
        return Traffic(ends, partial(self._ways, coupling.transport))

    def _ways(self, transport: str, ends: list[End], parity: int) -> list[Way]:
        sent = self.messages_before(parity)
        return [way_of(transport, one, ends[one.source], ends[one.target], self._movers) for one in sent]

    def change_case(self, case: Case) -> None:
        """Take other values of launch arguments from the next step on (`Simulation.change_case`)."""
        self.synchronize()
        coupling, self.decomposition = self._schedule.coupling, replace(self.decomposition, case=case)
        for part, one in self._each():
            one.change_case(case_of(case, part))
        self._schedules.clear()
        self.couple(coupling)

    def step(self, steps: int) -> None:
        """Enqueue time steps, a multiple of those between two exchanges. Raises InputError for another number."""
        self._schedule.enqueue(self._exchanges(steps), "all")

    def time_s(self, steps: int, kept: Kept = "all") -> float:
        """Return the seconds of time steps from idle devices to idle devices; the state is wrong if parts are left out.

        Whatever they need is made before. Raises InputError as `step` does.
        """
        launches = self._exchanges(steps)
        self._schedule.prepare(launches, kept)
        self.synchronize()
        start = time.perf_counter()
        self._schedule.enqueue(launches, kept)
        self.synchronize()
        return time.perf_counter() - start

    def exchange_s(self, busy: int) -> float:
        """Return the seconds of an exchange alone, by events on a device; the state is wrong then (`Schedule`)."""
        self.synchronize()
        found = self._schedule.exchange_s(busy)
        self.synchronize()
        return found
