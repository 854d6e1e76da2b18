"""One allocation that all trials of a measurer share: none pays for fresh pages, and all run in the same ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from lbmtune.backend.protocol import Array, Binary, Device, Executable, OutOfMemoryError, Placing
from lbmtune.catalogue.byte_lru_cache import forget_all
from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.program import Program
from lbmtune.records import Conditions, Environment

if TYPE_CHECKING:
    from lbmtune.measure.timing.interference_monitor import Gauge

ALIGNMENT_BYTES = 1 << 21


class Arena:
    """A device whose arrays are cut from one block that grows with need; `reset` gives it all back."""

    def __init__(self, device: Device, make_gauge: Callable[[], Gauge] | None = None) -> None:
        """make_gauge: of what changes beside the samples on this device, if anything does; asked when first needed."""
        self.device, self._make_gauge = device, make_gauge
        self._block: Array | None = None
        self._used_bytes = 0
        self._loaded: tuple[tuple[str, str, str], Executable] | None = None

    def reset(self, bytes_needed: int = 0) -> None:
        """Forgets every array handed out, and sees to a block of some bytes. Raises OutOfMemoryError."""
        self._used_bytes = 0
        if self._block is None or self._block.size < bytes_needed:
            self._block = None  # the old block goes before the new one is asked for
            self._block = self._asked_for(bytes_needed, "uint8")

    def empty(self, elements: int, dtype: str, placing: Placing | None = None) -> Array:
        """A part of the block where there is room, else memory of its own. Raises OutOfMemoryError.

        Where a configuration says how memory is placed, it has fresh pages, and the block is given back for them.
        """
        if placing:
            self._block = None
            return self._asked_for(elements, dtype, placing)
        size = elements * np.dtype(dtype).itemsize
        start = -(-self._used_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        if self._block is None or start + size > self._block.size:
            return self._asked_for(elements, dtype)
        self._used_bytes = start + size
        return self._block[start : start + size].view(dtype)

    def _asked_for(self, elements: int, dtype: str, placing: Placing | None = None) -> Array:
        """Memory of the device; where there is none left, what is remembered between trials makes room."""
        try:
            return self.device.empty(elements, dtype, placing)
        except (OutOfMemoryError, MemoryError):
            forget_all()
            return self.device.empty(elements, dtype, placing)

    def host_empty(self, elements: int, dtype: str) -> Array:
        """As the device does."""
        return self.device.host_empty(elements, dtype)

    @property
    def xp(self) -> ModuleType:
        """The array module of the device."""
        return self.device.xp

    @property
    def limits(self) -> Limits:
        """Of the device."""
        return self.device.limits

    @property
    def environment(self) -> Environment:
        """Of the device."""
        return self.device.environment

    def load(self, program: Program, binary: Binary) -> Executable:
        """As the device does; what was loaded last is remembered, since it is verified and then timed."""
        key = (program.config.key, program.digest, binary.digest)
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = None
            self._loaded = (key, self.device.load(program, binary))
        return self._loaded[1]

    def synchronize(self) -> None:
        """As the device does."""
        self.device.synchronize()

    def time_s(self, run: Callable[[], None]) -> float:
        """As the device does."""
        return self.device.time_s(run)

    def slices_s(self, run: Callable[[], None], count: int, look: Callable[[], None]) -> list[float]:
        """As the device does."""
        return self.device.slices_s(run, count, look)

    def conditions(self) -> Conditions:
        """As the device does."""
        return self.device.conditions()

    @cached_property
    def gauge(self) -> Gauge | None:
        """Looks at what the device does right after a sample; None where nobody else has a part of it."""
        return self._make_gauge() if self._make_gauge else None

    def datasheet_bytes_per_s(self) -> float | None:
        """As the device does."""
        return self.device.datasheet_bytes_per_s()

    def marked(self, name: str) -> AbstractContextManager[None]:
        """As the device does."""
        return self.device.marked(name)

    def looked_at(self) -> AbstractContextManager[None]:
        """As the device does."""
        return self.device.looked_at()

    def energy_j(self) -> float | None:
        """As the device does."""
        return self.device.energy_j()


def arena_bytes(sizes_bytes: list[int]) -> int:
    """Room for arrays of these sizes, with their alignment."""
    return sum(-(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES for size in sizes_bytes)
