"""What a device keeps up: a run of seconds without a pause, with what it draws and why its clocks are lower."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import ceil
from statistics import fmean
from typing import NamedTuple

from lbmtune.catalogue.config import CpuConfig
from lbmtune.measure.timing.cpu_share import cpu_share, usage
from lbmtune.measure.timing.protocol import check_state, excite, flaw, steps_per_sample, summary, undisturbed_s, warm_up
from lbmtune.records import Conditions, Sustained
from lbmtune.records.study import TimingProtocol
from lbmtune.runtime import Simulation
from lbmtune.units import mlups

SLICE_S = 0.1
"""Between two looks at the device."""
_ROOM = 1.15
"""So many times the slices that a run is expected to take, since it may turn out faster than its warm-up."""


class Look(NamedTuple):
    """The device while a slice runs. at_s: by a clock of the host; energy_j: of its counter."""

    at_s: float
    energy_j: float | None
    conditions: Conditions


def sustain(simulation: Simulation, protocol: TimingProtocol) -> Sustained:
    """Runs a simulation on its own domain for `settling_s` and, without a pause, for `sustained_s` that count.

    Raises WrongResultError, DeviceFaultError.
    """
    excite(simulation)
    step_s = undisturbed_s(warm_up(simulation, protocol).samples)
    steps = steps_per_sample(simulation, step_s, min(SLICE_S, protocol.sustained_s / 4))
    simulation.prepare(steps)
    settling, wanted = (max(1, ceil(s / (steps * step_s))) for s in (protocol.settling_s, protocol.sustained_s))
    looks: list[Look] = []
    config, before = simulation.program.config, usage()
    slices_s = simulation.device.slices_s(
        lambda: simulation.step(steps), settling + ceil(_ROOM * wanted), lambda: looks.append(_look(simulation))
    )
    counted = slice(settling, settling + _until(slices_s[settling:], protocol.sustained_s))
    if isinstance(config, CpuConfig):
        share = cpu_share(before, usage(), config.threads)
        looks = [look._replace(conditions=replace(look.conditions, cpu_share=share)) for look in looks]
    check_state(simulation)
    found = _found(simulation, slices_s[counted], steps, looks[counted])
    most = simulation.device.environment.max_sm_clock_hz
    # lower clocks are what is looked for here, and no flaw
    return replace(found, disturbed=bool(flaw(replace(found.conditions, sm_clock_hz=None), most, protocol)))


def _until(slices_s: Sequence[float], seconds: float) -> int:
    """How many of the slices it takes to get there, or all of them."""
    return next((n for n, so_far in enumerate(accumulate(slices_s), 1) if so_far >= seconds), len(slices_s))


def _look(simulation: Simulation) -> Look:
    device = simulation.device
    return Look(time.perf_counter(), device.energy_j(), device.conditions())


def _found(simulation: Simulation, slices_s: Sequence[float], steps: int, looks: Sequence[Look]) -> Sustained:
    seconds, sites, total = sum(slices_s), simulation.case.fluid_sites, steps * len(slices_s)
    energy_j, source = energy(looks, seconds)
    conditions = [look.conditions for look in looks]
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
        conditions=summary(conditions),
    )


def energy(looks: Sequence[Look], seconds: float) -> tuple[float | None, str]:
    """Joules of a run and where they come from: the counter between the first and the last look, or mean power.

    A counter lags behind by a fraction of a second, at both looks alike.
    """
    first, last = looks[0], looks[-1]
    if first.energy_j is not None and last.energy_j is not None and last.at_s > first.at_s:
        return (last.energy_j - first.energy_j) / (last.at_s - first.at_s) * seconds, "counter"
    powers = [look.conditions.power_w for look in looks if look.conditions.power_w is not None]
    return (fmean(powers) * seconds, "mean power") if powers else (None, "")


def throttled(conditions: Sequence[Conditions]) -> dict[str, float]:
    """Share of the looks at which each reason for reduced clocks was there."""
    count = Counter(reason for c in conditions for reason in c.throttle)
    return {reason: n / len(conditions) for reason, n in sorted(count.items())}
