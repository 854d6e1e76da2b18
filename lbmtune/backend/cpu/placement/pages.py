"""Memory mapped as a configuration requests: kind of pages, and threads that touch them first.

The pages that the system provided are read back from /proc/self/smaps; other pages are an error.
"""

from __future__ import annotations

import mmap
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
from numba import prange

from lbmtune.backend.cpu.compilation.modules import cached_njit, call_cached
from lbmtune.backend.cpu.placement.numa import bind_memory, check_node
from lbmtune.backend.cpu.placement.threads import team
from lbmtune.backend.protocol import OutOfMemoryError, Placing

Bytes = npt.NDArray[np.uint8]

HUGE_BYTES = 2 << 20
_SWITCH = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_SIZE = Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
_MAPS = Path("/proc/self/smaps")
_NUMPY_ASKS_FROM_BYTES = 1 << 22
"""Size from which on NumPy itself requests huge pages (numpy/_core/src/multiarray/alloc.c)."""


def huge_pages() -> bool:
    """Return whether the system provides transparent huge pages of 2 MiB on request."""
    try:
        size, switch = int(_SIZE.read_text()), _SWITCH.read_text()
    except (OSError, ValueError):
        return False
    return size == HUGE_BYTES and "[never]" not in switch


def mapped(size: int, placing: Placing) -> Bytes:
    """Return `size` touched bytes from the start of a huge page on. Raises OutOfMemoryError for other pages."""
    whole = -(-size // HUGE_BYTES) * HUGE_BYTES
    try:
        block = mmap.mmap(-1, whole + 2 * HUGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise OutOfMemoryError(f"{size} bytes cannot be mapped: {error}") from error
    raw = np.frombuffer(block, np.uint8)
    # a margin on both sides keeps the advised range a mapping of its own, with its own figures
    start = HUGE_BYTES - raw.ctypes.data % HUGE_BYTES
    if advice := _advice(placing.pages, size):
        block.madvise(advice, start, whole)
    array = raw[start : start + whole]
    bind_memory(array, placing.numa)
    array[size:] = 0
    touch(array[:size], placing)
    _check(array, placing.pages)
    check_node(array, placing.numa)
    return array[:size]


def _advice(pages: str, size: int) -> int:
    if pages == "default":
        return mmap.MADV_HUGEPAGE if size >= _NUMPY_ASKS_FROM_BYTES else 0
    return {"huge": mmap.MADV_HUGEPAGE, "normal": mmap.MADV_NOHUGEPAGE}[pages]


def touch(array: Bytes, placing: Placing) -> None:
    """Write to every page: one thread to all, or each thread to its share of every lattice array."""
    if placing.first_touch == "serial":
        array[:: mmap.PAGESIZE] = 0
        return
    shares = len(team(placing.threads))
    call_cached(_touch_shares, array, placing.arrays, shares, mmap.PAGESIZE)


@cached_njit(parallel=True)
def _touch_shares(array: Bytes, arrays: int, shares: int, step: int) -> None:
    for share in prange(shares):
        for number in range(arrays):
            first, last = array.size * number // arrays, array.size * (number + 1) // arrays
            begin, end = first + (last - first) * share // shares, first + (last - first) * (share + 1) // shares
            for at in range(begin, end, step):
                array[at] = 0


def _check(array: Bytes, pages: str) -> None:
    if pages == "default":
        return
    huge = huge_bytes(array)
    if huge != (array.size if pages == "huge" else 0):
        raise OutOfMemoryError(f"pages={pages}: {huge} of {array.size} bytes lie in huge pages")


def huge_bytes(array: Bytes) -> int:
    """Return the bytes in huge pages of the mapping that an array begins. Source: proc(5), AnonHugePages of smaps."""
    match = re.search(rf"^{array.ctypes.data:x}-.*?^AnonHugePages: *(\d+) kB", _MAPS.read_text(), re.DOTALL | re.M)
    return int(match[1]) << 10 if match else 0
