"""Environments, verifications, timed runs and accuracies."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf, isinf, log10

from lbmtune.records.quantities import Count, NotNegative, Number, OneOrMore, Positive

_EXACT = 1e-16
"""Errors below it are none."""


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Device, software and host of a study.

    device_id: UUID of a GPU, or CPU model and cores; packages: name -> version.
    """

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

    def differences(self, now: Environment) -> list[tuple[str, object, object]]:
        """Return name, value here and value now of what makes speeds of two environments incomparable."""
        pairs = [(name, getattr(self, name), getattr(now, name)) for name in _COMPARED]
        return [(name, was, here) for name, was, here in pairs if was != here]


_COMPARED = ("backend", "device", "device_id", "driver", "runtime", "compiler", "ecc", "power_limit_w")


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """State of a device during samples; None if it cannot be read.

    throttle: names of the reasons for reduced clocks; cpu_share: process time over wall time per thread;
    memory, last_cache: bytes per second of a walk in place through them, right after a sample that was long enough;
    work: operations of a core per second, likewise (`measure.calibration.interference_monitor`). Other virtual machines
    of the host change these without using the processor. others: processes of others on a GPU, by name and number.
    """

    sm_clock_hz: NotNegative | None = None
    memory_clock_hz: NotNegative | None = None
    power_w: NotNegative | None = None
    temperature_c: Number | None = None
    throttle: tuple[str, ...] = ()
    cpu_share: NotNegative | None = None
    memory_bytes_per_s: NotNegative | None = None
    last_cache_bytes_per_s: NotNegative | None = None
    work_per_s: NotNegative | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Verification:
    """Comparison with the oracle. error: largest absolute deviation of a population; bound: the largest allowed.

    worst_cell (x, y, z), worst_direction and worst_steps: place and steps of the largest deviation; directions beyond
    the last one are density and the components of velocity, if a kernel writes them.
    domains: extents that were checked; full_size: the measured domain was one of them; single: of the kernel of one
    step that completes a kernel of several steps, both in turn, if verified.
    where: the largest deviation in words, of a user's kernel, whose worst_cell[0] is an element of buffer number
    worst_direction; else ''.
    """

    error: float
    bound: float
    worst_cell: tuple[int, int, int]
    worst_direction: int
    worst_steps: Count
    domains: tuple[tuple[int, int, int], ...]
    full_size: bool = False
    single: Verification | None = None
    where: str = ""

    @property
    def passed(self) -> bool:
        """Return whether the error is within the bound; False for NaN."""
        return self.error <= self.bound


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A timed run. mlups: from the median sample; samples_s: seconds per time step of each sample.

    sites: cells that are updated, without solid ones: with solid cells mlups are the MFLUPS of the literature, and
    bytes_per_update are per fluid cell.
    ci_low_mlups, ci_high_mlups: 95 % confidence interval of the median; below six samples the range.
    dismissed: the first samples were so slow that no more were taken.
    disturbed: the conditions of the protocol were not met even after repeats.
    """

    mlups: Positive
    ci_low_mlups: NotNegative
    ci_high_mlups: NotNegative
    bandwidth_bytes_per_s: Positive
    bytes_per_update: Positive
    samples_s: tuple[Positive, ...]
    steps_per_sample: OneOrMore
    sites: OneOrMore
    conditions: Conditions = field(default_factory=Conditions)
    disturbed: bool = False
    dismissed: bool = False


@dataclass(frozen=True, kw_only=True)
class Sustained:
    """A run of seconds without a pause, after a warm-up of seconds: sustained speed. `Measurement` is a burst.

    mlups: all updates over all seconds; slices_s: seconds per time step of each slice of the run, in order;
    energy_j: of the whole device during the run, idle power included, or None; energy_source: 'counter' or
    'mean power'; power_w: mean; power_limit_w: limit in force.
    throttled: share of the polls with each reason for reduced clocks. Clocks of `conditions` are medians.
    """

    mlups: Positive
    seconds: Positive
    steps: OneOrMore
    sites: OneOrMore
    slices_s: tuple[Positive, ...]
    energy_j: Number | None = None
    energy_source: str = ""
    power_w: NotNegative | None = None
    power_limit_w: NotNegative | None = None
    throttled: dict[str, NotNegative] = field(default_factory=dict)
    conditions: Conditions = field(default_factory=Conditions)
    disturbed: bool = False

    @property
    def nj_per_update(self) -> float | None:
        """Return the nanojoules per update, or None."""
        return None if self.energy_j is None else self.energy_j / (self.steps * self.sites) * 1e9


@dataclass(frozen=True, kw_only=True)
class AccuracyPoint:
    """Relative L2 errors of a Taylor-Green vortex with one peak velocity; None if a value is not finite.

    density, velocity: relative to a run in float64; ..._to_exact: relative to the analytical solution, of this run and
    of the reference in float64; velocity_scale: in lattice units.
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
    """Accuracy of a storage format and an arithmetic precision. domain: of the vortex.

    points: one per peak velocity, at one physical time; after: after many steps; representation, steps: values that a
    cell keeps and steps per launch of the kernel; date: day of the measurement, maybe for an earlier study, '' in early
    records.
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
    date: str = ""

    @property
    def error(self) -> float:
        """Return the error of the velocity after many steps; infinite if it is unknown, or no finite number."""
        return inf if self.after is None or self.after.velocity is None else self.after.velocity

    @property
    def error_class(self) -> float:
        """Return the error, rounded up to a half power of ten, since that of another flow differs by as much."""
        return self.error if self.error < _EXACT or isinf(self.error) else 10 ** (ceil(2 * log10(self.error)) / 2)
