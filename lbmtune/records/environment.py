"""The environment of a study, and the state of a device during samples."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Device, software and host of a study.

    device_id: UUID of a GPU, or CPU model and cores; packages: name -> version.
    """

    backend: str
    device: str
    device_id: str
    architecture: str
    driver: str = ""
    runtime: str = ""
    compiler: str = ""
    memory_bytes: int = 0
    power_limit_w: float | None = None
    max_sm_clock_hz: float | None = None
    ecc: bool | None = None
    cores: int = 0
    vector_bits: int = 0
    host: str = ""
    python: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    date: str = ""

    def differences(self, now: Environment) -> list[tuple[str, object, object]]:
        """Return name, value here and value now of what makes speeds of two environments incomparable."""
        pairs = [(name, getattr(self, name), getattr(now, name)) for name in _COMPARED]
        return [(name, was, here) for name, was, here in pairs if was != here]


_COMPARED = ("backend", "device", "device_id", "driver", "runtime", "compiler", "ecc", "power_limit_w")


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """State of a device during samples; None if it cannot be read.

    throttle: names of the reasons for reduced clocks; cpu_share: process time over wall time per thread;
    memory, last_cache: bytes per second of a walk in place through them, right after a sample that was long enough;
    work: operations of a core per second, likewise (`measure.calibration.interference_monitor`). Other virtual machines
    of the host change these without using the processor.
    """

    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttle: tuple[str, ...] = ()
    cpu_share: float | None = None
    memory_bytes_per_s: float | None = None
    last_cache_bytes_per_s: float | None = None
    work_per_s: float | None = None
