"""Fake a study: an evaluator whose speeds are a formula. Also a program (`main`)."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from lbmtune.catalogue.config import DEFAULT_FAMILY, FAMILIES, CpuConfig, CudaConfig, KernelConfig, knobs
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.model.machine.description import Machine
from lbmtune.records import (
    Accuracy,
    AccuracyPoint,
    Compiled,
    Costs,
    Environment,
    Measurement,
    Outcome,
    Prediction,
    Resources,
    Sustained,
    Trial,
    Verification,
)
from lbmtune.records.header import Ceiling, StudyHeader
from lbmtune.records.profile import Profile
from lbmtune.records.spec import Axes, Budget, StudySpec, TimingProtocol, tables
from lbmtune.search.clock import Clock, Needs
from lbmtune.search.interfaces import Observer, Search
from lbmtune.search.plan import Plan
from lbmtune.search.spaces.space import Space, legal_set
from lbmtune.search.strategies.table import made_strategy
from tests.support.studies.made_up_profile import PROFILE

if TYPE_CHECKING:
    import pytest

CASE = box("d3q19", "bgk", (64, 64, 64))
LIMITS = Limits(cores=2, memory_bytes=2**36)
BANDWIDTH = 4e12
DEVICE_ID = os.environ.setdefault("MADE_UP_DEVICE", f"uuid-{os.getpid()}")
"""Device id, different in each test worker, since a device runs one study; programs inherit it."""
_SCHEME = {"pull": 0.86, "push": 0.8, "aa": 1.0, "esoteric-twist": 0.97, "esoteric-pull": 0.98}


def usual_axes(backend: str) -> Axes:
    return {one.name: one.search for one in knobs(FAMILIES[backend][DEFAULT_FAMILY])}


def scatter(config: KernelConfig) -> float:
    """Return a number in 0..1 that is fixed for a configuration."""
    return int(hashlib.sha256(config.key.encode()).hexdigest()[:8], 16) / 2**32


def speed(config: KernelConfig) -> float:
    """Return MLUPS with interactions of knobs as in real kernels, such as a register cap with wide threads."""
    value = 26000.0 * _SCHEME.get(config.scheme, 0.6) * (0.75 if config.memory.name == "aosoa" else 1.0)
    if isinstance(config, CudaConfig):
        threads = config.block[0] * config.block[1] * config.block[2]
        value *= {4: 0.8, 8: 0.95, 16: 1.0}.get(config.cells_per_thread * config.stored.bytes, 0.7)
        value *= 0.97 if config.block[1] > 1 else 1.0
        value /= 1.0 + 0.04 * abs(threads.bit_length() - 8)
        if config.cells_per_thread >= 4 and config.max_registers == 64:
            value *= 0.4
        if config.wrap == "ghost":
            value *= 1.08 if config.scheme == "aa" else 0.93
    if isinstance(config, CpuConfig):
        value *= {0: 0.2, 256: 0.9, 512: 1.0}[config.vector_bits]
        value *= 0.85 if config.scheme == "aa" and config.vector_bits == 512 else 1.0
        value *= {"z": 1.0, "zy": 0.9, "tile": 0.95}[config.loop]
        value *= 1.1 if getattr(config, "row_offset", 0) == 1 else 1.0
    return value * (0.97 + 0.06 * scatter(config))


def predict(config: KernelConfig, /, *, resources: Resources | None = None) -> Prediction:
    moved = bytes_per_update(CASE, config)
    return Prediction(
        mlups=BANDWIDTH / moved / 1e6,
        bytes_per_update=moved,
        bandwidth_bytes_per_s=BANDWIDTH,
        footprint_bytes=footprint_bytes(CASE, config),
        limit="memory bandwidth",
        ceiling_source="a constant",
    )


def measurement(config: KernelConfig, factor: float = 1.0) -> Measurement:
    mlups = speed(config) * factor
    moved = bytes_per_update(CASE, config)
    return Measurement(
        mlups=mlups,
        ci_low_mlups=0.99 * mlups,
        ci_high_mlups=1.01 * mlups,
        bandwidth_bytes_per_s=mlups * 1e6 * moved,
        bytes_per_update=moved,
        samples_s=(CASE.sites / mlups / 1e6,) * 6,
        steps_per_sample=10,
        sites=CASE.sites,
    )


At = Callable[[str, int], None]


def ignore(stage: str, number: int) -> None:
    pass


class FakeEvaluator:
    """Returns trials in another order than submitted. fails: outcome of all; at: called with stage and number.

    predicted: speeds by registers, None if it does not compile, by key; compiled, tried, finalists: keys so far.
    """

    max_in_flight = 3
    incumbent_s: float | None = None
    limits = LIMITS
    restarts = 0

    def __init__(self, backend: str = "cuda", fails: Outcome | None = None, at: At = ignore) -> None:
        self.environment = environment(backend)
        self.environments = (self.environment,)
        self.tried: list[str] = []
        self.finalists: list[str] = []
        self.proved: list[str] = []
        self.races: list[tuple[int, float]] = []
        self._at, self._fails = at, fails
        self._queue: deque[tuple[int, KernelConfig]] = deque()
        self._compiling: deque[Compiled] = deque()
        self.compiled: list[str] = []
        self.predicted: dict[str, float | None] = {}

    def __enter__(self) -> FakeEvaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def prepare(self, configs: Sequence[KernelConfig]) -> None:
        self.expected = configs

    def compile_room(self, ready: int) -> int:
        return 3 - ready - len(self._compiling)

    def measure_room(self) -> int:
        return 2 - len(self._queue)

    def compile(self, config: KernelConfig) -> None:
        self._at("compile", len(self.compiled))
        self.compiled.append(config.key)
        found = predict(config)
        mlups = None if self._fails is Outcome.COMPILE_FAILED else self.predicted.get(config.key, found.mlups)
        trial = Trial(
            number=0,
            key=config.key,
            config=config.flat(),
            outcome=Outcome.OK if mlups else Outcome.COMPILE_FAILED,
            reason="" if mlups else "planted",
            prediction=replace(found, mlups=mlups or found.mlups),
        )
        self._compiling.append(Compiled(trial))

    def measure(self, number: int, config: KernelConfig) -> None:
        self._queue.append((number, config))

    def event(self) -> Compiled | Trial:
        return self._compiling.popleft() if self._compiling else self.next()

    def has_event(self) -> bool:
        return False

    def forget(self) -> None:
        self._compiling.clear()

    def submit(self, number: int, config: KernelConfig) -> None:
        self._at("compile", number)
        self._queue.append((number, config))

    def next(self) -> Trial:
        number, config = self._queue.pop() if len(self._queue) > 1 else self._queue.popleft()
        self.tried.append(config.key)
        self._at("verify", number)
        self._at("measure", number)
        failed = self._fails or (Outcome.WRONG_RESULT if scatter(config) < 0.1 else None)
        return Trial(
            number=number,
            key=config.key,
            config=config.flat(),
            outcome=failed or Outcome.OK,
            reason="planted" if failed else "",
            prediction=predict(config),
            measurement=None if failed else measurement(config),
            costs=Costs(compile_s=0.1, verify_s=0.2, measure_s=0.3),
        )

    def sustained(self, configs: Sequence[KernelConfig], proven: Sequence[bool], seconds: float) -> list[Trial]:
        assert len(configs) == len(proven)
        found = Sustained(mlups=1.0, seconds=seconds, steps=10, sites=CASE.sites, slices_s=(0.2,))
        return [
            Trial(number=n, key=config.key, config=config.flat(), outcome=Outcome.OK, sustained=found)
            for n, config in enumerate(configs)
        ]

    def accuracy(self, config: KernelConfig, *, brief: bool = False) -> Accuracy:
        return ACCURACY

    def losses(self, config: KernelConfig, machine: Machine) -> Profile:
        return replace(PROFILE, key=config.key, config=config.flat())

    def restart(self) -> None:
        self.restarts += 1

    def verify(self, config: KernelConfig, *, full: bool = False) -> Trial:
        self.proved.append(config.key)
        found = verification() if full else None
        return Trial(number=0, key=config.key, config=config.flat(), outcome=Outcome.OK, verification=found)

    def expire_at(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s

    def abandon(self) -> None:
        self._queue.clear()

    def finals(
        self,
        configs: Sequence[KernelConfig],
        *,
        proofs: Mapping[int, Verification] = MappingProxyType({}),
        race_s: float = inf,
    ) -> list[Trial]:
        self._at("finals", 0)
        self.races.append((len(proofs), race_s))
        self.finalists = [config.key for config in configs]
        return [
            Trial(
                number=n,
                key=c.key,
                config=c.flat(),
                outcome=Outcome.OK,
                final=measurement(c, 1.01),
                verification=verification(),
            )
            for n, c in enumerate(configs)
        ]


ACCURACY = Accuracy(
    lattice="d3q19",
    collision="bgk",
    storage="fp32",
    compute="fp32",
    domain=(64, 64, 4),
    points=(
        AccuracyPoint(
            velocity_scale=0.01,
            relaxation_rate=1.88,
            steps=1600,
            density=1.25e-7,
            velocity=3.75e-6,
            density_to_exact=2e-7,
            velocity_to_exact=6e-3,
            reference_density_to_exact=5e-8,
            reference_velocity_to_exact=6e-3,
        ),
    ),
)


def verification() -> Verification:
    """Return a passed verification on the whole domain."""
    return Verification(
        error=1e-8,
        bound=1e-7,
        worst_cell=(0, 0, 0),
        worst_direction=1,
        worst_steps=1,
        domains=(CASE.domain,),
        full_size=True,
    )


def environment(backend: str) -> Environment:
    cores = 2 if backend == "cpu" else 0
    return Environment(backend=backend, device="Made-up 1", device_id=DEVICE_ID, architecture="none", cores=cores)


def machine(backend: str = "cpu") -> Machine:
    return Machine(
        name="Made-up 1",
        environment=environment(backend),
        copy_bytes_per_s=3.6e12,
        in_place_bytes_per_s=3.9e12,
        stream_bytes_per_s={"4": 3.5e12, "16": BANDWIDTH, "64 streaming": 3.7e12},
        caches_bytes={"L2": 1 << 20},
        date="2000-01-01T00:00:00+00:00",
    )


def stand_in(monkeypatch: pytest.MonkeyPatch, evaluator: FakeEvaluator | None = None) -> FakeEvaluator:
    """Replace the real devices by a fake one, for the command line in this process."""
    import lbmtune.api.machines.devices as here
    import lbmtune.api.machines.measured_machines as machines
    from lbmtune.api import kernels, remeasuring, reproduction
    from lbmtune.api.studies import run as studies
    from lbmtune.api.studies import workers
    from lbmtune.api.studies.accuracies import Accuracies

    for name in ("_kept", "_keep"):  # nothing of a fake is kept
        monkeypatch.setattr(Accuracies, name, lambda *_, **__: None)
    fake = evaluator or FakeEvaluator("cpu")
    for module in (kernels, remeasuring, reproduction, studies, workers):
        monkeypatch.setattr(module, "Evaluator", lambda *_, **__: fake)
    backend = fake.environment.backend
    only = "cpu" if backend == "cpu" else "0"
    monkeypatch.setattr(machines, "measured_machine", lambda *_, **__: machine(backend))
    monkeypatch.setattr(here, "available", lambda: (only,))
    real_bounds = here.bounds

    def bounds(device: str, machine: Machine | None = None) -> here.Bounds:
        return real_bounds(device, machine) if machine else here.Bounds(LIMITS, device == only)

    monkeypatch.setattr(here, "bounds", bounds)
    return fake


def spec(backend: str = "cuda", axes: Axes | None = None, **changes: object) -> StudySpec:
    few = {**usual_axes(backend), "layout": ("soa",), "padding": (0,), "register_limit": ("none", "64-registers")}
    several = tuple({name: tuple(values) for name, values in table.items()} for table in tables(axes or few))
    chosen = {backend: several if len(several) > 1 else several[0]}
    plain = StudySpec(name="made-up", case=CASE, axes=chosen, budget=Budget(trials=20), protocol=TimingProtocol())
    return replace(plain, **changes)


def one_family() -> Axes:
    """Return a space in which only the best kernel has a final."""
    return {
        **usual_axes("cuda"),
        "scheme": ("aa",),
        "layout": ("soa",),
        "padding": (0,),
        "register_limit": ("none", "64-registers"),
    }


def space_of(study: StudySpec, backend: str = "cuda") -> Space:
    return _space(study.case, backend, tuple(tuple(table.items()) for table in tables(study.axes[backend])))


@cache
def _space(case: Case, backend: str, axes: tuple[tuple[tuple[str, tuple[str | int, ...]], ...], ...]) -> Space:
    """Return a cached space: dozens of studies share it."""
    return legal_set(case, backend, [dict(table) for table in axes], LIMITS)


def header(study: StudySpec, backend: str = "cuda") -> StudyHeader:
    space = space_of(study, backend)
    return StudyHeader(
        spec=study,
        backend=backend,
        environment=environment(backend),
        ceiling=Ceiling(copy_bytes_per_s=4e12, in_place_bytes_per_s=4e12, stream_bytes_per_s={"16": BANDWIDTH}),
        legal_configurations=len(space.configs),
        illegal_configurations=space.illegal,
        date="2000-01-01T00:00:00+00:00",
        version="0",
    )


def search(folder: Path, evaluator: FakeEvaluator, observer: Observer | None = None) -> Search:
    return Search(
        evaluator=evaluator,
        predict=predict,
        folder=folder,
        observer=observer or Observer(),
        strategy=made_strategy,
    )


def unlimited() -> Plan:
    """Return a plan of a study without a limit of time."""
    return Plan(Clock(0.0), Needs(spec(), "cuda"))


def main(folder: str, stage: str, number: str) -> None:
    """Run or resume a study in a folder; kill this process (SIGKILL) when `stage` of trial `number` begins."""
    from lbmtune.search.study import run_study

    def at(now: str, trial: int) -> None:
        if now == stage and trial == int(number):
            os.kill(os.getpid(), 9)
            time.sleep(60)

    study = spec()
    resume = (Path(folder) / "study.json").exists()
    run_study(search(Path(folder), FakeEvaluator(at=at)), header(study), space_of(study), resume=resume)


if __name__ == "__main__":
    main(*sys.argv[1:])
