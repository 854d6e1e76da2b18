"""Read scattered elements of device memory, and compare its bytes with a value: one launch each.

The operands lie in page-locked memory, which a GPU reads and writes itself: no copy is enqueued for them. CuPy's own
kernels for this take several launches and copies, and are compiled once for each type and size of index.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_THREADS, _BLOCKS = 256, 512
"""Threads of a block, and blocks that share a range of bytes."""
OPTIONS = (f"-DTHREADS={_THREADS}",)
TEXT = """
#define GATHER(BYTES, TYPE) \\
extern "C" __global__ void gather_##BYTES( \\
    const TYPE* from, const long long* at, TYPE* to, const long long count) { \\
    const long long n = (long long)blockIdx.x * THREADS + threadIdx.x; \\
    if (n < count) to[n] = from[at[n]]; \\
}
GATHER(1, unsigned char)
GATHER(2, unsigned short)
GATHER(4, unsigned)
GATHER(8, unsigned long long)

// ranges: the first byte of each and its bytes; other: set if a byte has another value
extern "C" __global__ void compare(const unsigned long long* ranges, const unsigned value, unsigned* other) {
    const unsigned char* bytes = (const unsigned char*)ranges[2 * blockIdx.y];
    const unsigned long long count = ranges[2 * blockIdx.y + 1], stride = (unsigned long long)gridDim.x * THREADS;
    for (unsigned long long n = (unsigned long long)blockIdx.x * THREADS + threadIdx.x; n < count; n += stride)
        if (bytes[n] != value) *other = 1;
}
"""


class HostReads:
    """The kernels, loaded on the current GPU, in its current stream.

    lock_pages: returns page-locked memory for a number of elements of a type, which takes a system long, so that it is
    kept; finish: waits for all enqueued work.
    """

    def __init__(self, cupy: Any, lock_pages: Callable[[int, str], Any], finish: Callable[[], None]) -> None:
        self._module = cupy.RawModule(code=TEXT, options=OPTIONS)
        self._lock_pages, self._finish = lock_pages, finish
        self._kept: dict[str, Any] = {}

    def gather(self, address: int, dtype: str, indices: Any) -> Any:
        """Return elements as an array of the host of the shape of `indices`, a NumPy array.

        address: of the first element.
        """
        at, found = self._room("in", indices.size, "int64"), self._room("out", indices.size, dtype)
        at.reshape(indices.shape)[...] = indices
        operands = np.uint64(address), _place(at), _place(found), np.int64(indices.size)
        self._launch(f"gather_{found.itemsize}", (-(-indices.size // _THREADS),), operands)
        return found.reshape(indices.shape).copy()

    def compare(self, ranges: Sequence[tuple[int, int]], value: int) -> bool:
        """Return whether all bytes of some ranges (address, bytes) have a value."""
        told, other = self._room("in", 2 * len(ranges), "uint64"), self._room("out", 1, "uint32")
        told.reshape(-1, 2)[...], other[0] = ranges, 0
        self._launch("compare", (_BLOCKS, len(ranges)), (_place(told), np.uint32(value), _place(other)))
        return not other[0]

    def _room(self, name: str, elements: int, dtype: str) -> Any:
        """Return an array in memory that the next call for the same name gets again."""
        size = elements * np.dtype(dtype).itemsize
        if name not in self._kept or self._kept[name].size < size:
            self._kept[name] = self._lock_pages(1 << (size - 1).bit_length(), "uint8")
        return self._kept[name][:size].view(dtype)

    def _launch(self, entry: str, grid: tuple[int, ...], operands: tuple[Any, ...]) -> None:
        self._finish()  # the stream of the kernel does not wait for those of queues
        self._module.get_function(entry)(grid, (_THREADS,), operands)
        self._finish()


def _place(array: Any) -> np.uint64:
    return np.uint64(array.ctypes.data)
