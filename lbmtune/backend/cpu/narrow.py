"""`simd` with vectors of 128 bits, for the copies of 16 bytes at once that measure ceilings; no kernel has them.

A separate module, because kernels record the code of the modules that they import.
"""

from __future__ import annotations

from numba import types

from lbmtune.backend.cpu.simd import fence, kernel, memory, prange
from lbmtune.backend.cpu.vectors import VECTORS, Vector

__all__ = ["fence", "kernel", "memory", "prange"]

VECTORS[types.float32, 4] = Vector(types.float32, 4)
