"""Replay a recorded set as a study that several processes share. Also a program (`main`): one of its workers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.records import Outcome, Prediction, Resources, Trial
from lbmtune.records.header import StudyHeader
from lbmtune.records.spec import Budget
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.search.interfaces import Observer, Search
from lbmtune.search.joint.ledger import Ledger, open_storage
from lbmtune.search.joint.sharing import joint, shared
from lbmtune.search.spaces.space import Space
from lbmtune.search.strategies.table import made_strategy
from lbmtune.search.study import run_study, search_alone
from tests.support.paths import RECORDED
from tests.support.studies.fake_study import FakeEvaluator

SET = RECORDED / "nvidia-h200" / "d3q19-small-48"
BEAT_S, _TRIALS = 0.5, 24


class ReplayedEvaluator(FakeEvaluator):
    """Answers with the recorded trials of a set. each_s: seconds of a trial; stops: called before each answer."""

    def __init__(self, record: StudyRecord, each_s: float = 0.0, stops: Callable[[int], None] = lambda _: None) -> None:
        super().__init__()
        self._recorded = {trial.key: trial for trial in record.trials}
        self._each_s, self._stops = each_s, stops
        self.device = ""

    def next(self) -> Trial:
        number, config = self._queue.popleft()
        self._stops(len(self.tried))
        time.sleep(self._each_s)
        self.tried.append(config.key)
        found = self._recorded[config.key]
        return replace(found, number=number, device=self.device, final=None, sustained=None, again=None, accuracy=None)


def replayed(record: StudyRecord, config: KernelConfig, /, *, resources: Resources | None = None) -> Prediction:
    """Return the recorded prediction of a configuration."""
    (found,) = (trial.prediction for trial in record.trials if trial.key == config.key)
    assert found
    return found


def studied(record: StudyRecord) -> tuple[StudyHeader, Space]:
    """Return a study of all configurations of a set, which no strategy ends early."""
    configs = tuple(from_flat(trial.config) for trial in record.trials)
    spec = replace(record.header.spec, budget=Budget(trials=len(configs)), name="replayed", strategy="list")
    return replace(record.header, spec=spec, finished=False), Space(configs, {}, (len(configs),))


def search_in(folder: Path, record: StudyRecord, evaluator: ReplayedEvaluator) -> Search:
    return Search(
        evaluator=evaluator,
        predict=lambda config, *, resources=None: replayed(record, config, resources=resources),
        folder=folder,
        observer=Observer(),
        strategy=made_strategy,
    )


def usable_set() -> StudyRecord:
    """Return a part of the set, without trials that have no prediction or say nothing, which would be tried again."""
    record = read_study(SET)
    trials = [
        t for t in record.trials if t.prediction and t.outcome not in (Outcome.UNSTABLE_TIMING, Outcome.TIMED_OUT)
    ]
    return replace(record, trials=tuple(replace(trial, number=n) for n, trial in enumerate(trials[-_TRIALS:])))


def main(role: str, url: str, folder: str, each_s: str, dies_at: str = "-1") -> None:
    """Lead the study, or help until there is nothing left; die with SIGKILL in the middle of the trial `dies_at`."""

    def stops(count: int) -> None:
        if count == int(dies_at):
            os.kill(os.getpid(), 9)

    record = usable_set()
    header, space = studied(record)
    search = search_in(Path(folder), record, ReplayedEvaluator(record, float(each_s), stops))
    if role == "lead":
        with joint(open_storage(url), search, header, space, BEAT_S) as found:
            run_study(found, header, space)
    else:
        with Ledger(open_storage(url), "replayed", space.configs, BEAT_S) as ledger:
            search_alone(shared(search, ledger), ledger.header, space)


if __name__ == "__main__":
    main(*sys.argv[1:])
