"""A device that forwards every request to another one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType

from lbmtune.backend.protocol import Array, Binary, Device, Executable, Placing
from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.program import Program
from lbmtune.records import Conditions, Environment


class WrappedDevice:
    """Forwards the `Device` protocol to `device`; subclasses override what they change."""

    def __init__(self, device: Device) -> None:
        self.device = device

    @property
    def xp(self) -> ModuleType:
        """The array module, numpy or cupy."""
        return self.device.xp

    @property
    def limits(self) -> Limits:
        """The limits of the device."""
        return self.device.limits

    @property
    def environment(self) -> Environment:
        """The environment of the device."""
        return self.device.environment

    def empty(self, elements: int, dtype: str, placing: Placing | None = None) -> Array:
        """Allocate an array (`Device.empty`)."""
        return self.device.empty(elements, dtype, placing)

    def host_empty(self, elements: int, dtype: str) -> Array:
        """Allocate an array in host memory (`Device.host_empty`)."""
        return self.device.host_empty(elements, dtype)

    def load(self, program: Program, binary: Binary) -> Executable:
        """Load a binary (`Device.load`)."""
        return self.device.load(program, binary)

    def synchronize(self) -> None:
        """Wait for all enqueued work."""
        self.device.synchronize()

    def time_s(self, run: Callable[[], None]) -> float:
        """Time one run (`Device.time_s`)."""
        return self.device.time_s(run)

    def slices_s(self, run: Callable[[], None], count: int, look: Callable[[], None]) -> list[float]:
        """Time consecutive runs (`Device.slices_s`)."""
        return self.device.slices_s(run, count, look)

    def conditions(self) -> Conditions:
        """Return clocks, power, temperature and throttle reasons."""
        return self.device.conditions()

    def datasheet_bytes_per_s(self) -> float | None:
        """Return bus width times memory clock, if known."""
        return self.device.datasheet_bytes_per_s()

    def marked(self, name: str) -> AbstractContextManager[None]:
        """Mark a range in the timeline of a profiler."""
        return self.device.marked(name)

    def looked_at(self) -> AbstractContextManager[None]:
        """Switch on the counters of a profiler that waits for it."""
        return self.device.looked_at()

    def energy_j(self) -> float | None:
        """Return the energy counter, if there is one."""
        return self.device.energy_j()
