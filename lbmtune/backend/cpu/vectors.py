"""SIMD vectors of generated CPU kernels, and arithmetic with them.

Vectors are LLVM vectors of 4 to 16 lanes of float32 or float64; a scalar operand is copied to all lanes, and a product
that is added or subtracted is rounded together with the sum.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

# contract allows fused multiply-add. nnan and ninf are left out: a NaN that was read must reach the result
FLAGS = ("contract", "nsz", "arcp")
LANE = ir.IntType(32)
BYTES = {types.float64: 8, types.float32: 4, types.uint16: 2}
_ELEMENTS = {types.float64: ir.DoubleType(), types.float32: ir.FloatType(), types.uint16: ir.HalfType()}


class Vector(types.Type):  # type: ignore[misc]
    """The Numba type of a SIMD vector."""

    def __init__(self, element: Any, lanes: int) -> None:
        self.element, self.lanes = element, lanes
        super().__init__(name=f"Vector({element}x{lanes})")


VECTORS = {(e, n): Vector(e, n) for e, counts in ((types.float32, (8, 16)), (types.float64, (4, 8))) for n in counts}


def llvm_type(element: Any, lanes: int) -> Any:
    """Return the LLVM type of a number of values; 16-bit integers are halves."""
    return ir.VectorType(_ELEMENTS[element], lanes) if lanes > 1 else _ELEMENTS[element]


def data_of(context: Any, builder: Any, array_type: Any, array: Any) -> Any:
    """Return the pointer to the first element of an array."""
    return builder.extract_value(array, context.data_model_manager[array_type].get_field_position("data"))


def splat(builder: Any, value: Any, lanes: int) -> Any:
    """Return a vector each of whose lanes holds the value."""
    blank = ir.Constant(ir.VectorType(value.type, lanes), ir.Undefined)
    first = builder.insert_element(blank, value, ir.Constant(LANE, 0))
    return builder.shuffle_vector(first, blank, ir.Constant(ir.VectorType(LANE, lanes), [0] * lanes))


def arithmetic(builder: Any, instruction: str, left: Any, right: Any) -> Any:
    """Return fadd, fsub, fmul or fdiv of two scalars or two vectors."""
    fused = _fused(builder, instruction, left, right) if isinstance(left.type, ir.VectorType) else None
    return fused or getattr(builder, instruction)(left, right, flags=FLAGS)


def _fused(builder: Any, instruction: str, left: Any, right: Any) -> Any:
    """Return a sum or difference with a product on one side as one operation; None if no side is a product.

    LLVM fuses only products with one use, but the two directions of a pair share theirs.
    """
    if instruction not in ("fadd", "fsub"):
        return None
    if _is_product(right):
        a, b = right.operands
        return _multiply_add(builder, builder.fneg(a) if instruction == "fsub" else a, b, left)
    if _is_product(left):
        a, b = left.operands
        return _multiply_add(builder, a, b, builder.fneg(right) if instruction == "fsub" else right)
    return None


def _is_product(value: Any) -> bool:
    return getattr(value, "opname", "") == "fmul"


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    kind = c.type
    name = f"llvm.fma.v{kind.count}{kind.element.intrinsic_name}"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
    return builder.call(function, [a, b, c], fastmath=FLAGS)
