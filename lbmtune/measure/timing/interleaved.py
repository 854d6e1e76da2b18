"""Time several simulations in rounds, so that drift of the device affects all alike."""

import time
from collections.abc import Callable, Iterator, Sequence
from math import inf
from statistics import median
from typing import NamedTuple

import numpy as np

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.measure.timing import sampling
from lbmtune.measure.timing.protocol import measurement
from lbmtune.measure.timing.state import WrongResultError, check_state, excite
from lbmtune.records import Measurement
from lbmtune.records.comparison.statistics import paired_ratio
from lbmtune.records.spec import TimingProtocol
from lbmtune.runtime import Simulation

_REST = 1.0
"""Idle time of a GPU after a sample of a round, in multiples of the sample.

Without a pause a GPU at its power cap lowers its clocks by the power of the previous kernels: of ten finalists with
50 ms each, the fastest was 6 to 8 % slower on one H200 than alone, and once 4 % slower than a slower kernel that
followed kernels of lower power."""

FEWEST_ROUNDS = 6
"""Rounds from which on an order is told at 95 %."""
_FEWEST_IN_HASTE = 2
"""Rounds that are made if the time is over before: a single sample has no spread."""

Turn = Callable[[int | None], None]
"""Called with the position of the simulation that runs next; None: what follows concerns all of them."""


def measure_interleaved(
    simulations: Sequence[Simulation],
    protocol: TimingProtocol,
    turn: Turn = lambda _: None,
    race_s: float | None = None,
) -> list[Measurement]:
    """Time several simulations in rounds, one sample of each per round.

    race_s: from the sixth round on those leave that are slower than the fastest at 95 %, by rounds of both; it ends
    after so many seconds, or once one is left. None: all take part in all rounds.

    Each round has a random order, and a GPU rests between samples: as with `measure`, speeds are those of bursts.
    The samples_s of the results correspond by position: a round counts if none of its samples was flawed.
    Simulations may share memory. Each finds small deviations there, if all have one storage format and write only
    populations. Otherwise, or if their states do not go together, each turn starts from a random state of its own.
    Raises WrongResultError or DeviceFaultError of the simulation whose turn it is.
    """
    formats = {simulation.program.config.storage for simulation in simulations}
    shared = all(simulation.shares_state and not simulation.outputs for simulation in simulations)
    mixed = len(formats) > 1 or not shared
    steps = [_prepare(simulation, protocol) for simulation in _in_turn(simulations, turn)]
    rounds = _rounds(simulations, steps, protocol, turn, race_s, refill=mixed)
    if not mixed and not _compatible(simulations, steps, turn):
        rounds = _rounds(simulations, steps, protocol, turn, race_s, refill=True)
    columns = [[row[n] for row in rounds.rows if n in row] for n in range(len(simulations))]
    return [measurement(s, c, n, rounds.disturbed) for s, c, n in zip(simulations, columns, steps, strict=True)]


Row = dict[int, sampling.Sample]
"""A round: the sample of each simulation that took part, by its position."""


class _Rounds(NamedTuple):
    """Rounds in order. disturbed: flawed rounds were needed to complete them."""

    rows: list[Row]
    disturbed: bool


def _rounds(
    simulations: Sequence[Simulation],
    steps: Sequence[int],
    protocol: TimingProtocol,
    turn: Turn,
    race_s: float | None,
    *,
    refill: bool,
) -> _Rounds:
    good: list[Row] = []
    flawed: list[Row] = []
    random = np.random.default_rng(1)
    present, end_s = list(range(len(simulations))), inf if race_s is None else time.monotonic() + race_s
    with sampling.garbage_collection_off():
        while len(good) < protocol.final_rounds and len(good) + len(flawed) < 2 * protocol.final_rounds:
            taken: Row = {}
            for position in random.permutation(present).tolist():
                turn(position)
                simulation = simulations[position]
                taken[position] = sample = _take(simulation, steps[position], protocol, refill)
                if BACKENDS[simulation.program.config.backend].power_capped:
                    time.sleep(_REST * steps[position] * sample.step_s)
            (flawed if any(sample.flaw for sample in taken.values()) else good).append(taken)
            if race_s is not None and len(good) >= FEWEST_ROUNDS:
                present = still_racing(good, present)
            told = race_s is not None and len(present) == 1 < len(simulations)
            if told or (time.monotonic() > end_s and len(good) + len(flawed) >= _FEWEST_IN_HASTE):
                break
    if race_s is not None and len(good) >= FEWEST_ROUNDS:
        return _Rounds(good, disturbed=False)  # those that left took part in the first of these
    return _Rounds((good + flawed)[: protocol.final_rounds], len(good) < protocol.final_rounds and bool(flawed))


def still_racing(rows: Sequence[Row], present: Sequence[int]) -> list[int]:
    """Return the simulations that are not slower than the fastest at 95 %, by rounds of both."""
    times = {position: [row[position].step_s for row in rows] for position in present}
    first = min(present, key=lambda position: median(times[position]))
    return [one for one in present if one == first or paired_ratio(times[one], times[first]).low <= 1.0]


def _prepare(simulation: Simulation, protocol: TimingProtocol) -> int:
    """Warm a simulation up; return the steps of its samples."""
    excite(simulation)
    step_s = sampling.undisturbed_s(sampling.warm_up(simulation, protocol).samples)
    steps = sampling.steps_per_sample(simulation, step_s, protocol.final_sample_s)
    simulation.prepare(steps)
    return steps


def _take(simulation: Simulation, steps: int, protocol: TimingProtocol, refill: bool) -> sampling.Sample:
    if refill:
        excite(simulation)
    sample = sampling.take(simulation, steps, protocol)
    if refill:
        check_state(simulation)
    return sample


def _in_turn(simulations: Sequence[Simulation], turn: Turn) -> Iterator[Simulation]:
    for position, simulation in enumerate(simulations):
        turn(position)
        yield simulation


def _compatible(simulations: Sequence[Simulation], steps: Sequence[int], turn: Turn) -> bool:
    """Tell if the shared state is sane. Raises WrongResultError if one simulation alone leaves a wrong state."""
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
