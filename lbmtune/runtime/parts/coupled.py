"""A program on the parts of a domain whose devices exchange directly, while they compute."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lbmtune.backend.protocol import Binary, Compiler, PeerDevice
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import FIRST_PLANE, Program
from lbmtune.decomposition.coupling import Coupling, coupling_refusal
from lbmtune.decomposition.parts import Decomposition, case_of
from lbmtune.errors import InputError
from lbmtune.runtime.parts.decomposed import DecomposedSimulation
from lbmtune.runtime.parts.schedule import Kept, Schedule
from lbmtune.runtime.parts.transports import Movers

Array = Any


class CoupledSimulation(DecomposedSimulation):
    """The state of a domain in parts on devices of this process, with the exchange that a coupling describes.

    program: takes planes (`codegen.render.render_on_planes`) if its launches are to leave out the halo along z.
    """

    def __init__(
        self,
        program: Program,
        binary: Binary,
        devices: Sequence[PeerDevice],
        found: Decomposition,
        coupling: Coupling,
        compiler: Compiler,
        *,
        poisons: bool = False,
    ) -> None:
        """Load the program on each device and allocate its parts. Raises InputError, and as `Simulation` does."""
        super().__init__(program, binary, devices, found, poisons=poisons)
        self._planes, self._movers = FIRST_PLANE in program.arguments, Movers(compiler)
        pairs = ((self.devices[face.source], self.devices[face.target]) for face in found.faces)
        self._reached = all(source.reaches(target) for source, target in pairs)
        self._schedules: dict[Coupling, Schedule] = {}
        self.couple(coupling)

    def couple(self, coupling: Coupling) -> None:
        """Exchange in another way from the next step on. Raises InputError."""
        if reason := coupling_refusal(self.decomposition, coupling, planes=self._planes, reached=self._reached):
            raise InputError(f"{reason}.")
        self.synchronize()
        if coupling not in self._schedules:
            self._schedules[coupling] = Schedule(
                self, coupling, self._movers, planes=self._planes, poisons=self._poisons
            )
        self._schedule = self._schedules[coupling]

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
