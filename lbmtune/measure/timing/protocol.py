"""The timing protocol: warm up until steady, sample until confident, keep what the device was like meanwhile."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from statistics import fmean, median
from typing import NamedTuple

import numpy as np

from lbmtune.backend.protocol import Array
from lbmtune.catalogue.config import CpuConfig, CudaConfig
from lbmtune.catalogue.footprint import bytes_per_update
from lbmtune.measure.timing.cpu_share import cpu_share, usage
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.timing.random_fill import fill_with_noise
from lbmtune.records import Conditions, Measurement
from lbmtune.records.statistics import Interval, median_interval
from lbmtune.records.study import TimingProtocol
from lbmtune.runtime import Simulation
from lbmtune.units import mlups

STEADY_CLOCK = 0.75
"""Share of the highest SM clock below which a sample does not count."""
SLOWED = ("hardware slowdown", "hardware thermal slowdown", "software thermal slowdown", "hardware power brake")
"""Throttle reasons that void a sample. The software power cap is not among them: a busy card lives with it."""
_LOOKS = 3
_SHORTEST_LOOK = 1 / 8
"""Of the warm-up time."""
_LONGEST_WARMUP = 20
_REPEATS = 2
"""How many times min_samples may be flawed before they are taken as they are, and first looks before none counts."""
_REST = 1.0
"""Seconds that a GPU idles for each of a sample, between those that are taken in turn.

Without a pause a card at its power cap lowers its clocks, by what it drew shortly before: of ten finalists in turn,
50 ms each, the fastest had 6 to 8 % less on one H200 than alone, and once 4 % less than a slower one whose turn came
behind kernels that draw less."""
_PROBED_ELEMENTS = 4096
_CHUNK_ELEMENTS = {"cpu": 1 << 22, "cuda": 1 << 25}
"""Of a state that is looked at: on a GPU so many that launches take less time than what they do."""


Turn = Callable[[int | None], None]
"""Hears which of several simulations runs next, by position; None: what follows concerns all of them."""


class WrongResultError(Exception):
    """The timed run left a state that cannot be right; the message says how."""


@dataclass(frozen=True)
class Sample:
    """Seconds per time step, the conditions meanwhile, and why it does not count (empty if it does)."""

    step_s: float
    conditions: Conditions
    flaw: str = ""


def measure(simulation: Simulation, protocol: TimingProtocol, incumbent_s: float | None = None) -> Measurement:
    """Times a simulation on its own domain, from a random state.

    incumbent_s: seconds per step of the best so far; when the first looks are `bail_out` times slower, and nothing
    disturbed them, they are all that is measured. Raises WrongResultError, DeviceFaultError.
    """
    excite(simulation)
    with _quiet_interpreter():
        looks = warm_up(simulation, protocol)
        if incumbent_s and (slow := _hopeless(simulation, protocol, looks, protocol.bail_out * incumbent_s)):
            check_state(simulation)
            return replace(_finished(simulation, slow, looks.steps, disturbed=False), dismissed=True)
        steps = steps_per_sample(simulation, undisturbed_s(looks.samples), protocol.sample_s)
        simulation.prepare(steps)
        samples, disturbed = _samples(simulation, protocol, steps)
    check_state(simulation)
    return _finished(simulation, samples, steps, disturbed)


def measure_interleaved(
    simulations: Sequence[Simulation], protocol: TimingProtocol, turn: Turn = lambda _: None
) -> list[Measurement]:
    """Times several simulations in rounds, one sample of each per round, so that drift meets all alike.

    Each round has an order of its own, so that hardly any keeps following the same other, and a GPU rests between: as
    with `measure`, speeds are those of bursts. What it keeps up without a pause is another figure (`sustained`).
    samples_s of the results belong together by position: a round counts when none of its samples was flawed.
    The simulations may share their memory: each finds small noise there, if only they store in one format
    and write nothing but populations. Otherwise, and where that does not go well together (a force that drives what
    another layout takes for a shock), each turn begins with noise of its own.
    Raises WrongResultError, DeviceFaultError; they are due to the simulation whose turn it was.
    """
    formats = {simulation.program.config.storage for simulation in simulations}
    mixed = len(formats) > 1 or any(simulation.outputs for simulation in simulations)
    steps = [_prepared(simulation, protocol) for simulation in _in_turn(simulations, turn)]
    rounds = _rounds(simulations, steps, protocol, turn, refill=mixed)
    if not mixed and not _well_together(simulations, steps, turn):
        rounds = _rounds(simulations, steps, protocol, turn, refill=True)
    columns: list[list[Sample]] = [list(column) for column in zip(*rounds.rows, strict=True)]
    return [_finished(s, c, n, rounds.disturbed) for s, c, n in zip(simulations, columns, steps, strict=True)]


class _Rounds(NamedTuple):
    """Rows of samples, one of each simulation. disturbed: flawed ones had to fill the rows up."""

    rows: list[list[Sample]]
    disturbed: bool


def _rounds(
    simulations: Sequence[Simulation], steps: Sequence[int], protocol: TimingProtocol, turn: Turn, *, refill: bool
) -> _Rounds:
    good: list[list[Sample]] = []
    flawed: list[list[Sample]] = []
    random = np.random.default_rng(1)
    with _quiet_interpreter():
        while len(good) < protocol.final_rounds and len(good) + len(flawed) < 2 * protocol.final_rounds:
            taken: dict[int, Sample] = {}
            for position in random.permutation(len(simulations)).tolist():
                turn(position)
                taken[position] = _taken_in_turn(simulations[position], steps[position], protocol, refill)
                _rest(simulations[position], steps[position] * taken[position].step_s)
            row = [taken[position] for position in range(len(simulations))]
            (flawed if any(sample.flaw for sample in row) else good).append(row)
    return _Rounds((good + flawed)[: protocol.final_rounds], len(good) < protocol.final_rounds)


def _rest(simulation: Simulation, busy_s: float) -> None:
    if isinstance(simulation.program.config, CudaConfig):
        time.sleep(_REST * busy_s)


def _in_turn(simulations: Sequence[Simulation], turn: Turn) -> Iterator[Simulation]:
    for position, simulation in enumerate(simulations):
        turn(position)
        yield simulation


def _well_together(simulations: Sequence[Simulation], steps: Sequence[int], turn: Turn) -> bool:
    """Whether the state that all had a hand in is sane. Raises WrongResultError where one alone leaves it wrong."""
    turn(None)
    try:
        for simulation in simulations:
            check_state(simulation)
    except WrongResultError:
        for simulation, n in zip(_in_turn(simulations, turn), steps, strict=True):
            excite(simulation)
            simulation.step(n)
            check_state(simulation)
        return False
    return True


def steps_per_sample(simulation: Simulation, step_s: float, sample_s: float) -> int:
    """Time steps of a sample: at least sample_s, and whole cycles of parity and buffer exchange."""
    cycle = simulation.cycle_steps
    return cycle * max(1, ceil(sample_s / (step_s * cycle)))


def undisturbed_s(looks: Sequence[Sample]) -> float:
    """Seconds per step had the processor been ours alone; a look that waited for a core mostly tells of the wait."""
    return min(look.step_s * (look.conditions.cpu_share or 1.0) for look in looks)


def excite(simulation: Simulation) -> None:
    """Fills all storage, ghost cells and padding included, with small random positive deviations.

    It is a state of every scheme and layout, flows without becoming unstable, and settles to non-zero values.
    """
    simulation.steps_done = 0
    stencil, stored = simulation.case.stencil, simulation.program.config.stored
    amplitude = 0.01 * float(min(stencil.weights))
    for buffer in simulation.buffers.values():
        fill_with_noise(buffer, amplitude, simulation.xp, stored)


def take(simulation: Simulation, steps: int, protocol: TimingProtocol, *, look_around: bool = True) -> Sample:
    """One sample of some time steps. look_around: ask for the conditions, which may take longer than the sample."""
    device, config = simulation.device, simulation.program.config
    before = usage() if isinstance(config, CpuConfig) else None
    step_s = device.time_s(lambda: simulation.step(steps)) / steps
    conditions = device.conditions() if look_around else Conditions()
    if before is not None and isinstance(config, CpuConfig):
        conditions = replace(conditions, cpu_share=cpu_share(before, usage(), config.threads))
    if look_around and isinstance(device, PooledDevice) and device.monitor:
        conditions = device.monitor.observe(conditions, steps * step_s)
    return Sample(step_s, conditions, flaw(conditions, device.environment.max_sm_clock_hz, protocol))


def flaw(conditions: Conditions, max_sm_clock_hz: float | None, protocol: TimingProtocol) -> str:
    """Why a sample taken under these conditions does not count, or ''."""
    clock, share = conditions.sm_clock_hz, conditions.cpu_share
    if clock and max_sm_clock_hz and clock < STEADY_CLOCK * max_sm_clock_hz:
        return f"SM clock {clock / 1e6:.0f} MHz of {max_sm_clock_hz / 1e6:.0f} MHz"
    if slowed := [reason for reason in conditions.throttle if reason in SLOWED]:
        return ", ".join(slowed)
    if share is not None and share < protocol.min_cpu_share:
        return f"CPU share {share:.2f}"
    return ""


def _taken_in_turn(simulation: Simulation, steps: int, protocol: TimingProtocol, refill: bool) -> Sample:
    if refill:
        excite(simulation)
    sample = take(simulation, steps, protocol)
    if refill:
        check_state(simulation)
    return sample


def _hopeless(simulation: Simulation, protocol: TimingProtocol, looks: Looks, limit_s: float) -> list[Sample]:
    """Looks without a flaw, all of them slower than the limit; empty where it is not slower, or may have been held up.

    Flawed looks are taken again, so many times. What a share of the processor does to a speed is not known well enough
    to dismiss anything for it: on cores that others use, caches and bandwidth are theirs, too.
    """
    if undisturbed_s(looks.samples) <= limit_s:
        return []
    good = [look for look in looks.samples if not look.flaw]
    for _ in range(_REPEATS * _LOOKS):
        if len(good) >= _LOOKS:
            break
        look = take(simulation, looks.steps, protocol)
        good += [] if look.flaw else [look]
    return good if len(good) >= _LOOKS and undisturbed_s(good) > limit_s else []


def _prepared(simulation: Simulation, protocol: TimingProtocol) -> int:
    excite(simulation)
    looks = warm_up(simulation, protocol)
    steps = steps_per_sample(simulation, undisturbed_s(looks.samples), protocol.final_sample_s)
    simulation.prepare(steps)
    return steps


class Looks(NamedTuple):
    """The last samples of a warm-up, each of so many time steps."""

    samples: list[Sample]
    steps: int


def warm_up(simulation: Simulation, protocol: TimingProtocol) -> Looks:
    """Runs until the warm-up time is over and the clock is up.

    A look is one cycle, or as many as make it long enough: the clock of a device that is asked for microseconds of work
    between two questions never comes up, and to ask takes longer than the work.
    """
    steps, before = simulation.cycle_steps, _probe(simulation)
    take(simulation, steps, protocol, look_around=False)
    if _same(before, _probe(simulation)):
        raise WrongResultError("the timed run left the state as it was")
    looks: list[Sample] = []
    spent_s = 0.0
    while True:
        warm = spent_s >= protocol.warmup_s and len(looks) >= _LOOKS - 1
        looks.append(take(simulation, steps, protocol, look_around=warm))
        look_s = looks[-1].step_s * steps
        spent_s += look_s
        if warm and (not looks[-1].flaw or spent_s > _LONGEST_WARMUP * protocol.warmup_s):
            return Looks(looks[-_LOOKS:], steps)
        if look_s < _SHORTEST_LOOK * protocol.warmup_s:
            steps *= 2
            looks.clear()


def _samples(simulation: Simulation, protocol: TimingProtocol, steps: int) -> tuple[list[Sample], bool]:
    """Samples until the interval is narrow enough, and whether flawed ones had to be taken in."""
    good: list[Sample] = []
    flawed: list[Sample] = []
    while not _confident(good, protocol):
        sample = take(simulation, steps, protocol)
        (flawed if sample.flaw else good).append(sample)
        if len(flawed) >= _REPEATS * protocol.min_samples:
            break
    if len(good) >= protocol.min_samples:
        return good, False
    return good + flawed, True


def _confident(good: list[Sample], protocol: TimingProtocol) -> bool:
    if len(good) < protocol.min_samples:
        return False
    return len(good) >= protocol.max_samples or _interval(good).half_width <= protocol.confidence


def _interval(samples: list[Sample]) -> Interval:
    return median_interval([sample.step_s for sample in samples])


def _finished(simulation: Simulation, samples: list[Sample], steps: int, disturbed: bool) -> Measurement:
    interval, sites = _interval(samples), simulation.case.fluid_sites
    moved = bytes_per_update(simulation.case, simulation.program.config)
    return Measurement(
        mlups=mlups(sites, 1, interval.median),
        ci_low_mlups=mlups(sites, 1, interval.high),
        ci_high_mlups=mlups(sites, 1, interval.low),
        bandwidth_bytes_per_s=moved * sites / interval.median,
        bytes_per_update=moved,
        samples_s=tuple(sample.step_s for sample in samples),
        steps_per_sample=steps,
        sites=sites,
        conditions=summary([sample.conditions for sample in samples]),
        disturbed=disturbed,
    )


def summary(conditions: Sequence[Conditions]) -> Conditions:
    """Medians of clocks, the highest power and temperature, every throttle reason, the lowest CPU share.

    Of glances the mean: what a machine does in a time that is much longer is what its rates of all moments add up to,
    and one that has two speeds in turn has none in the middle.
    """

    def known(name: str) -> list[float]:
        return [value for c in conditions if (value := getattr(c, name)) is not None]

    def middle(name: str) -> float | None:
        return median(known(name) or [0.0]) or None

    def mean(name: str) -> float | None:
        return fmean(known(name) or [0.0]) or None

    return Conditions(
        sm_clock_hz=middle("sm_clock_hz"),
        memory_clock_hz=middle("memory_clock_hz"),
        power_w=max(known("power_w"), default=None),
        temperature_c=max(known("temperature_c"), default=None),
        throttle=tuple(sorted({reason for c in conditions for reason in c.throttle})),
        cpu_share=min(known("cpu_share"), default=None),
        memory_bytes_per_s=mean("memory_bytes_per_s"),
        last_cache_bytes_per_s=mean("last_cache_bytes_per_s"),
        work_per_s=mean("work_per_s"),
    )


def check_state(simulation: Simulation) -> None:
    """Raises WrongResultError where the state holds something that is not a finite number, or only zeros."""
    xp, state = simulation.xp, simulation.state
    elements = _CHUNK_ELEMENTS["cpu" if xp is np else "cuda"]
    nonzero = False
    for start in range(0, state.size, elements):
        chunk = simulation.program.config.stored.deviations(state[start : start + elements], xp)
        if not bool(xp.isfinite(chunk).all()):
            raise WrongResultError("the timed run left values that are not finite numbers")
        nonzero = nonzero or bool(chunk.any())
    if not nonzero:
        raise WrongResultError("the timed run left nothing but zeros")


def _probe(simulation: Simulation) -> list[Array]:
    """Values of elements anywhere in each buffer: at random, since regular ones may all lie in padding."""
    random = np.random.default_rng(1)
    return [
        b[simulation.xp.asarray(random.integers(b.size, size=_PROBED_ELEMENTS))] for b in simulation.buffers.values()
    ]


def _same(before: list[Array], after: list[Array]) -> bool:
    return all(bool((a == b).all()) for a, b in zip(before, after, strict=True))


@contextmanager
def _quiet_interpreter() -> Iterator[None]:
    """Keeps the garbage collector out of the samples."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
