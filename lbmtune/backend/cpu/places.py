"""Support module of generated CPU kernels: addresses in registers, for kernels with many accesses to memory.

A separate module, because kernels record the code of the modules that they import.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from lbmtune.backend.cpu.vectors import data_of


@intrinsic  # type: ignore[untyped-decorator]
def place(typing: Any, array: Any, index: Any) -> Any:
    """Return the array from an element on, with an opaque address that the compiler keeps in a register."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        address = builder.gep(data_of(context, builder, sig.args[0], args[0]), [args[1]])
        kept = builder.asm(ir.FunctionType(address.type, [address.type]), "", "=r,0", [address], side_effect=False)
        model = context.data_model_manager[sig.return_type]
        blank = ir.Constant(model.get_value_type(), ir.Undefined)
        return builder.insert_value(blank, kept, model.get_field_position("data"))

    return array(array, types.int64), generate
