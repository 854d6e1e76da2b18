"""Time several simulations in rounds, so that drift of the device affects all alike."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.measure.timing import sampling
from lbmtune.measure.timing.protocol import measurement
from lbmtune.measure.timing.state import WrongResultError, check_state, excite
from lbmtune.records import Measurement
from lbmtune.records.study import TimingProtocol
from lbmtune.runtime import Simulation

_REST = 1.0
"""Idle time of a GPU after a sample of a round, in multiples of the sample.

Without a pause a GPU at its power cap lowers its clocks by the power of the previous kernels: of ten finalists with
50 ms each, the fastest was 6 to 8 % slower on one H200 than alone, and once 4 % slower than a slower kernel that
followed kernels of lower power."""

Turn = Callable[[int | None], None]
"""Called with the position of the simulation that runs next; None: what follows concerns all of them."""


def measure_interleaved(
    simulations: Sequence[Simulation], protocol: TimingProtocol, turn: Turn = lambda _: None
) -> list[Measurement]:
    """Time several simulations in rounds, one sample of each per round.

    Each round has a random order, and a GPU rests between samples: as with `measure`, speeds are those of bursts.
    The samples_s of the results correspond by position: a round counts if none of its samples was flawed.
    Simulations may share memory. Each finds small deviations there, if all have one storage format and write only
    populations. Otherwise, or if their states do not go together, each turn starts from a random state of its own.
    Raises WrongResultError or DeviceFaultError of the simulation whose turn it is.
    """
    formats = {simulation.program.config.storage for simulation in simulations}
    mixed = len(formats) > 1 or any(simulation.outputs for simulation in simulations)
    steps = [_prepare(simulation, protocol) for simulation in _in_turn(simulations, turn)]
    rounds = _rounds(simulations, steps, protocol, turn, refill=mixed)
    if not mixed and not _compatible(simulations, steps, turn):
        rounds = _rounds(simulations, steps, protocol, turn, refill=True)
    columns: list[list[sampling.Sample]] = [list(column) for column in zip(*rounds.rows, strict=True)]
    return [measurement(s, c, n, rounds.disturbed) for s, c, n in zip(simulations, columns, steps, strict=True)]


class _Rounds(NamedTuple):
    """Rows of samples, one of each simulation. disturbed: flawed rounds were needed to complete them."""

    rows: list[list[sampling.Sample]]
    disturbed: bool


def _rounds(
    simulations: Sequence[Simulation], steps: Sequence[int], protocol: TimingProtocol, turn: Turn, *, refill: bool
) -> _Rounds:
    good: list[list[sampling.Sample]] = []
    flawed: list[list[sampling.Sample]] = []
    random = np.random.default_rng(1)
    with sampling.garbage_collection_off():
        while len(good) < protocol.final_rounds and len(good) + len(flawed) < 2 * protocol.final_rounds:
            taken: dict[int, sampling.Sample] = {}
            for position in random.permutation(len(simulations)).tolist():
                turn(position)
                simulation = simulations[position]
                taken[position] = sample = _take(simulation, steps[position], protocol, refill)
                if BACKENDS[simulation.program.config.backend].power_capped:
                    time.sleep(_REST * steps[position] * sample.step_s)
            row = [taken[position] for position in range(len(simulations))]
            (flawed if any(sample.flaw for sample in row) else good).append(row)
    return _Rounds((good + flawed)[: protocol.final_rounds], len(good) < protocol.final_rounds)


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
