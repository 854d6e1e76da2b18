from dataclasses import replace

import pytest

from lbmtune.catalogue.config import cuda
from lbmtune.records import Outcome, Trial
from lbmtune.search.observations import seen_of
from tests.support.studies.fake_study import measurement

CONFIG = cuda.Direct()
FOUND = measurement(CONFIG)


def trial(outcome=Outcome.OK, **changes):
    return Trial(number=1, key=CONFIG.key, config=CONFIG.flat(), outcome=outcome, **changes)


def test_the_noise_is_that_of_the_interval_and_at_least_that_between_runs():
    assert seen_of(trial(measurement=FOUND)).mlups == FOUND.mlups
    assert seen_of(trial(measurement=FOUND)).noise == pytest.approx(0.01 / 1.96)
    assert seen_of(trial(measurement=FOUND), between_runs=0.02).noise == 0.02
    sharp = replace(FOUND, ci_low_mlups=FOUND.mlups, ci_high_mlups=FOUND.mlups)
    assert seen_of(trial(measurement=sharp)).noise == 0.002


@pytest.mark.parametrize("mark", ["disturbed", "dismissed"])
def test_a_doubtful_measurement_weighs_less(mark):
    assert seen_of(trial(measurement=replace(FOUND, **{mark: True}))).noise == pytest.approx(0.05 / 1.96)


@pytest.mark.parametrize("outcome", Outcome)
def test_what_a_busy_machine_causes_is_not_known(outcome):
    seen = seen_of(trial(outcome, measurement=FOUND if outcome is Outcome.OK else None))
    assert seen.known == (outcome not in (Outcome.UNSTABLE_TIMING, Outcome.TIMED_OUT))
    assert (seen.mlups is None) == (outcome is not Outcome.OK)
