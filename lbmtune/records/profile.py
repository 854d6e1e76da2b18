"""A profile: the way from what a memory could deliver to what a kernel does, rung by rung, beside what a model says.

All rungs are speeds of the same update, so that what is lost from one to the next adds up to all that is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lbmtune.catalogue.problem.case import Case
from lbmtune.records import Conditions, Environment, Resources, Sustained, Term, Verification

PROFILE_SCHEMA = 1
DATASHEET, COPY, STREAMS, STREAMING, KERNEL = "datasheet", "copy", "streams", "streaming", "kernel"
READS, WRITES, COLLISION = "reads alone", "writes alone", "collision alone"


@dataclass(frozen=True, kw_only=True)
class Rung:
    """A measured step of the ladder. seconds: an update takes so long of the whole device.

    spread: relative half-width of the 95 % interval of the median; None where nothing was timed.
    model_s, model: what the model expects without having seen this figure, and what that is made of.
    resources: of a kernel that was compiled for it; disturbed: the device was not left alone meanwhile.
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
        """Millions of updates per second."""
        return 1e-6 / self.seconds

    @property
    def model_mlups(self) -> float | None:
        """The same of the model."""
        return 1e-6 / self.model_s if self.model_s else None


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What is lost from the rung before to this one, measured and by the model, as shares of the ceiling's speed."""

    name: str
    measured: float
    model: float | None


@dataclass(frozen=True, kw_only=True)
class Counter:
    """A hardware counter: of launches that advance one period, per update where `unit` says so."""

    name: str
    value: float
    unit: str
    ideal: float | None = None


@dataclass(frozen=True, kw_only=True)
class Counters:
    """What counters of the hardware say of a kernel; source: what read them, or why nothing did."""

    source: str
    found: tuple[Counter, ...] = ()

    def value(self, name: str) -> float | None:
        """Of the counter of that name."""
        return next((one.value for one in self.found if one.name == name), None)

    def total(self, *names: str) -> float | None:
        """The sum of these counters, where all were read."""
        found = [self.value(name) for name in names]
        return sum(one for one in found if one is not None) if None not in found else None

    @property
    def memory_bytes(self) -> float | None:
        """To and from memory for an update."""
        return self.total("DRAM bytes read", "DRAM bytes written")


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A kernel on a device. rungs: from the ceiling to the kernel; apart: kernels with parts taken out.

    bytes_per_update: what an update has to move; memory_bytes: what memory moves for it by the model, with what is read
    again because a cache has lost it (0: nobody has said so); machine_date: when what the model knows was measured.
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
        """The rung of that name."""
        return next(one for one in (*self.rungs, *self.apart) if one.name == name)

    @property
    def losses(self) -> tuple[Loss, ...]:
        """From each rung to the next one."""
        ceiling = self.rungs[0].mlups
        found = []
        for above, below in zip(self.rungs, self.rungs[1:], strict=False):
            known = above.model_mlups is not None and below.model_mlups is not None
            model = ((above.model_mlups or 0) - (below.model_mlups or 0)) / ceiling if known else None
            found.append(Loss(name=below.name, measured=(above.mlups - below.mlups) / ceiling, model=model))
        return tuple(found)

    @property
    def unexplained(self) -> float | None:
        """What the model leaves open at the last rung, as a share of the ceiling: positive where it expects more."""
        last = self.rungs[-1]
        return None if last.model_mlups is None else (last.model_mlups - last.mlups) / self.rungs[0].mlups
