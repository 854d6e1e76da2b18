"""Verdicts of finals tell a planted winner, a finalist that is tied with it, and one that was dropped."""

from dataclasses import replace

import pytest

from lbmtune.records import Outcome, Trial
from lbmtune.records.comparison.race import verdict
from lbmtune.records.remarks import race_text
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from tests.support.paths import RECORDED
from tests.support.studies.fake_study import header, measurement, predict, space_of, spec

DRIFT = (1.0, 1.02, 1.01, 1.05, 1.03, 1.0, 1.04, 1.02)
CONFIGS = space_of(spec()).configs


def finalist(number: int, speed: float, wobble: float = 0.0, rounds: int = 8, footprint: int = 1000) -> Trial:
    """A finalist whose samples drift as those of the others do; every other one is off by a wobble."""
    config = CONFIGS[number]
    samples = tuple(d / speed * (1 + wobble * (-1) ** n) for n, d in enumerate(DRIFT[:rounds]))
    final = replace(measurement(config), mlups=speed, samples_s=samples)
    return Trial(
        number=number,
        key=f"key{number}",
        config=config.flat(),
        outcome=Outcome.OK,
        prediction=replace(predict(config), footprint_bytes=footprint),
        measurement=final,
        final=final,
    )


def test_a_clear_winner_has_a_margin_and_no_ties():
    found = verdict([finalist(3, 95.0), finalist(7, 100.0), finalist(9, 90.0)])
    assert found
    assert (found.first, found.tied, found.behind) == (7, (), 3)
    assert found.ahead
    assert found.ahead.low == pytest.approx(100 / 95)
    said = found.sentence({3: "three", 7: "seven", 9: "nine"}, 7)
    assert said == "seven is 5.3 % (5.3 % to 5.3 % at 95 %) faster than three"


def test_one_that_is_slower_in_some_rounds_alone_is_tied():
    found = verdict([finalist(1, 100.0), finalist(2, 99.9, wobble=0.01), finalist(4, 80.0)])
    assert found
    assert (found.first, found.tied, found.behind) == (1, (2,), 4)
    assert "tied at 95 %: one, two; two has the smallest footprint of them; one is 25.0 % (25" in found.sentence(
        {1: "one", 2: "two", 4: "four"}, 2
    )


def test_of_equal_footprints_the_highest_median_wins_and_the_sentence_says_so() -> None:
    study = read_study(RECORDED / "nvidia-h100" / "d3q19-box-output-fp32")
    assert study.race
    level = {study.race.first, *study.race.tied}
    equal = [one.prediction.footprint_bytes for one in study.ranked if one.number in level and one.prediction]
    assert len(level) == len(equal) > len(set(equal)) == 1
    first = study.ranked[0]
    assert f"{first.key} had the highest median; their footprints are equal" in race_text(study)
    assert first.prediction
    smaller = replace(first, prediction=replace(first.prediction, footprint_bytes=equal[0] // 2))
    fewer = replace(study, trials=(smaller, *study.ranked[1:]))
    assert f"{first.key} has the smallest footprint of them" in race_text(fewer)
    padded = replace(first, prediction=replace(first.prediction, footprint_bytes=int(1.005 * equal[0])))
    nearly = replace(study, trials=(*study.ranked[1:], padded))
    assert nearly.ranked[0] is padded, "what a padding adds decides nothing"
    assert f"{first.key} had the highest median; their footprints are equal" in race_text(nearly)


def test_one_that_was_dropped_is_compared_by_its_rounds_and_too_few_say_nothing():
    dropped, cut = finalist(2, 97.0, rounds=6), finalist(3, 90.0, rounds=5)
    found = verdict([finalist(1, 100.0), dropped, cut])
    assert found
    assert (found.first, found.tied, found.behind, found.untold) == (1, (), 2, (3,))
    assert found.sentence({1: "one", 2: "two", 3: "three"}, 1).endswith(
        "; the rounds do not tell at 95 % if one is faster than three"
    )
    assert verdict([replace(finalist(1, 1.0), final=None)]) is None
    alone = verdict([finalist(1, 1.0)])
    assert alone
    assert (alone.tied, alone.behind, alone.sentence({1: "one"}, 1)) == ((), None, "")


def test_of_those_that_are_tied_the_smallest_wins_in_studies_that_say_how_they_ended():
    trials = (
        finalist(1, 100.0, footprint=2000),
        finalist(2, 99.9, wobble=0.01, footprint=1000),
        finalist(3, 98.0, footprint=10),
    )
    early = StudyRecord(header=header(spec()), trials=trials)
    assert [t.number for t in early.ranked] == [1, 2, 3]
    raced = replace(early, header=replace(early.header, stopped="stopped after 3 evaluations: because"))
    assert [t.number for t in raced.ranked] == [2, 1, 3]
    assert raced.race == early.race
