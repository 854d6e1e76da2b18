"""Intervals of repeats: their claim on recorded pairs of measurements, and what is said of them."""

import gzip
import json
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from math import exp, hypot, log, sqrt
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
import pytest

from lbmtune.catalogue.config import cuda
from lbmtune.records import Measurement
from lbmtune.records.comparison.repeats import percent, repeat_interval
from lbmtune.records.comparison.statistics import FEWEST_PAIRS, repeat_spread
from lbmtune.records.store import append_trial, read_study, write_header
from tests.support.paths import RECORDED
from tests.support.studies import fake_study
from tests.support.studies import made_up_records as made

DOZEN = 12
OFFSETS = np.arange(0.02, 1, 0.04)


class Pair(NamedTuple):
    """Two measurements of a kernel in two processes."""

    study: str
    first: Measurement
    again_mlups: float

    @property
    def apart(self) -> float:
        return log(self.again_mlups / self.first.mlups)


def recorded_pairs(device: str) -> list[Pair]:
    """Return pairs of visits that followed each other, in the order of the second ones."""
    content = gzip.decompress((RECORDED / device / "pairs.jsonl.gz").read_bytes())
    first, *rows = map(json.loads, content.splitlines())
    assert first["device"]
    assert first["date"]
    visits = defaultdict(list)
    for row in rows:
        visits[row["set"], row["key"], row["family"]].append(row)
    both = [pair for found in visits.values() for pair in pairwise(sorted(found, key=lambda row: row["visit"]))]
    return [_pair(*one) for one in sorted(both, key=lambda pair: pair[1]["at"])]


def _pair(first: dict, again: dict) -> Pair:  # type: ignore[type-arg]
    return Pair(first["set"], measured(first["mlups"], first["low"], first["high"]), again["mlups"])


def measured(mlups: float, low: float, high: float) -> Measurement:
    return replace(fake_study.measurement(cuda.Direct()), mlups=mlups, ci_low_mlups=low, ci_high_mlups=high)


def claim(pairs: list[Pair], offset: float) -> tuple[float, float]:
    """Return the share of repeats in their intervals, and their median width over the constant one that holds 90 %.

    The spread is estimated as a study does, from a dozen pairs that are spread over its time. offset: of the first.
    """
    chosen = [int((n + offset) * len(pairs) / DOZEN) for n in range(DOZEN)]
    others = [pair for n, pair in enumerate(pairs) if n not in chosen]
    between = repeat_spread([pairs[n].apart for n in chosen])
    intervals = [repeat_interval(pair.first, between) for pair in others]
    held = fmean(one.covers(pair.again_mlups) for one, pair in zip(intervals, others, strict=True))
    wide = np.median([log(one.high_mlups / one.low_mlups) / 2 for one in intervals])
    return held, float(wide / np.quantile([abs(pair.apart) for pair in others], 0.9))


@pytest.mark.parametrize(("device", "fewest"), [("nvidia-h100", 200), ("xeon-16-cores", 100)])
def test_intervals_hold_nine_of_ten_repeats_and_are_hardly_too_wide(device: str, fewest: int) -> None:
    """Four of five dozens give such intervals. Those within the run hold a third of repeats, or a twentieth."""
    pairs = recorded_pairs(device)
    assert len(pairs) >= fewest
    found = [claim(pairs, offset) for offset in OFFSETS]
    assert fmean(held for held, _ in found) >= 0.9
    assert np.median([wide for _, wide in found]) <= 1.5
    assert fmean(held >= 0.9 and wide <= 2 for held, wide in found) >= 0.8
    held, wide = claim(pairs, 0.5)
    assert held >= 0.9
    assert wide <= 2
    alone = fmean(repeat_interval(pair.first, None).covers(pair.again_mlups) for pair in pairs)
    assert alone < 0.35


@pytest.mark.parametrize("device", ["nvidia-h100", "xeon-16-cores"])
def test_the_spread_of_one_study_holds_for_that_study(device: str) -> None:
    pairs = recorded_pairs(device)
    for study in {pair.study for pair in pairs}:
        own = [pair for pair in pairs if pair.study == study]
        found = [claim(own, offset) for offset in OFFSETS]
        assert fmean(held for held, _ in found) >= 0.9
        assert np.median([wide for _, wide in found]) <= 2


def test_the_spread_of_exponential_sizes_is_their_90th_percentile() -> None:
    """More pairs need less of an addition; an outlier of a hundred times moves it little."""
    random = np.random.default_rng(3)
    for count, excess in ((12, 1 + 1 / sqrt(12)), (400, 1.05)):
        found = [repeat_spread(random.laplace(0, 0.01, count).tolist()) for _ in range(400)]
        assert np.median([one or 0.0 for one in found]) == pytest.approx(excess * 0.01 * log(10), rel=0.06)
        assert fmean((one or 0.0) >= 0.01 * log(10) for one in found) >= 0.78
    usual = [0.01] * 50
    assert repeat_spread([*usual, 1.0]) < 1.4 * repeat_spread(usual)  # type: ignore[operator]


def test_too_few_pairs_say_nothing() -> None:
    assert repeat_spread(()) is None
    assert repeat_spread((0.01,) * (FEWEST_PAIRS - 1)) is None
    assert repeat_spread((0.0,) * FEWEST_PAIRS) == 0
    assert repeat_spread((0.01, -0.01, 0.01)) == repeat_spread((0.01,) * 3)


def test_an_interval_says_what_it_holds() -> None:
    found = measured(1000.0, 990.0, 1020.0)
    narrow, wide = repeat_interval(found, None), repeat_interval(found, 0.1)
    assert (narrow.low_mlups, narrow.high_mlups) == pytest.approx((990, 1020))
    assert str(narrow) == "+-1.5 % within the run; between runs: not measured"
    assert wide.low_mlups == pytest.approx(1000 * exp(-hypot(log(1000 / 990), 0.1)))
    assert wide.high_mlups == pytest.approx(1000 * exp(hypot(log(1.02), 0.1)))
    assert str(wide) == "+-10.1 % (90 % of repeats; +-1.5 % within the run)"
    assert wide.covers(910)
    assert not wide.covers(900)
    assert not narrow.covers(1021)


@pytest.mark.parametrize("bounds", [(0.0, 0.0), (0.0, 1e30), (1e30, 1e-30)])
@pytest.mark.parametrize("between", [None, 1e3])
def test_an_interval_of_a_strange_record_is_finite(bounds: tuple[float, float], between: float | None) -> None:
    found = repeat_interval(measured(1000.0, *bounds), between)
    assert 0 < found.low_mlups < 1000 < found.high_mlups < 1e30
    assert "inf" not in str(found)


@pytest.mark.parametrize(("share", "text"), [(0.0012, "0.12 %"), (0.00999, "1.0 %"), (0.5, "50.0 %"), (0, "0.00 %")])
def test_shares_have_two_digits(share: float, text: str) -> None:
    assert percent(share) == text


def test_a_study_widens_its_intervals_by_what_it_measured_twice(tmp_path: Path) -> None:
    study = made.gpu_study()
    trials = study.ranked[:4]
    assert all(t.measurement for t in trials)
    plain = replace(study, trials=trials)
    assert plain.between_runs is None
    assert plain.interval(trials[0]).between is None
    header = replace(study.header, repeats=(0.001,) * 12)
    machine = replace(plain, header=header)
    assert machine.between_runs == repeat_spread(header.repeats)
    again = tuple(replace(t, again=replace(t.measurement, mlups=0.95 * t.measurement.mlups)) for t in trials)  # type: ignore[union-attr, type-var]
    visited = replace(machine, trials=again)
    assert visited.between_runs == pytest.approx(repeat_spread([log(0.95)] * 4))
    assert replace(visited, header=replace(header, repeats=(0.5,) * 12)).between_runs == repeat_spread((0.5,) * 12)
    write_header(tmp_path, visited.header)
    for trial in visited.trials:
        append_trial(tmp_path, trial)
    assert read_study(tmp_path) == replace(visited, trials=tuple(sorted(again, key=lambda t: t.number)))


def test_a_first_measurement_holds_its_final_and_a_final_holds_finals() -> None:
    study = made.gpu_study()
    header = replace(study.header, repeats=(0.001,) * 12)
    trials = [replace(t, final=None) for t in study.ranked[:4]]
    slower = [replace(t, final=replace(t.measurement, mlups=0.9 * t.measurement.mlups)) for t in trials[:3]]  # type: ignore[union-attr, type-var]
    found = replace(study, header=header, trials=(*slower, trials[3]))
    assert found.interval(slower[0]).between == found.between_runs == repeat_spread(header.repeats)
    assert found.interval(trials[3]).between == pytest.approx(repeat_spread([log(0.9)] * 3))


def test_what_the_interval_of_the_fastest_covers_is_tied_with_it() -> None:
    study = made.gpu_study()
    first = study.ranked[0]
    speeds = (1000.0, 995.0, 985.0, 970.0)
    finals = [replace(first, number=n, final=measured(speed, speed - 1, speed + 1)) for n, speed in enumerate(speeds)]
    early = replace(first, number=9, final=None, measurement=measured(999.0, 998.0, 1000.0))
    found = replace(study, header=replace(study.header, repeats=(0.006,) * 30), trials=(*finals, early))
    assert found.interval(found.ranked[0]).half_width == pytest.approx(0.0207, abs=0.001)
    assert found.tied == {1, 2}
    assert replace(found, header=replace(found.header, repeats=())).tied == frozenset()
