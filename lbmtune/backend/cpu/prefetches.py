"""Support module of generated CPU kernels: prefetches of populations beside those of words.

`simd.prefetch` declares LLVM's function for the type of its array, so a kernel can use it for one type. Kernels record
the code of the modules that they import, so this is a module of its own.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from lbmtune.backend.cpu.vectors import LANE, data_of

_FOR_READING, _INTO_ALL_LEVELS, _DATA = 0, 3, 1
"""Arguments of LLVM's prefetch: access, locality, cache."""


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of an element; the index may lie outside the array, because a prefetch never faults."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        element = builder.gep(data_of(context, builder, sig.args[0], args[0]), [args[1]])
        place = builder.bitcast(element, LANE.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, LANE, LANE, LANE])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [place, *(ir.Constant(LANE, n) for n in (_FOR_READING, _INTO_ALL_LEVELS, _DATA))])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate
