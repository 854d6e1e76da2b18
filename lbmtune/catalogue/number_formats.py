"""Small floating-point formats that array libraries lack: conversion of values to codes and back."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

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
        """The smallest positive number, which is the spacing of subnormal ones."""
        return float(2.0 ** (1 - self.bias - self.mantissa_bits))

    @property
    def largest(self) -> float:
        """The largest finite number."""
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
