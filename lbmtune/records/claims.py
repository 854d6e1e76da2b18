"""Published claims as data: figures and claims of a document, measurements, and verdicts.

On disk a run of claims is one folder:
claims.json         the results: header, documents, measured groups, verdicts; rewritten after every group
groups.jsonl        one measured group a line, appended and flushed to disk before the next begins
claims.html         the page made of claims.json
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple

from lbmtune.catalogue.config import Scalar, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.records import Environment, Outcome, Trial
from lbmtune.records.parts import Compared
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
    "fewer-stores",
    "moved-sectors",
    "velocity-error",
    "density-error",
]
COUNTED: Mapping[Kind, tuple[str, ...]] = {
    "counted-bytes": ("DRAM bytes read", "DRAM bytes written"),
    "fewer-stores": ("L2 sectors written by L1",),
    "moved-sectors": ("L2 sectors read by L1", "L2 sectors written by L1"),
}
"""The kinds of claims that hardware counters decide, and the counters that each adds up."""
ERRORS: tuple[Kind, ...] = ("velocity-error", "density-error")
"""The kinds of claims on the accuracy of a kernel (records.Accuracy)."""

SIDE_TASKS: Mapping[str, str] = {
    "macroscopics": "density and velocity are written to the device's memory",
    "save": "density and velocity are written, copied to the host and saved in a file on its disk",
    "residual": "they are copied to the host, which compares the velocity with that of the time before meanwhile",
    "refresh": "ghost cells are refreshed once more, so that the time that it takes shows",
    "walls": "a pass of its own after each step interpolates what walls send back, by where they cut their links",
    "staged": "the domain stays on the host and passes through the device part by part",
}
"""Work of a simulation besides time steps."""


class Rates(NamedTuple):
    """Measured bandwidths of a device: copy of an array, and update of an array in place."""

    copy_bytes_per_s: float
    in_place_bytes_per_s: float

    def fitting(self, config: Mapping[str, Scalar]) -> float:
        """Return the bandwidth that fits the accesses of a flat configuration."""
        return self.in_place_bytes_per_s if in_place(config) else self.copy_bytes_per_s


def in_place(config: Mapping[str, Scalar]) -> bool:
    """Return whether the kernel of a flat configuration updates in place."""
    return from_flat(config).propagation.in_place


class Holding(StrEnum):
    """Verdict of a measurement on a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    UNTESTABLE = "not testable here"


@dataclass(frozen=True)
class SideTask:
    """Work of a simulation besides time steps. kind: of SIDE_TASKS; every: time steps from one time to the next."""

    kind: str
    every: int = 1


@dataclass(frozen=True, kw_only=True)
class OverDevices:
    """A cut of the domain over several devices. cut: as text; coupling: how parts exchange, as text.

    weak: each device has the domain of the experiment; halo_computed: kernels compute the halo, too, although there are
    such that leave it out.
    """

    cut: str
    coupling: str = ""
    weak: bool = False
    halo_computed: bool = False


@dataclass(frozen=True)
class MainMemory:
    """The rule by which the domain of an experiment on main memory follows from a processor's last-level cache.

    It grows from the one of the file until the smallest kernel takes `remarks.TIMES_CACHE` such caches. at_most: the
    largest that is measured, because verification and timing take their time; printed: the document's own domain.
    """

    at_most: tuple[int, int, int]
    printed: str


@dataclass(frozen=True, kw_only=True)
class Series:
    """An experiment: variants measured interleaved on each domain.

    cases: by backend, one for each domain; claims are judged on the last one. missing: reason for the lack of cases.
    past_capacity: the domains follow from the memory budget. main_memory: how those of processors grow; None: as given.
    devices: how many it takes; variants without a cut run on the first of them.
    """

    name: str
    title: str
    cases: dict[str, tuple[Case, ...]] = field(default_factory=dict)
    missing: str = ""
    past_capacity: bool = False
    main_memory: MainMemory | None = None
    devices: int = 1


@dataclass(frozen=True, kw_only=True)
class Printed:
    """A printed figure of a variant, in MLUPS.

    series: its experiment, or '' for all of the variant; circumstances: a domain, or other remarks.
    """

    device: str
    mlups: float
    series: str = ""
    circumstances: str = ""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A row of a document's table. configs: configuration text by backend; published: device by device.

    over: its cut over several devices; None: on one.
    """

    name: str
    title: str
    series: tuple[str, ...]
    configs: dict[str, str]
    published: tuple[Printed, ...] = ()
    duty: SideTask | None = None
    over: OverDevices | None = None


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim that a measurement can confirm.

    kind: the measured quantity: ratio, the speed of the fastest of `of` over that of the fastest of `over`; loss, one
    minus it; interval-loss, the loss if the work of `of` is done every `every` steps; spread, the speed of the fastest
    of `of` over the slowest, minus one; bandwidth, that of `of` over that of a copy, or of an update in place if the
    kernel is one; footprint, bytes of `of` over bytes of `over`; counted-bytes, bytes to and from memory by counters
    for an update of `of` over those that it has to move; moved-sectors, sectors that L1 reads and writes of L2 for an
    update of `of` over those of `over`; fewer-stores, one minus that ratio for sectors written; velocity-error and
    density-error, the error of a vortex in the precision of `of` over that in fp64, both relative to the exact
    solution, at each of the peak `velocities`. Names are variants, or variant@series if a variant has several.
    at_least, at_most: the claim holds if the interval lies within; published: range of the printed figures;
    untestable: by backend, the reason why no measurement can decide.
    own: whether it is a question of this tool, which the document does not claim; such are counted by themselves.
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
    own: bool = False


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
    def devices(self) -> int:
        """Return how many devices its experiments take."""
        return max((one.devices for one in self.series), default=1)

    @property
    def of_accuracy(self) -> frozenset[str]:
        """Return the variants with claims on their accuracy."""
        return frozenset(name.partition("@")[0] for claim in self.claims if claim.kind in ERRORS for name in claim.of)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A variant on one domain. trial: None if it could not be tried, for the given reason.

    counters: of the hardware, if a failed claim depends on it and they could be read. over: its cut over several
    devices; compared: its state beside that of one device, in place of a verification.
    """

    variant: str
    config: dict[str, Scalar] = field(default_factory=dict)
    trial: Trial | None = None
    reason: str = ""
    duty: SideTask | None = None
    footprint_bytes: int = 0
    counters: Counters | None = None
    over: OverDevices | None = None
    compared: Compared | None = None

    @property
    def is_untimed(self) -> bool:
        """Return whether it was verified but not timed."""
        return self.trial is not None and self.trial.outcome is Outcome.OK and self.trial.final is None

    @property
    def why_not(self) -> str:
        """Return the reason for the lack of a speed; '' if it has one."""
        if self.trial is None:
            return self.reason
        if self.trial.final is None or self.trial.mlups is None:
            reason = " ".join(self.trial.reason.split())
            # verified but not timed: the outcome "ok" would mislead
            return (reason or "its timing gave no result") if self.is_untimed else f"{self.trial.outcome}: {reason}"
        return ""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Variants of a series on one domain, measured interleaved. seconds: duration."""

    document: str
    series: str
    case: Case
    rows: tuple[Row, ...]
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Verdict on a claim. low, median, high: the quantity with its interval; None if not measured.

    reason: a sentence with the values; beside_published: comparison with the printed figure.
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
    """Environment of a run of claims. budget_bytes: memory that stands for a small device; devices: how many it had.

    in_place_bytes_per_s: None in the header of an earlier version; last_cache_bytes: of a processor, 0 if unknown.
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
    last_cache_bytes: int = 0
    devices: int = 1

    @property
    def rates(self) -> Rates:
        """Return the bandwidths that others are compared with."""
        return Rates(self.copy_bytes_per_s, self.in_place_bytes_per_s or self.copy_bytes_per_s)


@dataclass(frozen=True, kw_only=True)
class Claims:
    """A run of claims as read back from its folder."""

    header: ClaimsHeader
    documents: tuple[Document, ...]
    groups: tuple[Group, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
