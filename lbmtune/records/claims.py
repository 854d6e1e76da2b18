"""Published claims as data: what a document measured and said, what was measured here, and what follows.

On disk a run of claims is one folder:
claims.json         the results: header, documents, measured groups, verdicts; written anew after every group
groups.jsonl        one measured group a line, appended and flushed to disk before the next begins
claims.html         the page made of claims.json
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple

from lbmtune.catalogue.config import Scalar, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.records import Environment, Outcome, Trial
from lbmtune.records.profile import Counters

CLAIMS_SCHEMA = 3
"""3: printed figures by device; errors of a vortex."""

Kind = Literal[
    "ratio",
    "loss",
    "interval-loss",
    "spread",
    "bandwidth",
    "footprint",
    "counted-bytes",
    "velocity-error",
    "density-error",
]
COUNTED: Kind = "counted-bytes"
"""What is asked of counters of the hardware."""
ERRORS: tuple[Kind, ...] = ("velocity-error", "density-error")
"""What is asked of the accuracy of a kernel; see records.Accuracy."""

DUTIES: Mapping[str, str] = {
    "macroscopics": "density and velocity are written to the device's memory",
    "save": "density and velocity are written and copied to the host",
    "residual": "they are copied to the host, which compares the velocity with that of the time before meanwhile",
    "refresh": "ghost cells are refreshed once more, so that the time that it takes shows",
    "staged": "the domain stays on the host and passes through the device part by part",
}
"""What a simulation can do besides stepping."""


class Rates(NamedTuple):
    """Measured bandwidths of a device: of a copy of one array to another, and of one array that is updated in place."""

    copy_bytes_per_s: float
    in_place_bytes_per_s: float

    def fitting(self, config: Mapping[str, Scalar]) -> float:
        """The one whose accesses are those of a flat configuration."""
        return self.in_place_bytes_per_s if in_place(config) else self.copy_bytes_per_s


def in_place(config: Mapping[str, Scalar]) -> bool:
    """Whether the kernel of a flat configuration stores where it has loaded."""
    return from_flat(config).propagation.in_place


class Holding(StrEnum):
    """What a measurement says of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    UNTESTABLE = "not testable here"


@dataclass(frozen=True)
class Duty:
    """What a simulation does besides stepping. kind: of DUTIES; every: time steps between two times."""

    kind: str
    every: int = 1


@dataclass(frozen=True, kw_only=True)
class Series:
    """An experiment: variants measured in turns on each domain.

    cases: by backend, one for each domain, the last one the domain on which claims are judged. missing: why there
    are none. past_capacity: the domains follow from the memory budget.
    """

    name: str
    title: str
    cases: dict[str, tuple[Case, ...]] = field(default_factory=dict)
    missing: str = ""
    past_capacity: bool = False


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A printed figure of a variant, in MLUPS.

    series: the experiment that it belongs to, empty where it belongs to all of the variant; circumstances: a domain,
    or what else is said of it.
    """

    device: str
    mlups: float
    series: str = ""
    circumstances: str = ""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A row of a document's table. configs: configuration text by backend; published: device by device."""

    name: str
    title: str
    series: tuple[str, ...]
    configs: dict[str, str]
    published: tuple[Printed, ...] = ()
    duty: Duty | None = None


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence that a measurement can bear out.

    kind says what is measured: ratio, the speed of the fastest of `of` over that of the fastest of `over`; loss, one
    minus it; interval-loss, the loss when the duty of `of` falls due every `every` steps; spread, by how much the
    fastest of `of` beats the slowest; bandwidth, that of `of` over that of a copy, or of an update in place where the
    kernel is one; footprint, bytes of `of` over bytes of `over`; counted-bytes, bytes that counters saw go to and from
    memory for an update of `of` over those that it has to move; velocity-error and density-error, the error of a
    vortex in the precision of `of` over that in fp64, both against the exact solution, at each of the peak
    `velocities`. Names are variants, or variant@series where a variant has several.
    at_least, at_most: the claim holds where the interval lies within; published: range of the printed figures;
    untestable: by backend, why no measurement can tell.
    """

    name: str
    sentence: str
    kind: Kind = "ratio"
    of: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float | None = None
    published: tuple[float, float] | None = None
    device: str = ""
    every: int = 1
    velocities: tuple[float, ...] = ()
    untestable: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Document:
    """A published document: its experiments, the rows of its table, its claims."""

    name: str
    title: str
    source: str
    series: tuple[Series, ...]
    variants: tuple[Variant, ...]
    claims: tuple[Claim, ...]

    @property
    def of_accuracy(self) -> frozenset[str]:
        """Variants whose accuracy is asked for."""
        return frozenset(name.partition("@")[0] for claim in self.claims if claim.kind in ERRORS for name in claim.of)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A variant on one domain. trial: None where it could not be tried, for the given reason.

    counters: of the hardware, where a claim that does not hold rests on it and they could be read.
    """

    variant: str
    config: dict[str, Scalar] = field(default_factory=dict)
    trial: Trial | None = None
    reason: str = ""
    duty: Duty | None = None
    footprint_bytes: int = 0
    counters: Counters | None = None

    @property
    def is_untimed(self) -> bool:
        """Whether it was found right and has no speed all the same."""
        return self.trial is not None and self.trial.outcome is Outcome.OK and self.trial.final is None

    @property
    def why_not(self) -> str:
        """Why it has no speed; empty where it has one."""
        if self.trial is None:
            return self.reason
        if self.trial.final is None or self.trial.mlups is None:
            reason = " ".join(self.trial.reason.split())
            # verified, and nothing came of the timing: "ok" would say the opposite
            return (reason or "its timing gave no result") if self.is_untimed else f"{self.trial.outcome}: {reason}"
        return ""


@dataclass(frozen=True, kw_only=True)
class Group:
    """All variants of a series on one domain, measured in turns. seconds: that it took."""

    document: str
    series: str
    case: Case
    rows: tuple[Row, ...]
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What was measured of a claim. low, median, high: the quantity with its interval; None where nothing was.

    reason: a sentence with the values; beside_published: how the figure compares with the printed one.
    """

    document: str
    claim: str
    holding: Holding
    reason: str
    low: float | None = None
    median: float | None = None
    high: float | None = None
    beside_published: str = ""
    disturbed: bool = False


@dataclass(frozen=True, kw_only=True)
class ClaimsHeader:
    """Where and with what a run of claims began. budget_bytes: memory that stands for a small device.

    in_place_bytes_per_s: None in the header of an earlier version.
    """

    backend: str
    environment: Environment
    copy_bytes_per_s: float
    budget_bytes: int
    documents: tuple[str, ...]
    date: str
    version: str
    schema: int = CLAIMS_SCHEMA
    in_place_bytes_per_s: float | None = None

    @property
    def rates(self) -> Rates:
        """What bandwidths are held against."""
        return Rates(self.copy_bytes_per_s, self.in_place_bytes_per_s or self.copy_bytes_per_s)


@dataclass(frozen=True, kw_only=True)
class Claims:
    """A run of claims as read back from its folder."""

    header: ClaimsHeader
    documents: tuple[Document, ...]
    groups: tuple[Group, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
