"""A device whose trials share one allocation, so that no trial is charged for fresh pages."""

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Array, Binary, Device, Executable, OutOfMemoryError, Placing
from lbmtune.catalogue.byte_lru_cache import forget_all
from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.program import Program
from lbmtune.measure.timing.guard_bands import GUARD_BYTES, PATTERN, GuardedBlock, aligned
from lbmtune.measure.timing.state import WrongResultError
from lbmtune.records import Conditions, Environment, Verification

Monitor = Callable[[Conditions, float], Conditions]
"""Adds what a shared host delivers now to the conditions of a sample that took some seconds."""


def _forwarded(name: str) -> Any:
    return property(lambda wrapped: getattr(wrapped.device, name))


class WrappedDevice:
    """Forwards requests to `device`; subclasses complete the `Device` protocol by their own memory."""

    def __init__(self, device: Device) -> None:
        self.device = device

    host_empty = _forwarded("host_empty")
    gathered = _forwarded("gathered")
    filled = _forwarded("filled")
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
        """Return the array module, numpy or cupy."""
        return self.device.xp

    @property
    def limits(self) -> Limits:
        """Return the limits of the device."""
        return self.device.limits

    @property
    def environment(self) -> Environment:
        """Return the environment of the device."""
        return self.device.environment

    def load(self, program: Program, binary: Binary) -> Executable:
        """Load a binary (`Device.load`)."""
        return self.device.load(program, binary)


class PooledDevice(WrappedDevice):
    """A device whose arrays are views of one block, which grows on demand; `reset` releases them all.

    Every array has guard bands around it, be it in the block or not. proofs: what was verified on it and would be
    verified in the same way again.
    """

    def __init__(self, device: Device, make_monitor: Callable[[], Monitor] | None = None) -> None:
        """Wrap a device. make_monitor: called on first use; None: nothing else runs on the device."""
        super().__init__(device)
        self._make_monitor = make_monitor
        self._block: Array | None = None
        self._guarded: list[GuardedBlock] = []
        self._given = self._pooled_bytes = 0
        self.proofs: dict[Hashable, Verification] = {}
        self._loaded: tuple[tuple[str, str, str], Executable] | None = None

    def reset(self, bytes_needed: int = 0) -> None:
        """Release every array and make the block at least `bytes_needed` long. Raises OutOfMemoryError.

        bytes_needed: of the arrays that share the block with those of other simulations; further arrays lie elsewhere.
        """
        self._given, self._guarded = 0, []
        if self._block is None or self._block.size < bytes_needed:
            self._block = None  # release the old block before the new one is allocated
            self._block = self._allocate(bytes_needed, "uint8")
        self._pooled_bytes = bytes_needed or self._block.size
        self._guarded = [GuardedBlock(self._block)]

    def empty(self, elements: int, dtype: str, placing: Placing | None = None) -> Array:
        """Return a part of the block, or fresh memory if the block is full. Raises OutOfMemoryError.

        A configuration with a page placement gets fresh pages, for which the block is released.
        """
        if placing:
            self._guarded = [one for one in self._guarded if one.block is not self._block]
            self._block = None
            return self._placed(self._allocate(elements, dtype, placing))
        size = elements * np.dtype(dtype).itemsize
        if self._block is None or self._guarded[0].next_start + pooled_bytes([size]) - GUARD_BYTES > self._pooled_bytes:
            block = GuardedBlock(self._allocate(pooled_bytes([size]), "uint8"))
            self._guarded.append(block)
        else:
            block = self._guarded[0]
        return block.add(self._count(), block.next_start, size).view(dtype)

    def _placed(self, array: Array) -> Array:
        """Guard the margins of a mapping of its own, of which the array is a part."""
        mapping = getattr(array, "base", None)
        if isinstance(mapping, np.ndarray) and mapping.dtype == np.uint8:
            block = GuardedBlock(mapping)
            self._guarded.append(block)
            block.add(self._count(), array.ctypes.data - mapping.ctypes.data, array.nbytes)
        return array

    def _count(self) -> int:
        self._given += 1
        return self._given - 1

    def check_guards(self, names: Sequence[str]) -> None:
        """Raise WrongResultError if anything was written outside the arrays given since the last `reset`.

        names: of the arrays of a simulation, in the order in which it asks for them.
        """
        if self.filled([band for block in self._guarded for band in block.bands()], PATTERN):
            return
        if found := [one for block in self._guarded for one in block.damage(names)]:
            raise WrongResultError(f"writes outside buffer {'; '.join(found)}")

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
        """Return the interference monitor; None on a device that nothing else shares."""
        return self._make_monitor() if self._make_monitor else None


def pooled_bytes(sizes_bytes: list[int]) -> int:
    """Return the block size for arrays of these sizes, with alignment and guard bands."""
    return GUARD_BYTES + sum(aligned(size) + GUARD_BYTES for size in sizes_bytes)
