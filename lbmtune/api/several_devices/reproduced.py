"""Variants of published experiments on several devices: proved, then timed in turns, one device among them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from lbmtune.api.several_devices.parts import Pair, check_cut, failures, grown, remembering, small_case
from lbmtune.backend.protocol import Compiler, OutOfMemoryError, TooManyResourcesError
from lbmtune.catalogue.footprint import bytes_per_update
from lbmtune.catalogue.problem.case import Case
from lbmtune.claims.plan import Entry
from lbmtune.codegen.render import render
from lbmtune.decomposition.coupling import parse_coupling
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.errors import InputError
from lbmtune.measure.parts.proof import agreement
from lbmtune.measure.timing.state import WrongResultError, excite
from lbmtune.records import Measurement, Outcome, Trial
from lbmtune.records.comparison.statistics import median_interval
from lbmtune.records.parts import Compared
from lbmtune.runtime.simulation import Simulation
from lbmtune.units import mlups

_TURNS, _SAMPLE_S, _LEAST_STEPS = 9, 0.06, 32
"""Samples of each variant, their least seconds, and least time steps."""
_OUTCOMES: Mapping[type[Exception], Outcome] = {
    InputError: Outcome.ILLEGAL,
    WrongResultError: Outcome.WRONG_RESULT,
    OutOfMemoryError: Outcome.OUT_OF_MEMORY,
    TooManyResourcesError: Outcome.TOO_MANY_RESOURCES,
}
"""Outcomes of a variant that ends alone, by what is raised."""


@dataclass(frozen=True)
class _Timed:
    """A variant that is timed: seconds of some time steps, the time steps of a cycle, and what it updates."""

    time_s: Callable[[int], float]
    cycle: int
    sites: int


def measured_on_parts(
    case: Case, entries: Sequence[Entry], devices: Sequence[Any]
) -> list[tuple[Trial, Compared | None]]:
    """Return a trial for each variant of an experiment, with its state beside that of one device.

    devices: opened, one for each part. Variants without a cut run on the first one. Samples are taken in turns, and
    devices rest after each for as long as it took. Raises NothingValidError if a device fails.
    """
    trials, compiler = [_trial(case, entry, number) for number, entry in enumerate(entries)], remembering(devices)
    compared, timed = dict[int, Compared | None](), dict[int, tuple[_Timed, int]]()
    with failures():
        for number, entry in enumerate(entries):
            try:
                made, compared[number] = _made(case, entry, devices, compiler)
                timed[number] = made, _sample_steps(made)  # longer messages than those of the proof may be refused
            except tuple(_OUTCOMES) as error:
                trials[number] = replace(trials[number], outcome=_OUTCOMES[type(error)], reason=str(error))
        taken, failed = _in_turns(timed)
    for number, ended in failed.items():
        trials[number] = replace(trials[number], outcome=_OUTCOMES[type(ended)], reason=str(ended))
    for number, samples in taken.items():
        made, steps = timed[number]
        moved = bytes_per_update(case, trials[number].kernel_config)
        final = _measurement(moved, made, steps, samples)
        trials[number] = replace(trials[number], measurement=final, final=final)
    return [(trial, compared.get(number)) for number, trial in enumerate(trials)]


def _trial(case: Case, entry: Entry, number: int) -> Trial:
    assert entry.config
    return Trial(
        number=number,
        key=entry.config.key,
        config=entry.config.flat(),
        outcome=Outcome.OK,
        source_digest=render(case, entry.config).digest,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _made(case: Case, entry: Entry, devices: Sequence[Any], compiler: Compiler) -> tuple[_Timed, Compared | None]:
    """Return a variant that is loaded, and how its state agrees with that of one device on a small domain.

    Raises WrongResultError if it does not, InputError if it cannot run.
    """
    config, over = entry.config, entry.variant.over
    assert config
    if over is None:
        program = render(case, config)
        with devices[0].current():
            alone = Simulation(program, compiler(program), devices[0])
            excite(alone)
        return _Timed(lambda steps: _on(devices[0], alone, steps), alone.cycle_steps, case.fluid_sites), None
    cut, coupling, planes = parse_cut(over.cut), parse_coupling(over.coupling), not over.halo_computed
    whole = grown(case, cut) if over.weak else case
    check_cut(whole, config, cut, devices[0].limits)
    chosen, small = small_case(case, config, over.cut, devices, coupling.edge_planes)
    proving = Pair(small, small, config, chosen, devices, planes=planes, compiler=compiler)
    found = agreement(*proving.made(coupling, poisons=True))
    if not found.passed:
        raise WrongResultError(f"parts are {found.worst:.2g} apart from one device, allowed {found.bound:.2g}")
    timing = Pair(small, whole, config, cut, devices, planes=planes, compiler=compiler)
    _, parts = timing.made(coupling, poisons=False)
    for one, device in zip(parts.parts, parts.devices, strict=True):
        with device.current():
            excite(one)
    state = Compared(
        domain=small.domain,
        steps=found.steps,
        different=found.different,
        worst=found.worst,
        bound=found.bound,
    )
    cycle = parts.parts[0].places * parts.decomposition.steps
    return _Timed(parts.time_s, cycle, whole.fluid_sites), state


def _on(device: Any, alone: Any, steps: int) -> float:
    with device.current():
        device.synchronize()
        seconds: float = alone.time_s(steps)
        return seconds


def _in_turns(timed: Mapping[int, tuple[_Timed, int]]) -> tuple[dict[int, list[float]], dict[int, Exception]]:
    """Return the seconds per time step of each sample, and what ended a variant, by the number of the variant."""
    samples: dict[int, list[float]] = {number: [] for number in timed}
    failed: dict[int, Exception] = {}
    for _ in range(_TURNS):
        for number in [*samples]:
            one, steps = timed[number]
            try:
                seconds = one.time_s(steps)
            except tuple(_OUTCOMES) as error:
                failed[number] = error
                del samples[number]
                continue
            time.sleep(seconds)
            samples[number].append(seconds / steps)
    return samples, failed


def _sample_steps(one: _Timed) -> int:
    """Return whole cycles that take about a sample's time or longer."""
    least = one.cycle * -(-_LEAST_STEPS // one.cycle)
    one.time_s(least)
    return least * max(1, round(_SAMPLE_S / one.time_s(least)))


def _measurement(moved: float, one: _Timed, steps: int, samples: Sequence[float]) -> Measurement:
    step = median_interval(samples)
    return Measurement(
        mlups=mlups(one.sites, 1, step.median),
        ci_low_mlups=mlups(one.sites, 1, step.high),
        ci_high_mlups=mlups(one.sites, 1, step.low),
        bandwidth_bytes_per_s=moved * one.sites / step.median,
        bytes_per_update=moved,
        samples_s=tuple(samples),
        steps_per_sample=steps,
        sites=one.sites,
    )
