"""Curves of a calibration: measurements by the number in their name, values between them, and those of GPU caches."""

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import log

from lbmtune.model.machine.description import Machine


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


def by_bytes(figures: Mapping[str, float]) -> list[tuple[int, float]]:
    """Return figures by the bytes that their names say, sorted."""
    return sorted((size, figures[name]) for size, name in by_number(tuple(figures), "").items())


def retained_in_l2(machine: Machine, between_bytes: float) -> float:
    """Return the share of data that L2 still holds after a number of bytes have passed through it.

    Source: `Calibration.again_bytes_per_s`. Without it: all, as long as these bytes fit.
    """
    measured = machine.calibration.again_bytes_per_s if machine.calibration else {}
    if not measured:
        return float(between_bytes <= machine.caches_bytes.get("L2", 0))
    curve = sorted((int(between), 1 / rate) for between, rate in measured.items())
    (_, hit_s), (_, miss_s) = curve[0], curve[-1]
    return min(1.0, max(0.0, (miss_s - interpolated(curve, between_bytes)) / (miss_s - hit_s)))


def local_byte_s(machine: Machine, access_bytes: int, kept_bytes: float, *, walking: bool) -> float:
    """Return the seconds of the device for a byte of local memory that is stored or loaded.

    kept_bytes: local memory of all threads of a multiprocessor. Source: how much longer a copy with that access width
    takes whose threads use as much local memory (`Calibration.spilled_bytes_per_s`). Stores go through L1 to L2, so
    there is no step at the size of L1. The machine has to be calibrated.
    """
    assert machine.calibration is not None
    taken = {}
    for name, rate in machine.calibration.spilled_bytes_per_s.items():
        words = name.split()
        if words[0] == str(access_bytes) and (words[-1] == "walking") == walking:
            taken[int(words[2]), int(words[4])] = 2 * machine.streams * access_bytes / rate
    none = next(seconds for (_, local), seconds in taken.items() if not local)
    curve = [
        (threads * local, max(0.0, seconds - none) / (2 * local))
        for (threads, local), seconds in sorted(taken.items())
        if local
    ]
    return interpolated(curve, kept_bytes)
