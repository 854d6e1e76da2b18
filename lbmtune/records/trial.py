"""Trials: configurations that were tried, with their predictions, resources and costs."""

from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cached_property

from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.records.measurement import Accuracy, Measurement, Sustained, Verification
from lbmtune.records.output import OutputCost
from lbmtune.records.quantities import Count, NotNegative, Number, Positive
from lbmtune.records.terms import FORMER, words_of_today


@dataclass(frozen=True)
class Term:
    """A part of a prediction. seconds: of the whole device, its share of the time of an update; terms add up to it.

    sentence: its figures with their units; source: the measurement or literature that they come from; alone_s: its time
    without the others, if terms overlap (early records have it in the sentence alone).
    """

    name: str
    seconds: Number
    sentence: str
    source: str
    alone_s: Number | None = None

    def __post_init__(self) -> None:
        """Take the name of today for one of an early record."""
        object.__setattr__(self, "name", FORMER.get(self.name, self.name))

    @property
    def figures(self) -> str:
        """Return its sentence in the words of today."""
        return words_of_today(self.sentence)


_NEGLIGIBLE = 1e-4
"""Share of the time of an update below which a term is not printed."""


def significant(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return the terms that change the time of an update noticeably."""
    whole = sum(one.seconds for one in terms)
    return tuple(one for one in terms if abs(one.seconds) >= _NEGLIGIBLE * whole)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """A prediction of the model. limit: the terms as text, the largest first; ceiling_source: of the bandwidth.

    terms: parts of the time of an update, the largest first; empty in early records.
    date: day on which a later model made it from the record; '' if it was made beside the measurement.
    """

    mlups: Positive
    bytes_per_update: NotNegative
    bandwidth_bytes_per_s: NotNegative
    footprint_bytes: Count
    limit: str
    ceiling_source: str
    terms: tuple[Term, ...] = ()
    date: str = ""

    @property
    def significant_terms(self) -> tuple[Term, ...]:
        """Return the terms that change the time of an update noticeably."""
        return significant(self.terms)

    @property
    def binding(self) -> str:
        """Name of the largest term; '' if it was not recorded."""
        return self.terms[0].name if self.terms else ""

    def seconds_of(self, name: str) -> float:
        """Return the seconds of the terms of a name; 0 if there is none."""
        return sum(term.seconds for term in self.terms if term.name == name)


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
class Entry:
    """Resources of an entry point, as compiled.

    registers: per thread (0: unknown, as on the CPU); spill_bytes: stores plus loads; local_bytes: per thread;
    shared_bytes: of a block, with what launches request (without it in early records);
    overtaken: write-after-read hazards on spilled registers: stores of a pass of its loop to a word of local memory
    whose load is in flight (None: not counted).
    """

    registers: Count = 0
    spill_bytes: Count = 0
    local_bytes: Count = 0
    shared_bytes: Count = 0
    overtaken: Count | None = None


@dataclass(frozen=True, kw_only=True)
class Resources(Entry):
    """Resources of a kernel, as compiled: the largest of each figure over its entries.

    entries: by name; empty in early records, which have the largest alone. Raises ValueError for a figure that is not
    the largest of the entries.
    """

    code_bytes: Count = 0
    entries: dict[str, Entry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for figure in (one.name for one in fields(Entry) if self.entries):
            values = [getattr(entry, figure) for entry in self.entries.values()]
            largest = max((one for one in values if one is not None), default=None)
            if getattr(self, figure) not in (0, None, largest):
                raise ValueError(f"{figure} {getattr(self, figure)}, but {largest} is the largest of the entries")
            object.__setattr__(self, figure, largest)


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds spent on a trial, by stage. search_s: choice of the configuration and bookkeeping."""

    compile_s: NotNegative = 0.0
    verify_s: NotNegative = 0.0
    measure_s: NotNegative = 0.0
    search_s: NotNegative = 0.0


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One tried configuration. reason: for people; empty on success. finals_reason: that of the finals, if they failed.

    measurement, final: bursts, the latter interleaved with the other finalists; again: as measurement, in another
    process at the end of the search, of a few early trials; sustained: of the best; accuracy, output: of
    finalists; stands_for: the family or class of which a finalist is the best; elapsed_s: from the beginning of the
    search until this trial was on disk, or None; device: id of the one that measured it in the search, '' for that of
    the study's environment.
    """

    number: Count
    key: str
    config: dict[str, int | str]
    outcome: Outcome
    reason: str = ""
    prediction: Prediction | None = None
    resources: Resources | None = None
    verification: Verification | None = None
    measurement: Measurement | None = None
    final: Measurement | None = None
    again: Measurement | None = None
    sustained: Sustained | None = None
    accuracy: Accuracy | None = None
    output: tuple[OutputCost, ...] = ()
    stands_for: str = ""
    finals_reason: str = ""
    costs: Costs = field(default_factory=Costs)
    elapsed_s: NotNegative | None = None
    device: str = ""
    source_digest: str = ""
    binary_digest: str = ""
    date: str = ""

    @cached_property
    def kernel_config(self) -> KernelConfig:
        """Return the configuration of its flat values. Raises InputError."""
        return from_flat(self.config)

    @property
    def mlups(self) -> float | None:
        """Return the speed of the final, else of the first measurement; None for failed trials."""
        best = self.final or self.measurement
        return best.mlups if best and self.outcome is Outcome.OK else None

    @property
    def best_measurement(self) -> Measurement:
        """Return the final, else the first measurement, of a measured trial."""
        best = self.final or self.measurement
        assert best is not None
        return best

    @property
    def proven(self) -> bool:
        """Return whether it was verified on the measured domain."""
        return self.verification is not None and self.verification.full_size and self.verification.passed


@dataclass(frozen=True)
class Compiled:
    """A configuration is compiled. trial: with its prediction by registers; its outcome says if it can be measured."""

    trial: Trial
