"""Trials: one configuration tried."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from lbmtune.records.accuracy import Accuracy
from lbmtune.records.measurement import Measurement, Sustained, Verification
from lbmtune.records.prediction import Prediction
from lbmtune.records.resources import Resources


class Outcome(StrEnum):
    """How a trial ended. Miscompiled: wrong, but right when the same text is assembled with fewer optimisations."""

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
    """Seconds spent on a trial, by stage. search_s: choosing it and keeping the books."""

    compile_s: float = 0.0
    verify_s: float = 0.0
    measure_s: float = 0.0
    search_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One configuration tried. reason: for people, empty when all went well.

    measurement and final are bursts: the latter interleaved among the finalists, if it got there; sustained: of the
    best; accuracy: of the finalists. stands_for: what a finalist is the best of, besides being among the best.
    elapsed_s: of the search, from its beginning until this trial was on disk; None where that was not noted.
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
        """The best founded speed: of the final if there is one, else of the first measurement."""
        best = self.final or self.measurement
        return best.mlups if best and self.outcome is Outcome.OK else None

    @property
    def best_measurement(self) -> Measurement:
        """The measurement that counts, of a trial that has one: of the final, else the first."""
        best = self.final or self.measurement
        assert best is not None
        return best

    @property
    def proven(self) -> bool:
        """Whether it was verified on the domain that is measured."""
        return self.verification is not None and self.verification.full_size and self.verification.passed
