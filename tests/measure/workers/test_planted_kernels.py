"""Kernels with planted faults that early checks do not see: each gets its outcome, and none is ranked."""

from collections.abc import Iterator

import pytest

from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Outcome
from lbmtune.records.spec import TimingProtocol
from tests.support.devices.planted_faults import CASE, Alone, config, planted
from tests.support.stages import judged

PROTOCOL = TimingProtocol(
    verify_periods=2,
    warmup_s=0.001,
    sample_s=0.001,
    max_samples=6,
    min_cpu_share=0.0,
    bail_out=1e9,
    confidence=9.0,
    final_sample_s=0.001,
    final_rounds=3,
    sustained_s=0.1,
    settling_s=0.0,
    verify_limit_s=5.0,
    measure_limit_s=300.0,
)


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    with Evaluator(CASE, "cpu", PROTOCOL, renderer=planted, opener=Alone) as opened:
        yield opened


@pytest.mark.parametrize(
    ("fault", "stages", "outcome", "reason"),
    [
        # one of its 64 columns is looked at after the first timing, and three show it
        ("wrong at full size", "first final", Outcome.WRONG_RESULT, "f_"),
        ("row missing at full size", "first", Outcome.WRONG_RESULT, "goes wrong after"),
        ("empty", "first", Outcome.WRONG_RESULT, "f_"),
        ("worn", "first", Outcome.WRONG_RESULT, "goes wrong after"),
        ("row worn", "first", Outcome.WRONG_RESULT, "goes wrong after"),
        ("deaf", "first", Outcome.TIMED_OUT, "verify took longer than 5 s"),
        ("exit", "first", Outcome.CRASHED, "during verify"),
        ("end of file", "first", Outcome.CRASHED, "during verify"),
        (
            "behind",
            "first",
            Outcome.WRONG_RESULT,
            "writes outside buffer f0: up to 4 bytes behind it; f1: up to 4 bytes behind it",
        ),
        (
            "before",
            "first",
            Outcome.WRONG_RESULT,
            "writes outside buffer f0: up to 20 bytes before it; f1: up to 20 bytes before it",
        ),
        (
            "far behind",
            "first",
            Outcome.WRONG_RESULT,
            "writes outside buffer f0: up to 1048580 bytes behind it; f1: up to 1048580 bytes behind it",
        ),
        ("behind at full size", "first", Outcome.WRONG_RESULT, "writes outside buffer f0: up to 4 bytes behind it"),
    ],
)
def test_a_planted_fault_is_told_and_not_ranked(
    evaluator: Evaluator, fault: str, stages: str, outcome: Outcome, reason: str
) -> None:
    found, trial = judged(evaluator, config(fault), config(), PROTOCOL.sustained_s)
    assert found in stages.split(), trial.reason
    assert trial.outcome == outcome, trial.reason
    assert reason in trial.reason
    assert trial.mlups is None


def test_a_kernel_whose_process_ends_is_not_ranked_though_a_child_lives_on(evaluator: Evaluator) -> None:
    found, trial = judged(evaluator, config("forks and dies"), config(), PROTOCOL.sustained_s)
    assert found == "first"
    assert trial.outcome in (Outcome.CRASHED, Outcome.TIMED_OUT)


@pytest.mark.parametrize("harmless", ["", "read behind that is not taken", "talkative", "forks"])
def test_a_right_kernel_passes_every_proof(evaluator: Evaluator, harmless: str) -> None:
    stage, trial = judged(evaluator, config(harmless), config(), PROTOCOL.sustained_s)
    assert stage == "", trial.reason
    assert trial.sustained
