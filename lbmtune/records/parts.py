"""Finals of a study on several devices: a kernel on the parts of a domain with an exchange, beside one device."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from lbmtune.catalogue.config import Scalar
from lbmtune.decomposition.coupling import Coupling
from lbmtune.records.comparison.statistics import Interval, paired_ratio
from lbmtune.records.quantities import Count, NotNegative, OneOrMore, Positive
from lbmtune.records.trial import Outcome

Int3 = tuple[int, int, int]
AUTO = "auto"
"""The word for all cuts."""


@dataclass(frozen=True, kw_only=True)
class PartsAsked:
    """Devices, cuts and domain that a study on several devices asks for.

    devices: that of each part, the same one several times for several parts; cut: 'z:2', or 'auto' for all; weak:
    each device has the domain of the case, otherwise all share it.
    """

    devices: tuple[str, ...]
    cut: str = "auto"
    weak: bool = False


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The state of parts beside that of one device after some steps from a random state, halos being poisoned.

    different: share of the populations that are not equal bit for bit; worst: largest difference; bound: largest one by
    rounding.
    """

    domain: Int3
    steps: Count
    different: NotNegative
    worst: NotNegative
    bound: NotNegative


@dataclass(frozen=True, kw_only=True)
class PartsTrial:
    """A kernel on parts with an exchange. number: of the trial of its kernel; reason: for people, empty on success.

    domain: of all parts; halo_layers, steps: layers of a halo, and time steps from one exchange to the next; sites,
    alone_sites: cells that all parts, and one device, update; alone_s, period_s: seconds of so many steps of one device
    and of all, samples in turns; launches_s, exchange_s: of the launches alone and of the exchange alone;
    predicted_s, predicted_exchange_s: by the model, or None.
    """

    number: Count
    key: str
    config: dict[str, Scalar]
    devices: tuple[str, ...]
    cut: str
    domain: Int3
    coupling: Coupling
    outcome: Outcome
    reason: str = ""
    compared: Compared | None = None
    halo_layers: Count = 1
    steps: OneOrMore = 1
    sites: Count = 0
    alone_sites: Count = 0
    alone_s: tuple[Positive, ...] = ()
    period_s: tuple[Positive, ...] = ()
    launches_s: NotNegative = 0.0
    exchange_s: NotNegative = 0.0
    predicted_s: NotNegative | None = None
    predicted_exchange_s: NotNegative | None = None
    date: str = ""

    @property
    def mlups(self) -> float | None:
        """Return the speed of all devices; None if it was not measured."""
        return self._speed(self.sites, self.period_s)

    @property
    def alone_mlups(self) -> float | None:
        """Return the speed of one device; None if it was not measured."""
        return self._speed(self.alone_sites, self.alone_s)

    def _speed(self, sites: int, samples: tuple[float, ...]) -> float | None:
        if self.outcome is not Outcome.OK or not samples:
            return None
        return sites * self.steps / median(samples) / 1e6

    @property
    def efficiency(self) -> Interval:
        """Return the speed of all over as many times that of one device, by pairs of samples."""
        share = self.sites / self.alone_sites / len(set(self.devices))
        return Interval(*(share * value for value in paired_ratio(self.alone_s, self.period_s)))

    @property
    def shown_s(self) -> float:
        """Return what of the exchange shows: all less the launches alone."""
        return median(self.period_s) - self.launches_s


def ranked_parts(trials: tuple[PartsTrial, ...]) -> tuple[PartsTrial, ...]:
    """Return those that were proved and timed, the fastest first."""
    timed = ((one.mlups, one) for one in trials)
    return tuple(one for _, one in sorted(((m, t) for m, t in timed if m), key=lambda pair: -pair[0]))
