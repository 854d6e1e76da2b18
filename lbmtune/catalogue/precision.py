"""Storage formats of populations, and arithmetic precisions.

The stored value is the deviation f_i - w_i times a power of two (`scale`). The collision operator is homogeneous in it
if the density one is replaced by `scale`, so loads and stores need no scaling. Two formats, for comparison with
published kernels, hold f_i itself: weights are taken after the loads and added before the stores.

The 16-bit formats, for the deviation d = f_i - w_i:

| format | sign, exponent, mantissa | largest abs(d) | relative round-off | below abs(d) | absolute round-off there |
|---|---|---|---|---|---|
| fp16s | 1, 5, 10 (IEEE half), times 2^15 | 65504 / 2^15 = 1.999 | 2^-11 | 2^-29 | 2^-40 |
| fp16c | 1, 4, 11, bias 15 | 2 - 2^-11 = 1.9995 | 2^-12 | 2^-14 | 2^-26 |
| bf16 | 1, 8, 7 (bias 127) | 3.4e38 | 2^-8 | 2^-126 | 2^-134 |

fp16c has no infinity and no NaN: its largest exponent holds numbers, and larger values become the largest number.
Source: shifted populations: Skordos 1993; fp16s, fp16c: Lehmann et al. 2022 (arXiv 2112.08926).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from lbmtune.errors import named

Array = Any
"""A numpy or cupy array."""


@dataclass(frozen=True)
class Codes:
    """A binary format of a sign, exponent and mantissa bits (in this order from the top) in 16-bit codes.

    As in IEEE formats the smallest exponent code holds subnormal values. bias: of the exponent; special: whether the
    largest exponent code holds infinity and NaN; if not, it holds numbers, and encoding a larger value or NaN gives the
    largest number.
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    special: bool

    @property
    def smallest(self) -> float:
        """Return the smallest positive number, which is the spacing of subnormal ones."""
        return float(2.0 ** (1 - self.bias - self.mantissa_bits))

    @property
    def largest(self) -> float:
        """Return the largest finite number."""
        top = 2**self.exponent_bits - 1 - self.special
        return float((2.0 - 2.0**-self.mantissa_bits) * 2.0 ** (top - self.bias))

    def encode(self, values: Array, xp: ModuleType) -> Array:
        """Return the codes (uint16) of the nearest numbers, ties to the even code."""
        magnitude = abs(xp.asarray(values, dtype=xp.float64))
        known = xp.isfinite(magnitude)
        bounded = xp.where(known, xp.minimum(magnitude, 4 * self.largest), 4 * self.largest)
        lowest = 1 - self.bias
        exponent = xp.maximum(xp.where(bounded > 0, xp.frexp(bounded)[1] - 1, lowest), lowest)
        steps = xp.rint(xp.ldexp(bounded, self.mantissa_bits - exponent)).astype(xp.int64)
        code = steps + (exponent - lowest).astype(xp.int64) * 2**self.mantissa_bits
        code = xp.minimum(code, self._infinity if self.special else 0x7FFF)
        code = xp.where(xp.isnan(magnitude), 0x7FFF, code)
        return (code + 0x8000 * xp.signbit(values)).astype(xp.uint16)

    def decode(self, codes: Array, xp: ModuleType) -> Array:
        """Return the numbers of codes (uint16) as float64."""
        rest = codes.astype(xp.int64) & 0x7FFF
        exponent, mantissa = rest >> self.mantissa_bits, rest & (2**self.mantissa_bits - 1)
        steps = mantissa + xp.where(exponent > 0, 2**self.mantissa_bits, 0)
        shift = xp.maximum(exponent, 1) - (self.bias + self.mantissa_bits)
        value = xp.ldexp(steps.astype(xp.float64), shift.astype(xp.int32))
        if self.special:
            beyond = xp.where(mantissa == 0, xp.inf, xp.nan)
            value = xp.where(rest >= self._infinity, beyond, value)
        return xp.where(codes >= 0x8000, -value, value)

    @property
    def _infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << self.mantissa_bits


@dataclass(frozen=True)
class Storage:
    """A storage format. bytes: per value; dtype: NumPy name; epsilon: unit round-off of one rounding.

    codes: conversion of its 16-bit codes (dtype uint16), if no dtype represents them; shifted: it holds deviations
    f_i - w_i, else f_i as it is.
    """

    name: str
    title: str
    bytes: int
    dtype: str
    scale: float
    epsilon: float
    codes: Codes | None = None
    shifted: bool = True

    def stored(self, values: Array, xp: ModuleType, scale: float = 0) -> Array:
        """Return deviations as stored: scaled (by `scale` if given) and rounded to nearest."""
        scaled = values * (scale or self.scale)
        return self.codes.encode(scaled, xp) if self.codes else scaled.astype(self.dtype)

    def deviations(self, stored: Array, xp: ModuleType, scale: float = 0) -> Array:
        """Return the deviations of a stored array, float64."""
        return (self.codes.decode(stored, xp) if self.codes else stored.astype(xp.float64)) / (scale or self.scale)

    @property
    def largest(self) -> float:
        """Return the largest deviation that it holds."""
        import numpy as np  # here: the command line starts without it

        return (self.codes.largest if self.codes else float(np.finfo(self.dtype).max)) / self.scale

    @property
    def poison(self) -> float:
        """Return the value of elements before they are written: NaN, or the largest number if the format has no NaN."""
        return 0x7FFF if self.codes else float("nan")


@dataclass(frozen=True)
class Compute:
    """An arithmetic precision."""

    name: str
    bytes: int
    dtype: str
    epsilon: float


FP16C, BF16 = Codes(4, 11, 15, special=False), Codes(8, 7, 127, special=True)
HALF = Codes(5, 10, 15, special=True)
"""IEEE half, which NumPy converts by itself."""

STORAGES: Mapping[str, Storage] = {
    s.name: s
    for s in (
        Storage("fp64", "IEEE double", 8, "float64", 1.0, 2.0**-53),
        Storage("fp32", "IEEE single", 4, "float32", 1.0, 2.0**-24),
        Storage("fp16s", "IEEE half of shifted populations times 2^15", 2, "float16", 2.0**15, 2.0**-11),
        Storage("fp16c", "custom half: 4 exponent, 11 mantissa bits", 2, "uint16", 1.0, 2.0**-12, FP16C),
        Storage("bf16", "bfloat16: 8 exponent, 7 mantissa bits", 2, "uint16", 1.0, 2.0**-8, BF16),
    )
}
UNSHIFTED: Mapping[str, Storage] = {
    f"{name}-unshifted": replace(
        STORAGES[name],
        name=f"{name}-unshifted",
        title=f"{STORAGES[name].title} of populations as they are, not less their weights",
        shifted=False,
    )
    for name in ("fp64", "fp32")
}
"""Formats for comparison with published kernels, which direct kernels have."""
COMPUTES: Mapping[str, Compute] = {
    c.name: c for c in (Compute("fp64", 8, "float64", 2.0**-53), Compute("fp32", 4, "float32", 2.0**-24))
}


def storage(name: str) -> Storage:
    """Return the storage format of that name. Raises InputError for an unknown one."""
    return named("storage", name, {**STORAGES, **UNSHIFTED})


def compute(name: str) -> Compute:
    """Return the arithmetic precision of that name. Raises InputError for an unknown one."""
    return named("compute", name, COMPUTES)
