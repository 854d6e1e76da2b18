"""Proofs and times of one kernel on several devices, as data."""

from dataclasses import dataclass
from typing import Any

from lbmtune.catalogue.problem.case import Case
from lbmtune.decomposition.boxes import Cells
from lbmtune.decomposition.coupling import Coupling
from lbmtune.measure.parts.proof import Agreement
from lbmtune.measure.parts.race import Coupled, Race
from lbmtune.model.exchange import Period


@dataclass(frozen=True, kw_only=True)
class Proof:
    """The agreement of parts with one device for each coupling. domain: on which they are compared."""

    cut: str
    domain: Cells
    found: dict[Coupling, Agreement]
    refused: dict[Coupling, str]

    @property
    def passed(self) -> bool:
        """Return whether all agree."""
        return all(one.passed for one in self.found.values())

    def facts(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "cut": self.cut,
            "domain": self.domain,
            "passed": self.passed,
            "couplings": [{**vars(one), **vars(each)} for one, each in self.found.items()],
            "refused": [{**vars(one), "reason": reason} for one, reason in self.refused.items()],
        }


@dataclass(frozen=True, kw_only=True)
class Raced:
    """Times of couplings beside one device, with what the model predicts for each overlap.

    alone, case: the cases of one device and of all; sent_bytes: of the part that sends most.
    """

    alone: Case
    case: Case
    cut: str
    devices: tuple[str, ...]
    sent_bytes: int
    times: Race
    predicted: dict[Coupling, Period]

    def facts(self) -> dict[str, Any]:
        """Return plain data."""
        times = self.times
        return {
            "devices": self.devices,
            "cut": self.cut,
            "domain": self.case.domain,
            "domain_of_one": self.alone.domain,
            "mlups_of_one_device": times.alone_mlups,
            "steps_between_exchanges": times.steps,
            "sent_bytes": self.sent_bytes,
            "couplings": [self._facts_of(one) for one in times.coupled],
        }

    def _facts_of(self, one: Coupled) -> dict[str, Any]:
        if one.refused:
            return {**vars(one.coupling), "refused": one.refused}
        expected, share = self.expected(one.coupling), self.times.efficiency(one)
        return {
            **vars(one.coupling),
            "mlups": self.times.mlups(one),
            "efficiency": share.median,
            "efficiency_interval": (share.low, share.high),
            "period_s": one.samples,
            "launches_s": one.launches_s,
            "exchange_s": one.exchange_s,
            "predicted_period_s": expected and expected.total_s,
            "predicted_exchange_s": expected and expected.exchange_s,
        }

    def expected(self, coupling: Coupling) -> Period | None:
        """Return what the model predicts; None for transports that it does not know, or if no links are known."""
        return self.predicted.get(coupling)
