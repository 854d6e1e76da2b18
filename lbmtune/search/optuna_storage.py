"""A study in Optuna's storage, rebuilt from the records.

The storage gets a trial once, when it has ended: asking in a database would take one transaction for each parameter of
a trial, and several for its end.
"""

import re
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from lbmtune.catalogue.config import KernelConfig
from lbmtune.errors import InputError
from lbmtune.records import Trial
from lbmtune.records.study import Ceiling, StudyHeader
from lbmtune.search.space import varied

JOURNAL = "optuna.log"
_NUMBER = "lbmtune:number"
_METRICS = {"mlups": "MLUPS", "footprint": "footprint (bytes)"}
"""Names of objectives."""
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


class OptunaStudy:
    """Keeps trials of these configurations in a storage of Optuna. header: of their study."""

    _stored: optuna.Study

    def __init__(self, configs: Sequence[KernelConfig], header: StudyHeader) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._configs, self._ceiling = {config.key: config for config in configs}, header.ceiling
        self._objective = header.spec.objective
        self._direction = StudyDirection.MAXIMIZE if self._objective == "mlups" else StudyDirection.MINIMIZE
        self._space = distributions(configs)
        self._journal: Journal | None = None

    def open(self, storage: str | Path, name: str) -> None:
        """Open a storage: a new journal by its path, or a database by its URL.

        Raises InputError if the database cannot be used.
        """
        if isinstance(storage, Path):
            storage.parent.mkdir(parents=True, exist_ok=True)
            storage.unlink(missing_ok=True)
            Path(f"{storage}.lock").unlink(missing_ok=True)  # of a process that was killed
            self._journal = Journal(storage)
            self._keep(JournalStorage(self._journal), name)
            return
        from sqlalchemy import make_url  # slow to import and seldom needed
        from sqlalchemy.exc import SQLAlchemyError

        shown = without_password(storage)
        try:
            secret = make_url(storage).password
        except (SQLAlchemyError, ValueError):  # its message may contain a part of the password
            raise InputError(f"Optuna storage {shown!r} is not the URL of a database; correct --storage.") from None
        broken = (SQLAlchemyError, optuna.exceptions.StorageInternalError, RuntimeError, ImportError, ValueError)
        try:
            self._keep(RDBStorage(storage), name)
        except broken as error:
            reason = str(error).splitlines()[0].replace(storage, shown)
            if secret and _may_show(secret, reason):
                reason = type(error).__name__
            raise InputError(f"Optuna storage {shown!r} cannot be used ({reason}); correct --storage.") from None

    def tell(self, trial: Trial) -> None:
        """Add a trial whose record is on disk."""
        self._stored.add_trial(self._frozen(trial, self._configs[trial.key]))

    def catch_up(self, trials: Sequence[Trial]) -> None:
        """Add to the storage the recorded trials that it lacks."""
        with self._journal.buffered() if self._journal else nullcontext():
            stored = set()
            for one in self._stored.get_trials(deepcopy=False):
                if one.state.is_finished():
                    stored.add(one.user_attrs.get(_NUMBER))
                else:
                    self._stored.tell(one.number, state=TrialState.FAIL)
            for trial in trials:
                if trial.number not in stored and trial.key in self._configs:
                    self.tell(trial)

    def note_finals(self, trials: Sequence[Trial]) -> None:
        """Note the final speeds with the study: those of trials that are in a storage can no longer change."""
        self._stored.set_user_attr("final_mlups", {one.key: one.final.mlups for one in trials if one.final})

    def close(self) -> None:
        """Release the storage."""
        self._stored._storage.remove_session()

    def _keep(self, storage: BaseStorage, name: str) -> None:
        self._stored = optuna.create_study(
            storage=storage, study_name=name, direction=self._direction, load_if_exists=True
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self._stored.set_metric_names([_METRICS[self._objective]])
        self._stored.get_trials(deepcopy=False)

    def _frozen(self, trial: Trial, config: KernelConfig) -> FrozenTrial:
        value = self._value(trial)
        return optuna.create_trial(
            state=TrialState.FAIL if value is None else TrialState.COMPLETE,
            value=value,
            params=parameters(config, self._space),
            distributions=self._space,
            user_attrs={_NUMBER: trial.number, **attributes(trial, self._ceiling)},
        )

    def _value(self, trial: Trial) -> float | None:
        if trial.mlups is None or self._objective == "mlups":
            return trial.mlups
        return float(trial.prediction.footprint_bytes) if trial.prediction else None


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


def distributions(configs: Sequence[KernelConfig]) -> dict[str, BaseDistribution]:
    """Return a categorical distribution for each knob that varies, values in order of appearance."""
    flat = [config.flat() for config in configs]
    return {name: CategoricalDistribution(tuple(dict.fromkeys(f.get(name) for f in flat))) for name in varied(configs)}


def parameters(config: KernelConfig, space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Return the values of a configuration for the knobs that vary."""
    flat = config.flat()
    return {name: flat.get(name) for name in space}
