"""Printing and reading of quantities. Inside the package everything is SI base units."""

import re
from math import floor, log10

from lbmtune.errors import InputError

_SECONDS = {"": 1.0, "s": 1.0, "ms": 1e-3, "m": 60.0, "min": 60.0, "h": 3600.0}
_THREE_DIGITS = 99.5
"""Whole numbers from here on have three digits."""


def mlups(sites: int, steps: float, seconds: float) -> float:
    """Return million lattice-site updates per second."""
    return sites * steps / seconds / 1e6


def format_mlups(mlups: float) -> str:
    """Return a speed with at least three digits: 27512.3 -> '27,512', 62.31 -> '62.3'."""
    decimals = 2 - floor(log10(mlups)) if 0 < mlups < _THREE_DIGITS else 0
    return f"{mlups:,.{decimals}f}"


def parse_duration_s(text: str) -> float:
    """Return the seconds of '90', '90s', '5m', '1.5h'. Raises InputError."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", text)
    if match and match[2] in _SECONDS:
        try:
            return float(match[1]) * _SECONDS[match[2]]
        except ValueError:
            pass
    raise InputError(f"duration {text!r} is not a positive number with a unit; write for example 90s, 5m or 1h.")


def parse_bytes(text: str) -> int:
    """Return the bytes of '4GiB', '512 MiB', '8GB', '1000'. Raises InputError."""
    match = re.fullmatch(r"\s*([0-9.]+)\s*(?:([KMGT])(i?)B|B)?\s*", text)
    if match:
        try:
            power = " KMGT".index(match[2] or " ")
            return int(float(match[1]) * (1024 if match[3] or not match[2] else 1000) ** power)
        except (ValueError, OverflowError):
            pass
    raise InputError(f"size {text!r} is not a positive number of bytes; write for example 4GiB or 512MiB.")


def format_bytes(n: float) -> str:
    """Return bytes with a binary prefix: 1536 -> '1.5 KiB'."""
    for prefix in ("", "Ki", "Mi", "Gi", "Ti", "Pi"):
        if abs(n) < 1024:
            return f"{n:.4g} {prefix}B"
        n /= 1024
    return f"{n:.4g} EiB"


def format_ps(seconds: float) -> str:
    """Return picoseconds with three digits and no exponent: 1.7432e-8 -> '17,432'."""
    value = 1e12 * seconds
    return f"{value:,.0f}" if abs(value) >= 999.5 else f"{value:.3g}"


def format_rate(bytes_per_s: float) -> str:
    """Return bytes per second with a decimal prefix: 4.08e12 -> '4080 GB/s'."""
    return f"{bytes_per_s / 1e9:.4g} GB/s"
