"""Trials on the real CPU backend: kernels with planted faults, in the text that Numba compiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Outcome
from lbmtune.records.spec import TimingProtocol
from tests.support.devices.planted_faults import CASE, config, planted

PROTOCOL = TimingProtocol(
    verify_periods=2,
    warmup_s=0.001,
    sample_s=0.001,
    max_samples=5,
    min_cpu_share=0.0,
    final_rounds=3,
    verify_limit_s=5.0,
)


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(CASE, "cpu", PROTOCOL, renderer=planted) as opened:
        yield opened


@pytest.mark.parametrize(
    ("fault", "outcome", "reason"),
    [
        ("segfault", Outcome.CRASHED, "killed by SIGSEGV during verify"),
        ("endless", Outcome.TIMED_OUT, "verify took longer than 5 s"),
        ("nan", Outcome.WRONG_RESULT, "is not a finite number"),
        ("refused", Outcome.COMPILE_FAILED, ""),
    ],
)
def test_a_planted_fault_costs_one_trial(evaluator: Evaluator, fault: str, outcome: Outcome, reason: str) -> None:
    evaluator.submit(0, config(fault))
    failed = evaluator.next()
    assert (failed.outcome, failed.measurement) == (outcome, None), failed.reason
    assert reason in failed.reason
    evaluator.submit(1, config())
    following = evaluator.next()
    assert following.outcome is Outcome.OK, following.reason


def test_a_restart_measures_in_another_process(evaluator: Evaluator) -> None:
    evaluator.submit(0, config())
    first, before = evaluator.next(), evaluator.pool.measurer
    evaluator.restart()
    assert evaluator.pool.measurer is not before
    evaluator.submit(0, config())
    again = evaluator.next()
    assert (again.outcome, again.key) == (Outcome.OK, first.key)
    assert again.measurement


def test_finals_on_the_processor(evaluator: Evaluator) -> None:
    two = [config(), replace(config(), scheme="aa")]
    trials = evaluator.finals(two)
    assert [t.key for t in trials] == [c.key for c in two]
    for trial in trials:
        assert trial.final
        assert trial.verification
        assert trial.verification.full_size
        assert trial.final.conditions.cpu_share
