"""Reading an NVIDIA GPU's state through NVML. Nothing is ever set."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from lbmtune.records import Conditions

_REASONS = {
    0x0001: "idle",
    0x0002: "application clocks",
    0x0004: "software power cap",
    0x0008: "hardware slowdown",
    0x0010: "sync boost",
    0x0020: "software thermal slowdown",
    0x0040: "hardware thermal slowdown",
    0x0080: "hardware power brake",
    0x0100: "display clocks",
}
"""Bits of nvmlClocksEventReasons (nvml.h), which are those of the older nvmlClocksThrottleReasons."""


class Monitor:
    """One GPU, found by its PCI bus. Every value is None where the driver does not tell it."""

    def __init__(self, pci_bus: str) -> None:
        self._handle = _handle(pci_bus)

    def conditions(self) -> Conditions:
        """Clocks, power, temperature and the reasons for reduced clocks now."""
        sm_clock, memory_clock = (self._hz("nvmlDeviceGetClockInfo", kind) for kind in (_SM_CLOCK, _MEMORY_CLOCK))
        return Conditions(
            sm_clock_hz=sm_clock,
            memory_clock_hz=memory_clock,
            power_w=_scaled(self._ask("nvmlDeviceGetPowerUsage"), 1e-3),
            temperature_c=_scaled(self._ask("nvmlDeviceGetTemperature", _GPU_SENSOR), 1.0),
            throttle=reason_names(self._reasons()),
        )

    @property
    def energy_j(self) -> float | None:
        """Drawn since the driver was loaded, by the counter of cards since Volta."""
        return _scaled(self._ask("nvmlDeviceGetTotalEnergyConsumption"), 1e-3)

    @property
    def uuid(self) -> str | None:
        """Such as 'GPU-5a1c...'."""
        return _text(self._ask("nvmlDeviceGetUUID"))

    @property
    def driver(self) -> str | None:
        """Version of the driver."""
        return _text(_asked("nvmlSystemGetDriverVersion"))

    @property
    def power_limit_w(self) -> float | None:
        """The limit in force."""
        return _scaled(self._ask("nvmlDeviceGetEnforcedPowerLimit"), 1e-3)

    @property
    def max_sm_clock_hz(self) -> float | None:
        """The highest clock that the multiprocessors can have."""
        return self._hz("nvmlDeviceGetMaxClockInfo", _SM_CLOCK)

    @property
    def memory_bytes_per_s(self) -> float | None:
        """What the data sheet says: the width of the bus times the highest clock, at both edges of which data comes."""
        width, clock = self._ask("nvmlDeviceGetMemoryBusWidth"), self._hz("nvmlDeviceGetMaxClockInfo", _MEMORY_CLOCK)
        return 2 * clock * float(width) / 8 if width and clock else None

    def _reasons(self) -> int:
        for query in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            if (bits := self._ask(query)) is not None:
                return int(bits)
        return 0

    def _hz(self, query: str, kind: int) -> float | None:
        return _scaled(self._ask(query, kind), 1e6)

    def _ask(self, query: str, *arguments: int) -> Any:
        return None if self._handle is None else _asked(query, self._handle, *arguments)


_SM_CLOCK, _MEMORY_CLOCK, _GPU_SENSOR = 1, 2, 0


def reason_names(bits: int) -> tuple[str, ...]:
    """Names of the reasons for reduced clocks; being idle between samples is none."""
    known = [name for bit, name in _REASONS.items() if bits & bit and name != "idle"]
    return (*known, *(f"reason {bit:#x}" for k in range(64) if bits & (bit := 1 << k) and bit not in _REASONS))


@cache
def _nvml() -> Any:
    """The library, started; None without NVML."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def _handle(pci_bus: str) -> Any:
    return _asked("nvmlDeviceGetHandleByPciBusId", pci_bus.encode())


def _asked(query: str, *arguments: Any) -> Any:
    """The answer of NVML; None where it does not know the query or the device does not support it."""
    library = _nvml()
    function: Callable[..., Any] | None = getattr(library, query, None)
    if function is None:
        return None
    try:
        return function(*arguments)
    except library.NVMLError:
        return None


def _scaled(value: Any, unit: float) -> float | None:
    return None if value is None else float(value) * unit


def _text(value: str | bytes | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value
