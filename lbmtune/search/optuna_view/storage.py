"""A study as Optuna keeps one: its journal, made from the records, and what Optuna is told of a trial."""

import re
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from lbmtune.catalogue.config import KernelConfig
from lbmtune.errors import InputError
from lbmtune.records import Trial
from lbmtune.records.header import Ceiling, StudyHeader
from lbmtune.records.spec import OBJECTIVES, StudySpec
from lbmtune.search.spaces.space import values_of as values_of_knobs

JOURNAL = "optuna.log"
_NUMBER, FINALS = "lbmtune:number", "final_mlups"
_LONG_SECRET = 6
"""Letters from which on a password is not in a sentence by chance."""


class Journal(JournalFileBackend):
    """Optuna's journal in a file of one process; several entries can be written and synced to disk at once."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), JournalFileOpenLock(str(path)))
        self._written = 0
        self._buffer: list[dict[str, Any]] | None = None

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """Return entries from that number on, buffered ones included."""
        yield from super().read_logs(log_number_from)
        yield from (self._buffer or ())[max(0, log_number_from - self._written) :]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Write or buffer entries."""
        if self._buffer is not None:
            self._buffer += logs
        elif logs:
            super().append_logs(logs)

    @contextmanager
    def buffered(self) -> Iterator[None]:
        """Buffer what is appended while the block runs, and write it at the end."""
        self._written = sum(1 for _ in super().read_logs(0))
        self._buffer = []
        try:
            yield
        finally:
            buffered, self._buffer = self._buffer, None
            self.append_logs(buffered)


def write_journal(path: Path, header: StudyHeader, configs: Sequence[KernelConfig], trials: Sequence[Trial]) -> None:
    """Write a study anew into a journal; trials of other configurations are left out."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    for left in (path, Path(f"{path}.lock")):  # the latter of a process that was killed
        left.unlink(missing_ok=True)
    space, searched, journal = distributions(configs), frozenset(configs), Journal(path)
    with journal.buffered():
        study = optuna.create_study(
            storage=JournalStorage(journal), study_name=optuna_name(header), directions=directions(header.spec)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.set_metric_names(metrics(header.spec))
        study.set_user_attr(FINALS, finals_of(trials))
        for trial in trials:
            if (config := trial.kernel_config) in searched:
                study.add_trial(_frozen(trial, header, parameters(config, space), space))


def _frozen(
    trial: Trial, header: StudyHeader, values: dict[str, Any], space: dict[str, BaseDistribution]
) -> FrozenTrial:
    found = values_of(trial, header.spec)
    return optuna.create_trial(
        state=TrialState.FAIL if found is None else TrialState.COMPLETE,
        values=found,
        params=values,
        distributions=space,
        user_attrs={_NUMBER: trial.number, **attributes(trial, header.ceiling)},
    )


def _told(spec: StudySpec) -> tuple[str, ...]:
    """Return the objectives that Optuna hears of, which every trial has: speed stands for energy."""
    return tuple(dict.fromkeys("mlups" if name == "energy" else name for name in spec.objectives))


def directions(spec: StudySpec) -> list[StudyDirection]:
    """Return for each objective whether more of it is better."""
    return [StudyDirection.MAXIMIZE if name == "mlups" else StudyDirection.MINIMIZE for name in _told(spec)]


def metrics(spec: StudySpec) -> list[str]:
    """Return the names of the objectives with their units."""
    return [OBJECTIVES[name] for name in _told(spec)]


@contextmanager
def usable(url: str) -> Iterator[None]:
    """Open the database of a URL within this block. Raises InputError, without its password, if it cannot be used."""
    from sqlalchemy import make_url  # slow to import and seldom needed
    from sqlalchemy.exc import SQLAlchemyError

    shown = without_password(url)
    try:
        secret = make_url(url).password
    except (SQLAlchemyError, ValueError):  # its message may contain a part of the password
        raise InputError(f"Optuna storage {shown!r} is not the URL of a database; correct --storage.") from None
    broken = (SQLAlchemyError, optuna.exceptions.StorageInternalError, RuntimeError, ImportError, ValueError)
    try:
        yield
    except broken as error:
        reason = str(error).splitlines()[0].replace(url, shown)
        if secret and _may_show(secret, reason):
            reason = type(error).__name__
        raise InputError(f"Optuna storage {shown!r} cannot be used ({reason}); correct --storage.") from None


def optuna_name(header: StudyHeader) -> str:
    """Return the name of a study in Optuna's storage, which may hold several."""
    return f"{header.spec.name} {header.date}"


def finals_of(trials: Sequence[Trial]) -> dict[str, float]:
    """Return final speeds by the key of their trial."""
    return {one.key: one.final.mlups for one in trials if one.final}


def values_of(trial: Trial, spec: StudySpec) -> list[float] | None:
    """Return the objectives of a trial; None if it has no speed, or one of them is not known."""
    known: dict[str, float | None] = {
        "mlups": trial.mlups,
        "footprint": trial.prediction.footprint_bytes if trial.prediction else None,
        "accuracy": trial.accuracy.error if trial.accuracy else None,
    }
    found = [float(value) for name in _told(spec) if (value := known[name]) is not None and isfinite(value)]
    return found if trial.mlups is not None and len(found) == len(_told(spec)) else None


def attributes(trial: Trial, ceiling: Ceiling) -> dict[str, str | float]:
    """Return what else is known of a trial, as Optuna's dashboard shows it; only what there is."""
    found: dict[str, str | float | None] = {
        "key": trial.key,
        "outcome": str(trial.outcome),
        "reason": trial.reason or None,
        "predicted_mlups": trial.prediction.mlups if trial.prediction else None,
        "first_mlups": trial.measurement.mlups if trial.measurement else None,
        "final_mlups": trial.final.mlups if trial.final else None,
        "share_of_ceiling": None if trial.mlups is None else ceiling.share(trial),
    }
    return {name: value for name, value in found.items() if value is not None}


def _may_show(secret: str, text: str) -> bool:
    """Return whether a text may hold a password: as a word, or within one if it is too long to be there by chance."""
    found = re.escape(secret) if len(secret) >= _LONG_SECRET else rf"(?<!\w){re.escape(secret)}(?!\w)"
    return bool(re.search(found, text))


def without_password(url: str) -> str:
    """Return the URL of a database with *** for passwords before its host and among its parameters.

    SQLAlchemy's own function leaves parameters, and fails for malformed URLs, which may hold a password, too.
    """
    url = re.sub(r"(?<=://)([^:/@]*):.*(?=@)", r"\1:***", url, count=1)
    return re.sub(r"(?<=[?&])(\w*passw(?:or)?d|pwd)=[^&]*", r"\1=***", url, flags=re.IGNORECASE)


class Shared(CategoricalDistribution):
    """A distribution that all trials in memory share: Optuna copies others for each, and compares the copies.

    No journal holds it, in which a distribution stands by the name of its class.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __deepcopy__(self, memo: object) -> "Shared":
        return self


def distributions(
    configs: Sequence[KernelConfig], kind: type[CategoricalDistribution] = CategoricalDistribution
) -> dict[str, BaseDistribution]:
    """Return a categorical distribution for each knob that varies, values in order of appearance."""
    every = values_of_knobs(configs)
    return {name: kind(values) for name, values in every.items() if len(values) > 1}


def parameters(config: KernelConfig, space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Return the values of a configuration for the knobs that vary."""
    flat = config.flat()
    return {name: flat.get(name) for name in space}
