"""Programmatic dependent launch: kernels that may begin before the previous one ends, an attribute that CuPy lacks.

Source: cuLaunchKernelEx and its structures in cuda.h (since CUDA 11.8).
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_byte, c_double, c_float, c_int, c_uint, c_void_p
from functools import cache
from typing import Any

import numpy as np

from lbmtune.codegen.program import Launch

_PROGRAMMATIC_STREAM_SERIALIZATION = 6
_NUMBERS: Mapping[type, Callable[[Any], Any]] = {np.int32: c_int, np.float32: c_float, np.float64: c_double}


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute, whose value is a union of 64 bytes."""

    _fields_ = (("id", c_int), ("pad", c_int), ("value", c_int), ("rest", c_byte * 60))


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", c_uint),
    )


def launch_dependent(
    function: int, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Any], stream: int
) -> int:
    """Enqueue a launch that begins as soon as all blocks of the previous one have begun; return the CUresult."""
    early = _Attribute(id=_PROGRAMMATIC_STREAM_SERIALIZATION, value=1)
    config = _Config(
        (c_uint * 3)(*grid), (c_uint * 3)(*launch.block), launch.shared_bytes, stream, ctypes.pointer(early), 1
    )
    values = [_value(argument) for argument in arguments]
    pointers = (c_void_p * len(values))(*map(ctypes.addressof, values))
    status: int = driver().cuLaunchKernelEx(ctypes.byref(config), c_void_p(function), pointers, None)
    return status


def _value(argument: Any) -> Any:
    """Return an argument as a C value: the pointer of an array, or a number."""
    number = _NUMBERS.get(type(argument))
    return number(argument.item()) if number else c_void_p(argument.data.ptr)


@cache
def driver() -> ctypes.CDLL:
    """Return the library of the driver, which CuPy has loaded."""
    return ctypes.CDLL("libcuda.so.1")
