"""Addresses in registers, for kernels whose many accesses to memory would each bring an index of their own.

A module of its own: kernels name the text of the modules that they were made for, and that of most stays as it is.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from lbmtune.backend.cpu.vectors import data_of


@intrinsic  # type: ignore[untyped-decorator]
def place(typing: Any, array: Any, index: Any) -> Any:
    """The array from an element on. The compiler does not know how its address came about, and so keeps it."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        address = builder.gep(data_of(context, builder, sig.args[0], args[0]), [args[1]])
        kept = builder.asm(ir.FunctionType(address.type, [address.type]), "", "=r,0", [address], side_effect=False)
        model = context.data_model_manager[sig.return_type]
        blank = ir.Constant(model.get_value_type(), ir.Undefined)
        return builder.insert_value(blank, kept, model.get_field_position("data"))

    return array(array, types.int64), generate
