"""The timing protocol: warm up until steady, take as many samples as they need, record the conditions."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from lbmtune.measure.timing import sampling
from lbmtune.measure.timing.state import check_state, excite
from lbmtune.records import Measurement
from lbmtune.records.comparison.statistics import Interval, median_interval
from lbmtune.records.spec import TimingProtocol
from lbmtune.runtime import Simulation
from lbmtune.units import mlups

_REPEATS = 2
"""Flawed samples after which they are accepted, in multiples of min_samples; likewise of warm-up samples."""


def measure(simulation: Simulation, protocol: TimingProtocol, incumbent_s: float | None = None) -> Measurement:
    """Time a simulation on its own domain, from a random state.

    incumbent_s: seconds per step of the best so far; if undisturbed warm-up samples are `bail_out` times slower, they
    are the measurement. Raises WrongResultError, DeviceFaultError.
    """
    excite(simulation)
    with sampling.garbage_collection_off():
        warm = sampling.warm_up(simulation, protocol)
        if incumbent_s and (slow := _too_slow(simulation, protocol, warm, protocol.bail_out * incumbent_s)):
            check_state(simulation)
            return replace(measurement(simulation, slow, warm.steps, disturbed=False), dismissed=True)
        steps = sampling.steps_per_sample(simulation, sampling.undisturbed_s(warm.samples), protocol.sample_s)
        simulation.prepare(steps)
        samples, disturbed = _samples(simulation, protocol, steps)
    check_state(simulation)
    return measurement(simulation, samples, steps, disturbed)


def _too_slow(
    simulation: Simulation, protocol: TimingProtocol, warm: sampling.WarmUp, limit_s: float
) -> list[sampling.Sample]:
    """Return flawless samples that are all slower than the limit; none if it may be faster.

    Flawed samples are repeated a few times. The CPU share alone does not tell the speed of an idle machine, because
    other programs take caches and bandwidth, too; so nothing is dismissed by flawed samples.
    """
    if sampling.undisturbed_s(warm.samples) <= limit_s:
        return []
    good = [sample for sample in warm.samples if not sample.flaw]
    for _ in range(_REPEATS * sampling.WARM_SAMPLES):
        if len(good) >= sampling.WARM_SAMPLES:
            break
        sample = sampling.take(simulation, warm.steps, protocol)
        good += [] if sample.flaw else [sample]
    return good if len(good) >= sampling.WARM_SAMPLES and sampling.undisturbed_s(good) > limit_s else []


def _samples(simulation: Simulation, protocol: TimingProtocol, steps: int) -> tuple[list[sampling.Sample], bool]:
    """Take as many samples as the first ones say that the interval needs; tell if flawed ones had to be accepted."""
    good: list[sampling.Sample] = []
    flawed: list[sampling.Sample] = []
    needed = protocol.min_samples
    while len(good) < needed:
        sample = sampling.take(simulation, steps, protocol)
        (flawed if sample.flaw else good).append(sample)
        if not sample.flaw and len(good) == protocol.min_samples:
            needed = _needed(good, protocol)
        if len(flawed) >= _REPEATS * protocol.min_samples:
            break
    if len(good) >= protocol.min_samples:
        return good, False
    return good + flawed, True


def _needed(first: Sequence[sampling.Sample], protocol: TimingProtocol) -> int:
    """Return the number of samples for the interval that is aimed at; its width shrinks with the root of it.

    It is found once: who stops when the interval happens to be narrow reports intervals that are too narrow.
    """
    wanted = ceil(len(first) * (_interval(first).half_width / protocol.confidence) ** 2)
    return max(len(first), min(wanted, protocol.max_samples))


def _interval(samples: Sequence[sampling.Sample]) -> Interval:
    return median_interval([sample.step_s for sample in samples])


def measurement(simulation: Simulation, samples: Sequence[sampling.Sample], steps: int, disturbed: bool) -> Measurement:
    """Return the record of samples of `steps` time steps each."""
    interval, sites = _interval(samples), simulation.case.fluid_sites
    moved = simulation.bytes_per_update
    return Measurement(
        mlups=mlups(sites, 1, interval.median),
        ci_low_mlups=mlups(sites, 1, interval.high),
        ci_high_mlups=mlups(sites, 1, interval.low),
        bandwidth_bytes_per_s=moved * sites / interval.median,
        bytes_per_update=moved,
        samples_s=tuple(sample.step_s for sample in samples),
        steps_per_sample=steps,
        sites=sites,
        conditions=sampling.summary([sample.conditions for sample in samples]),
        disturbed=disturbed,
    )
