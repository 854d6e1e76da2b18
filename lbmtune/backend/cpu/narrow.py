"""`simd` with vectors of 128 bits: no kernel has them, but copies that ceilings are measured by move 16 bytes at once.

A module of its own: kernels name the text of the modules that they were made for, and theirs stays as it is.
"""

from __future__ import annotations

from numba import types

from lbmtune.backend.cpu.simd import fence, kernel, memory, prange
from lbmtune.backend.cpu.vectors import VECTORS, Vector

__all__ = ["fence", "kernel", "memory", "prange"]

VECTORS[types.float32, 4] = Vector(types.float32, 4)
