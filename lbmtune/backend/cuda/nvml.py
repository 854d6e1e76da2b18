"""The state of an NVIDIA GPU, read through NVML; nothing is ever set."""

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import psutil

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
    """One GPU, found by its PCI bus. A value is None if the driver does not report it."""

    def __init__(self, pci_bus: str) -> None:
        self._handle = _queried("nvmlDeviceGetHandleByPciBusId", pci_bus.encode())
        self._others: tuple[str, ...] = ()

    def conditions(self) -> Conditions:
        """Return clocks, power, temperature and the reasons for reduced clocks of this moment.

        others: also those at the last call, so that all have been seen that ran before or after a sample.
        """
        before, self._others = self._others, self._strangers()
        sm_clock, memory_clock = (self._hz("nvmlDeviceGetClockInfo", kind) for kind in (_SM_CLOCK, _MEMORY_CLOCK))
        return Conditions(
            sm_clock_hz=sm_clock,
            memory_clock_hz=memory_clock,
            power_w=_scaled(self._query("nvmlDeviceGetPowerUsage"), 1e-3),
            temperature_c=_scaled(self._query("nvmlDeviceGetTemperature", _GPU_SENSOR), 1.0),
            throttle=reason_names(self._reasons()),
            others=tuple(dict.fromkeys((*before, *self._others))),
        )

    @property
    def energy_j(self) -> float | None:
        """Return the energy drawn since the driver was loaded (Volta and later)."""
        return _scaled(self._query("nvmlDeviceGetTotalEnergyConsumption"), 1e-3)

    @property
    def uuid(self) -> str | None:
        """Return an identifier such as 'GPU-5a1c...'."""
        return _text(self._query("nvmlDeviceGetUUID"))

    @property
    def driver(self) -> str | None:
        """Return the version of the driver."""
        return _text(_queried("nvmlSystemGetDriverVersion"))

    @property
    def power_limit_w(self) -> float | None:
        """Return the enforced power limit."""
        return _scaled(self._query("nvmlDeviceGetEnforcedPowerLimit"), 1e-3)

    @property
    def max_sm_clock_hz(self) -> float | None:
        """Return the highest clock of the multiprocessors."""
        return self._hz("nvmlDeviceGetMaxClockInfo", _SM_CLOCK)

    @property
    def memory_bytes_per_s(self) -> float | None:
        """Return the peak memory bandwidth: bus width times the highest clock, at double data rate."""
        width, clock = self._query("nvmlDeviceGetMemoryBusWidth"), self._hz("nvmlDeviceGetMaxClockInfo", _MEMORY_CLOCK)
        return 2 * clock * float(width) / 8 if width and clock else None

    def link_to(self, other: "Monitor") -> str:
        """Return the name of the link to another GPU, such as 'NVLink 4, 18 links' or 'PCIe 5 x16'."""
        joined = self._query("nvmlDeviceGetP2PStatus", other._handle, _OVER_NVLINK) == _OK
        if joined and (links := self._nvlinks(other)):
            generation = _NVLINKS.get(self._query("nvmlDeviceGetNvLinkVersion", links[0]), "")
            return f"{' '.join(('NVLink', *generation))}, {len(links)} link{'s' if len(links) > 1 else ''}"
        generation, width = (self._query(f"nvmlDeviceGetMaxPcieLink{name}") for name in ("Generation", "Width"))
        return f"PCIe {generation} x{width}" if generation and width else "unknown"

    def _nvlinks(self, other: "Monitor") -> list[int]:
        """Return the numbers of the links that are up and lead to another GPU, or to a switch."""
        up = [n for n in range(_MOST_LINKS) if self._query("nvmlDeviceGetNvLinkState", n) == _ENABLED]
        bus = _bus_of(other._query("nvmlDeviceGetPciInfo"))
        direct = [n for n in up if _bus_of(self._query("nvmlDeviceGetNvLinkRemotePciInfo", n)) == bus]
        return direct or up

    def _strangers(self) -> tuple[str, ...]:
        """Return name and number of each process of others that computes on the GPU.

        None if this process is not listed: then the numbers are those outside of a container.
        """
        numbers = [one.pid for one in self._query("nvmlDeviceGetComputeRunningProcesses") or ()]
        return tuple(filter(None, map(_stranger, numbers))) if os.getpid() in numbers else ()

    def _reasons(self) -> int:
        for query in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            if (bits := self._query(query)) is not None:
                return int(bits)
        return 0

    def _hz(self, query: str, kind: int) -> float | None:
        return _scaled(self._query(query, kind), 1e6)

    def _query(self, query: str, *arguments: Any) -> Any:
        return None if self._handle is None else _queried(query, self._handle, *arguments)


_SM_CLOCK, _MEMORY_CLOCK, _GPU_SENSOR = 1, 2, 0
_OVER_NVLINK, _OK, _ENABLED, _MOST_LINKS = 2, 0, 1, 36
_NVLINKS = {1: "1", 2: "2", 3: "2", 4: "3", 5: "3", 6: "4", 7: "5", 8: "6"}
"""Generations of NVLink by the numbers NVML_NVLINK_VERSION (nvml.h)."""


def reason_names(bits: int) -> tuple[str, ...]:
    """Return the names of the reasons for reduced clocks, without the idling between samples."""
    names = [name for bit, name in _REASONS.items() if bits & bit and name != "idle"]
    return (*names, *(f"reason {bit:#x}" for k in range(64) if bits & (bit := 1 << k) and bit not in _REASONS))


@cache
def _stranger(number: int) -> str:
    """Return the name and number of a process; empty for this one, its ancestors, and what its parent started."""
    try:
        process, own = psutil.Process(number), psutil.Process()
        above = {one.pid for one in process.parents()}
        if number in {own.pid, *(one.pid for one in own.parents())} or own.ppid() in above:
            return ""
        return f"{process.name()} ({number})"
    except psutil.Error:
        return f"process {number}"


@cache
def _nvml() -> Any:
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def _queried(query: str, *arguments: Any) -> Any:
    """Return the result of a query; None if NVML or the device does not support it."""
    library = _nvml()
    function: Callable[..., Any] | None = getattr(library, query, None)
    if function is None:
        return None
    try:
        return function(*arguments)
    except library.NVMLError:
        return None


def _bus_of(info: Any) -> str:
    """Return the PCI bus of a description; empty if it is unknown."""
    return (_text(info.busId) or "").lower() if info else ""


def _scaled(value: Any, unit: float) -> float | None:
    return None if value is None else float(value) * unit


def _text(value: str | bytes | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value
