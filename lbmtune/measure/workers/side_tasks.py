"""Side tasks of a simulation whose cost is measured: store, save or compare macroscopic fields, stage the domain.

De Oliveira, Lugarini, Franco 2019, section 4: the kernel of a step writes density and velocity; they are copied to
the host to be saved, or the host compares them with the previous ones while the device goes on. On a CPU a pass of its
own computes them between two steps (`timing.output`).
Valero-Lara 2017: a domain larger than the device memory stays on the host, and its parts pass through the device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from math import lcm
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from lbmtune.backend.protocol import Array, Binary, Device, Placing
from lbmtune.backend.registry import compiler_for
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.footprint import MACROSCOPIC_FIELDS
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.own_program import OwnProgram
from lbmtune.codegen.passes import REFRESH
from lbmtune.codegen.program import MACROSCOPICS as FIELDS
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.render import with_walls
from lbmtune.measure.timing.host_output import FieldFile, residual, to_host
from lbmtune.measure.timing.pooled_device import PooledDevice, WrappedDevice, pooled_bytes
from lbmtune.measure.timing.state import stable_case
from lbmtune.records.output import MACROSCOPICS, RESIDUAL, SAVE
from lbmtune.runtime import Simulation
from lbmtune.runtime.own_kernel import OwnSimulation
from lbmtune.runtime.simulation import Plan

if TYPE_CHECKING:  # workers start often, and its import takes long
    from lbmtune.records.claims import SideTask

PARTS = 2
"""Parts of a staged domain, as in Valero-Lara 2017."""


def with_side_task(program: Program, side_task: SideTask | None) -> Program:
    """Return the program with the entries that a side task needs. Only CUDA kernels write fields in a step."""
    if side_task is None or side_task.kind in ("staged", "refresh") or program.with_macroscopics:
        return program
    if _between_steps(side_task, program):
        return program
    if side_task.kind == "walls":
        return with_walls(program)
    from lbmtune.codegen.cuda.direct.macroscopics import with_macroscopics  # here: its import takes long

    return with_macroscopics(program)


def _between_steps(side_task: SideTask, program: Program) -> bool:
    """Return whether fields are computed between two steps, in place of by the kernel of a step."""
    return side_task.kind in (MACROSCOPICS, SAVE, RESIDUAL) and BACKENDS[program.target].shares_host


def simulation_with(
    side_task: SideTask | None, program: Program, binary: Binary, device: Device, case: Case
) -> Simulation:
    """Create a simulation with a side task. Raises OutOfMemoryError, TooManyResourcesError."""
    if isinstance(program, OwnProgram):
        return OwnSimulation(program, binary, device, case)
    if side_task is None:
        return Simulation(program, binary, device, case)
    if _between_steps(side_task, program):
        return Reporting(program, binary, device, case, side_task)
    kind = _SIMULATIONS[side_task.kind]
    every = (side_task.every,) if issubclass(kind, Storing) else ()
    return kind(program, binary, device, case, *every)


def pooled_simulations(
    device: PooledDevice, programs: Sequence[tuple[Program, Binary, SideTask | None]]
) -> list[Simulation]:
    """Create simulations on the case's own domain, all in the same memory."""
    device.reset(max(pooled_bytes(program.array_bytes(program.case.domain)) for program, _, _ in programs))
    simulations = []
    for program, binary, side_task in programs:
        device.reset(pooled_bytes(program.array_bytes(program.case.domain)))
        simulations.append(simulation_with(side_task, program, binary, device, stable_case(program.case)))
    return simulations


class Storing(Simulation):
    """Stores density and velocity of the state before every n-th step in device memory."""

    def __init__(self, program: Program, binary: Binary, device: Device, case: Case, every: int) -> None:
        super().__init__(program, binary, device, case)
        self._every = every
        self._storing = self._planned(program.with_macroscopics)

    @property
    def cycle_steps(self) -> int:
        """Return the time steps of a cycle, in which the side task is due at least once."""
        return lcm(self.parity_steps, self._every)

    def step(self, steps: int) -> None:
        """Enqueue time steps; the side task is due in the last of each interval."""
        for _ in range(steps):
            due = (self.steps_done + 1) % self._every == 0
            self._advance(self._storing if due else self._plan)
            if due:
                self._process()

    @property
    def macroscopics(self) -> Array:
        """Return the density and velocity stored last, shape (4, nz, ny, nx)."""
        nx, ny, nz = self.case.domain
        return self.outputs[FIELDS].reshape(MACROSCOPIC_FIELDS, nz, ny, nx)

    def _process(self) -> None:
        """Process the fields on the host; here: not at all."""

    def _outputs(self) -> dict[str, Array]:
        device = _unpooled(self.device)
        fields = device.empty(MACROSCOPIC_FIELDS * self.case.sites, self.program.config.computed.dtype)
        fields.fill(np.nan)
        return {FIELDS: fields}


class Saving(Storing):
    """Copies the stored fields to the host and writes them to a file (`FieldFile`)."""

    def __init__(self, program: Program, binary: Binary, device: Device, case: Case, every: int) -> None:
        super().__init__(program, binary, device, case, every)
        self.host = device.host_empty(MACROSCOPIC_FIELDS * self.case.sites, program.config.computed.dtype)
        self.file = FieldFile()

    def _process(self) -> None:
        to_host(self.outputs[FIELDS], self.host)
        self.file.write(self.host)


class Comparing(Storing):
    """Has the host compute the residual of the velocity while the device goes on, one at a time."""

    def __init__(self, program: Program, binary: Binary, device: Device, case: Case, every: int) -> None:
        super().__init__(program, binary, device, case, every)
        size, kind = MACROSCOPIC_FIELDS * self.case.sites, program.config.computed.dtype
        self._now, self._before = (device.host_empty(size, kind) for _ in range(2))
        self._before.fill(0)
        self._worker = ThreadPoolExecutor(1)
        self._pending: Future[float] | None = None

    @property
    def residual(self) -> float:
        """Return the last residual, for which it waits."""
        assert self._pending is not None
        return self._pending.result()

    def _process(self) -> None:
        if self._pending is not None:
            self._pending.result()
            self._now, self._before = self._before, self._now
        to_host(self.outputs[FIELDS], self._now)
        velocities = (array[self.case.sites :] for array in (self._now, self._before))
        self._pending = self._worker.submit(residual, *velocities)


class Reporting(Simulation):
    """Has output of the state after every n-th step, by a pass of its own between two steps."""

    def __init__(self, program: Program, binary: Binary, device: Device, case: Case, side_task: SideTask) -> None:
        super().__init__(program, binary, device, case)
        from lbmtune.measure.timing.output import Outputs  # here: its import takes long

        self._every = side_task.every
        self.output = Outputs(self, _unpooled(device), compiler_for(device.environment), None)
        self._act = self.output.kinds[side_task.kind]

    def check(self) -> None:
        """Raise WrongResultError if the fields of the state are not those of its populations."""
        from lbmtune.measure.timing.output import check_fields

        check_fields(self, self.output.fields())

    @property
    def cycle_steps(self) -> int:
        """Return the time steps of a cycle, in which the side task is due at least once."""
        return lcm(super().cycle_steps, self._every)

    def step(self, steps: int) -> None:
        """Enqueue time steps; the side task is due after the last of each interval."""
        while steps:
            until_due = self._every - self.steps_done % self._every
            taken = min(steps, until_due)
            super().step(taken)
            steps -= taken
            if taken == until_due:
                self._act()


def _unpooled(device: Device) -> Device:
    """Return the device on which fields are allocated.

    They are not pooled: other simulations would start from densities of one instead of small deviations.
    """
    return device.device if isinstance(device, PooledDevice) else device


class Refreshing(Simulation):
    """Refreshes ghost cells twice in a row: the second refresh changes nothing and costs as much as the first."""

    def _planned(self, period: Sequence[Sequence[Launch]]) -> Plan:
        return super()._planned([[one for launch in step for one in _twice(launch)] for step in period])


def _twice(launch: Launch) -> tuple[Launch, ...]:
    return (launch, launch) if launch.entry.startswith(REFRESH) else (launch,)


class _HostSide(WrappedDevice):
    """Host memory in place of device memory; nothing runs there."""

    @property
    def xp(self) -> ModuleType:
        return np

    def empty(self, elements: int, dtype: str, _placing: Placing | None = None) -> Array:
        return self.device.host_empty(elements, dtype)


class Staged(Simulation):
    """Keeps the state on the host; in each step its parts pass through the device in order.

    For pull or push in SoA, periodic along the slowest axis. Copies and kernels do not overlap.
    """

    def __init__(self, program: Program, binary: Binary, device: Device, case: Case) -> None:
        super().__init__(program, binary, _HostSide(device), case)
        assert len(self.buffers) == 2
        assert self.state.size == case.stencil.q * case.sites, "SoA without padding"
        self._axis = case.stencil.dimensions - 1
        assert case.faces[2 * self._axis] == "periodic"
        extent = case.domain[self._axis]
        thick = -(-extent // PARTS)
        self._parts = [range(start, min(start + thick, extent)) for start in range(0, extent, thick)]
        self._inner = {len(part): self._slab(program, binary, device, len(part)) for part in self._parts}

    def step(self, steps: int) -> None:
        """Take time steps; in each one the whole domain passes through the device."""
        for _ in range(steps):
            names = self.program.buffers()
            source, target = (self._layers(self.buffers[names[(self.steps_done + n) % 2]]) for n in (0, 1))
            for part in self._parts:
                self._pass_through(part, source, target)
            self.steps_done += 1

    def _slab(self, program: Program, binary: Binary, device: Device, thick: int) -> Simulation:
        """Create the simulation of a part with a layer of neighbours on either side."""
        domain = list(self.case.domain)
        domain[self._axis] = thick + 2
        slab = replace(self.case, domain=(domain[0], domain[1], domain[2]))
        return Simulation(program, binary, device, slab)

    def _layers(self, buffer: Array) -> Array:
        """Return a buffer as (direction, layer across the slowest axis, cell of the layer)."""
        q, layers = self.case.stencil.q, self.case.domain[self._axis]
        return buffer.reshape(q, -1, self.case.sites // layers)

    def _pass_through(self, part: range, source: Array, target: Array) -> None:
        inner, layers = self._inner[len(part)], source.shape[1]
        inner.steps_done = 0
        there = inner.state.reshape(len(source), len(part) + 2, -1)
        for q in range(len(source)):
            for here, device in _runs(part, layers):
                to_device(source[q, here], there[q, device])
        inner.step(1)
        back = inner.state.reshape(there.shape)
        for q in range(len(source)):
            to_host(back[q, 1:-1], target[q, part.start : part.stop])


def _runs(part: range, layers: int) -> Iterator[tuple[slice, slice]]:
    """Yield the layers of a part and of its neighbours, on the host and on the device."""
    before, after = (part.start - 1) % layers, part.stop % layers
    yield slice(before, before + 1), slice(0, 1)
    yield slice(part.start, part.stop), slice(1, len(part) + 1)
    yield slice(after, after + 1), slice(len(part) + 1, len(part) + 2)


def to_device(source: Array, target: Array) -> None:
    """Copy contiguous elements from the host to the device."""
    if isinstance(target, np.ndarray):
        target[...] = source
    else:
        target.set(source)


_SIMULATIONS: Mapping[str, type[Simulation]] = {
    "staged": Staged,
    "refresh": Refreshing,
    "macroscopics": Storing,
    "save": Saving,
    "residual": Comparing,
    "walls": Simulation,
}
