"""Optuna's side of a study: ask, tell and storage. The records are the truth; this is rebuilt from them.

Asking and telling happen in memory, and the storage hears of a trial once, when it has ended: a database takes one
transaction for each parameter of a trial that is asked for in it, and several for its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import BaseJournalBackend, JournalFileBackend, JournalFileOpenLock
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from lbmtune.catalogue.config import KernelConfig
from lbmtune.errors import InputError
from lbmtune.records import Trial
from lbmtune.search.choice import Choice
from lbmtune.search.space import varied

JOURNAL = "optuna.log"
_NUMBER = "lbmtune:number"


class LegalSampler(BaseSampler):
    """Proposes members of the legal set, each once."""

    def __init__(self, configs: Sequence[KernelConfig], choice: Choice) -> None:
        self._configs, self._choice = configs, choice
        self.distributions = distributions(configs)
        self.proposed = -1

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Chooses. Optuna calls it for every trial, the two below only where an axis varies."""
        self.proposed = self._choice.propose()

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """All axes that vary, always the same ones."""
        return dict(self.distributions)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The values of the configuration whose index is `proposed`."""
        return parameters(self._configs[self.proposed], search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Never needed: no axis is chosen on its own."""
        raise AssertionError(f"axis {param_name} was asked for outside the legal set")


class Journal(BaseJournalBackend):
    """A file of one process, to which several entries can be written in one piece: each piece is forced to disk."""

    def __init__(self, path: Path) -> None:
        self._file = JournalFileBackend(str(path), JournalFileOpenLock(str(path)))
        self._written = sum(1 for _ in self._file.read_logs(0))
        self._held: list[dict[str, Any]] | None = None

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """Entries from that number on, held back ones included."""
        if log_number_from < self._written:
            yield from self._file.read_logs(log_number_from)
        yield from (self._held or ())[max(0, log_number_from - self._written) :]

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Writes entries, or holds them back."""
        if self._held is not None:
            self._held += logs
        elif logs:
            self._file.append_logs(logs)
            self._written += len(logs)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """What is appended meanwhile is written at the end."""
        self._held = []
        try:
            yield
        finally:
            held, self._held = self._held, None
            self.append_logs(held)


class Ledger:
    """Asks for indices into configs and tells results, by the number of our trial."""

    _kept: optuna.Study

    def __init__(self, configs: Sequence[KernelConfig], choice: Choice, objective: str) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._configs, self._objective = configs, objective
        self._direction = StudyDirection.MAXIMIZE if objective == "mlups" else StudyDirection.MINIMIZE
        self._sampler = LegalSampler(configs, choice)
        self._study = optuna.create_study(sampler=self._sampler, direction=self._direction)
        self._open: dict[int, optuna.Trial] = {}
        self._journal: Journal | None = None

    def open(self, kept_in: str | Path, name: str) -> None:
        """Begins to keep what is told in a storage: a journal, begun anew, or a database by its URL.

        Raises InputError where the database cannot be used.
        """
        if isinstance(kept_in, Path):
            kept_in.parent.mkdir(parents=True, exist_ok=True)
            kept_in.unlink(missing_ok=True)
            Path(f"{kept_in}.lock").unlink(missing_ok=True)  # of a process that was killed
            self._journal = Journal(kept_in)
            self._keep(JournalStorage(self._journal), name)
            return
        from sqlalchemy import make_url  # here, because it is slow to import and seldom needed
        from sqlalchemy.exc import SQLAlchemyError

        shown = without_password(kept_in)
        try:
            secret = make_url(kept_in).password
        except (SQLAlchemyError, ValueError):  # what it says may hold a part of the password
            raise InputError(f"Optuna storage {shown!r} is not the URL of a database; correct --storage.") from None
        broken = (SQLAlchemyError, optuna.exceptions.StorageInternalError, RuntimeError, ImportError, ValueError)
        try:
            self._keep(RDBStorage(kept_in), name)
        except broken as error:
            reason = str(error).splitlines()[0].replace(kept_in, shown)
            reason = reason.replace(secret, "***") if secret else reason
            raise InputError(f"Optuna storage {shown!r} cannot be used ({reason}); correct --storage.") from None

    def ask(self, number: int) -> int:
        """Index of the configuration that trial `number` shall try."""
        trial = self._study.ask(self._sampler.distributions)
        trial.set_user_attr(_NUMBER, number)
        self._open[number] = trial
        return self._sampler.proposed

    def tell(self, trial: Trial) -> None:
        """Closes a trial whose record is on disk."""
        value = self._value(trial)
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        self._kept.add_trial(self._study.tell(self._open.pop(trial.number), value, state=state))

    def catch_up(self, trials: Sequence[Trial], index: Mapping[str, int]) -> None:
        """Makes the storage agree with the records."""
        with self._journal.at_once() if self._journal else nullcontext():
            self._tell_all(trials, index)

    def _tell_all(self, trials: Sequence[Trial], index: Mapping[str, int]) -> None:
        told = set()
        for kept in self._kept.get_trials(deepcopy=False):
            if kept.state.is_finished():
                told.add(kept.user_attrs.get(_NUMBER))
            else:
                self._kept.tell(kept.number, state=TrialState.FAIL)
        space = self._sampler.distributions
        for trial in trials:
            if trial.number not in told and trial.key in index:
                self._kept.add_trial(self._frozen(trial, self._configs[index[trial.key]], space))

    def close(self) -> None:
        """Lets go of the storage."""
        self._kept._storage.remove_session()

    def _keep(self, storage: BaseStorage, name: str) -> None:
        self._kept = optuna.create_study(
            storage=storage, study_name=name, direction=self._direction, load_if_exists=True
        )
        self._kept.get_trials(deepcopy=False)

    def _frozen(self, trial: Trial, config: KernelConfig, space: dict[str, BaseDistribution]) -> FrozenTrial:
        value = self._value(trial)
        return optuna.create_trial(
            state=TrialState.FAIL if value is None else TrialState.COMPLETE,
            value=value,
            params=parameters(config, space),
            distributions=space,
            user_attrs={_NUMBER: trial.number},
        )

    def _value(self, trial: Trial) -> float | None:
        if trial.mlups is None or self._objective == "mlups":
            return trial.mlups
        return float(trial.prediction.footprint_bytes) if trial.prediction else None


def without_password(url: str) -> str:
    """The URL of a database as it may be shown: passwords before its host, or among its parameters, are ***.

    SQLAlchemy's own form of that knows no parameters, and a URL that it cannot read may hold a password, too.
    """
    url = re.sub(r"(?<=://)([^:/@]*):.*(?=@)", r"\1:***", url, count=1)
    return re.sub(r"(?<=[?&])(\w*passw(?:or)?d|pwd)=[^&]*", r"\1=***", url, flags=re.IGNORECASE)


def distributions(configs: Sequence[KernelConfig]) -> dict[str, BaseDistribution]:
    """One categorical distribution for each axis that varies, values in order of appearance."""
    flat = [config.flat() for config in configs]
    return {name: CategoricalDistribution(tuple(dict.fromkeys(f.get(name) for f in flat))) for name in varied(configs)}


def parameters(config: KernelConfig, space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """The values of a configuration on the axes that vary."""
    flat = config.flat()
    return {name: flat.get(name) for name in space}
