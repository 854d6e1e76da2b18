"""A profile: the loss from the bandwidth of the memory to the speed of a kernel, level by level, with predictions.

All levels (rungs) are speeds of the same update, so that the losses between them add up to the whole loss.
"""

from dataclasses import dataclass, field

from lbmtune.catalogue.problem.case import Case
from lbmtune.records import Conditions, Environment, Resources, Sustained, Term, Verification

PROFILE_SCHEMA = 1
DATASHEET, COPY, STREAMS, STREAMING, KERNEL = "datasheet", "copy", "streams", "streaming", "kernel"
READS, WRITES, COLLISION = "reads alone", "writes alone", "collision alone"


@dataclass(frozen=True, kw_only=True)
class Rung:
    """A level of the loss breakdown. seconds: time of an update on the whole device.

    spread: relative half-width of the 95 % interval of the median; None if nothing was timed.
    model_s, model: prediction, independent of this figure, and its terms.
    resources: of the kernel compiled for it; disturbed: other programs used the device meanwhile.
    """

    name: str
    seconds: float
    spread: float | None = None
    model_s: float | None = None
    model: tuple[Term, ...] = ()
    resources: Resources | None = None
    disturbed: bool = False

    @property
    def mlups(self) -> float:
        """Return the millions of updates per second."""
        return 1e-6 / self.seconds

    @property
    def model_mlups(self) -> float | None:
        """Return the predicted millions of updates per second, or None."""
        return 1e-6 / self.model_s if self.model_s else None


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Loss from the previous rung to this one, measured and predicted, as shares of the speed of the ceiling."""

    name: str
    measured: float
    model: float | None


@dataclass(frozen=True, kw_only=True)
class Counter:
    """A hardware counter: of launches that advance one period, per update if `unit` says so."""

    name: str
    value: float
    unit: str
    ideal: float | None = None


@dataclass(frozen=True, kw_only=True)
class Counters:
    """Hardware counters of a kernel. source: the tool that read them, or the reason why none did."""

    source: str
    found: tuple[Counter, ...] = ()

    def value(self, name: str) -> float | None:
        """Return the value of a counter, or None."""
        return next((one.value for one in self.found if one.name == name), None)

    def total(self, *names: str) -> float | None:
        """Return the sum of counters, or None unless all were read."""
        found = [self.value(name) for name in names]
        return sum(one for one in found if one is not None) if None not in found else None

    @property
    def memory_bytes(self) -> float | None:
        """Return the bytes to and from memory per update, or None."""
        return self.total("DRAM bytes read", "DRAM bytes written")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A kernel on a device. rungs: from the ceiling to the kernel; apart: kernels with parts left out.

    bytes_per_update: bytes that an update has to move; memory_bytes: bytes that memory moves for it by the model, with
    those that a cache has lost (0: unknown); machine_date: date of the machine description.
    """

    case: Case
    key: str
    config: dict[str, int | str]
    environment: Environment
    machine: str
    machine_date: str
    bytes_per_update: float
    rungs: tuple[Rung, ...]
    apart: tuple[Rung, ...]
    verification: Verification
    counters: Counters
    sustained: Sustained | None = None
    conditions: Conditions = field(default_factory=Conditions)
    date: str = ""
    version: str = ""
    schema: int = PROFILE_SCHEMA
    memory_bytes: float = 0.0

    def rung(self, name: str) -> Rung:
        """Return the rung of a name."""
        return next(one for one in (*self.rungs, *self.apart) if one.name == name)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Return the losses from each rung to the next one."""
        ceiling = self.rungs[0].mlups
        found = []
        for above, below in zip(self.rungs, self.rungs[1:], strict=False):
            known = above.model_mlups is not None and below.model_mlups is not None
            model = ((above.model_mlups or 0) - (below.model_mlups or 0)) / ceiling if known else None
            found.append(Loss(name=below.name, measured=(above.mlups - below.mlups) / ceiling, model=model))
        return tuple(found)

    @property
    def unexplained(self) -> float | None:
        """Return predicted minus measured speed at the last rung as a share of the ceiling; None if not predicted."""
        last = self.rungs[-1]
        return None if last.model_mlups is None else (last.model_mlups - last.mlups) / self.rungs[0].mlups
