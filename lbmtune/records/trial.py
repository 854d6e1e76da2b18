"""Trials: one configuration tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from lbmtune.records.accuracy import Accuracy
from lbmtune.records.measurement import Measurement, Sustained, Verification
from lbmtune.records.prediction import Prediction
from lbmtune.records.resources import Resources


class Outcome(StrEnum):
    """Outcome of a trial. Miscompiled: wrong, but right if the same text is assembled with fewer optimisations."""

    OK = "ok"
    ILLEGAL = "illegal"
    COMPILE_FAILED = "compile failed"
    TOO_MANY_RESOURCES = "too many resources"
    OUT_OF_MEMORY = "out of memory"
    WRONG_RESULT = "wrong result"
    MISCOMPILED = "miscompiled"
    UNSTABLE_TIMING = "unstable timing"
    CRASHED = "crashed"
    TIMED_OUT = "timed out"


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds spent on a trial, by stage. search_s: choice of the configuration and bookkeeping."""

    compile_s: float = 0.0
    verify_s: float = 0.0
    measure_s: float = 0.0
    search_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One tried configuration. reason: for people; empty on success.

    measurement, final: bursts, the latter interleaved with the other finalists; sustained: of the best; accuracy: of
    finalists; stands_for: the family or class of which a finalist is the best; elapsed_s: from the beginning of the
    search until this trial was on disk, or None.
    """

    number: int
    key: str
    config: dict[str, int | str]
    outcome: Outcome
    reason: str = ""
    prediction: Prediction | None = None
    resources: Resources | None = None
    verification: Verification | None = None
    measurement: Measurement | None = None
    final: Measurement | None = None
    sustained: Sustained | None = None
    accuracy: Accuracy | None = None
    stands_for: str = ""
    costs: Costs = field(default_factory=Costs)
    elapsed_s: float | None = None
    source_digest: str = ""
    binary_digest: str = ""
    date: str = ""

    @property
    def mlups(self) -> float | None:
        """Speed of the final, else of the first measurement; None for failed trials."""
        best = self.final or self.measurement
        return best.mlups if best and self.outcome is Outcome.OK else None

    @property
    def best_measurement(self) -> Measurement:
        """The final, else the first measurement, of a measured trial."""
        best = self.final or self.measurement
        assert best is not None
        return best

    @property
    def proven(self) -> bool:
        """Whether it was verified on the measured domain."""
        return self.verification is not None and self.verification.full_size and self.verification.passed
