"""Plausible ranges of the figures of a machine, by the unit in their names.

They include all devices that exist, and exclude figures in another unit (GB/s, MHz, microseconds).
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Range(NamedTuple):
    """A range of values. unit: as it follows 'has to be'."""

    unit: str
    low: float
    high: float

    def refusal(self, name: str, value: float) -> str:
        """Return a clause if a value is outside the range, NaN included; else ''."""
        if self.low <= value <= self.high:
            return ""
        bounds = f"from {_bound(self.low)} to {_bound(self.high)}"
        return f"{name} is {shortened(str(value))}, which has to be {self.unit} {bounds}"


CORES = Range("a count", 1, 1e5)
MULTIPROCESSORS = Range("a count", 1, 1e5)
RANGES = {
    r".*_bytes_per_s": Range("bytes per second", 1e8, 1e15),
    r".*_flops_per_s": Range("operations per second", 1e9, 1e18),
    r".*_per_s": Range("a rate per second", 1e6, 1e16),
    # the latency of L2 may be hidden
    r"refills?_s": Range("seconds", 0, 1e-3),
    # they copy up to 300 MB
    r"small_s": Range("seconds", 1e-9, 1),
    r".*_s": Range("seconds", 1e-10, 1e-2),
    # 0: unknown
    r"memory_bytes": Range("bytes", 0, 1e15),
    r".*_bytes": Range("bytes", 1e3, 1e10),
    # after a measurement; the driver may report none
    r"(sm|memory)_clock_hz": Range("hertz", 0, 1e11),
    r".*_hz": Range("hertz", 1e6, 1e11),
    r"power(_limit)?_w": Range("watts", 0, 1e5),
    r"temperature_c": Range("degrees Celsius", -100, 200),
    r"cpu_share|hidden|cached_hidden": Range("a share", 0, 1),
    r"spread": Range("a share of the median", 0, 1e9),
    r"streams": Range("a count", 1, 1000),
    # 0 for the other kind of device
    r"cores": CORES._replace(low=0),
    r"multiprocessors": MULTIPROCESSORS._replace(low=0),
    r"registers": Range("a count", 1e3, 1e7),
    r"vector_bits": Range("bits", 0, 2048),
    r"bus_bits": Range("bits", 8, 1e5),
}
"""By patterns of field names; the first match counts."""


def range_of(field: str) -> Range | None:
    """Return the range of the figures in a field, or None."""
    return next((one for pattern, one in RANGES.items() if re.fullmatch(pattern, field)), None)


def shortened(text: str) -> str:
    """Return text cut to the room of a sentence."""
    return text if len(text) <= _ROOM else f"{text[:_ROOM]}..."


_ROOM = 40


def _bound(bound: float) -> str:
    """Return a bound as 1e8 and not 1e+08."""
    return re.sub(r"e\+?(-?)0*", r"e\1", f"{bound:g}")
