"""The end of a study with output: its cost is on disk for each finalist, once, beside what the model says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lbmtune.catalogue.config import KernelConfig
from lbmtune.errors import InputError
from lbmtune.records import Outcome, Trial
from lbmtune.records.output import Output, OutputCost
from lbmtune.records.spec import TimingProtocol
from lbmtune.records.study import StudyRecord
from lbmtune.search.study import run_study
from tests.support.studies.fake_study import FakeEvaluator, header, search, space_of, spec

COST = OutputCost(kind="save", every=500, apart=50, event_s=0.02, low_s=0.01, high_s=0.03, step_s=1e-3)
ASKED = replace(spec(protocol=TimingProtocol(finalists=2)), output=Output(save=500))


def studied(folder: Path, output: Any, **how: Any) -> StudyRecord:
    needs = replace(search(folder, FakeEvaluator()), output=output, predict_output=lambda *_: {"file": 1e-3})
    return run_study(needs, header(ASKED), space_of(ASKED), **how)


class _Measured:
    """Tells a cost of every configuration, or that it failed."""

    def __init__(self, outcome: Outcome = Outcome.OK) -> None:
        self.asked: list[str] = []
        self._outcome = outcome

    def __call__(self, configs: Sequence[KernelConfig]) -> list[Trial]:
        self.asked += [config.key for config in configs]
        costs = (COST,) if self._outcome is Outcome.OK else ()
        reason = "" if costs else "no memory"
        return [
            Trial(number=n, key=c.key, config=c.flat(), outcome=self._outcome, reason=reason, output=costs)
            for n, c in enumerate(configs)
        ]


def test_every_finalist_has_a_cost_and_a_prediction(tmp_path: Path) -> None:
    measured = _Measured()
    record = studied(tmp_path, measured)
    finalists = [trial for trial in record.ranked if trial.final]
    assert measured.asked == [trial.key for trial in finalists]
    for trial in finalists:
        assert trial.output == (replace(COST, predicted_s={"file": 1e-3}),)
        assert trial.outcome is Outcome.OK
    assert not any(trial.output for trial in record.ranked if not trial.final)
    again = _Measured()
    assert studied(tmp_path, again, resume=True).ranked == record.ranked
    assert not again.asked, "it is on disk"


def test_a_kernel_whose_output_fails_keeps_its_speed_with_the_reason(tmp_path: Path) -> None:
    record = studied(tmp_path, _Measured(Outcome.OUT_OF_MEMORY))
    assert record.winner
    assert not record.winner.output
    assert record.winner.reason == "output was not measured: no memory"


def test_a_study_is_resumed_with_the_same_output_alone(tmp_path: Path) -> None:
    studied(tmp_path, _Measured())
    other = replace(ASKED, output=Output(save=100))
    with pytest.raises(InputError, match=r"a study with output.save 500, and this one has 100; only the budget"):
        run_study(search(tmp_path, FakeEvaluator()), header(other), space_of(other), resume=True)


def test_shares_are_of_the_time_of_the_run() -> None:
    assert COST.share == pytest.approx(0.02 / 0.52)
    assert COST.range == pytest.approx((0.01 / 0.51, 0.03 / 0.53))
    assert COST.predicted_share is None
    assert replace(COST, predicted_s={"pass": 0.1, "file": 0.4}).predicted_share == pytest.approx(0.5)
    assert replace(COST, event_s=-1e-3).share == 0, "noise is no gain"
