"""What a simulation does besides stepping, so that its price can be measured: storing, saving, comparing, staging.

De Oliveira, Lugarini, Franco 2019, section 4: density and velocity are written by the kernel of a step, copied to
the host to be saved, or compared with those of the time before by the host while the device goes on.
Valero-Lara 2017: a domain that does not fit stays on the host, and its parts pass through the device each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import lcm, sqrt
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from lbmtune.backend.protocol import Array, Binary, Device, Executable, Placing
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.footprint import MACROSCOPIC_FIELDS
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.passes import REFRESH
from lbmtune.codegen.program import MACROSCOPICS, Launch, Program
from lbmtune.measure.timing.pooled_device import Arena
from lbmtune.records import Environment
from lbmtune.runtime import Simulation
from lbmtune.runtime.simulation import Plan

if TYPE_CHECKING:  # it takes long to load, and workers start often
    from lbmtune.records.claims import Duty

PARTS = 2
"""Into which a staged domain is cut, as by Valero-Lara."""
_FIELDS = MACROSCOPIC_FIELDS


def equipped(program: Program, duty: Duty | None) -> Program:
    """The program with the entries that a duty needs."""
    if duty is None or duty.kind in ("staged", "refresh") or program.with_macroscopics:
        return program
    from lbmtune.codegen.cuda.direct.macroscopics import with_macroscopics

    assert isinstance(program.config, CudaConfig), "CPU kernels have no entries that store"
    return with_macroscopics(program)


def simulated(program: Program, binary: Binary, device: Device, case: Case, duty: Duty | None) -> Simulation:
    """A simulation with its duty. Raises OutOfMemoryError, TooManyResourcesError."""
    if duty is None:
        return Simulation(program, binary, device, case)
    if duty.kind == "staged":
        return Staged(program, binary, device, case)
    if duty.kind == "refresh":
        return Refreshing(program, binary, device, case)
    kinds = {"macroscopics": Storing, "save": Saving, "residual": Comparing}
    return kinds[duty.kind](program, binary, device, case, duty.every)


class Storing(Simulation):
    """Density and velocity of the state before every n-th step are left in the device's memory."""

    def __init__(self, program: Program, binary: Binary, device: Device, case: Case, every: int) -> None:
        super().__init__(program, binary, device, case)
        self._every = every
        self._storing = self._planned(program.with_macroscopics)

    @property
    def cycle_steps(self) -> int:
        """A duty falls due once in a cycle, at the least."""
        return lcm(self.parity_steps, self._every)

    def step(self, steps: int) -> None:
        """Enqueues time steps; the duty falls due in the last of each `every`."""
        for _ in range(steps):
            due = (self.steps_done + 1) % self._every == 0
            self._advance(self._storing if due else self._plan)
            if due:
                self._perform()

    @property
    def macroscopics(self) -> Array:
        """Density and velocity as stored last, (4, nz, ny, nx)."""
        nx, ny, nz = self.case.domain
        return self.outputs[MACROSCOPICS].reshape(_FIELDS, nz, ny, nx)

    def _perform(self) -> None:
        """What follows: nothing."""

    def _outputs(self) -> dict[str, Array]:
        # not from the arena: other simulations would find ones there, which are no small noise
        own = self.device.device if isinstance(self.device, Arena) else self.device
        fields = own.empty(_FIELDS * self.case.sites, self.program.config.computed.dtype)
        fields.fill(np.nan)
        return {MACROSCOPICS: fields}


class Saving(Storing):
    """And they are copied to the host; writing the file is left to the disk that one has."""

    def __init__(self, program: Program, binary: Binary, device: Device, case: Case, every: int) -> None:
        super().__init__(program, binary, device, case, every)
        self.host = device.host_empty(_FIELDS * self.case.sites, program.config.computed.dtype)

    def _perform(self) -> None:
        to_host(self.outputs[MACROSCOPICS], self.host)


class Comparing(Storing):
    """And the host computes the residual of the velocity while the device goes on, at most one at a time."""

    def __init__(self, program: Program, binary: Binary, device: Device, case: Case, every: int) -> None:
        super().__init__(program, binary, device, case, every)
        size, kind = _FIELDS * self.case.sites, program.config.computed.dtype
        self._now, self._before = (device.host_empty(size, kind) for _ in range(2))
        self._before.fill(0)
        self._worker = ThreadPoolExecutor(1)
        self._pending: Future[float] | None = None

    @property
    def residual(self) -> float:
        """The last one; waits for it."""
        assert self._pending is not None
        return self._pending.result()

    def _perform(self) -> None:
        if self._pending is not None:
            self._pending.result()
            self._now, self._before = self._before, self._now
        to_host(self.outputs[MACROSCOPICS], self._now)
        velocities = (array[self.case.sites :] for array in (self._now, self._before))
        self._pending = self._worker.submit(residual, *velocities)


class Refreshing(Simulation):
    """Ghost cells are refreshed twice in a row: the second time changes nothing and costs what the first one did."""

    def _planned(self, period: Sequence[Sequence[Launch]]) -> Plan:
        return super()._planned([[one for launch in step for one in _twice(launch)] for step in period])


def _twice(launch: Launch) -> tuple[Launch, ...]:
    return (launch, launch) if launch.entry.startswith(REFRESH) else (launch,)


def residual(velocity: Array, before: Array) -> float:
    """Root of the sum of squared changes over that of squares; infinite for a flow at rest.

    Source: de Oliveira, Lugarini, Franco 2019, equation 7.
    """
    change, size = (float(np.dot(a, a)) for a in (velocity - before, velocity))
    return sqrt(change / size) if size else float("inf")


@dataclass(frozen=True)
class _HostSide:
    """The host's memory in the place of the device's; nothing runs there."""

    device: Device

    @property
    def xp(self) -> ModuleType:
        return np

    @property
    def limits(self) -> Any:
        return self.device.limits

    @property
    def environment(self) -> Environment:
        return self.device.environment

    def empty(self, elements: int, dtype: str, _placing: Placing | None = None) -> Array:
        return self.device.host_empty(elements, dtype)

    def host_empty(self, elements: int, dtype: str) -> Array:
        return self.device.host_empty(elements, dtype)

    def load(self, program: Program, binary: Binary) -> Executable:
        return self.device.load(program, binary)

    def synchronize(self) -> None:
        self.device.synchronize()

    def time_s(self, run: Any) -> float:
        return self.device.time_s(run)

    def slices_s(self, run: Any, count: int, look: Any) -> list[float]:
        return self.device.slices_s(run, count, look)

    def conditions(self) -> Any:
        return self.device.conditions()

    def datasheet_bytes_per_s(self) -> float | None:
        return self.device.datasheet_bytes_per_s()

    def marked(self, name: str) -> Any:
        return self.device.marked(name)

    def looked_at(self) -> Any:
        return self.device.looked_at()

    def energy_j(self) -> float | None:
        return self.device.energy_j()


class Staged(Simulation):
    """The state lies on the host; each step, its parts pass through the device one after the other.

    For pull or push in SoA, without walls across the slowest axis. Copies and kernels do not overlap.
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
        """Time steps, each of them a passage of the whole domain."""
        for _ in range(steps):
            names = self.program.buffers()
            source, target = (self._layers(self.buffers[names[(self.steps_done + n) % 2]]) for n in (0, 1))
            for part in self._parts:
                self._pass_through(part, source, target)
            self.steps_done += 1

    def _slab(self, program: Program, binary: Binary, device: Device, thick: int) -> Simulation:
        """A part with a layer of neighbours on either side."""
        domain = list(self.case.domain)
        domain[self._axis] = thick + 2
        slab = replace(self.case, domain=(domain[0], domain[1], domain[2]))
        return Simulation(program, binary, device, slab)

    def _layers(self, buffer: Array) -> Array:
        """A buffer as (direction, layer across the slowest axis, cell of the layer)."""
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
    """Layers of a part and of its neighbours: where on the host, where on the device."""
    before, after = (part.start - 1) % layers, part.stop % layers
    yield slice(before, before + 1), slice(0, 1)
    yield slice(part.start, part.stop), slice(1, len(part) + 1)
    yield slice(after, after + 1), slice(len(part) + 1, len(part) + 2)


def to_device(source: Array, target: Array) -> None:
    """Copies adjacent elements of the host to the device."""
    if isinstance(target, np.ndarray):
        target[...] = source
    else:
        target.set(source)


def to_host(source: Array, target: Array) -> None:
    """Copies adjacent elements of the device to the host, and waits for them."""
    if isinstance(source, np.ndarray):
        target[...] = source
    else:
        source.get(out=target)
