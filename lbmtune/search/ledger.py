"""Optuna's side of a study: ask, tell and storage. The records are the truth; this can be rebuilt from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.storages import RDBStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import event
from sqlalchemy.exc import SQLAlchemyError

from lbmtune.catalogue.config import KernelConfig
from lbmtune.errors import InputError
from lbmtune.records import Trial
from lbmtune.search.choice import Choice
from lbmtune.search.space import varied

DATABASE = "optuna.db"
_SQLITE = "sqlite:///"
_NUMBER = "lbmtune:number"
_DAMAGE = ("malformed", "not a database", "no such table", "no such column", "runtime optuna version")
_BROKEN = (SQLAlchemyError, optuna.exceptions.StorageInternalError, RuntimeError)


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


class Ledger:
    """Asks for indices into configs and tells results, by the number of our trial."""

    _study: optuna.Study

    def __init__(self, configs: Sequence[KernelConfig], choice: Choice, objective: str) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._configs, self._objective = configs, objective
        self._sampler = LegalSampler(configs, choice)
        self._open: dict[int, optuna.Trial] = {}

    def open(self, url: str, name: str, *, rebuild: bool) -> None:
        """Opens or makes a study in a storage. rebuild: whether a damaged SQLite file is made anew.

        Raises InputError where the storage cannot be used.
        """
        try:
            self._study = self._load(url, name)
        except (*_BROKEN, ImportError, ValueError) as error:
            reason = str(error).splitlines()[0]
            if not rebuild:
                raise InputError(f"Optuna storage {url!r} cannot be used ({reason}); correct --storage.") from error
            if not _damaged(error):
                raise InputError(
                    f"{url.removeprefix(_SQLITE)} cannot be used ({reason}); see who else has it open, and resume."
                ) from error
            path = Path(url.removeprefix(_SQLITE))
            for rest in path.parent.glob(f"{path.name}*"):
                rest.unlink()
            self._study = self._load(url, name)

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
        self._study.tell(self._open.pop(trial.number), value, state=state)

    def catch_up(self, trials: Sequence[Trial], index: Mapping[str, int]) -> None:
        """Makes the storage agree with the records: adds what is missing, ends what was in flight."""
        told = set()
        for kept in self._study.get_trials(deepcopy=False):
            if kept.state.is_finished():
                told.add(kept.user_attrs.get(_NUMBER))
            else:
                self._study.tell(kept.number, state=TrialState.FAIL)
        space = self._sampler.distributions
        for trial in trials:
            if trial.number not in told and trial.key in index:
                self._study.add_trial(self._frozen(trial, self._configs[index[trial.key]], space))

    def close(self) -> None:
        """Lets go of the storage."""
        storage = self._study._storage
        storage.remove_session()

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

    def _load(self, url: str, name: str) -> optuna.Study:
        storage = RDBStorage(url)
        if url.startswith("sqlite"):
            # the records are synchronised to disk; this copy can be rebuilt, so it need not wait for the disk
            event.listen(storage.engine, "connect", _relax)
            storage.engine.dispose()
        direction = StudyDirection.MAXIMIZE if self._objective == "mlups" else StudyDirection.MINIMIZE
        study = optuna.create_study(
            storage=storage, study_name=name, sampler=self._sampler, direction=direction, load_if_exists=True
        )
        study.get_trials(deepcopy=False)
        return study


def _damaged(error: BaseException) -> bool:
    """Whether a SQLite file itself is broken, rather than in use, unreadable or on a full disk."""
    chain = [error]
    while cause := chain[-1].__cause__ or chain[-1].__context__:
        chain.append(cause)
    return any(sign in str(link) for link in chain for sign in _DAMAGE)


def database_url(folder: Path) -> str:
    """The usual storage: a SQLite file in the study folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    return f"{_SQLITE}{folder / DATABASE}"


def distributions(configs: Sequence[KernelConfig]) -> dict[str, BaseDistribution]:
    """One categorical distribution for each axis that varies, values in order of appearance."""
    flat = [config.flat() for config in configs]
    return {name: CategoricalDistribution(tuple(dict.fromkeys(f[name] for f in flat))) for name in varied(configs)}


def parameters(config: KernelConfig, space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """The values of a configuration on the axes that vary."""
    flat = config.flat()
    return {name: flat[name] for name in space}


def _relax(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA synchronous=OFF")
