"""A search ends when nothing is left to gain, or when a speed is reached that was asked for."""

from dataclasses import replace

import pytest

from lbmtune.errors import NothingValidError, TimeOverError
from lbmtune.records import Outcome, Trial
from lbmtune.records.spec import Budget, Target
from lbmtune.records.store import read_study
from lbmtune.search.interfaces import Gain
from lbmtune.search.stopping import Stop, noise_of
from lbmtune.search.strategies.table import made_strategy
from lbmtune.search.study import run_study
from tests.support.studies.fake_study import FakeEvaluator, header, measurement, search, space_of, spec

NOTHING, SOMETHING = Gain(0.0004, 0.01), Gain(0.02, 0.3)


def test_three_looks_in_a_row_must_agree():
    stop = Stop(header(spec()), 0.002)
    for trials, gain in zip((1, 2, 3, 4, 9, 10), (NOTHING, NOTHING, SOMETHING, NOTHING, NOTHING, None), strict=True):
        stop.look(gain, trials)
        assert not stop.reason
    stop.look(NOTHING, 11)
    assert stop.reason == "0.04 % left to gain at 95 %"


def test_looks_must_agree_while_the_trials_double():
    stop = Stop(header(spec()), 0.002)
    for trials in (20, 30, 35, 39):
        stop.look(NOTHING, trials)
        assert not stop.reason
    stop.look(SOMETHING, 39)
    for trials in (40, 50, 79):
        stop.look(NOTHING, trials)
        assert not stop.reason
    stop.look(NOTHING, 80)
    assert stop.reason


@pytest.mark.parametrize("gain", [Gain(0.0004, 0.2), Gain(0.003, 0.01)])
def test_a_small_gain_that_is_likely_and_a_large_one_that_is_not_are_both_worth_it(gain):
    stop = Stop(header(spec()), 0.002)
    for trials in range(1, 40):
        stop.look(gain, trials)
    assert not stop.reason


def test_a_set_that_is_recorded_has_all_its_trials():
    stop = Stop(header(spec(budget=Budget(trials=9, sample=5))), 0.002)
    for trials in range(1, 40):
        stop.look(NOTHING, trials)
    assert not stop.reason


def test_the_noise_is_that_of_repeats_if_it_is_known():
    gpu, cpu = header(spec()), header(spec("cpu"), "cpu")
    assert (noise_of(gpu), noise_of(cpu)) == (0.002, 0.01)
    known = noise_of(replace(gpu, repeats=(0.01, -0.02, 0.015, 0.01)))
    assert 0.01 < known < 0.1


@pytest.mark.parametrize(("target", "enough"), [(Target(share=0.9), 900.0), (Target(share=1.1), 1100.0)])
def test_a_share_of_the_prediction(target, enough):
    stop = Stop(header(spec(budget=Budget(target=target))), 0.002)
    one = Trial(number=0, key="", config={}, outcome=Outcome.OK, measurement=measurement(space_of(spec()).configs[0]))
    slow, fast = (replace(one, measurement=replace(one.measurement, mlups=enough * f)) for f in (0.99, 1.01))
    stop.measured(slow, 1000.0)
    assert not stop.reason
    stop.measured(replace(fast, outcome=Outcome.WRONG_RESULT), 1000.0)
    assert not stop.reason
    stop.measured(fast, 1000.0)
    assert stop.reason == f"{101 * target.share:.1f} % of the prediction reached"


def test_a_share_of_the_ceiling():
    stop = Stop(header(spec(budget=Budget(target=Target(share=0.5, of="ceiling")))), 0.002)
    found = measurement(space_of(spec()).configs[0])
    ceiling = stop.header.ceiling.best_bytes_per_s
    for share in (0.4, 0.6):
        one = replace(found, bandwidth_bytes_per_s=share * ceiling)
        stop.measured(Trial(number=0, key="", config={}, outcome=Outcome.OK, measurement=one), 1.0)
        assert bool(stop.reason) == (share > 0.5)
    assert stop.reason == "60.0 % of the ceiling reached"


def with_gain(*gains):
    """A way to make strategies that tell these gains, the last one for ever."""

    def made(*given):
        strategy, told = made_strategy(*given), list(gains)
        strategy.gain = lambda: told.pop(0) if len(told) > 1 else told[0]
        return strategy

    return made


def test_a_search_ends_and_says_why(tmp_path):
    study = spec(budget=Budget(trials=100))
    needs = replace(search(tmp_path, FakeEvaluator()), strategy=with_gain(*[SOMETHING] * 5, NOTHING))
    record = run_study(needs, header(study), space_of(study))
    assert 8 <= len(record.trials) < 100
    assert record.header.stopped == f"stopped after {len(record.trials)} evaluations: 0.04 % left to gain at 95 %"
    assert record.finished
    assert record.winner
    assert record.winner.final


def test_a_search_ends_at_its_target(tmp_path):
    study = spec(budget=Budget(trials=100, target=Target(share=0.1)))
    record = run_study(search(tmp_path, FakeEvaluator()), header(study), space_of(study))
    assert len(record.trials) < 5
    assert " of the prediction reached" in record.header.stopped
    assert record.winner


def test_a_search_whose_first_trial_does_not_end_in_time_says_so(tmp_path):
    class Slow(FakeEvaluator):
        def next(self):
            raise TimeOverError("the time of the study was over during a trial.")

    study = spec(budget=Budget(seconds=60.0))
    with pytest.raises(NothingValidError):
        run_study(search(tmp_path, Slow()), header(study), space_of(study))
    assert read_study(tmp_path).header.stopped == "stopped after 0 evaluations: the time of the search is over"


@pytest.mark.parametrize("trials", [3, 1000])
def test_other_ends_are_said_as_well(tmp_path, trials):
    axes = {"scheme": ("aa", "pull"), "block": ("32x1x1",), "cells_per_thread": (1, 2)}
    study = spec(axes=axes, budget=Budget(trials=trials))
    record = run_study(search(tmp_path, FakeEvaluator()), header(study), space_of(study))
    count, why = (3, "the limit of trials is reached") if trials == 3 else (4, "all 4 legal configurations are tried")
    assert record.header.stopped == f"stopped after {count} evaluations: {why}"


@pytest.mark.parametrize(
    ("target", "bandwidths", "calibration", "reached"),
    [
        (Target(share=0.1), 0.99, 0.99, True),
        (Target(share=0.1), 0.99, 0.17, False),
        (Target(share=0.1), 0.17, None, False),
        (Target(share=0.1), 0.17, 0.99, True),
        (Target(share=0.1, of="ceiling"), 0.17, 0.99, False),
        (Target(share=0.1, of="ceiling"), 0.99, 0.17, True),
    ],
)
def test_a_share_of_what_is_not_reliable_is_never_reached(tmp_path, caplog, target, bandwidths, calibration, reached):
    asked = spec(budget=Budget(trials=9, target=target), strategy="list")
    plain = header(asked)
    kept = replace(plain, ceiling=replace(plain.ceiling, cpu_share=bandwidths), calibration_cpu_share=calibration)
    record = run_study(search(tmp_path, FakeEvaluator()), kept, space_of(asked))
    assert (len(record.trials) < 9) is reached
    assert (f"does not end at 10% of the {target.of}, which is not reliable" in caplog.text) is not reached
