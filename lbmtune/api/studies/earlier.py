"""Earlier studies that a new one learns from: which they are, and how far their model erred."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import log, nan, prod
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from lbmtune import __version__
from lbmtune.api.machines.devices import LOG
from lbmtune.api.machines.measured_machines import how_calibrated
from lbmtune.api.machines.shipped import measured_cards
from lbmtune.api.studies.folders import RESULTS, study_folder, study_folders
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig, Scalar
from lbmtune.errors import InputError, LbmtuneError
from lbmtune.measure.calibration.machines import machine_path
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict
from lbmtune.records import Environment, Trial
from lbmtune.records.header import EarlierStudy, StudyHeader
from lbmtune.records.spec import StudySpec, tables
from lbmtune.records.store import holds_study, read_header, read_study
from lbmtune.records.study import StudyRecord
from lbmtune.search.interfaces import Seen
from lbmtune.search.observations import seen_of
from lbmtune.search.strategies.transfer import Source, source

LEARNING = ("auto", "gp")
"""Strategies that learn from earlier studies."""
MOST_STUDIES = 4
"""Studies that a new one learns from if none are named."""
_FEWEST = 8
"""Measured trials of a study that says anything."""
_BEYOND = re.compile(r"\d{19}")
"""A number that no knob has."""
_FAR = 8.0
"""Ratio of numbers of cells that counts as much as another lattice."""
T = TypeVar("T", StudyHeader, StudyRecord)


class Found(NamedTuple):
    """An earlier study in its folder."""

    folder: Path
    record: StudyRecord


class Lesson(NamedTuple):
    """An earlier study as a new one names it in its header, and what its search learns from it."""

    study: EarlierStudy
    source: Source


def named(references: Sequence[Path | str], spec: StudySpec, backend: str) -> list[Found]:
    """Return the studies of references, folders or names under lbmtune-studies.

    Raises InputError for one that cannot be read or says nothing of this backend.
    """
    if references and spec.strategy not in LEARNING:
        raise InputError(
            f"--from is not supported for strategy={spec.strategy} (use {' or '.join(LEARNING)}): it does not learn."
        )
    folders = {folder.resolve(): folder for folder in (study_folder(str(one)) for one in references)}
    found = [Found(folder, read_study(folder)) for folder in folders.values()]
    for folder, record in found:
        if record.header.backend != backend:
            raise InputError(
                f"--from {folder} is not supported for {backend} (use a study of {backend}): it was measured on "
                f"{record.header.backend}."
            )
        if (count := len(_measured(record))) < _FEWEST:
            raise InputError(
                f"--from {folder} is not supported (use a study with {_FEWEST} measured trials or more): it has "
                f"{count}."
            )
    return found


def teaches(folder: Path) -> bool:
    """Return whether a folder holds a study with as many measured trials as say anything."""
    return holds_study(folder) and len(_measured(read_study(folder))) >= _FEWEST


def kept(references: Sequence[Path | str] | None, header: StudyHeader, folder: Path) -> list[Found]:
    """Return the studies that a study in a folder was begun with; those that are gone are left out with a warning.

    Raises InputError if references name others.
    """
    begun = [one.folder for one in header.earlier]
    if references is not None and {str(study_folder(str(one)).resolve()) for one in references} != set(begun):
        begun_with = " --from ".join(begun) or "none"
        raise InputError(f"{folder} was begun with --from {begun_with}; resume it with these, or without --from.")
    return list(_studies(map(Path, begun)))


def alike(spec: StudySpec, environment: Environment, own: Path) -> Iterator[Found]:
    """Yield the studies of lbmtune-studies that say something of a new one, the most similar first.

    A damaged one is left out with a warning. own: folder of the new study.
    """
    if spec.strategy not in LEARNING:
        return
    folders = [folder for folder in study_folders(RESULTS) if folder.resolve() != own.resolve()]
    headers = {folder: header for folder in folders if (header := _read(folder, read_header))}
    yield from _studies(ranked(headers, spec, environment))


def ranked(headers: Mapping[Path, StudyHeader], spec: StudySpec, environment: Environment) -> list[Path]:
    """Return the folders of the studies that say something of a new one, the most similar first."""
    some = [(_unlike(one, spec, environment), folder) for folder, one in headers.items() if _says(one, environment)]
    return [folder for _, folder in sorted(some)]


def _studies(folders: Iterable[Path]) -> Iterator[Found]:
    for folder in folders:
        if record := _read(folder, read_study):
            yield Found(folder, record)


def _read(folder: Path, reader: Callable[[Path], T]) -> T | None:
    try:
        return reader(folder)
    except InputError as error:
        LOG.warning("left out of the prior: %s", error)
        return None


def _says(header: StudyHeader, here: Environment) -> bool:
    """Return whether the errors of a study say something here: another CPU errs otherwise, another GPU alike."""
    same = header.environment.device == here.device
    return header.backend == here.backend and (same or not BACKENDS[here.backend].shares_host)


def _unlike(header: StudyHeader, spec: StudySpec, environment: Environment) -> float:
    """Return in how much an earlier study differs; the number of cells counts by its logarithm."""
    one, other = header.spec.case, spec.case
    differences = [
        one.lattice != other.lattice,
        one.collision != other.collision,
        one.flow != other.flow,
        header.environment.device != environment.device,
        _storages(header.spec, environment.backend) != _storages(spec, environment.backend),
    ]
    return sum(differences) + min(1.0, abs(log(prod(one.domain) / prod(other.domain))) / log(_FAR))


def _storages(spec: StudySpec, backend: str) -> set[Scalar]:
    return {one for table in tables(spec.axes.get(backend, ())) for one in table.get("storage", ())}


def lessons(
    given: Iterable[Found] | None,
    spec: StudySpec,
    configs: Sequence[KernelConfig],
    machine: Machine,
    own: Path,
    *,
    asked: bool = False,
) -> list[Lesson]:
    """Return what earlier studies teach that share a family with the configurations of a new one.

    given: None for the most similar ones of lbmtune-studies; machine: that of the new study, with which its model
    predicts; own: its folder; asked: each of the given ones has to teach something. Raises InputError if it does not.
    """
    families = {config.family for config in configs}
    found = alike(spec, machine.environment, own) if given is None else given
    useful = (lesson for one in found if (lesson := _taught(one, families, machine, asked=asked)))
    return list(islice(useful, MOST_STUDIES if given is None else None))


class _TeachesNothingError(InputError):
    """A study says nothing of a new one, which is left out without a word unless it was asked for."""


def _taught(one: Found, families: set[str], machine: Machine, *, asked: bool) -> Lesson | None:
    try:
        return _lesson(one, families, machine)
    except (LbmtuneError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        # whatever a file holds that another version or a hand wrote
        if asked:
            raise InputError(f"--from {one.folder} is not supported (use another study): {error}.") from error
        if not isinstance(error, _TeachesNothingError):
            LOG.warning("left out of the prior: %s: %s", one.folder, error)
        return None


def _lesson(one: Found, families: set[str], machine: Machine) -> Lesson:
    header, trials = one.record.header, _measured(one.record)
    if len(trials) < _FEWEST:
        raise _TeachesNothingError(f"it has {len(trials)} measured trials")
    if not _says(header, here := machine.environment):
        raise _TeachesNothingError(f"it was measured on {header.environment.device}, and this is {here.device}")
    known = None if _predicted_alike(header, machine) else _machine_of(header.environment, machine)
    case = header.spec.case
    configs, seen = [trial.kernel_config for trial in trials], [_first(trial) for trial in trials]
    if not families & {config.family for config in configs}:
        raise _TeachesNothingError(f"it has no kernel of {' or '.join(sorted(families))}")

    def predicted(place: int) -> float:
        """Predict with the model of the new study, if it differs and knows that machine; voxel files stay unread."""
        recorded = trials[place].prediction
        if known is None or case.geometry:
            return recorded.mlups if recorded else nan
        return predict(case, configs[place], known, trials[place].resources).mlups

    speeds, noise = (np.array([getattr(told, name) for told in seen], dtype=float) for name in ("mlups", "noise"))
    found = source(configs, speeds, predicted, noise)
    values = (str(value) for config in configs for value in config.flat().values())
    if not np.isfinite([found.errors, found.noise]).all() or any(map(_BEYOND.search, values)):
        raise ValueError("it holds a number that no kernel has")
    study = EarlierStudy(folder=str(one.folder.resolve()), date=header.date, trials=len(found.configs))
    return Lesson(study, found)


def _predicted_alike(header: StudyHeader, machine: Machine) -> bool:
    """Return whether a study was predicted by the model and the description of the new one."""
    there = header.version, header.ceiling.date, header.calibrated_how
    return there == (__version__, machine.date, how_calibrated(machine))


def _measured(record: StudyRecord) -> list[Trial]:
    return [trial for trial in record.trials if trial.prediction and _first(trial).mlups]


def _first(trial: Trial) -> Seen:
    """Return what the first measurement told, as the trials of a search do: finals are faster or slower as a whole."""
    return seen_of(replace(trial, final=None))


def _machine_of(there: Environment, here: Machine) -> Machine | None:
    """Return the description of an earlier study's device with as much calibration as the new one has, or None."""
    if there.device == here.environment.device:
        return here
    kept = machine_path(there)
    cards = [*([read_machine(kept)] if kept.exists() else []), *measured_cards()]
    known = next((card for card in cards if card.environment.device == there.device), None)
    if known is None or (here.calibrated and not known.calibrated):
        return None
    return known if here.calibrated else replace(known, calibration=None, cpu=None)
