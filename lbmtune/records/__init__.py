"""What is kept: frozen, versioned records. Of the package they import the catalogue and errors, and nothing above.

Predicted and measured values use the same names and units, so that comparing them is a division.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum

SCHEMA_VERSION = 4
"""2: sustained measurements; accuracy after many steps, and of finalists other than the winner. 3: miscompiled.
4: families of kernels, each with knobs of its own (`records.legacy` reads earlier ones)."""


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
class Entry:
    """What the compiler gave a function that is launched.

    registers: per thread (0: not known, as on the CPU); spill_bytes: stores plus loads; local_bytes: per thread;
    shared_bytes: of a block, with what launches ask for (without, in records from before that was counted);
    overtaken: stores of a pass of its loop that overtake a load of the same word of local memory (None: nobody has
    looked).
    """

    registers: int = 0
    spill_bytes: int = 0
    local_bytes: int = 0
    shared_bytes: int = 0
    overtaken: int | None = None


@dataclass(frozen=True, kw_only=True)
class Resources(Entry):
    """What the compiler gave a kernel: the largest of each figure, which follows from its entries where they are told.

    entries: by name; none in records from before they were told apart, where the largest is all that is known.
    Raises ValueError for a figure beside entries that is not the largest of theirs.
    """

    code_bytes: int = 0
    entries: dict[str, Entry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for figure in (one.name for one in fields(Entry) if self.entries):
            told = [getattr(entry, figure) for entry in self.entries.values()]
            largest = max((one for one in told if one is not None), default=None)
            if getattr(self, figure) not in (0, None, largest):
                raise ValueError(f"{figure} {getattr(self, figure)}, but {largest} is the largest of the entries")
            object.__setattr__(self, figure, largest)


@dataclass(frozen=True, kw_only=True)
class Term:
    """A part of a prediction. seconds: of the whole device, what it adds to an update; all terms add up to its time.

    sentence: the figures behind it, with their units; source: the measurement or the literature that they come from.
    alone_s: what it would take if an update were nothing else, where terms go on beside each other; records of before
    say it in the sentence alone.
    """

    name: str
    seconds: float
    sentence: str
    source: str
    alone_s: float | None = None


MEMORY_TERM, ISSUE_TERM = "memory", "instructions"
"""Names of the terms of bytes to and from memory, and of issue slots of GPUs."""
_NEGLIGIBLE = 1e-4
"""Share of the time of an update below which a term is not told of: no figure of the others shows it."""


def worth_telling(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """All but those that add hardly anything to the time of an update, nor take it off."""
    whole = sum(one.seconds for one in terms)
    return tuple(one for one in terms if abs(one.seconds) >= _NEGLIGIBLE * whole)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What the model expects. limit: the terms in words, the binding resource first; ceiling_source: of the bandwidth.

    terms: what the time of an update is made of, the binding one first; records of before there were terms have none.
    """

    mlups: float
    bytes_per_update: float
    bandwidth_bytes_per_s: float
    footprint_bytes: int
    limit: str
    ceiling_source: str
    terms: tuple[Term, ...] = ()

    @property
    def told(self) -> tuple[Term, ...]:
        """Terms that are worth telling of."""
        return worth_telling(self.terms)

    @property
    def binding(self) -> str:
        """The resource that takes most of the time; empty where that was not recorded."""
        return self.terms[0].name if self.terms else ""

    def seconds_of(self, name: str) -> float:
        """What a term adds to the time of an update; nothing where there is none of that name."""
        return sum(term.seconds for term in self.terms if term.name == name)


@dataclass(frozen=True, kw_only=True)
class Verification:
    """Comparison with the oracle. error: largest absolute deviation of a population; bound: what was allowed.

    worst_cell (x, y, z), worst_direction and worst_steps say where and after how many steps. Directions beyond the
    last one are density and the components of velocity, where a kernel writes them.
    domains: extents that were checked; full_size: whether the measured domain itself was among them.
    single: of the kernel of one step that goes with one of several, in turn with it, where that was verified.
    """

    error: float
    bound: float
    worst_cell: tuple[int, int, int]
    worst_direction: int
    worst_steps: int
    domains: tuple[tuple[int, int, int], ...]
    full_size: bool = False
    single: Verification | None = None

    @property
    def passed(self) -> bool:
        """Whether the error is within the bound (NaN is not)."""
        return self.error <= self.bound


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """State of the device while samples were taken; None where it cannot be read.

    throttle: names of the reasons for reduced clocks; cpu_share: process time over wall time per thread;
    memory, last_cache: bytes per second of a walk in place through them, right after a sample that was long enough;
    work: operations of a core per second, likewise (`measure.calibration.interference_monitor`). Neighbours on the same
    host change these without taking any of the processor.
    """

    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    throttle: tuple[str, ...] = ()
    cpu_share: float | None = None
    memory_bytes_per_s: float | None = None
    last_cache_bytes_per_s: float | None = None
    work_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A timed run. mlups: from the median sample; samples_s: seconds per time step of each sample.

    sites: cells that are updated. Where some of the box are solid, only the fluid ones count: mlups are then what the
    literature calls MFLUPS, and bytes_per_update are per fluid cell.
    ci_low_mlups, ci_high_mlups: 95 % confidence interval of the median; below six samples all that was seen.
    dismissed: whether the first looks were so slow that nothing more was measured.
    disturbed: whether the protocol's conditions were not met even after repeats.
    """

    mlups: float
    ci_low_mlups: float
    ci_high_mlups: float
    bandwidth_bytes_per_s: float
    bytes_per_update: float
    samples_s: tuple[float, ...]
    steps_per_sample: int
    sites: int
    conditions: Conditions = field(default_factory=Conditions)
    disturbed: bool = False
    dismissed: bool = False


@dataclass(frozen=True, kw_only=True)
class Sustained:
    """A run of seconds without a pause, after others like it: what a device keeps up. `Measurement` is a burst.

    mlups: all updates over all seconds; slices_s: seconds per time step of each slice of the run, in order;
    energy_j: of the whole device meanwhile, power when idle not subtracted, None where it does not tell;
    energy_source: 'counter' or 'mean power'; power_w: the mean; power_limit_w: the limit then in force.
    throttled: share of the looks at which there was each reason for reduced clocks. Clocks of `conditions` are medians.
    """

    mlups: float
    seconds: float
    steps: int
    sites: int
    slices_s: tuple[float, ...]
    energy_j: float | None = None
    energy_source: str = ""
    power_w: float | None = None
    power_limit_w: float | None = None
    throttled: dict[str, float] = field(default_factory=dict)
    conditions: Conditions = field(default_factory=Conditions)
    disturbed: bool = False

    @property
    def nj_per_update(self) -> float | None:
        """Nanojoules of an update."""
        return None if self.energy_j is None else self.energy_j / (self.steps * self.sites) * 1e9


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds spent on a trial, by stage. search_s: choosing it and keeping the books."""

    compile_s: float = 0.0
    verify_s: float = 0.0
    measure_s: float = 0.0
    search_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class AccuracyPoint:
    """Relative L2 errors of a Taylor-Green vortex with one peak velocity; None where a value is not finite.

    density, velocity: against a run in float64; ..._to_exact: against the analytical solution, of this run and of
    the reference in float64. velocity_scale: in lattice units.
    """

    velocity_scale: float
    relaxation_rate: float
    steps: int
    density: float | None
    velocity: float | None
    density_to_exact: float | None
    velocity_to_exact: float | None
    reference_density_to_exact: float | None
    reference_velocity_to_exact: float | None


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """What a storage format and an arithmetic precision cost in accuracy. domain: of the vortex.

    points: one per peak velocity, at one physical time; after: after many steps. representation and steps of a launch
    are those of the kernel that was run.
    """

    lattice: str
    collision: str
    storage: str
    compute: str
    domain: tuple[int, int, int]
    points: tuple[AccuracyPoint, ...]
    after: AccuracyPoint | None = None
    representation: str = "populations"
    steps: int = 1


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


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Where a study ran. device_id: UUID of a GPU, or CPU model and cores; packages: name -> version."""

    backend: str
    device: str
    device_id: str
    architecture: str
    driver: str = ""
    runtime: str = ""
    compiler: str = ""
    memory_bytes: int = 0
    power_limit_w: float | None = None
    max_sm_clock_hz: float | None = None
    ecc: bool | None = None
    cores: int = 0
    vector_bits: int = 0
    host: str = ""
    python: str = ""
    packages: dict[str, str] = field(default_factory=dict)
    date: str = ""
