"""Samples of a simulation with their conditions and CPU share, and the warm-up before them."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from statistics import fmean, median
from typing import Any, NamedTuple

from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.timing.processor_time import kernel_share, usage_before
from lbmtune.measure.timing.state import WrongResultError, probed, unchanged
from lbmtune.records import Conditions
from lbmtune.records.spec import TimingProtocol
from lbmtune.runtime import Simulation

STEADY_CLOCK = 0.75
"""Least SM clock of a sample that counts, as a share of the highest."""
SLOWED = ("hardware slowdown", "hardware thermal slowdown", "software thermal slowdown", "hardware power brake")
"""Throttle reasons that void a sample; not the software power cap, which a busy GPU is usually under."""
WARM_SAMPLES = 3
_SHORTEST_SHARE = 1 / 8
"""Shortest warm-up sample, as a share of the warm-up time."""
_LONGEST_WARMUP = 20
"""Longest warm-up, in multiples of the warm-up time."""


@dataclass(frozen=True)
class Sample:
    """Seconds per time step, the conditions of the run, and the reason why it does not count (empty if it does)."""

    step_s: float
    conditions: Conditions
    flaw: str = ""


class WarmUp(NamedTuple):
    """The last samples of a warm-up, each of `steps` time steps."""

    samples: list[Sample]
    steps: int


def take(simulation: Simulation, steps: int, protocol: TimingProtocol, *, with_conditions: bool = True) -> Sample:
    """Time some steps. with_conditions: read those of the device, which may take longer than the sample."""
    device, config = simulation.device, simulation.program.config
    before = usage_before(config)
    step_s = device.time_s(lambda: simulation.step(steps)) / steps
    conditions = device.conditions() if with_conditions else Conditions()
    if before:
        conditions = replace(conditions, cpu_share=kernel_share(before, config))
    if with_conditions and isinstance(device, PooledDevice) and device.monitor:
        conditions = device.monitor(conditions, steps * step_s)
    return Sample(step_s, conditions, flaw(conditions, device.environment.max_sm_clock_hz, protocol))


def flaw(conditions: Conditions, max_sm_clock_hz: float | None, protocol: TimingProtocol) -> str:
    """Return why a sample taken under these conditions does not count, or ''."""
    clock, share = conditions.sm_clock_hz, conditions.cpu_share
    if clock and max_sm_clock_hz and clock < STEADY_CLOCK * max_sm_clock_hz:
        return f"SM clock {clock / 1e6:.0f} MHz of {max_sm_clock_hz / 1e6:.0f} MHz"
    if slowed := [reason for reason in conditions.throttle if reason in SLOWED]:
        return ", ".join(slowed)
    if conditions.others:
        return f"other processes on the GPU: {', '.join(conditions.others)}"
    if share is not None and share < protocol.min_cpu_share:
        return f"CPU share {share:.2f}"
    return ""


def warm_up(simulation: Simulation, protocol: TimingProtocol) -> WarmUp:
    """Run until the warm-up time is over and the clock is up.

    A sample is one cycle, or more to make it long enough: the clock of a device does not rise if it works for
    microseconds between two queries, which take longer than the work. Nothing that runs here frees a processor that
    others use, so that a low CPU share is not waited for.
    """
    steps, before = simulation.cycle_steps, probed(simulation)
    take(simulation, steps, protocol, with_conditions=False)
    if unchanged(before, probed(simulation)):
        raise WrongResultError("the timed run left the state as it was")
    samples: list[Sample] = []
    spent_s = 0.0
    while True:
        warm = spent_s >= protocol.warmup_s and len(samples) >= WARM_SAMPLES - 1
        samples.append(last := take(simulation, steps, protocol, with_conditions=warm))
        sample_s = last.step_s * steps
        spent_s += sample_s
        rising = last.flaw and last.conditions.cpu_share is None and spent_s <= _LONGEST_WARMUP * protocol.warmup_s
        if warm and not rising:
            return WarmUp(samples[-WARM_SAMPLES:], steps)
        if sample_s < _SHORTEST_SHARE * protocol.warmup_s:
            steps *= 2
            samples.clear()


def steps_per_sample(simulation: Simulation, step_s: float, sample_s: float) -> int:
    """Return the time steps of a sample: at least sample_s, and whole cycles of parity and buffer swap."""
    cycle = simulation.cycle_steps
    return cycle * max(1, ceil(sample_s / (step_s * cycle)))


def undisturbed_s(samples: Sequence[Sample]) -> float:
    """Return the seconds per step on an idle processor, estimated by the CPU shares of the samples."""
    return min(sample.step_s * (sample.conditions.cpu_share or 1.0) for sample in samples)


def summary(conditions: Sequence[Conditions]) -> Conditions:
    """Return median clocks, the highest power and temperature, the lowest CPU share, every throttle reason and process.

    The rates of the interference monitor are averaged: a machine may alternate between two speeds.
    """
    found: dict[str, Any] = {}
    for combined, names in _SUMMARIES.items():
        for name in names:
            known = [value for c in conditions if (value := getattr(c, name)) is not None]
            found[name] = combined(known) if known else None
    for name in ("throttle", "others"):
        found[name] = tuple(sorted({one for c in conditions for one in getattr(c, name)}))
    return Conditions(**found)


_SUMMARIES: Mapping[Callable[[list[float]], float], tuple[str, ...]] = {
    median: ("sm_clock_hz", "memory_clock_hz"),
    max: ("power_w", "temperature_c"),
    min: ("cpu_share",),
    fmean: ("memory_bytes_per_s", "last_cache_bytes_per_s", "work_per_s"),
}
"""Conditions by the way in which those of samples are combined."""


@contextmanager
def garbage_collection_off() -> Iterator[None]:
    """Keep the garbage collector out of the samples."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
