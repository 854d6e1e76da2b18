"""A device whose trials share one allocation, so that no trial is charged for fresh pages."""

from collections.abc import Callable
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Array, Binary, Device, Executable, OutOfMemoryError, Placing
from lbmtune.catalogue.byte_lru_cache import forget_all
from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.program import Program
from lbmtune.records import Conditions, Environment

ALIGNMENT_BYTES = 1 << 21


Monitor = Callable[[Conditions, float], Conditions]
"""Adds what a shared host delivers now to the conditions of a sample that took some seconds."""


def _forwarded(name: str) -> Any:
    return property(lambda wrapped: getattr(wrapped.device, name))


class WrappedDevice:
    """Forwards requests to `device`; subclasses complete the `Device` protocol by their own memory."""

    def __init__(self, device: Device) -> None:
        self.device = device

    host_empty = _forwarded("host_empty")
    synchronize = _forwarded("synchronize")
    time_s = _forwarded("time_s")
    slices_s = _forwarded("slices_s")
    conditions = _forwarded("conditions")
    datasheet_bytes_per_s = _forwarded("datasheet_bytes_per_s")
    marked = _forwarded("marked")
    looked_at = _forwarded("looked_at")
    energy_j = _forwarded("energy_j")

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

    def load(self, program: Program, binary: Binary) -> Executable:
        """Load a binary (`Device.load`)."""
        return self.device.load(program, binary)


class PooledDevice(WrappedDevice):
    """A device whose arrays are views of one block, which grows on demand; `reset` releases them all."""

    def __init__(self, device: Device, make_monitor: Callable[[], Monitor] | None = None) -> None:
        """Wrap a device. make_monitor: called on first use; None: nothing else runs on the device."""
        super().__init__(device)
        self._make_monitor = make_monitor
        self._block: Array | None = None
        self._used_bytes = 0
        self._loaded: tuple[tuple[str, str, str], Executable] | None = None

    def reset(self, bytes_needed: int = 0) -> None:
        """Release every array and make the block at least `bytes_needed` long. Raises OutOfMemoryError."""
        self._used_bytes = 0
        if self._block is None or self._block.size < bytes_needed:
            self._block = None  # release the old block before the new one is allocated
            self._block = self._allocate(bytes_needed, "uint8")

    def empty(self, elements: int, dtype: str, placing: Placing | None = None) -> Array:
        """Return a part of the block, or fresh memory if the block is full. Raises OutOfMemoryError.

        A configuration with a page placement gets fresh pages, for which the block is released.
        """
        if placing:
            self._block = None
            return self._allocate(elements, dtype, placing)
        size = elements * np.dtype(dtype).itemsize
        start = -(-self._used_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        if self._block is None or start + size > self._block.size:
            return self._allocate(elements, dtype)
        self._used_bytes = start + size
        return self._block[start : start + size].view(dtype)

    def _allocate(self, elements: int, dtype: str, placing: Placing | None = None) -> Array:
        """Allocate device memory; if there is none left, clear the caches between trials and retry once."""
        try:
            return self.device.empty(elements, dtype, placing)
        except (OutOfMemoryError, MemoryError):
            forget_all()
            return self.device.empty(elements, dtype, placing)

    def load(self, program: Program, binary: Binary) -> Executable:
        """Load a binary; the last one is kept, because it is verified and then timed."""
        key = (program.config.key, program.digest, binary.digest)
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = None
            self._loaded = (key, self.device.load(program, binary))
        return self._loaded[1]

    @cached_property
    def monitor(self) -> Monitor | None:
        """The interference monitor; None on a device that nothing else shares."""
        return self._make_monitor() if self._make_monitor else None


def pooled_bytes(sizes_bytes: list[int]) -> int:
    """Return the block size for arrays of these sizes, alignment included."""
    return sum(-(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES for size in sizes_bytes)
