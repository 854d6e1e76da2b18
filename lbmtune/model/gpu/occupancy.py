"""Occupancy: how many threads share a multiprocessor, and what their shared memory leaves of L1.

Source: CUDA C++ Programming Guide, technical specifications per compute capability.
"""

from __future__ import annotations

from lbmtune.catalogue.limits import REGISTER_UNIT, REGISTERS, RESERVED_BYTES, SCHEDULERS, WARP
from lbmtune.records import Entry

_WARPS, _BLOCKS = 64, 32
"""Limits of a multiprocessor of data centre cards since compute capability 7.0."""
_SHARED_KIB = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
"""Sizes of shared memory that L1 can be configured for, up to the limit of the device."""


def resident_threads(block_threads: int, entry: Entry, shared_bytes: int) -> int:
    """Return the threads that share a multiprocessor, limited by registers, warps and shared memory."""
    warps = warps_of(block_threads)
    allocated = -(-max(entry.registers, 1) // REGISTER_UNIT) * REGISTER_UNIT * WARP
    by_registers = SCHEDULERS * (REGISTERS // SCHEDULERS // allocated) // warps
    by_shared = shared_bytes // taken_of(entry.shared_bytes) if entry.shared_bytes else _BLOCKS
    return max(1, min(_BLOCKS, _WARPS // warps, by_registers, by_shared)) * warps * WARP


def warps_of(block_threads: int) -> int:
    """Return the warps of a block; lanes of the last one may have no thread."""
    return -(-block_threads // WARP)


def taken_of(shared_bytes: int) -> int:
    """Return the shared memory that a block takes, with the part that the system reserves."""
    return shared_bytes + RESERVED_BYTES if shared_bytes else 0


def left_of_l1(l1_bytes: int, blocks: int, shared_bytes: int, limit_bytes: int) -> int:
    """Return the bytes of L1 that remain beside the shared memory of the blocks of a multiprocessor."""
    return l1_bytes - shared_of(blocks * taken_of(shared_bytes), limit_bytes)


def shared_of(taken_bytes: int, limit_bytes: int) -> int:
    """Return the size of shared memory that is configured for blocks that take that many bytes."""
    return min(limit_bytes, next((kib << 10 for kib in _SHARED_KIB if kib << 10 >= taken_bytes), limit_bytes))
