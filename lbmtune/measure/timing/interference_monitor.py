"""How fast a processor is just now: who shares a host takes bandwidth and caches of it, and no share of its time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from lbmtune.backend.protocol import Compiler, Device
from lbmtune.measure.calibration.cpu import Bench, Glance
from lbmtune.records import Conditions

WORTH = 10
"""How many times longer a sample lasts, at least, than a look after it: that costs time, and empties the caches."""


@dataclass(frozen=True)
class Gauge:
    """Walks by the fields of `Conditions` that they tell. takes_s: all of them."""

    device: Device
    glances: Mapping[str, Glance]
    takes_s: float

    def look(self, conditions: Conditions, sample_s: float) -> Conditions:
        """The conditions with what the machine does now, after a sample that was long enough; else as they are."""
        if sample_s < WORTH * self.takes_s:
            return conditions
        rates: dict[str, Any] = {name: self._per_s(one) for name, one in self.glances.items()}
        return replace(conditions, **rates)

    def _per_s(self, one: Glance) -> float:
        if one.cached:
            one.run()  # what was sampled has left nothing of it in the caches
        return one.done / self.device.time_s(one.run)


def gauge(device: Device, compiler: Compiler, caches: Mapping[str, int]) -> Gauge:
    """Makes the walks of a processor and goes through them. caches: level -> bytes. Raises what the device raises."""
    glances = Bench(device, compiler, caches).glances()
    for one in glances.values():
        one.run()
    return Gauge(device, glances, sum((1 + one.cached) * device.time_s(one.run) for one in glances.values()))
