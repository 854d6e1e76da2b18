"""Time parts on several devices beside one device, in turns, so that both see the same clocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from lbmtune.decomposition.coupling import Coupling
from lbmtune.errors import InputError
from lbmtune.records.statistics import Interval, paired_ratio
from lbmtune.runtime.parts.coupled import CoupledSimulation
from lbmtune.runtime.parts.schedule import GRAPH_LAUNCHES
from lbmtune.runtime.simulation import Simulation


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

    alone: seconds of a launch of one device, a sample before each turn; alone_cells, cells: of one device and of all;
    steps: time steps of a launch.
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
    say: Callable[[str], None] = lambda _: None,
) -> Race:
    """Time one device and each coupling in turns. repeats: turns; sample_s: least seconds of a sample.

    The states become those of any number of steps; without their exchange, or their launches, they are wrong.
    """
    between = parts.decomposition.steps
    own = _sample_steps(lambda steps: _alone_s(alone, parts, steps), between * GRAPH_LAUNCHES, sample_s)
    legal, refused, found = [], [], dict[Coupling, list[float]]()
    for coupling in couplings:
        try:
            parts.couple(coupling)
            parts.time_s(between * GRAPH_LAUNCHES)
        except InputError as error:
            refused.append(Coupled(coupling=coupling, refused=str(error)))
            continue
        legal.append((coupling, _sample_steps(parts.time_s, between * GRAPH_LAUNCHES, sample_s)))
        found[coupling] = []
        say(str(coupling) or "default")
    first = list[float]()
    for _ in range(repeats):
        first.append(_alone_s(alone, parts, own) * between / own)
        for coupling, steps in legal:
            parts.couple(coupling)
            found[coupling].append(parts.time_s(steps) * between / steps)
    timed = [_with_shares(parts, coupling, found[coupling], steps) for coupling, steps in legal]
    return Race(
        alone=tuple(first),
        alone_cells=alone.case.sites,
        cells=parts.decomposition.case.sites,
        steps=between,
        devices=len({part.device for part in parts.decomposition.parts}),
        coupled=(*timed, *refused),
    )


def _with_shares(parts: CoupledSimulation, coupling: Coupling, samples: list[float], steps: int) -> Coupled:
    """Return the times of a coupling with those of its launches and of its exchange alone."""
    between = parts.decomposition.steps
    parts.couple(coupling)
    shares = {}
    for kept in ("launches", "exchange"):
        parts.time_s(between * GRAPH_LAUNCHES, kept)
        shares[kept] = parts.time_s(steps, kept) * between / steps
    return Coupled(
        coupling=coupling, samples=tuple(samples), launches_s=shares["launches"], exchange_s=shares["exchange"]
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
