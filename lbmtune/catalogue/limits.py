"""Limits of a device."""

from collections.abc import Sequence
from dataclasses import dataclass

WARP = 32
"""Threads per warp."""
SECTOR_BYTES = 32
"""Bytes that memory of a GPU moves at least: one sector; before it is written in part, it is read."""


@dataclass(frozen=True)
class Limits:
    """Limits of a device; the defaults are those of every CUDA device since compute capability 3.5.

    cooperative: all blocks of a launch can be resident at once; dependent: a launch may begin before the one on which
    it depends has ended (programmatic dependent launch, since compute capability 9.0); asynchronous: copies to shared
    memory overlap with the thread that issues them (cp.async, since 8.0); bulk: one thread copies contiguous runs to
    shared memory (cp.async.bulk, since 9.0); memory_limited: this process may use less memory than the host has;
    memory_asked: memory_bytes are what a study allows, less than the device has;
    cores: processors, also those of one physical core; physical_cores: 0 if unknown;
    numa_nodes: processors of each NUMA node, 0 for one of memory alone; empty if unknown.
    """

    threads_per_block: int = 1024
    block: tuple[int, int, int] = (1024, 1024, 64)
    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    threads_per_multiprocessor: int = 2048
    cores: int = 1
    physical_cores: int = 0
    numa_nodes: tuple[int, ...] = ()
    vector_bits: int = 512
    memory_bytes: int = 2**63
    memory_limited: bool = False
    memory_asked: bool = False
    huge_pages: bool = True
    shared_bytes_per_block: int = 48 << 10
    shared_bytes_per_multiprocessor: int = 48 << 10
    multiprocessors: int = 1
    cooperative: bool = False
    dependent: bool = False
    asynchronous: bool = False
    bulk: bool = False


_SHARED_KIB = {
    "sm_13": (16, 16),
    "sm_52": (48, 96),
    "sm_60": (48, 64),
    "sm_70": (96, 96),
    "sm_75": (64, 64),
    "sm_80": (163, 164),
    "sm_86": (99, 100),
    "sm_89": (99, 100),
    "sm_90": (227, 228),
    "sm_100": (227, 228),
}
"""Shared memory of a block and of a multiprocessor, in KiB; 48 KiB each if not listed.

Source: CUDA C++ Programming Guide, technical specifications per compute capability.
"""
_COOPERATIVE_SINCE, _ASYNCHRONOUS_SINCE, _BULK_SINCE, _DEPENDENT_SINCE = 60, 80, 90, 90
"""Compute capabilities, times ten. Sources: CUDA C++ Programming Guide; PTX ISA, target notes of the instructions."""


def cuda_limits(architecture: str, multiprocessors: int, memory_bytes: int) -> Limits:
    """Return the limits of a GPU from its architecture ('sm_90'), multiprocessors and memory."""
    name = architecture.rstrip("af")
    capability = name.removeprefix("sm_")
    number = int(capability) if capability.isdecimal() else 0
    block, whole = _SHARED_KIB.get(name, (48, 48))
    return Limits(
        memory_bytes=memory_bytes,
        shared_bytes_per_block=block << 10,
        shared_bytes_per_multiprocessor=whole << 10,
        multiprocessors=multiprocessors,
        cooperative=number >= _COOPERATIVE_SINCE,
        dependent=number >= _DEPENDENT_SINCE,
        asynchronous=number >= _ASYNCHRONOUS_SINCE,
        bulk=number >= _BULK_SINCE,
    )


MOST_REGISTERS = 255
"""Most registers of a thread."""
REGISTERS, SCHEDULERS = 65536, 4
"""Registers and warp schedulers of a multiprocessor since compute capability 3.0."""
REGISTER_UNIT = 8


def registers_allowed(threads: int) -> int:
    """Return the most registers per thread if `threads` share a multiprocessor, in whole warps and units of eight.

    Source: CUDA C++ Programming Guide, technical specifications per compute capability.
    """
    together = -(-threads // (SCHEDULERS * WARP)) * SCHEDULERS * WARP
    return min(MOST_REGISTERS, REGISTERS // together // REGISTER_UNIT * REGISTER_UNIT)


RESERVED_BYTES = 1 << 10
"""Shared memory that the device reserves per block. Source: as above."""


def extents(cells: Sequence[int]) -> str:
    """Format numbers as 32x4x1."""
    return "x".join(map(str, cells))
