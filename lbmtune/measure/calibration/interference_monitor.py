"""Monitor the speed of a shared host: other programs take its bandwidth and caches without taking CPU time."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lbmtune.backend.protocol import Compiler, Device
from lbmtune.measure.calibration.cpu_bench import CpuBench, Probe
from lbmtune.records import Conditions

SAMPLE_RATIO = 10
"""Shortest sample that is followed by probes, in multiples of their time: they cost time and flush the caches."""


@dataclass(frozen=True)
class InterferenceMonitor:
    """Probes by the fields of `Conditions` that they fill. probes_s: seconds of all probes together."""

    device: Device
    probes: Mapping[str, Probe]
    probes_s: float

    def __call__(self, conditions: Conditions, sample_s: float) -> Conditions:
        """Return the conditions with the rates of all probes; unchanged after a sample that was too short."""
        if sample_s < SAMPLE_RATIO * self.probes_s:
            return conditions
        rates: dict[str, Any] = {name: self._per_s(probe) for name, probe in self.probes.items()}
        return replace(conditions, **rates)

    def _per_s(self, probe: Probe) -> float:
        if probe.cached:
            probe.run()  # the sample has evicted its data
        return probe.amount / self.device.time_s(probe.run)


def interference_monitor(device: Device, compiler: Compiler, caches: Mapping[str, int]) -> InterferenceMonitor:
    """Compile the probes of a processor and run them once. caches: level -> bytes. Raises what the device raises."""
    probes = CpuBench(device, compiler, caches).probes()
    for probe in probes.values():
        probe.run()
    probes_s = sum((1 + probe.cached) * device.time_s(probe.run) for probe in probes.values())
    return InterferenceMonitor(device, probes, probes_s)
