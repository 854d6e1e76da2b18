"""Ranges of the numbers in study files and options."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from lbmtune.decomposition.cuts import MOST_PARTS
from lbmtune.files.source import Source
from lbmtune.records.spec import TimingProtocol


@dataclass(frozen=True)
class Range:
    """A range from low to high, both included; above: without low itself. It holds no NaN."""

    low: float
    high: float
    above: bool = False

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high and not (self.above and value == self.low)

    def __str__(self) -> str:
        return f"above {self.low} and at most {self.high}" if self.above else f"between {self.low} and {self.high}"


_SECONDS = Range(0, 86_400, above=True)
_SAMPLES = Range(2, 1_000_000)
"""Numbers of samples: a single one has no spread."""
PROTOCOL: Mapping[str, Range] = {
    "verify_periods": Range(1, 1000),
    "warmup_s": _SECONDS,
    "sample_s": _SECONDS,
    "final_sample_s": _SECONDS,
    "min_samples": _SAMPLES,
    "max_samples": _SAMPLES,
    "confidence": Range(0, 1, above=True),
    "bail_out": Range(1, 1_000_000),
    "finalists": Range(1, 1000),
    "final_rounds": _SAMPLES,
    "min_cpu_share": Range(0, 1),
    "sustained_top": Range(0, 1000),
    "sustained_s": _SECONDS,
    "settling_s": Range(0, 86_400),
    "profiled": Range(0, 1),
    "compile_limit_s": _SECONDS,
    "verify_limit_s": _SECONDS,
    "measure_limit_s": _SECONDS,
}
TRIALS = Range(1, 1_000_000_000)
SAMPLE = INTERVAL = Range(0, 1_000_000_000)
TIME_S = Range(0, 1_000_000_000, above=True)
TARGET = Range(0, 1.2, above=True)
"""Shares of a predicted or possible speed; a kernel may be faster than it was predicted."""
SEED = Range(0, 2**32 - 1)
"""Seeds of NumPy's generators."""
PRINTED, COMPILABLE = Range(1, 1_000_000_000), Range(0, 1_000_000_000)
"""Numbers of a ranking's configurations that are printed, and compiled."""
MEMORY_BYTES, FOOTPRINT_BYTES = Range(1, inf), Range(1, 10**18)
POWER_W = Range(0, 100_000, above=True)
TRIAL_NUMBERS = Range(0, 1_000_000_000)
MEMBERS = Range(1, 1_000_000)
"""Numbers of members of a Pareto set."""
DEVICES = Range(1, 100_000)
"""Numbers of devices that share a domain."""
PARTS = Range(1, MOST_PARTS)
"""Numbers of parts of a domain whose faces are listed."""
SPEED = Range(-0.5, 0.5)
"""Speeds of a wall or a flow, in cells per step: the method holds for small ones alone."""


def check(value: float, allowed: Range, key: str, source: Source, hint: str = "correct the value.") -> None:
    """Raise InputError that names the key, the value and the range."""
    if value not in allowed:
        source.fail(key, f"{value} is not {allowed}; {hint}")


def check_protocol(protocol: TimingProtocol, source: Source) -> None:
    """Raise InputError for the first value that is out of its range."""
    for name, allowed in PROTOCOL.items():
        check(getattr(protocol, name), allowed, f"protocol.{name}", source)
    if protocol.max_samples < protocol.min_samples:
        key = "max_samples" if protocol.max_samples != TimingProtocol().max_samples else "min_samples"
        said = f"min_samples {protocol.min_samples} is above max_samples {protocol.max_samples}"
        source.fail(f"protocol.{key}", f"{said}; correct one of them.")
