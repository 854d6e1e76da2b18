"""Time parts on several devices beside one device, in turns, so that both see the same clocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from statistics import median

from lbmtune.decomposition.coupling import Coupling
from lbmtune.errors import InputError
from lbmtune.measure.timing.state import excite
from lbmtune.records.comparison.statistics import Interval, paired_ratio
from lbmtune.runtime.parts.coupled import CoupledSimulation
from lbmtune.runtime.parts.schedule import GRAPH_ROUNDS
from lbmtune.runtime.simulation import Simulation

_ENQUEUED_S = 0.02
"""Time in which the exchanges are enqueued that are timed together."""
_TIMES = 3
"""Measurements of the exchange alone; the least one counts, since the host may have been too late with others."""


@dataclass(frozen=True, kw_only=True)
class Coupled:
    """Times of one coupling, in seconds from one exchange to the next.

    samples: of all; launches_s, exchange_s: of the launches alone and of the exchange alone, each without the other;
    refused: why it cannot run.
    """

    coupling: Coupling
    samples: tuple[float, ...] = ()
    launches_s: float = 0.0
    exchange_s: float = 0.0
    refused: str = ""

    @property
    def median_s(self) -> float:
        """Return the median of all."""
        return median(self.samples)

    @property
    def shown_s(self) -> float:
        """Return what of the exchange shows: all less the launches alone."""
        return self.median_s - self.launches_s


@dataclass(frozen=True, kw_only=True)
class Race:
    """Times of couplings beside those of one device.

    alone: seconds of a launch of one device, a sample before each turn; alone_cells, cells: fluid cells of one device
    and of all; steps: time steps of a launch.
    """

    alone: tuple[float, ...]
    alone_cells: int
    cells: int
    steps: int
    devices: int
    coupled: tuple[Coupled, ...]

    @property
    def alone_mlups(self) -> float:
        """Return the speed of one device."""
        return self.alone_cells * self.steps / median(self.alone) / 1e6

    def mlups(self, one: Coupled) -> float:
        """Return the speed of all devices."""
        return self.cells * self.steps / one.median_s / 1e6

    def efficiency(self, one: Coupled) -> Interval:
        """Return the speed of all devices over as many times that of one, by pairs of samples."""
        share = self.cells / self.alone_cells / self.devices
        return Interval(*(share * value for value in paired_ratio(self.alone, one.samples)))


def race(
    alone: Simulation,
    parts: CoupledSimulation,
    couplings: Sequence[Coupling],
    *,
    repeats: int = 5,
    sample_s: float = 0.15,
) -> Race:
    """Time one device and each coupling in turns. repeats: turns; sample_s: least seconds of a sample.

    States are small random deviations, as those of trials. Devices rest after each sample for as long as it took: a
    kernel that draws all power that a device has would slow the next one down. Raises InputError if no coupling is
    legal.
    """
    for one, device in ((alone, parts.devices[0]), *zip(parts.parts, parts.devices, strict=True)):
        with device.current():
            excite(one)
    between = parts.decomposition.steps
    own = _sample_steps(lambda steps: _alone_s(alone, parts, steps), between * GRAPH_ROUNDS, sample_s)
    legal, refused = _legal(parts, couplings, sample_s)
    if not legal:
        raise InputError(refused[0].refused)
    first, found = list[float](), {coupling: list[float]() for coupling in legal}
    for _ in range(repeats):
        first.append(_rested(lambda: _alone_s(alone, parts, own)) * between / own)
        for coupling, steps in legal.items():
            parts.couple(coupling)
            found[coupling].append(_rested(partial(parts.time_s, steps)) * between / steps)
    return Race(
        alone=tuple(first),
        alone_cells=alone.case.fluid_sites,
        cells=parts.decomposition.case.fluid_sites,
        steps=between,
        devices=parts.device_count,
        coupled=(*(_timed(parts, coupling, found[coupling], steps) for coupling, steps in legal.items()), *refused),
    )


def _legal(
    parts: CoupledSimulation, couplings: Sequence[Coupling], sample_s: float
) -> tuple[dict[Coupling, int], list[Coupled]]:
    """Return the steps of a sample of each legal coupling, and the others with the reason."""
    legal, refused = dict[Coupling, int](), list[Coupled]()
    for coupling in couplings:
        try:
            parts.couple(coupling)
            legal[coupling] = _sample_steps(parts.time_s, parts.decomposition.steps * GRAPH_ROUNDS, sample_s)
        except InputError as error:
            refused.append(Coupled(coupling=coupling, refused=str(error)))
    return legal, refused


def _rested(timed: Callable[[], float]) -> float:
    seconds = timed()
    time.sleep(seconds)
    return seconds


def _timed(parts: CoupledSimulation, coupling: Coupling, samples: list[float], steps: int) -> Coupled:
    """Return the times of a coupling with those of its launches and of its exchange alone."""
    parts.couple(coupling)
    launches_s = _rested(lambda: parts.time_s(steps, "launches")) * parts.decomposition.steps / steps
    return Coupled(
        coupling=coupling,
        samples=tuple(samples),
        launches_s=launches_s,
        exchange_s=min(parts.exchange_s(ceil(_ENQUEUED_S / launches_s)) for _ in range(_TIMES)),
    )


def _alone_s(alone: Simulation, parts: CoupledSimulation, steps: int) -> float:
    with parts.devices[0].current():
        alone.prepare(steps)
        alone.device.synchronize()
        return alone.device.time_s(lambda: alone.step(steps))


def _sample_steps(timed: Callable[[int], float], least: int, sample_s: float) -> int:
    """Return steps, a multiple of `least`, that take about `sample_s` or longer."""
    timed(least)
    return least * max(1, round(sample_s / timed(least)))
