"""Support module of generated CPU kernels: single lanes of vectors, for cells at inlets and outlets."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_NUMBER = ir.IntType(32)


@intrinsic  # type: ignore[untyped-decorator]
def lane(typing: Any, vector: Any, number: Any) -> Any:
    """Return the value of a lane."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.extract_element(args[0], builder.trunc(args[1], _NUMBER))

    return vector.element(vector, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def with_lane(typing: Any, vector: Any, number: Any, value: Any) -> Any:
    """Return the vector with another value in a lane."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.insert_element(args[0], args[2], builder.trunc(args[1], _NUMBER))

    return vector(vector, types.int64, vector.element), generate
