"""How many threads share a multiprocessor.

Source: CUDA C++ Programming Guide, technical specifications per compute capability.
"""

from __future__ import annotations

from math import prod

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.limits import REGISTER_UNIT, REGISTERS, RESERVED_BYTES, SCHEDULERS, WARP
from lbmtune.records import Entry

_WARPS, _BLOCKS = 64, 32
"""Of a multiprocessor, at most, since compute capability 7.0 of data centre cards."""
_SHARED_KIB = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
"""What L1 can be asked to be shared memory, as far as there is so much of that."""


def threads_together(config: CudaConfig, entry: Entry, shared_bytes: int) -> int:
    """Threads that share a multiprocessor: of as many blocks as there are registers, warps and shared memory for."""
    warps = warps_of(config)
    allocated = -(-max(entry.registers, 1) // REGISTER_UNIT) * REGISTER_UNIT * WARP
    by_registers = SCHEDULERS * (REGISTERS // SCHEDULERS // allocated) // warps
    by_shared = shared_bytes // taken_of(entry.shared_bytes) if entry.shared_bytes else _BLOCKS
    return max(1, min(_BLOCKS, _WARPS // warps, by_registers, by_shared)) * warps * WARP


def warps_of(config: CudaConfig) -> int:
    """Of a block; lanes of the last one may have no thread."""
    return -(-prod(config.block) // WARP)


def taken_of(shared_bytes: int) -> int:
    """Shared memory that a block takes which asks for so much: some of it is the system's."""
    return shared_bytes + RESERVED_BYTES if shared_bytes else 0


def left_of_l1(l1_bytes: int, blocks: int, shared_bytes: int, limit_bytes: int) -> int:
    """Bytes of a multiprocessor that so many blocks leave, as little as they can do with being shared memory."""
    return l1_bytes - shared_of(blocks * taken_of(shared_bytes), limit_bytes)


def shared_of(taken_bytes: int, limit_bytes: int) -> int:
    """Bytes of L1 that are shared memory where blocks take so many, of as many as can be."""
    return min(limit_bytes, next((kib << 10 for kib in _SHARED_KIB if kib << 10 >= taken_bytes), limit_bytes))
