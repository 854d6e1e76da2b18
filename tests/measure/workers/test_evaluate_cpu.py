"""Trials on the real CPU backend: kernels with planted faults, in the text that Numba compiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from lbmtune.catalogue.config import cuda
from lbmtune.errors import InputError
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.model.machine.toml import read_machine
from lbmtune.records import Outcome
from lbmtune.records.profile import COPY, KERNEL, STREAMING, STREAMS
from lbmtune.records.spec import TimingProtocol
from tests.support.devices.planted_faults import CASE, config, planted
from tests.support.paths import RECORDED

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


def test_losses_are_measured_in_the_memory_of_the_trials(evaluator: Evaluator) -> None:
    machine = read_machine(RECORDED / "xeon-2-cores" / "machine.toml")
    found = evaluator.losses(config(), machine)
    assert [one.name for one in found.rungs] == [COPY, STREAMS, STREAMING, KERNEL]
    copy, streams, streaming, kernel = found.rungs
    assert copy.seconds == pytest.approx(found.bytes_per_update / machine.copy_bytes_per_s)
    assert streams.spread is None, "by the description"
    assert streaming.spread is not None
    assert kernel.seconds > 0
    assert found.sustained is None
    assert found.key == config().key


def test_trials_go_on_after_losses_that_cannot_be_measured(evaluator: Evaluator) -> None:
    machine = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
    with pytest.raises(InputError, match="no calibration"):
        evaluator.losses(cuda.Direct(), replace(machine, calibration=None))
    evaluator.submit(0, config())
    assert evaluator.next().outcome is Outcome.OK
