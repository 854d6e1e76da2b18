"""Reports add the measured levels of the winner, name ties, and say by what it exceeds a limit of the model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest

from lbmtune.records import Trial
from lbmtune.records.profile import KERNEL, STREAMING, STREAMS, Profile
from lbmtune.records.spec import Budget
from lbmtune.records.store import read_study
from lbmtune.report.limits import Limit, binding, off_by, share_beyond
from lbmtune.report.study.answer import section, verdict, why
from lbmtune.report.study.answer.beside import beside
from lbmtune.report.study.answer.doubts import Doubts, doubts
from lbmtune.report.study.answer.words import words
from tests.support.paths import RECORDED
from tests.support.studies.made_up_profile import PROFILE

ON_ZEN3, ON_EPYC = (read_study(RECORDED / name / "d3q19-box-fast-fp32") for name in ("zen3-2-cores", "epyc-2-cores"))


def profiled(streams_ps: float, streaming_ps: float, kernel_ps: float, spread: float = 0.001) -> Profile:
    """Return a profile with these levels."""
    times = {STREAMS: streams_ps, STREAMING: streaming_ps, KERNEL: kernel_ps}
    rungs = (
        replace(rung, seconds=1e-12 * times[rung.name], spread=spread) if rung.name in times else rung
        for rung in PROFILE.rungs
    )
    return replace(PROFILE, rungs=tuple(rungs))


def described(profile: Profile) -> Profile:
    """Return a profile whose copy with the kernel's streams was not measured."""
    return replace(
        profile, rungs=tuple(replace(one, spread=None) if one.name == STREAMS else one for one in profile.rungs)
    )


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        (
            profiled(409, 515, 671),
            "671 ps this time: {copy} takes 409; streaming adds 106 ps, the collision adds 156 ps.",
        ),
        (
            profiled(50, 52, 51),
            "51 ps this time: {copy} takes 50; streaming adds 2 ps, the collision adds -1 ps.",
        ),
        (
            profiled(50, 49, 60),
            "60 ps this time: {copy} takes 50; streaming adds -1 ps, the collision adds 11 ps.",
        ),
        (profiled(50, 52, 53, spread=0.1), "streaming adds nothing measurable, the collision adds nothing measurable."),
        (described(profiled(50, 52, 55)), "{copy} takes 50 (by the calibration); streaming adds 2 ps"),
    ],
)
def test_what_levels_add_is_told_by_time_up_to_the_kernel(profile: Profile, said: str) -> None:
    told = why.said(ON_ZEN3, profile)
    assert said.format(copy="a copy with its streams") in told
    beside_others = replace(profile, rungs=tuple(replace(one, disturbed=True) for one in profile.rungs))
    assert "level by level" not in why.said(ON_ZEN3, beside_others)


def test_a_benchmark_and_a_limit_are_exceeded_by_the_speed_that_is_told() -> None:
    winner = ON_EPYC.ranked[0]
    limit = Limit("arithmetic", (winner.mlups or 0.0) / 1.38, "by the model: 1 of 2", exceeded=0.45)
    assert share_beyond(limit, winner) == pytest.approx(0.38), "in bursts, as the share beside it"
    assert share_beyond(replace(limit, mlups=2 * (winner.mlups or 0.0)), winner) == 0.45, "over seconds alone"


def sized(sizes: Mapping[int, int], trial: Trial) -> Trial:
    """Return a trial with another footprint, if there is one for its number."""
    if trial.prediction is None or trial.number not in sizes:
        return trial
    return replace(trial, prediction=replace(trial.prediction, footprint_bytes=sizes[trial.number]))


def test_the_fastest_of_those_that_tie_is_told_and_why_another_one_wins() -> None:
    ended = replace(ON_ZEN3, header=replace(ON_ZEN3.header, stopped="the limit of trials is reached"))
    first, *others = ended.ranked
    level = [trial for trial in others if trial.number in ended.tied]
    fastest = max(level, key=lambda trial: trial.mlups or 0.0)
    assert next(one for one in beside(ended) if "tied with it" in one.what).trial == fastest.number
    assert "their order is chance." in verdict.verdict(ended)
    sizes = {first.number: 2000, **dict.fromkeys((t.number for t in level), 1000)}  # as much as other slower ones
    study = replace(ended, trials=tuple(map(partial(sized, sizes), ended.trials)))
    small = study.ranked[0]
    assert small.number == fastest.number
    told = verdict.verdict(study)
    assert f"Tied with trials {first.number} ({first.mlups:,.0f}), " in told
    assert f": trial {small.number} needs less memory." in told
    assert next(one for one in beside(study) if "tied with it" in one.what).trial == first.number


def test_kernels_of_one_step_that_were_not_tuned_are_told_with_the_command_that_tunes_them() -> None:
    study = read_study(RECORDED / "nvidia-h200" / "d3q19-box-fast-fp32")
    assert not verdict.one_step_untuned(study)
    several = [trial for trial in study.ranked if trial.kernel_config.fused_steps > 1]
    (default, *_) = (trial for trial in study.ranked if trial.kernel_config.fused_steps == 1)
    few = replace(study, trials=(*several, default))
    kind = words(study.ranked[0].kernel_config)
    of_kind = sum(words(trial.kernel_config) == kind for trial in several)
    told = verdict.verdict(few)
    assert f"No kernel of one step per launch was tuned (1 trial; of the winner's kind {of_kind})." in told
    step = section.next_step(few, (), "")
    assert step is not None
    assert step.command == (
        "lbmtune study --lattice d3q19 --collision regularised --flow box --domain 256x256x256 --families direct "
        "--set storage=fp32 --set compute=fp32 --device 0"
    )


def test_what_was_measured_in_the_search_alone_is_compared_with_both_speeds_of_the_winner() -> None:
    winner = ON_ZEN3.ranked[0]
    assert winner.measurement
    first, final = winner.measurement.mlups, winner.mlups or 0.0
    assert first / final - 1 == pytest.approx(0.175, abs=0.001)
    one = next(one for one in beside(ON_ZEN3) if one.what == "fastest sustained")
    assert one.gain == pytest.approx(final / one.mlups)
    assert one.gain_in_search == pytest.approx(first / one.mlups)
    assert one.source == f"search only, where the winner had {first:,.0f}"
    row = next(row for row in section.beside_rows(ON_ZEN3) if row["beside"] == "fastest sustained")
    assert row["gain"] == f"{one.gain:.2g} to {one.gain_in_search:.2g} x"
    several = (t for t in ON_ZEN3.trials if t.kernel_config.fused_steps > 1)
    untold = next(t for t in ON_ZEN3.ranked if not t.final and t.kernel_config.fused_steps == 1)
    told = verdict.verdict(replace(ON_ZEN3, trials=(*several, untold)))
    assert re.search(r"[\d.]+ to [\d.]+ times the best .*; in the search alone\)", told)
    steady = read_study(RECORDED / "nvidia-h200" / "d3q19-box-fast-fp32")
    assert {one.gain_in_search for one in beside(steady)} == {None}


def test_a_finalist_with_another_speed_in_the_search_is_a_doubt() -> None:
    steady = read_study(RECORDED / "nvidia-h200" / "d3q19-box-fast-fp32")
    assert doubts(steady) == Doubts()
    winner = steady.ranked[0]
    assert winner.measurement
    for times, doubted in ((1.08, False), (1.2, True), (0.8, True)):
        first = replace(winner.measurement, mlups=times * (winner.mlups or 0.0))
        changed = replace(winner, measurement=first)
        study = replace(steady, trials=tuple(changed if t.number == winner.number else t for t in steady.trials))
        told = f"trial {winner.number} had {first.mlups:,.0f} in the search and {winner.mlups:,.0f} in the finals: "
        assert (told in doubts(study).unsteady) is doubted


def predicted(profile: Profile, streaming_ps: float, kernel_ps: float) -> Profile:
    """Return a profile whose copy is predicted as it was measured, and these levels so."""
    times = {STREAMING: 1e-12 * streaming_ps, KERNEL: 1e-12 * kernel_ps}
    rungs = (replace(rung, model_s=times.get(rung.name, rung.seconds)) for rung in profile.rungs)
    return replace(profile, rungs=tuple(rungs))


def test_levels_that_contradict_the_limit_of_the_model_come_first() -> None:
    winner = ON_ZEN3.ranked[0]
    limit = binding(ON_ZEN3, winner)
    assert limit
    assert limit.name == "arithmetic"
    found = profiled(1000, 2000, 3600)
    agreed, off = predicted(found, 2300, 3600), predicted(found, 2700, 3600)
    told = why.said(ON_ZEN3, off)
    assert told.startswith("Level by level, 3,600 ps this time: a copy with its streams takes 1,000; streaming adds")
    parts = "(arithmetic: 2,933 ps; memory: 607 ps)"
    assert f"By the model streaming adds 1,700 ps and the collision 900, so its parts {parts} are" in told
    assert "Arithmetic alone" not in told
    assert off_by(off) == pytest.approx(700 / 3600)
    assert why.measuring(ON_ZEN3, off) is not None
    assert why.said(ON_ZEN3, agreed).startswith("Arithmetic alone")
    beside_others = replace(off, rungs=tuple(replace(one, disturbed=True) for one in off.rungs))
    assert why.said(ON_ZEN3, beside_others) == why.said(ON_ZEN3), "a disturbed profile contradicts nothing"


def test_a_change_within_the_spread_of_bursts_is_no_change_over_seconds() -> None:
    winner = ON_EPYC.ranked[0]
    assert winner.sustained
    for times, told in ((1 + 0.5 * ON_EPYC.interval(winner).half_width, False), (1.2, True)):
        run = replace(winner.sustained, mlups=(winner.mlups or 0.0) * times)
        one = replace(ON_EPYC, trials=(replace(winner, sustained=run),))
        assert bool(why.sustained_said(one)) is told


def test_few_trials_of_many_configurations_are_told() -> None:
    ended = read_study(RECORDED / "nvidia-h200" / "d3q19-box-fast-fp32")
    assert " are legal." not in verdict.verdict(ended)
    legal = f"{ended.header.legal_configurations:,}"
    few = replace(ended, trials=ended.ranked[:9])
    assert verdict.verdict(few).startswith(f"The best of 9 tried; {legal} are legal. ")


def test_the_card_of_the_speed_tells_what_a_later_run_measured() -> None:
    steady = read_study(RECORDED / "nvidia-h200" / "d3q19-box-fast-fp32")
    once, profile = steady.ranked[0], profiled(8, 10, 12.5)
    (_, _, remark), *_ = section.cards(steady)
    assert remark.endswith("within the run; between runs: not measured")
    (_, speed, remark), *_ = section.cards(steady, profile=profile)
    assert speed == f"{once.mlups:,.0f} MLUPS"
    assert remark.endswith("within the run; measured again: 80,000")


def test_a_winner_that_ran_alone_for_seconds_and_is_slower_there_may_be_overtaken() -> None:
    said = "Only the winner ran for seconds, where another may lead"
    recorded = read_study(RECORDED / "nvidia-h100" / "d3q19-box-fast-fp32")
    limited = replace(recorded.header.spec, budget=Budget(seconds=60.0))
    study = replace(recorded, header=replace(recorded.header, spec=limited))
    winner, *others = study.ranked
    assert winner.sustained
    assert winner.sustained.mlups < 0.98 * (winner.mlups or 0.0)
    bare = tuple(replace(trial, sustained=None) for trial in others)
    alone = replace(study, trials=(winner, *bare))
    assert said in verdict.verdict(alone)
    assert said not in verdict.verdict(study), "others ran, too"
    assert said not in verdict.verdict(replace(alone, header=recorded.header)), "without a limit none else would run"
    assert said not in verdict.verdict(replace(alone, trials=(winner,))), "there is no other one"
    as_fast = replace(winner, sustained=replace(winner.sustained, mlups=winner.mlups or 0.0))
    assert said not in verdict.verdict(replace(alone, trials=(as_fast, *bare)))
