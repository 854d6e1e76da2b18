"""Recorded sets as closed worlds: every configuration has a known answer, and nothing else can be tried."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.cores import usable_cores
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict
from lbmtune.process_pool import mapped, pool
from lbmtune.records import Outcome, Trial
from lbmtune.records.store import HEADER, read_study
from scripts.paths import RECORDED, ROOT

Array = NDArray[np.float64]
CACHE = ROOT / "build" / "contest"
MACHINE = "machine.toml"
_READ = ("catalogue", "model", "records")
"""Packages that a world is made by."""


@dataclass(frozen=True)
class World:
    """A recorded set. Arrays have an element for each configuration, in MLUPS unless said otherwise.

    measured: first measurement, NaN if it failed; noise: half-width of its interval over it; estimated, compiled: by
    the calibrated model, from estimated and from compiled resources; cold: by bandwidths alone; device_s: seconds that
    the device was taken by verification and measurement.
    """

    name: str
    case: Case
    backend: str
    configs: tuple[KernelConfig, ...]
    measured: Array
    noise: Array
    estimated: Array
    compiled: Array
    cold: Array
    device_s: Array

    @property
    def best(self) -> float:
        """The best first measurement."""
        return float(np.nanmax(self.measured))

    def expected(self, *, calibrated: bool, compiled_first: int) -> Array:
        """Return what a study expects: of a GPU the first ones are compiled before the first trial."""
        if not calibrated:
            return self.cold
        if self.backend == "cpu":
            return self.estimated
        found, first = self.estimated.copy(), np.argsort(-self.estimated, kind="stable")[:compiled_first]
        found[first] = self.compiled[first]
        return found


def names() -> list[str]:
    """Return the names of all recorded sets."""
    return sorted(str(header.parent.relative_to(RECORDED)) for header in RECORDED.rglob(HEADER))


def world(name: str) -> World:
    """Return a recorded set; what the model says of it is kept in `CACHE` until the model or the set changes."""
    path = CACHE / f"{name.replace('/', '+')}.pickle"
    newest = max(
        file.stat().st_mtime
        for root in (*(ROOT / "lbmtune" / part for part in _READ), RECORDED / name)
        for file in root.rglob("*.*")
    )
    if path.exists() and path.stat().st_mtime > newest:
        found: World = pickle.loads(path.read_bytes())
        return found
    made = _world(name)
    CACHE.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(made))
    return made


def _world(name: str) -> World:
    record = read_study(RECORDED / name)
    machine = read_machine(RECORDED / Path(name).parts[0] / MACHINE)
    trials = sorted({trial.key: trial for trial in record.trials}.values(), key=lambda trial: trial.number)
    case = record.header.spec.case
    with pool(usable_cores()) as processes:
        rows = list(mapped(processes, partial(_predicted, case, machine), trials, 64))
    estimated, compiled, cold = np.array(rows).T
    half = [_half_width(trial) for trial in trials]
    return World(
        name=name,
        case=case,
        backend=record.header.backend,
        configs=tuple(from_flat(trial.config) for trial in trials),
        measured=np.array([_speed(trial) for trial in trials]),
        noise=np.array(half),
        estimated=estimated,
        compiled=compiled,
        cold=cold,
        device_s=np.array([trial.costs.verify_s + trial.costs.measure_s for trial in trials]),
    )


def _predicted(case: Case, machine: Machine, trial: Trial) -> tuple[float, float, float]:
    config = from_flat(trial.config)
    estimated = predict(case, config, machine).mlups
    compiled = predict(case, config, machine, trial.resources).mlups if trial.resources else estimated
    return estimated, compiled, predict(case, config, replace(machine, calibration=None, cpu=None)).mlups


def _speed(trial: Trial) -> float:
    return trial.measurement.mlups if trial.outcome is Outcome.OK and trial.measurement else float("nan")


def _half_width(trial: Trial) -> float:
    one = trial.measurement
    if trial.outcome is not Outcome.OK or one is None:
        return float("nan")
    return (one.ci_high_mlups - one.ci_low_mlups) / 2 / one.mlups
