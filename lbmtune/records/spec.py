"""The specification of a study: what is asked, as in its file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lbmtune.catalogue.config import Scalar
from lbmtune.catalogue.own_kernel.config import family_of
from lbmtune.catalogue.own_kernel.definition import OwnKernel
from lbmtune.catalogue.problem.case import Case
from lbmtune.records.output import Output
from lbmtune.records.quantities import Count, Positive

Table = Mapping[str, Sequence[Scalar]]
Axes = Table | Sequence[Table]
"""Values of each axis, of one space or of several, of which a study searches the union."""


ALL_FAMILIES = "all"
"""The word for every family of a backend."""


def made(family: str, families: Sequence[str]) -> bool:
    """Return whether a family is one of those whose values are made."""
    return family in families or ALL_FAMILIES in families


def tables(axes: Axes) -> tuple[Table, ...]:
    """Return the spaces, one or several."""
    return (axes,) if isinstance(axes, Mapping) else tuple(axes)


@dataclass(frozen=True, kw_only=True)
class TimingProtocol:
    """Settings of verification and timing.

    verify_periods: checked after 1..n periods of the scheme; warmup_s: device time before the first sample;
    sample_s, final_sample_s: shortest sample, in the search and among the finalists; min_samples (six
    are the fewest that give a 95 % interval), max_samples;
    confidence: aimed half-width of the 95 % interval of the median, relative; bail_out: a candidate this many
    times slower than the best after one sample is not measured further; finalists: number of the best, besides the best
    of each family (`search.finals`), that are verified at full size and measured again interleaved, final_rounds
    times.
    sustained_top: number of the best that run for at least sustained_s seconds each without a pause, after settling_s
    seconds of warm-up; the winner for longer if time is left at the end. profiled: number of the best whose losses are
    measured level by level at the end (`records.profile`), one or none.
    compile_limit_s, verify_limit_s, measure_limit_s: time limits of the stages, the first one of processor time.
    """

    verify_periods: int = 3
    warmup_s: float = 0.02
    sample_s: float = 0.005
    final_sample_s: float = 0.05
    min_samples: int = 6
    max_samples: int = 30
    confidence: float = 0.01
    bail_out: float = 1.25
    finalists: int = 5
    final_rounds: int = 15
    min_cpu_share: float = 0.95
    sustained_top: int = 1
    sustained_s: float = 2.0
    settling_s: float = 0.5
    profiled: int = 1
    compile_limit_s: float = 60.0
    verify_limit_s: float = 60.0
    measure_limit_s: float = 60.0

    @property
    def longest_run_s(self) -> float:
        """Return the seconds of the longest run without a pause."""
        return 10 * self.sustained_s


OBJECTIVES: Mapping[str, str] = {
    "mlups": "MLUPS",
    "footprint": "footprint (bytes)",
    "energy": "energy (nJ per update)",
    "accuracy": "error of the velocity",
}
"""Names of objectives, and of their figures with units."""
TARGETS = ("prediction", "ceiling")
"""Speeds of which a search may aim at a share: the highest predicted speed, or the bandwidth of the device."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A speed that is enough: a share of one of `TARGETS`."""

    share: float
    of: str = "prediction"

    def __str__(self) -> str:
        return f"{self.of}:{self.share:g}"


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of a study, whichever comes first; 0: no limit.

    seconds: of the whole, from the start to the last file; search_seconds: of the trials alone; target: speed at which
    the search ends; sample: number of the first trials that are spread over the whole space, before the others.
    """

    trials: int = 0
    seconds: float = 0.0
    search_seconds: float = 0.0
    target: Target | None = None
    sample: int = 0


@dataclass(frozen=True, kw_only=True)
class StudySpec:
    """The specification of a study, as in its file.

    axes: values of each axis, by backend ('cuda', 'cpu'), or several such tables; fixed axes have one value.
    families: names, or 'all': values that `axes` does not restrict are made for the case and the device; empty: `axes`
    names all values.
    objective: one of `OBJECTIVES`; of equal ones the faster is better. beside: further objectives, if a Pareto
    set is asked for. strategy: name of one of `search.strategies`.
    max_footprint_bytes: of all buffers; max_error: largest relative L2 error of the velocity of a vortex after many
    steps; max_power_w: mean power of a sustained run of the winner; None: any.
    output: whose cost is measured of finalists. kernel: of a user, which is tuned in place of those of the catalogue.
    """

    name: str
    case: Case
    axes: dict[str, dict[str, tuple[Scalar, ...]] | tuple[dict[str, tuple[Scalar, ...]], ...]]
    families: tuple[str, ...] = ()
    budget: Budget = field(default_factory=Budget)
    objective: str = "mlups"
    beside: tuple[str, ...] = ()
    strategy: str = "auto"
    seed: int = 1
    protocol: TimingProtocol = field(default_factory=TimingProtocol)
    max_footprint_bytes: Count | None = None
    max_error: float | None = None
    max_power_w: Positive | None = None
    output: Output = field(default_factory=Output)
    kernel: OwnKernel | None = None

    def __post_init__(self) -> None:
        """Make the family of a user's kernel known, so that configurations of it can be read."""
        if self.kernel:
            family_of(self.kernel)

    @property
    def kernel_backend(self) -> str | None:
        """Return the backend of a user's kernel, None for kernels of the catalogue."""
        return self.kernel.backend if self.kernel else None

    @property
    def flop_per_update(self) -> float:
        """Return the operations of an update: of the operator, or as a user's kernel is described; 0 if unknown."""
        if self.kernel:
            return family_of(self.kernel).parse({}).flop(self.case)
        from lbmtune.catalogue.operation_counts import flops_per_update  # here: SymPy takes its time to come

        return flops_per_update(self.case)

    @property
    def objectives(self) -> tuple[str, ...]:
        """Return all objectives, the one that decides who wins first."""
        return self.objective, *self.beside

    @property
    def limits(self) -> dict[str, float]:
        """Return what a kernel may take, by name with unit, without limits that are not given."""
        named = {"footprint_bytes": self.max_footprint_bytes, "error": self.max_error, "power_w": self.max_power_w}
        return {name: value for name, value in named.items() if value is not None}
