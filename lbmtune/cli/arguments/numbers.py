"""Readers of the numbers of options; they refuse in one sentence with the option as it was given."""

import shlex
from collections.abc import Callable
from typing import TypeVar

from lbmtune.errors import InputError
from lbmtune.files.ranges import MEMORY_BYTES, TIME_S, Range
from lbmtune.units import parse_bytes, parse_duration_s

Number = TypeVar("Number", int, float)


def whole(option: str, allowed: Range, example: int) -> Callable[[str], int]:
    """Return a reader of whole numbers, which raises InputError."""
    rule = f"a whole number {allowed}"
    return lambda text: _read(option, text, int, rule, allowed, f"{option} {example}")


def time_s(option: str) -> Callable[[str], float]:
    """Return a reader of times such as '90s', in seconds, which raises InputError."""
    rule = f"a time {TIME_S} seconds"
    return lambda text: _read(option, text, parse_duration_s, rule, TIME_S, f"{option} 90s, 5m or 1h")


def memory_bytes(option: str, text: str, example: str) -> int:
    """Return the bytes of a size such as '1GiB'. Raises InputError."""
    return _read(option, text, parse_bytes, "a size of at least one byte", MEMORY_BYTES, f"{option} {example}")


def _read(option: str, text: str, reader: Callable[[str], Number], rule: str, allowed: Range, example: str) -> Number:
    try:
        number = reader(text)
    except (ValueError, InputError):
        number = None
    if number is None or number not in allowed:
        raise InputError(f"{option} {shlex.quote(str(text))} is not {rule}; write for example {example}.")
    return number
