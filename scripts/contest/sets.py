"""Recorded sets as closed worlds: every configuration has a known answer, and nothing else can be tried."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lbmtune.api.machines.shipped import measured_cards
from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.cores import usable_cores
from lbmtune.model.machine.datasheet_scaling import with_borrowed_calibration
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict
from lbmtune.process_pool import mapped, pool
from lbmtune.records import Trial
from lbmtune.records.store import read_header, read_study
from lbmtune.records.whole_files import HEADER
from lbmtune.search.interfaces import Seen
from lbmtune.search.observations import seen_of
from lbmtune.search.stopping import noise_of
from scripts.paths import RECORDED, ROOT

Array = NDArray[np.float64]
CACHE = ROOT / "build" / "contest"
MACHINE = "machine.toml"
_READ = ("catalogue", "model", "records")
"""Packages that a world is made by."""
_BATCH = 400
"""Trials that are not worth another process."""
Start = Literal["calibrated", "cold", "bandwidths"]
STARTS: tuple[Start, ...] = get_args(Start)
"""By what the model predicts: the calibration of the device, that of another card (for a CPU none), bandwidths."""


@dataclass(frozen=True)
class World:
    """A recorded set. Arrays have an element for each configuration, in MLUPS unless said otherwise.

    seen: of the first measurement, which is what a strategy is told; truth: by which it is judged, NaN if it failed;
    calibrated, cold, bandwidths: predictions of a start (configurations, 2): by estimated and by compiled resources;
    device_s, compile_s: seconds that verification and measurement took the device, and that compilation took a core.
    finals_noise: how far finals lie apart on the machine, relative.
    """

    name: str
    backend: str
    configs: tuple[KernelConfig, ...]
    seen: tuple[Seen, ...]
    truth: Array
    calibrated: Array
    cold: Array
    bandwidths: Array
    device_s: Array
    compile_s: Array
    finals_noise: float

    @property
    def measured(self) -> Array:
        """MLUPS of the first measurement, NaN for a failure."""
        return np.array([one.mlups or np.nan for one in self.seen])

    @property
    def share(self) -> Array:
        """The truth over that of the best; zero for a failure."""
        found: Array = np.nan_to_num(self.truth) / np.nanmax(self.truth)
        return found

    def expected(self, start: Start) -> Array:
        """Return the predictions of a start (configurations, 2)."""
        found: Array = getattr(self, start)
        return found


def names() -> list[str]:
    """Return the names of all recorded sets but those about output, whose searches are short."""
    found = sorted(header.parent for header in RECORDED.rglob(HEADER))
    return [str(folder.relative_to(RECORDED)) for folder in found if not read_header(folder).spec.output]


def world(name: str) -> World:
    """Return a recorded set; what the model says of it is kept in `CACHE` until the model or the set changes."""
    path = CACHE / f"{name.replace('/', '+')}.pickle"
    newest = max(
        file.stat().st_mtime
        for root in (*(ROOT / "lbmtune" / part for part in _READ), Path(__file__), RECORDED / name)
        for file in (root.rglob("*.*") if root.is_dir() else [root])
    )
    if path.exists() and path.stat().st_mtime > newest:
        found: World = pickle.loads(path.read_bytes())
        return found
    made = made_world(name)
    CACHE.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(made))
    return made


def made_world(name: str) -> World:
    """Return a recorded set, predicted anew."""
    record = read_study(RECORDED / name)
    machine = read_machine(RECORDED / Path(name).parts[0] / MACHINE)
    trials = sorted({trial.key: trial for trial in record.trials}.values(), key=lambda trial: trial.number)
    seen = [seen_of(replace(trial, final=None)) for trial in trials]
    measured = np.array([one.mlups or np.nan for one in seen])
    predictions = np.array(_predictions(record.header.spec.case, machines(machine), trials))
    return World(
        name=name,
        backend=record.header.backend,
        configs=tuple(from_flat(trial.config) for trial in trials),
        seen=tuple(seen),
        truth=_truth(measured, np.array([trial.final.mlups if trial.final else np.nan for trial in trials])),
        **{start: predictions[:, place] for place, start in enumerate(STARTS)},
        device_s=np.array([trial.costs.verify_s + trial.costs.measure_s for trial in trials]),
        compile_s=np.array([trial.costs.compile_s for trial in trials]),
        finals_noise=noise_of(record.header),
    )


def _truth(measured: Array, final: Array) -> Array:
    """Return finals, and for the others the first measurement as it would be in finals.

    A machine may be slower in finals as a whole than in the search. Without that ratio, those that were left out of the
    finals would be the best.
    """
    in_finals = np.flatnonzero(~np.isnan(final / measured))
    slower = np.median(final[in_finals] / measured[in_finals]) if len(in_finals) else 1.0
    return np.where(np.isnan(final), slower * measured, final)


def machines(machine: Machine) -> tuple[Machine, ...]:
    """Return a machine as each start knows it; when cold, a GPU has the scaled tables of a card of another name."""
    bare = replace(machine, calibration=None, cpu=None)
    others = (card for card in measured_cards() if card.environment.device != machine.environment.device)
    lender = next(others, bare) if machine.environment.backend == "cuda" else bare
    return machine, with_borrowed_calibration(bare, lender), bare


def _predictions(case: Case, known: Sequence[Machine], trials: Sequence[Trial]) -> list[list[list[float]]]:
    task = partial(_predicted, case, known)
    if len(trials) <= _BATCH:
        return list(map(task, trials))
    with pool(usable_cores()) as processes:
        return list(mapped(processes, task, trials, _BATCH // 2))


def _predicted(case: Case, known: Sequence[Machine], trial: Trial) -> list[list[float]]:
    """Return what each machine lets expect of a trial, before it is compiled and then."""
    config = from_flat(trial.config)
    told = trial.resources if config.backend == "cuda" else None
    return [[predict(case, config, one, resources).mlups for resources in (None, told)] for one in known]
