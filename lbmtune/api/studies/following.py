"""Follow a study that another process runs, from its records alone: nothing is written, locked or measured."""

import time
from collections.abc import Callable
from pathlib import Path

from lbmtune.records import Trial
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import HEADER, TRIALS
from lbmtune.search.interfaces import Observer
from lbmtune.search.lock import is_worked_on

PAUSE_S = 2.0
"""Seconds between two looks at the records."""


def follow(folder: Path, observer: Observer, *, wait: Callable[[float], None] = time.sleep) -> StudyRecord:
    """Tell an observer of a study in a folder until no process works on it any more, and return its record.

    Records are read if their files have changed, so that a study on a CPU is not disturbed. wait: between two looks.
    Raises InputError.
    """
    seen, record = _state(folder), read_study(folder)
    observer.started(record.header, record.trials)
    stopped = ""
    while True:
        works = is_worked_on(folder)  # before the records are read: what comes last is in them
        if not works or _state(folder) != seen:
            seen, before = _state(folder), {trial.number: trial for trial in record.trials}
            record = read_study(folder)
            for trial in _changed(record, before):
                observer.finished(trial)
        if record.header.stopped not in ("", stopped):
            stopped = record.header.stopped
            observer.phase(f"search: {stopped}")
        if not works:
            return record
        wait(PAUSE_S)


def _changed(record: StudyRecord, before: dict[int, Trial]) -> list[Trial]:
    """Return the trials that are new or measured again, in the order of their end."""
    found = [trial for trial in record.trials if before.get(trial.number) != trial]
    return sorted(found, key=lambda trial: trial.elapsed_s or 0.0)


def _state(folder: Path) -> tuple[tuple[int, int], ...]:
    """Return size and time of the files of a study, as many as there are."""
    found = (folder / name for name in (HEADER, TRIALS))
    return tuple((one.stat().st_size, one.stat().st_mtime_ns) for one in found if one.exists())
