"""Studies beside earlier ones: silent if nothing changed, and loud if all speeds fell by a twentieth.

The studies are made of recorded pairs of measurements, each a kernel in two runs: one run is the earlier study.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import log
from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.records import Measurement
from lbmtune.records.comparison.statistics import repeat_spread
from lbmtune.records.regression.ratios import FALSE_ALARMS, Verdict, ratio_of, widening
from lbmtune.records.regression.studies import compared
from lbmtune.records.study import StudyRecord
from tests.records.test_repeats import DOZEN, Pair, measured, recorded_pairs
from tests.support.studies import made_up_records as made

DEVICES = ("nvidia-h100", "xeon-16-cores")
FINALISTS = 6
LIKE = made.gpu_study(81)
LARGE = ("d3q19-box-fp32", "d3q19-box-fast-fp32", "d3q19-box-fp16s", "porous-fp32")
"""Sets of domains whose step takes longer than a launch."""


def by_set(device: str) -> dict[str, list[Pair]]:
    found: dict[str, list[Pair]] = defaultdict(list)
    for pair in recorded_pairs(device):
        found[pair.study.rpartition("/")[2]].append(pair)
    return found


def study(speeds: Sequence[Measurement], apart: Sequence[float] = ()) -> StudyRecord:
    """Return a study of kernels 0, 1, ...: the best have finals. apart: of kernels that the machine measured twice."""
    like, trial = LIKE, LIKE.ranked[0]
    best = sorted(range(len(speeds)), key=lambda n: -speeds[n].mlups)[:FINALISTS]
    trials = (
        replace(
            trial,
            number=n,
            key=LIKE.trials[n].key,
            config=LIKE.trials[n].config,
            measurement=one,
            final=one if n in best else None,
        )
        for n, one in enumerate(speeds)
    )
    return replace(like, header=replace(like.header, repeats=tuple(apart)), trials=tuple(trials))


def slower(one: Measurement, factor: float) -> Measurement:
    return replace(
        one,
        mlups=factor * one.mlups,
        ci_low_mlups=factor * one.ci_low_mlups,
        ci_high_mlups=factor * one.ci_high_mlups,
    )


def repeated(pairs: list[Pair], seed: int, factor: float) -> tuple[StudyRecord, StudyRecord]:
    """Return two studies of the same kernels in two runs, the second one slower by a factor.

    A dozen of the kernels, drawn by seed, tells the spread between runs, as on a machine that was calibrated.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(len(pairs)).tolist()
    apart = [pairs[n].apart for n in order[:DOZEN]]
    rest = [pairs[n] for n in order[DOZEN:]]
    runs = [[pair.first for pair in rest], [slower(pair.first, pair.again_mlups / pair.first.mlups) for pair in rest]]
    was, now = runs if random.random() < 0.5 else reversed(runs)
    return study(was, apart), study([slower(one, factor) for one in now], apart)


@pytest.mark.parametrize("device", DEVICES)
def test_repeated_studies_are_the_same(device: str) -> None:
    """Twenty of twenty, also on a shared processor, and of a set with an outlier of 20 %, which is listed."""
    sets = by_set(device)
    pairs = [(name, seed) for seed in range(20) for name in sets][:20]
    found = [compared(*repeated(sets[name], seed, 1.0)) for name, seed in pairs]
    assert [one.regressions for one in found] == [()] * 20
    assert all(one.winners and one.winners.verdict is Verdict.SAME for one in found)


def test_studies_that_are_slower_by_a_twentieth_are_found() -> None:
    sets = by_set("nvidia-h100")
    found = [compared(*repeated(sets[name], seed, 0.95)) for seed in range(5) for name in LARGE]
    assert len(found) == 20
    assert all(one.regressions for one in found)
    assert all(one.whole and one.whole.low < 0.95 < one.whole.high < 1 for one in found)


def test_where_runs_lie_apart_by_a_third_no_verdict_is_given_on_a_twentieth() -> None:
    for pairs in by_set("xeon-16-cores").values():
        found = compared(*repeated(pairs, 1, 0.95))
        assert not found.regressions
        assert found.between is not None
        assert found.between > 0.2
        assert found.whole
        assert found.whole.low < 0.95


@pytest.mark.parametrize("device", DEVICES)
def test_kernels_of_a_run_move_together_by_less_than_half_of_the_spread(device: str) -> None:
    for pairs in by_set(device).values():
        apart = [pair.apart for pair in pairs]
        assert abs(median(apart)) < 0.5 * (repeat_spread(apart) or 0.0)


TWENTY = [measured(1000.0 + n, 999.0 + n, 1001.0 + n) for n in range(20)]


def test_one_kernel_that_is_slower_counts_if_it_has_finals() -> None:
    """The first has none: it was measured once in each study."""
    apart = (0.004, -0.004, 0.004)
    for place, counts in ((-1, True), (0, False)):
        changed = list(TWENTY)
        changed[place] = slower(TWENTY[place], 0.9)
        was, now = study(TWENTY, apart), study(changed, apart)
        if counts:  # it keeps its final, though others are faster now
            now = replace(now, trials=tuple(replace(t, final=t.measurement) for t in now.trials))
        found = compared(was, now)
        (one,) = [change for change in found.changes if change.verdict is Verdict.SLOWER]
        assert one.key == LIKE.trials[place % len(TWENTY)].key
        assert one.counts == counts
        assert (one.key in found.regressions) == counts


def test_without_a_spread_between_runs_the_scatter_stands_for_it_or_nothing() -> None:
    random = np.random.default_rng(2)
    again = [slower(one, 0.9 * float(np.exp(random.laplace(0, 0.002)))) for one in TWENTY]
    found = compared(study(TWENTY), study(again))
    assert found.scattered
    assert found.between == pytest.approx(repeat_spread([0.002 * log(10) / 2.3] * 20), rel=0.7)
    assert found.regressions
    few = compared(study(TWENTY[:4]), study(again[:4]))
    assert few.between is None
    assert few.winners
    assert few.winners.verdict is Verdict.UNKNOWN
    assert few.regressions == ()


def test_a_faster_study_is_no_regression() -> None:
    found = compared(study(TWENTY, (0.004,) * 3), study([slower(one, 1.2) for one in TWENTY], (0.004,) * 3))
    assert found.regressions == ()
    assert {one.verdict for one in found.changes} == {Verdict.FASTER}
    assert str(found.whole).startswith("+20.0 % (+")


def test_studies_that_differ_in_precision_compare_kernels_that_are_equal_otherwise() -> None:
    was = study(TWENTY, (0.004,) * 3)
    halved = tuple(replace(t, key=f"f{t.key[1:]}", config={**t.config, "storage": "fp16s"}) for t in was.trials)
    now = replace(was, trials=halved)
    found = compared(was, now)
    assert len(found.changes) == len(TWENTY)
    assert [(one.name, one.was, one.now) for one in found.differences] == [("storage", "fp32", "fp16s")]
    mixed = replace(was, trials=(*was.trials[:10], *halved[10:]))
    assert len(compared(was, mixed).changes) == 10


def test_what_differs_is_told() -> None:
    was = study(TWENTY)
    spec = replace(was.header.spec, case=replace(was.header.spec.case, domain=(64, 64, 64)))
    environment = replace(was.header.environment, driver="590", packages={"numpy": "2.5", "new": "1"})
    now = replace(was, header=replace(was.header, spec=spec, environment=environment, version="9"))
    told = {one.name: (one.was, one.now) for one in compared(was, now).differences}
    assert told == {
        "case.domain": ("256x256x256", "64x64x64"),
        "driver": ("580", "590"),
        "numpy": ("2.4", "2.5"),
        "lbmtune": ("0.1.0", "9"),
    }


def test_dismissed_measurements_and_other_kernels_are_left_out() -> None:
    was = study(TWENTY)
    first = replace(was.trials[0], measurement=replace(TWENTY[0], dismissed=True))
    now = replace(was, trials=(first, *was.trials[1:-1]))
    assert len(compared(was, now).changes) == len(TWENTY) - 2
    none = compared(was, made.empty_study())
    assert none.winners is None
    assert none.whole is None
    assert none.changes == ()


@given(st.floats(0.5, 2.0), st.floats(0.001, 0.1), st.integers(1, 500))
def test_more_questions_need_larger_changes(factor: float, between: float, questions: int) -> None:
    """The bounds are those of the ratio, and a ratio and its inverse have opposite verdicts."""
    was, now = TWENTY[0], slower(TWENTY[1], factor)
    one, other = ratio_of(was, now, between, questions), ratio_of(now, was, between, questions)
    assert one.low < one.ratio < one.high
    assert one.low == pytest.approx(1 / other.high)
    assert one.high == pytest.approx(1 / other.low)
    more = ratio_of(was, now, between, questions + 1)
    assert more.low < one.low
    assert more.high > one.high
    opposite = {Verdict.SLOWER: Verdict.FASTER, Verdict.FASTER: Verdict.SLOWER, Verdict.SAME: Verdict.SAME}
    assert other.verdict == opposite[one.verdict]


def test_false_alarms_have_the_promised_share() -> None:
    """Of one question and of a hundred, deviations that are exponential leave the interval in one of a hundred."""
    random = np.random.default_rng(4)
    for questions in (1, 100):
        bound = widening(questions) * 0.01 * log(10)
        alarms = np.abs(random.laplace(0, 0.01, (20_000, questions))).max(axis=1) > bound
        assert float(alarms.mean()) == pytest.approx(FALSE_ALARMS, rel=0.3)
