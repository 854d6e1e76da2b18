"""The devices of a measurement, their compiler and the time that is left."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from math import inf
from typing import Any

from lbmtune.backend.protocol import Binary, Compiler, PeerDevice
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render, render_on_planes
from lbmtune.cores import usable_cores
from lbmtune.decomposition.coupling import Coupling
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import decomposed
from lbmtune.measure.timing.state import excite
from lbmtune.runtime.parts.coupled import CoupledSimulation
from lbmtune.runtime.simulation import Simulation
from scripts.measurements.couplings.groups import Group

ROUNDS = 5
"""Rounds of a proof: a graph, and one that is launched by itself."""


class Laboratory:
    """Devices with a compiler, and the time that is left. Kernels of later groups are compiled meanwhile."""

    def __init__(self, devices: Sequence[PeerDevice], compiler: Compiler, seconds: float) -> None:
        self.devices, self._compiler = devices, compiler
        self._end, self._begin = time.monotonic() + seconds, time.monotonic()
        self._made: dict[str, Future[Binary]] = {}
        self._pool = ThreadPoolExecutor(max(2, usable_cores() // 2))

    @property
    def left_s(self) -> float:
        """Return the seconds that are left."""
        return self._end - time.monotonic()

    def say(self, *words: object) -> None:
        """Print words behind the time."""
        print(f"{time.monotonic() - self._begin:6.1f}", *words, flush=True)

    def close(self) -> None:
        """Compile nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def programs(self, group: Group, case: Case) -> tuple[Program, Program]:
        """Return the kernel of one device and that of parts, which are compiled from now on."""
        alone = render(case, group.kernel)
        taking = render_on_planes(alone) or alone
        for one in (alone, taking):
            if one.digest not in self._made:
                self._made[one.digest] = self._pool.submit(self._compiler, one)
        return alone, taking

    def binary(self, program: Program) -> Binary:
        """Return a compiled kernel."""
        if program.digest in self._made:
            with suppress(Exception):  # it is compiled again, and by itself
                return self._made[program.digest].result()
        return self._compiler(program)

    def alone(self, group: Group, case: Case) -> Simulation:
        """Return the first device with a case."""
        program, _ = self.programs(group, case)
        with self.devices[0].current():
            return Simulation(program, self.binary(program), self.devices[0])

    def parts(self, group: Group, case: Case, coupling: Coupling, *, poisons: bool = False) -> CoupledSimulation:
        """Return as many devices as the group has with a case."""
        _, program = self.programs(group, case)
        found = decomposed(case, group.kernel, parse_cut(group.cut), group.launches * group.kernel.fused_steps)
        return CoupledSimulation(
            program, self.binary(program), self.devices[: group.devices], found, coupling, self.binary, poisons=poisons
        )

    def free(self) -> None:
        """Return the memory of all that is gone."""
        gc.collect()
        for device in self.devices:
            with device.current():
                device.synchronize()
                if hasattr(device.xp, "get_default_memory_pool"):
                    device.xp.get_default_memory_pool().free_all_blocks()


class Repeated:
    """Parts that start from the same state with each coupling, and the state that the first coupling leaves.

    Launches update some planes, or all couplings are without overlap: then halos are equal, too.
    """

    def __init__(self, parts: CoupledSimulation) -> None:
        self._parts = parts
        for one in self._current():
            excite(one)
        parts.exchange()
        self._start = [{name: one.xp.array(buffer) for name, buffer in one.buffers.items()} for one in self._current()]
        self._first: list[Any] = []

    def different(self, coupling: Coupling) -> tuple[int, float]:
        """Return how many elements a coupling leaves otherwise than the first one did, and the largest difference.

        The latter is infinite if the values of elements have no difference as they are stored.
        """
        parts = self._parts
        for one, start in zip(self._current(), self._start, strict=True):
            one.steps_done = 0
            for name, values in start.items():
                one.buffers[name][...] = values
        parts.synchronize()
        parts.couple(coupling)
        parts.step(ROUNDS * parts.decomposition.steps)
        parts.synchronize()
        if not self._first:
            self._first = [one.xp.array(one.state) for one in self._current()]
        count, worst = 0, 0.0
        for one, first in zip(self._current(), self._first, strict=True):
            words = f"uint{8 * first.itemsize}"
            apart = int(one.xp.count_nonzero(first.view(words) != one.state.view(words)))
            if apart:
                numbers = first.dtype.kind == "f" and first.itemsize > 2
                worst = max(worst, float(one.xp.nanmax(abs(first - one.state))) if numbers else inf)
            count += apart
        return count, worst

    def _current(self) -> Iterator[Simulation]:
        for one, device in zip(self._parts.parts, self._parts.devices, strict=True):
            with device.current():
                yield one
