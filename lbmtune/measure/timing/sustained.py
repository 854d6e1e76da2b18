"""Sustained speed: a run of seconds without a pause, with its power and the reasons for lower clocks."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from math import ceil
from statistics import fmean
from typing import NamedTuple

from lbmtune.measure.timing import sampling
from lbmtune.measure.timing.processor_time import kernel_share, usage_before
from lbmtune.measure.timing.state import check_state, excite
from lbmtune.records import Conditions, Sustained
from lbmtune.records.spec import TimingProtocol
from lbmtune.runtime import Simulation
from lbmtune.units import mlups

SLICE_S = 0.1
"""Seconds between two readings of the device."""
_MORE_S = 0.5
"""Seconds of slices over those expected by the warm-up of a run, since it may be faster."""


class Reading(NamedTuple):
    """A reading of the device while a slice runs. at_s: host clock; energy_j: energy counter."""

    at_s: float
    energy_j: float | None
    conditions: Conditions


def sustain(
    simulation: Simulation, protocol: TimingProtocol, on_warm: Callable[[], object] = lambda: None
) -> Sustained:
    """Run a simulation on its own domain for `settling_s` and, without a pause, for `sustained_s` that count.

    on_warm: called once before that, when the warm-up has made ghost cells and values between tiles those of the state.
    Raises WrongResultError, DeviceFaultError.
    """
    excite(simulation)
    step_s = sampling.undisturbed_s(sampling.warm_up(simulation, protocol).samples)
    steps = sampling.steps_per_sample(simulation, step_s, min(SLICE_S, protocol.sustained_s / 4))
    simulation.prepare(steps)
    on_warm()
    lengths_s = protocol.settling_s, protocol.sustained_s + min(_MORE_S, protocol.sustained_s / 4)
    settling, slices = (max(1, ceil(s / (steps * step_s))) for s in lengths_s)
    readings: list[Reading] = []
    config = simulation.program.config
    before = usage_before(config)
    slices_s = simulation.device.slices_s(
        lambda: simulation.step(steps), settling + slices, lambda: readings.append(_reading(simulation))
    )
    counted = slice(settling, settling + _until(slices_s[settling:], protocol.sustained_s))
    if before:
        share = kernel_share(before, config)
        readings = [reading._replace(conditions=replace(reading.conditions, cpu_share=share)) for reading in readings]
    check_state(simulation)
    found = _found(simulation, slices_s[counted], steps, readings[counted])
    most = simulation.device.environment.max_sm_clock_hz
    # lower clocks are a result here, not a flaw
    return replace(found, disturbed=bool(sampling.flaw(replace(found.conditions, sm_clock_hz=None), most, protocol)))


def _until(slices_s: Sequence[float], seconds: float) -> int:
    """Return how many of the slices reach that time, or all of them."""
    return next((n for n, so_far in enumerate(accumulate(slices_s), 1) if so_far >= seconds), len(slices_s))


def _reading(simulation: Simulation) -> Reading:
    device = simulation.device
    return Reading(time.perf_counter(), device.energy_j(), device.conditions())


def _found(simulation: Simulation, slices_s: Sequence[float], steps: int, readings: Sequence[Reading]) -> Sustained:
    seconds, sites, total = sum(slices_s), simulation.case.fluid_sites, steps * len(slices_s)
    energy_j, source = energy(readings, seconds)
    conditions = [reading.conditions for reading in readings]
    return Sustained(
        mlups=mlups(sites, total, seconds),
        seconds=seconds,
        steps=total,
        sites=sites,
        slices_s=tuple(s / steps for s in slices_s),
        energy_j=energy_j,
        energy_source=source,
        power_w=None if energy_j is None else energy_j / seconds,
        power_limit_w=simulation.device.environment.power_limit_w,
        throttled=throttled(conditions),
        conditions=sampling.summary(conditions),
    )


def energy(readings: Sequence[Reading], seconds: float) -> tuple[float | None, str]:
    """Return the joules of a run and their source: the counter between the first and last reading, or mean power.

    A counter lags behind by a fraction of a second, at both readings alike.
    """
    first, last = readings[0], readings[-1]
    if first.energy_j is not None and last.energy_j is not None and last.at_s > first.at_s:
        return (last.energy_j - first.energy_j) / (last.at_s - first.at_s) * seconds, "counter"
    powers = [reading.conditions.power_w for reading in readings if reading.conditions.power_w is not None]
    return (fmean(powers) * seconds, "mean power") if powers else (None, "")


def throttled(conditions: Sequence[Conditions]) -> dict[str, float]:
    """Return the share of the readings with each reason for reduced clocks."""
    count = Counter(reason for c in conditions for reason in c.throttle)
    return {reason: n / len(conditions) for reason, n in sorted(count.items())}
