"""The ledger of a joint study: who measures what, on any storage of Optuna.

A worker claims a configuration by a running trial with its key; of several the lowest number has it. A counter, which
the worker raises while it lives, is the lease: if it stands still, the others mark the trial as lost, and the
configuration is free again. No clocks of two hosts are compared.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from math import inf
from threading import Event, Thread
from types import TracebackType
from typing import Self

import msgspec
import optuna
from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
from optuna.storages import BaseStorage, GrpcStorageProxy, RDBStorage, get_storage
from optuna.trial import FrozenTrial, TrialState

from lbmtune.catalogue.config import KernelConfig
from lbmtune.errors import InputError
from lbmtune.records import Trial
from lbmtune.records.header import StudyHeader
from lbmtune.records.store import decoded
from lbmtune.search.optuna_view.storage import (
    FINALS,
    attributes,
    directions,
    distributions,
    finals_of,
    metrics,
    parameters,
    usable,
    values_of,
)

BEAT_S, LOST_S = 5.0, 30.0
"""Seconds between two beats of a worker, and without one after which its trials are lost."""
_HEADER, _OVER, _RECORD, _BEAT, _VOID = (f"lbmtune:{name}" for name in ("header", "over", "trial", "beat", "void"))
_KEY = "key"
_TRIES = 3
_POLL_S, _FRESH_S = 2.0, 0.1
"""Seconds between two looks for a study, and for what others have done unless a claim depends on it."""
_PROXY, _PORT = "grpc://", 13000
"""Scheme of the URL of a proxy, and the port on which Optuna's listens."""


class Ledger:
    """The trials of one joint study as one worker sees them. A context manager: it beats meanwhile.

    header: of the study, as the one that began it wrote it.
    """

    def __init__(
        self, storage: BaseStorage, name: str, configs: Sequence[KernelConfig], beat_s: float = BEAT_S
    ) -> None:
        """Join a study. Raises InputError if there is none of that name."""
        self._storage, self._study, self._beat_s = storage, study_id(storage, name), beat_s
        self.header = header_of(storage, self._study)
        self._space = distributions(configs)
        self._mine: dict[int, KernelConfig] = {}
        self._records: dict[int, Trial] = {}
        self._beats: dict[int, tuple[object, float]] = {}
        self._ended = Event()
        self._thread = Thread(target=self._beat, daemon=True)
        self._writer, self._writing = ThreadPoolExecutor(1), list[Future[None]]()
        self._looked_s, self._last = -inf, dict[str, FrozenTrial]()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if error is None:
                self.flush()
        finally:
            self._writer.shutdown(wait=True)
            self._ended.set()
            self._thread.join()
        for number in tuple(self._mine):
            self.give_up(number, "given up")
        self._storage.remove_session()

    def claim(self, config: KernelConfig) -> int | None:
        """Return the number of a trial of this configuration, which is this worker's; None if it is another's."""
        trial = optuna.create_trial(
            state=TrialState.RUNNING,
            params=parameters(config, self._space),
            distributions=self._space,
            user_attrs={_KEY: config.key, _BEAT: 0},
        )
        made = self._storage.get_trial_number_from_id(self._storage.create_new_trial(self._study, template_trial=trial))
        self._mine[made] = config
        holder = self._holders(fresh_s=0.0).get(config.key)
        if holder is None or holder.number != made:
            self.give_up(made, "claimed by another")
            return None
        return made

    def finish(self, claimed: int, trial: Trial) -> None:
        """Note the result of a claimed trial, in a thread of its own: it takes several transactions.

        If it was taken for lost meanwhile, the result is kept where nobody else has the configuration.
        """
        self._writing = [one for one in self._writing if not one.done() or one.result()]  # raises what writing raised
        self._writing.append(self._writer.submit(self._finish, claimed, trial))

    def flush(self) -> None:
        """Wait until all results are noted."""
        for one in self._writing:
            one.result()

    def _finish(self, claimed: int, trial: Trial) -> None:
        config = self._mine[claimed]
        if not self._finished(claimed, trial) and (again := self.claim(config)) is not None:
            self._finished(again, trial)

    def _finished(self, number: int, trial: Trial) -> bool:
        """Finish a running trial; return whether it was running still."""
        values, known = values_of(trial, self.header.spec), self._id(number)
        told = {**attributes(trial, self.header.ceiling), _RECORD: msgspec.json.encode(trial).decode()}
        try:
            for name, attribute in told.items():
                self._storage.set_trial_user_attr(known, name, attribute)
            state = TrialState.FAIL if values is None else TrialState.COMPLETE
            self._storage.set_trial_state_values(known, state, values)
        except UpdateFinishedTrialError:
            return False
        finally:
            self._mine.pop(number)
        return True

    def end_search(self) -> None:
        """Tell all workers to begin no further trial."""
        self._storage.set_study_user_attr(self._study, _OVER, True)

    def is_over(self, trials: int) -> bool:
        """Return whether no trial may begin: the search was ended, or there are as many trials. trials: 0 for any."""
        over = self._storage.get_study_user_attrs(self._study).get(_OVER, False)
        return over or (trials > 0 and len(self._holders()) >= trials)

    def note_finals(self, trials: Sequence[Trial]) -> None:
        """Note the final speeds with the study: finished trials can no longer change."""
        self._storage.set_study_user_attr(self._study, FINALS, finals_of(trials))

    def _id(self, number: int) -> int:
        return self._storage.get_trial_id_from_study_id_trial_number(self._study, number)

    def results(self) -> list[Trial]:
        """Return the finished trials, in the order and with the numbers of their claims."""
        finished = [one for one in self._holders().values() if one.state.is_finished()]
        for one in finished:
            if one.number not in self._records:
                self._records[one.number] = _record(one)
        return [self._records[one.number] for one in finished]

    def taken(self) -> set[str]:
        """Return the keys of configurations that are finished, or claimed by any worker."""
        return set(self._holders())

    def running(self) -> set[str]:
        """Return the keys of configurations that others measure now, after those of the dead were given back."""
        others = (one for one in self._holders(fresh_s=0.0).values() if one.number not in self._mine)
        return {one.user_attrs[_KEY] for one in others if one.state is TrialState.RUNNING}

    def _holders(self, fresh_s: float | None = None) -> Mapping[str, FrozenTrial]:
        """Return the trial that holds each configuration; trials of workers that do not beat are marked as lost.

        fresh_s: seconds that the last look may be old, if not `_FRESH_S`.
        """
        now = time.monotonic()
        if now - self._looked_s < (_FRESH_S if fresh_s is None else fresh_s):
            return self._last
        found: dict[str, FrozenTrial] = {}
        for one in self._storage.get_all_trials(self._study, deepcopy=False):
            if not _is_void(one) and one.user_attrs[_KEY] not in found and not self._is_lost(one):
                found[one.user_attrs[_KEY]] = one
        self._looked_s, self._last = now, found
        return found

    def _is_lost(self, one: FrozenTrial) -> bool:
        """Return whether a running trial of another has not beaten for long, and mark it then."""
        number = one.number
        if one.state is not TrialState.RUNNING or number in self._mine:
            return False
        beat, now = one.user_attrs.get(_BEAT), time.monotonic()
        if self._beats.get(number, (None, 0.0))[0] != beat:
            self._beats[number] = beat, now
        if now - self._beats[number][1] < LOST_S / BEAT_S * self._beat_s:
            return False
        self.give_up(number, "worker lost")
        return True

    def give_up(self, number: int, why: str) -> None:
        """Give a configuration back, for any worker to claim."""
        self._mine.pop(number, None)
        with suppress(UpdateFinishedTrialError):
            self._storage.set_trial_user_attr(self._id(number), _VOID, why)
            self._storage.set_trial_state_values(self._id(number), TrialState.FAIL)

    def _beat(self) -> None:
        for count in itertools.count(1):
            if self._ended.wait(self._beat_s):
                break
            for number in tuple(self._mine):
                with suppress(UpdateFinishedTrialError, StorageInternalError):  # the next beat may come through
                    self._storage.set_trial_user_attr(self._id(number), _BEAT, count)
        self._storage.remove_session()


def open_storage(url: str) -> BaseStorage:
    """Open a database by its URL, or the proxy of one: grpc://HOST:PORT. Raises InputError."""
    if url.startswith(_PROXY):
        host, _, port = url.removeprefix(_PROXY).partition(":")
        return GrpcStorageProxy(host=host, port=int(port or _PORT))
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with usable(url):
        return get_storage(_database(url))


def _database(url: str) -> RDBStorage:
    """Open a database; another process may be making its tables at the same moment, then try again."""
    from sqlalchemy.exc import DBAPIError  # slow to import and seldom needed

    for _ in range(_TRIES):
        with suppress(DBAPIError):
            return _in_file(url) if url.startswith("sqlite") else RDBStorage(url)
        time.sleep(_POLL_S / 2)
    return RDBStorage(url)


def _in_file(url: str) -> RDBStorage:
    """Open a file that several processes write in turns.

    Nothing waits for the disk, as each trial takes two dozen transactions: what a power cut takes is in the records.
    """
    from sqlalchemy import event  # slow to import and seldom needed

    storage = RDBStorage(url, engine_kwargs={"connect_args": {"timeout": LOST_S}})
    event.listen(storage.engine, "connect", lambda found, _: found.execute("PRAGMA synchronous = OFF"))
    storage.engine.dispose()
    return storage


def begin(storage: BaseStorage, name: str, header: StudyHeader) -> None:
    """Begin a joint study, or go on with it, maybe with another budget."""
    if name in (one.study_name for one in storage.get_all_studies()):
        study = storage.get_study_id_from_name(name)
    else:
        study = storage.create_new_study(directions(header.spec), name)
        storage.set_study_system_attr(study, "study:metric_names", metrics(header.spec))
    storage.set_study_user_attr(study, _HEADER, msgspec.json.encode(header).decode())
    storage.set_study_user_attr(study, _OVER, False)


def study_id(storage: BaseStorage, name: str) -> int:
    """Return the study of a name, or the latest whose name begins with that word. Raises InputError."""
    return storage.get_study_id_from_name(max(_matching(storage, name)))


def searching(storage: BaseStorage, name: str) -> str:
    """Return the whole name of the latest study of a name whose search is not over. Raises InputError."""
    matching = _matching(storage, name)
    ids = {one: storage.get_study_id_from_name(one) for one in matching}
    under_way = [one for one, study in ids.items() if not storage.get_study_user_attrs(study).get(_OVER)]
    if not under_way:
        raise InputError(
            f"the search of study {max(matching)!r} is over; begin another with lbmtune study --storage URL."
        )
    return max(under_way)


def awaited(storage: BaseStorage, name: str, wait_s: float) -> str:
    """Return the whole name of a study (`searching`) once it has begun. Raises InputError if it does not in time."""
    end = time.monotonic() + wait_s
    while True:
        try:
            return searching(storage, name)
        except InputError:
            if time.monotonic() >= end:
                raise
        time.sleep(_POLL_S)


def _matching(storage: BaseStorage, name: str) -> list[str]:
    names = [one.study_name for one in storage.get_all_studies() if _HEADER in one.user_attrs]
    matching = [one for one in names if one == name or one.startswith(f"{name} ")]
    if not matching:
        known = f" (known: {', '.join(sorted(names))})" if names else ""
        raise InputError(
            f"there is no study {name!r} in this storage{known}; begin it with lbmtune study --storage URL."
        )
    return matching


def header_of(storage: BaseStorage, study: int) -> StudyHeader:
    """Return the header of a joint study."""
    return decoded(storage.get_study_user_attrs(study)[_HEADER].encode(), StudyHeader)


def _is_void(one: FrozenTrial) -> bool:
    """Return whether a trial has no result and will have none: given up, or ended by hand."""
    return _RECORD not in one.user_attrs and (_VOID in one.user_attrs or one.state.is_finished())


def _record(one: FrozenTrial) -> Trial:
    return replace(decoded(one.user_attrs[_RECORD].encode(), Trial), number=one.number)
