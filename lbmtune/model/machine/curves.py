"""Curves of a calibration: measurements by the number in their name, and values between them."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import log


def times(rates: Mapping[str, float], factor: float) -> dict[str, float]:
    """Return all rates multiplied by a factor."""
    return {name: rate * factor for name, rate in rates.items()}


def closest(numbers: Iterable[int], wanted: float) -> int:
    """Return the number with the least difference to the wanted one."""
    return min(numbers, key=lambda number: abs(number - wanted))


@lru_cache(maxsize=1024)
def by_number(names: tuple[str, ...], before: str, after: str = "") -> dict[int, str]:
    """Return the names that are a number between two parts, by that number. Cached, since each configuration asks."""
    parts = ((name, name.removeprefix(before).removesuffix(after)) for name in names)
    return {int(rest): name for name, rest in parts if rest.isdigit() and f"{before}{rest}{after}" == name}


def nearest(numbers: Iterable[int], wanted: float) -> int:
    """Return the number whose ratio to the wanted one is closest to 1."""
    return min(numbers, key=lambda number: abs(log(number / wanted)))


def interpolated(curve: Sequence[tuple[float, float]], at: float) -> float:
    """Interpolate linearly between sorted points, from (0, 0) to the first; constant beyond the last."""
    points = [(0, 0.0), *curve]
    after = bisect([x for x, _ in points], at)
    if after == len(points):
        return points[-1][1]
    (x0, y0), (x1, y1) = points[after - 1], points[after]
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)


def enclosed(points: Sequence[tuple[float, float]], at: float) -> float:
    """Interpolate linearly between two of some sorted points that enclose a place."""
    left, right = next((left, right) for left, right in pairwise(points) if at <= right[0])
    return left[1] + (right[1] - left[1]) * (at - left[0]) / (right[0] - left[0])
