"""Measurements of a calibration by the number in their name."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import log


@lru_cache(maxsize=1024)
def numbered(names: tuple[str, ...], before: str, after: str = "") -> dict[int, str]:
    """Of measurements those whose name is a number between two parts, by that number.

    Looked up for each configuration, of a few machines.
    """
    parts = ((name, name.removeprefix(before).removesuffix(after)) for name in names)
    return {int(rest): name for name, rest in parts if rest.isdigit() and f"{before}{rest}{after}" == name}


def nearest(known: Iterable[int], wanted: float) -> int:
    """By ratio."""
    return min(known, key=lambda one: abs(log(one / wanted)))
