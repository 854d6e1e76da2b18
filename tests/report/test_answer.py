"""The top of a report: the winner in words, kernels beside it, the limit that binds, and texts to use it."""

from __future__ import annotations

import json
import shutil
import subprocess
from base64 import b64decode
from dataclasses import replace
from functools import partial
from gzip import decompress
from math import prod
from pathlib import Path

import numpy as np
import pytest

from lbmtune.api import Study, vary
from lbmtune.api.studies.results import beyond
from lbmtune.catalogue.config import cpu, cuda, from_flat
from lbmtune.catalogue.problem.flows import box, initial_flow
from lbmtune.errors import InputError
from lbmtune.export import best, printed_kernel
from lbmtune.export.cuda_header import cuda_header
from lbmtune.model.predict import cells_read
from lbmtune.records import Measurement
from lbmtune.records.best_json.document import encode_best
from lbmtune.records.profile import KERNEL, STREAMING, Profile
from lbmtune.records.remarks import faster_first, race_text
from lbmtune.records.store import read_study
from lbmtune.records.study import OVERTAKES, StudyRecord
from lbmtune.report.limits import binding, limits_of
from lbmtune.report.study import page, roofline, steps
from lbmtune.report.study.answer import section, use, verdict, why
from lbmtune.report.study.answer.beside import beside, missing, none_published
from lbmtune.report.study.answer.doubts import Doubts, doubts
from lbmtune.report.study.answer.kinds import kind_rows
from lbmtune.report.study.answer.update_time import FASTER, measured_s, shown_parts
from lbmtune.report.study.answer.update_time import parts as time_parts
from lbmtune.report.study.answer.words import config_text, words
from lbmtune.report.study.finals import finals_info, finals_panels, finals_table
from lbmtune.report.study.pareto import beside_speed, costs_panels
from lbmtune.report.study.steps import explanation, steps_info
from lbmtune.report.study.winner import accuracy_table, rounding_table, winner_table
from lbmtune.search.kinds import is_default
from lbmtune.search.optuna_view.importance import importance
from tests.support.paths import RECORDED
from tests.support.studies import made_up_records as made
from tests.support.studies.made_up_profile import PROFILE

MOMENTS = cuda.TemporalBlocking(representation="moments", steps=3)
H100_FAST = RECORDED / "nvidia-h100" / "d3q19-box-fast-fp32"
WAVEFRONT = cpu.Wavefront(scheme="esoteric-pull", steps=8, tile=(64, 1))

MEASURE = use.Next("Measure it:", "lbmtune profile best.json --device cpu --output profile.html")


def of_bursts() -> StudyRecord:
    """Return a study on a processor whose winner is a wavefront: no trial of it was measured over seconds."""
    study = read_study(RECORDED / "epyc-2-cores" / "d3q19-box-fast-fp32")
    return replace(study, trials=tuple(replace(trial, sustained=None) for trial in study.trials))


@pytest.fixture(scope="module")
def fast() -> StudyRecord:
    return read_study(RECORDED / "nvidia-h200" / "d3q19-box-fast-fp32")


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            cuda.TemporalBlocking(representation="moments", steps=3),
            "temporal blocking, moments, 3 steps per launch, fp32",
        ),
        (cuda.Direct(scheme="aa", storage="fp16s"), "direct, aa, fp16s stored, fp32 computed"),
        (cuda.Persistent(), "persistent, pull, fp32"),
        (
            cpu.Wavefront(scheme="esoteric-pull", steps=8, tile=(64, 1)),
            "wavefront, esoteric-pull, 8 steps per launch, fp32",
        ),
        (cuda.TemporalBlocking(representation="moments", steps=1), "moments, 1 step per launch, fp32"),
    ],
)
def test_kernels_are_named_in_the_words_of_the_field(config: cuda.Direct, said: str) -> None:
    assert words(config) == said


def test_the_title_has_speed_device_and_kernel(fast: StudyRecord) -> None:
    assert verdict.title(fast) == ("85,530 MLUPS on NVIDIA H200: temporal blocking, moments, 3 steps per launch, fp32")
    assert "No configuration gave a verified measurement" in verdict.title(made.hopeless_study())
    smallest = replace(fast, header=replace(fast.header, spec=replace(fast.header.spec, objective="footprint")))
    assert verdict.title(smallest).startswith("Smallest footprint: ")


def test_the_winner_is_compared_with_runner_up_one_step_default_and_published(fast: StudyRecord) -> None:
    found = {one.what: one for one in beside(fast)}
    one, stored = "best of one step per launch", "best of one step that stores populations"
    assert list(found) == ["runner-up", one, stored, "default", "best of another kind", "published"]
    of_one = [t for t in fast.ranked if from_flat(t.config).fused_steps == 1]
    assert found[one].mlups == max(t.mlups or 0 for t in of_one) == pytest.approx(46_496, abs=1)
    assert found[one].source == "search only"
    assert found[stored].mlups == max(t.mlups or 0 for t in of_one if t.final) == pytest.approx(26_522, abs=1)
    assert found[stored].mlups >= found["default"].mlups
    assert found["published"].mlups == 23_056
    assert "H200" in found["published"].source
    assert found["published"].source.endswith(
        "not the collision operator of this study; the same scheme here: trial 131, 26,522, 1.15 x published"
    )
    assert none_published(fast) == ""
    assert missing(fast) == ()
    bgk = replace(fast.header.spec, case=replace(fast.header.spec.case, collision="bgk"))
    same = replace(fast, header=replace(fast.header, spec=bgk))
    assert "operator" not in next(one.source for one in beside(same) if one.what == "published")
    finals = {one.number: one.ratio for one in finals_info(fast)}
    for one in found.values():
        paired = finals.get(one.trial) if one.trial is not None else None
        ratio = (fast.ranked[0].mlups or 0) / one.mlups
        assert one.gain == pytest.approx(ratio), "the quotient of the speeds that stand there"
        apart = paired is not None and abs(ratio * paired.median - 1) > 0.005
        assert ("round by round" in one.source) == apart


def test_one_step_of_moments_counts_as_one_step() -> None:
    """The speed over the best of one step is that which the text on several steps tells."""
    study = read_study(RECORDED / "nvidia-h100" / "d3q19-box-fast-fp32")
    found = {one.what: one for one in beside(study)}
    one, stored = found["best of one step per launch"], found["best of one step that stores populations"]
    assert (one.trial, one.kernel) == (357, "moments, 1 step per launch, fp32")
    assert round(one.mlups) == 33_702
    info = steps_info(study)
    assert info is not None
    assert f"the winner is {one.gain:.2f} times as fast." in " ".join(explanation(study, info))
    assert verdict.verdict(study).startswith(
        f"In bursts {one.gain:.2f} times the best of one step per launch (33,702, moments; best of 144 tried), "
        f"{stored.gain:.2f} times the best of them that stores populations (18,976, aa; best of 113 tried)."
    )


def test_a_first_measurement_of_one_step_counts_and_a_small_lead_over_seconds_is_told() -> None:
    """The pull of the finals is not the best of one step; within a percent the winner stays the winner."""
    study = read_study(RECORDED / "nvidia-h200" / "d3q19-cavity-fast-fp32")
    told = verdict.verdict(study)
    assert told.startswith(
        "Fastest in bursts; sustained, trial 332 reaches 76,034, 0.5% more. In bursts 1.78 times the best of one step "
        "per launch "
        "(44,615, moments; best of 173 tried), 3.00 times the best of them that stores "
    )
    info = steps_info(study)
    assert info is not None
    assert "reaches 44,615 MLUPS; the winner is 1.78 times as fast." in " ".join(explanation(study, info))
    assert study.overtaken is None
    (row,) = (row for row in section.beside_rows(study) if row["beside"] == "fastest sustained")
    assert (row["sustained"], row["gain"], row["sustained gain"]) == ("76,034", "1.019 x", "0.995 x")


def test_what_leads_over_seconds_wins_and_what_is_faster_in_bursts_is_told() -> None:
    study = read_study(RECORDED / "epyc-2-cores" / "d3q19-box-fast-fp32")
    runs = {t.number: t.sustained.mlups for t in study.ranked if t.sustained}
    assert study.ranked[0].number == max(runs, key=lambda number: runs[number]) == 53
    assert study.overtaken is not None
    assert study.overtaken.number == max(study.ranked, key=lambda t: t.mlups or 0.0).number == 25
    assert verdict.title(study) == (
        "528 MLUPS sustained on 2 cores of AMD EPYC: direct, esoteric-twist, fp32 (trial 53)"
    )
    assert verdict.verdict(study) == (
        "Trials 42 (525) and 1 (523) may be as fast: one run each. In bursts trials 25 (663) and 61 (639) tie as "
        "fastest; over 2.1 s they fall to 448 and 486, why is not recorded. The winner's limit is not known: its 152 B "
        "per update are 80.89 GB/s in bursts, more than the benchmark of the model reached."
    )
    assert section.gain_titles(study, section.beside_rows(study)) == (
        "winner over it, in bursts",
        "winner over it, sustained",
    )
    assert [name for name, _, _ in section.cards(study)][:2] == ["sustained", "speed in bursts"]
    assert why.said(study) == (
        "Where the 1,879 ps of an update go is not known by the model: it takes 2,812 ps for memory alone (152 bytes "
        "per update at 54.05 GB/s, in place, 32 bytes, shifted, 100% prefetched), more than was measured for all. It "
        "is 33% low here. The median error of the model over 7 finalists is 5.6%."
    )
    assert why.why_panels(study) == [], "no waterfall of a limit that is none"
    assert why.measuring(study) == MEASURE
    assert section.next_step(study, ("scheme",), "memory") is None
    rows = {row["beside"]: row for row in section.beside_rows(study)}
    assert (rows["winner"]["sustained"], rows["fastest in bursts"]["sustained"]) == ("528", "448")
    assert (rows["fastest in bursts"]["gain"], rows["fastest in bursts"]["sustained gain"]) == ("0.80 x", "1.18 x")
    assert rows["tied with 25 in bursts"]["sustained"] == "486"
    assert rows["default"]["kernel"] == "direct, pull, fp32: layout=soa"
    asked = "lbmtune measure family=direct,storage=fp32,compute=fp32 --study . --device cpu"
    assert rows["default"]["command"] == asked
    assert rows["default"]["source"] == ("median of 9 trials of its scheme; itself not measured in this study:")
    assert (rows["default"]["MLUPS"], rows["default"]["gain"]) == ("about 160", "about 3.3 x")
    assert rows["default"]["sustained gain"] == "", "it has no sustained speed"
    assert f'data-copy="{asked}"' in page.page(study)
    assert "published" not in rows
    assert none_published(study).startswith("No published speed is known for this device")
    slower = tuple(replace(t, sustained=None) if t.number != 25 else t for t in study.trials)
    assert replace(study, trials=slower).ranked[0].number == 25


def test_only_a_clear_lead_over_seconds_wins() -> None:
    study = read_study(RECORDED / "epyc-2-cores" / "d3q19-box-fast-fp32")
    first = next(trial for trial in study.trials if trial.number == 25)
    assert first.sustained

    def winner(speed: float, *, disturbed: bool = False, beside: tuple[str, ...] = ()) -> int:
        """Return who wins if trial 53 runs so fast over seconds, and no other trial but 25 does."""
        runs = {25: first.sustained, 53: replace(first.sustained, mlups=speed, disturbed=disturbed)}
        trials = tuple(replace(trial, sustained=runs.get(trial.number)) for trial in study.trials)
        spec = replace(study.header.spec, beside=beside)
        return replace(study, trials=trials, header=replace(study.header, spec=spec)).ranked[0].number

    speed, spread = first.sustained.mlups, study.interval(first).half_width
    assert spread > OVERTAKES
    assert winner((1 + spread) * speed * 0.999) == 25
    assert winner((1 + spread) * speed * 1.001) == 53
    assert winner(2 * speed, disturbed=True) == 25
    assert winner(2 * speed, beside=("footprint",)) == 25


def test_a_kernel_that_is_as_fast_with_half_the_memory_is_told() -> None:
    study = read_study(RECORDED / "nvidia-h100" / "d3q19-box-fp32")
    assert "Trial 352 (direct, aa, fp32) needs 50% of the memory, and is 0.05% slower in this run." in verdict.verdict(
        study
    )
    rows = {row["beside"]: row for row in section.beside_rows(study)}
    assert (rows["winner"]["memory"], rows["best with less memory"]["memory"]) == ("2.375 GiB", "1.188 GiB")
    assert rows["best with less memory"]["gain"] == "1.0005 x"
    assert rows["tied with it"]["gain"] == "1.0001 x"


def test_published_speeds_are_of_the_same_device_lattice_storage_and_flow(fast: StudyRecord) -> None:
    def published(study: StudyRecord) -> bool:
        return any(one.what == "published" for one in beside(study))

    header = fast.header
    assert published(fast)
    assert not published(
        replace(fast, header=replace(header, environment=replace(header.environment, device="H200 NVL")))
    )
    case = replace(header.spec.case, geometry="sphere")
    assert not published(replace(fast, header=replace(header, spec=replace(header.spec, case=case))))


def test_the_limit_that_binds_is_the_lowest_and_has_one_denominator(fast: StudyRecord) -> None:
    found = limits_of(fast, fast.ranked[0])
    assert [one.mlups for one in found] == sorted(one.mlups for one in found)
    limit = binding(fast, fast.ranked[0])
    assert limit == found[0]
    assert limit.name == "instructions"
    share = (fast.ranked[0].mlups or 0) / limit.mlups
    assert f"reaches {share:.1%} of its limit, instructions: {limit.mlups:,.0f} MLUPS if" in verdict.verdict(fast)
    assert ("of the limit: instructions", f"{share:.1%}") in [card[:2] for card in section.cards(fast)]


def test_one_limit_on_card_roofline_history_and_in_the_text() -> None:
    for study, allowed in ((read_study(H100_FAST), 105_825), (of_bursts(), 1_018)):
        limit = binding(study, study.ranked[0])
        assert limit is not None
        assert limit.mlups == pytest.approx(allowed, abs=1)
        drawn = {panel.name: decompress(b64decode(panel.figure)).decode() for panel in page.panels(study)}
        told = f"limit of the winner, {limit.name}: {allowed:,}"
        assert f'"{told}"' in drawn["history"]
        assert f'"{told} MLUPS"' in drawn["roofline"]
        assert f"{limit.name} {allowed:,}" in roofline.other_roofs(study)
    nearest = roofline.level_limits(read_study(H100_FAST))
    assert [one.name for one in nearest] == ["memory", "exchanges", "instructions"], "latency is far above"


def test_a_limit_that_kernels_exceeded_is_a_benchmark_everywhere() -> None:
    study = read_study(RECORDED / "xeon-2-cores" / "d3q19-box-fp32")
    (card,) = (card for card in section.cards(study) if card[0].startswith("of the b"))
    first = max(t.measurement.bandwidth_bytes_per_s for t in study.ranked if t.measurement)
    over = f"exceeded by up to {first / study.header.ceiling.best_bytes_per_s - 1:.0%}"
    assert over.endswith(" 14%"), "first measurements, which the history shows, were faster than finals"
    assert (card[0], card[1]) == ("of the benchmark: memory", "90.3%")
    assert card[2].endswith(f"no upper bound, {over}")
    assert f"90.3% of the memory benchmark (249 MLUPS, {over})." in verdict.verdict(study)
    assert "by up to 14%, in the search or the finals" in roofline.above_the_ceiling(study)
    drawn = {panel.name: decompress(b64decode(panel.figure)).decode() for panel in page.panels(study)}
    assert f"memory benchmark, {over}: 249" in drawn["history"]
    assert dict(winner_table(study))["of update in place, the benchmark"].startswith("90.3%")
    assert why.said(study).startswith("Memory alone by the benchmark takes 4,016 of")
    assert card[0] in section.card_meanings()


def test_the_text_tells_the_bandwidth_of_the_model_from_that_of_the_limit() -> None:
    one_step = read_study(RECORDED / "nvidia-h100" / "d3q19-box-fp32")
    said = why.limit_said(one_step)
    assert said.startswith(
        "The model begins with 2957 GB/s for accesses like these; the limit is the fastest benchmark of"
    )
    slower = replace(one_step.ranked[0].best_measurement, bandwidth_bytes_per_s=2.9e12)
    less = replace(one_step, trials=(replace(one_step.ranked[0], measurement=slower, final=slower),))
    told = "begins with 2957 GB/s for accesses like these; the limit is the fastest benchmark of many streams"
    assert told in why.limit_said(less)
    told = "without halos, 26.67 bytes at the 3010 GB/s of update in place would allow 112,883 MLUPS"
    assert told in why.limit_said(read_study(H100_FAST))


@pytest.mark.parametrize(
    ("name", "first", "sentence"),
    [
        (
            "nvidia-h100/d3q19-cavity-192-fp32",
            "memory alone",
            "Memory alone, halos included, takes 14 of 15.6 ps (89.9%). The model adds 1.75 ps (instructions, "
            "exchanges and latency, not hidden: 1.27 ps; stages: 0.253 ps; launch: 0.232 ps); the kernel is 0.169 ps "
            "faster than that.",
        ),
        (
            "zen3-2-cores/d3q19-box-fast-fp32",
            "arithmetic alone",
            "Arithmetic alone by the model takes 2,933 of 3,663 ps (80.1%). The model adds 607 ps (memory: 607 ps); "
            "122 ps are not explained, within the spread of \u00b1516 ps.",
        ),
        (
            "nvidia-h200/d3q19-box-fp16s",
            "memory alone",
            "Beyond it are 0.176 ps (1.0%). The model predicts 53,858 MLUPS, 3.1% less than was measured: what each of "
            "its terms adds is not certain.",
        ),
    ],
)
def test_the_time_of_an_update_begins_with_its_limit_and_ends_measured(name: str, first: str, sentence: str) -> None:
    study = read_study(RECORDED / name)
    found, limit = time_parts(study), binding(study, study.ranked[0])
    assert limit is not None
    assert sum(one.seconds or 0 for one in found) == pytest.approx(1e-6 / (study.ranked[0].mlups or 1), rel=1e-9)
    assert sum(one.share for one in found) == pytest.approx(1, rel=1e-9)
    assert found[0].seconds == pytest.approx(1e-6 / limit.mlups)
    assert (found[-1].name == FASTER) == ((found[-1].seconds or 0) < 0)
    figure = why.why_figure(found)
    (bars,) = figure.data
    assert (bars.x[0], bars.x[-1]) == (first, "measured")
    ends = [base + height for base, height in zip(bars.base, bars.y, strict=True)]
    assert list(bars.base[1:-1]) == pytest.approx(ends[:-2])
    assert ends[-1] == pytest.approx(ends[-2])
    assert figure.layout.shapes[0].y0 == pytest.approx(1e6 / limit.mlups), "the line of the limit"
    assert sentence in why.said(study)
    open_parts = any(doubt in why.said(study) for doubt in ("not known", "what each of its terms adds is not certain"))
    assert bool(why.measuring(study)) == open_parts


def test_a_kernel_that_follows_the_clock_of_the_multiprocessors_is_not_bound_by_memory_alone() -> None:
    study = read_study(H100_FAST)
    told = (
        "Over 2.1 s without a pause an update takes 12.1 ps, 0.427 more (held at the power limit of 700 W). Its speed "
        "fell 3.5% with the clock of the multiprocessors, 4.5% lower (1,890 instead of 1,980 MHz, memory unchanged), "
        "so that clock binds, too."
    )
    assert told in why.sustained_said(study)
    winner = study.ranked[0]
    assert winner.sustained
    half = replace(winner.sustained, mlups=0.5 * winner.sustained.mlups)
    other = replace(study, trials=(replace(winner, sustained=half),))
    assert "It follows" not in why.said(other)
    assert "instead of" not in why.said(read_study(RECORDED / "nvidia-h200" / "d3q19-box-fast-fp32")), "1.6 %, by 1.1 %"


def test_terms_that_overlap_stand_beside_the_rest() -> None:
    found = shown_parts(read_study(H100_FAST))
    assert [one.name for one in found] == ["memory", "exchanges", "instructions", "latency", "the rest"]
    assert [one.alone_ps for one in found] == ["9.45", "9.2", "8.12", "1.45", ""]
    assert [one.ps for one in found] == ["9.45", "", "", "", "2.22"]


def test_what_the_model_does_not_explain_is_measured_by_a_command() -> None:
    study = read_study(RECORDED / "xeon-2-cores" / "d3q19-box-fp32")
    assert "the other 431 ps is not known: the model has nothing but the limit." in why.said(study)
    assert why.said(study).count("The median error of the model over 5 finalists is 18.5%.") == 1
    assert why.measuring(study) == MEASURE


def test_terms_are_told_alone_and_in_the_words_of_today() -> None:
    memory, exchanges, *_ = time_parts(read_study(H100_FAST))
    assert (memory.alone_ps, memory.ps, exchanges.ps) == ("9.45", "9.45", "")
    assert memory.figures == "27.92 bytes per update at 2954 GB/s, 5 planes in flight"
    assert exchanges.figures.endswith("halos included, 3 warps per scheduler in flight")
    work, moved, cached, _ = time_parts(of_bursts())
    assert work.figures == "159 operations and 1 division per update, 8 cells at once"
    assert moved.figures == "23.96 bytes per update at 54.97 GB/s, in place, 32 bytes, 100% prefetched"
    assert "within the last-level cache" in cached.figures
    assert work.alone_ps == "", "terms of a processor add up"
    told = {one.name: one.figures for one in time_parts(read_study(RECORDED / "nvidia-h100" / "d3q19-box-fp32"))}
    assert told["launch"] == "3.8 us per launch"
    assert told["instructions"] == "148 issue slots per update; the last of 82.7 waves is not hidden"
    assert told["threads in flight"] == "99.4% of the bandwidth in use"
    assert told["runs"] == "512 contiguous bytes of a stream"


def test_origin_of_the_model_partial_sectors_and_launches_are_told_in_words() -> None:
    (*_, drawn) = why.why_panels(read_study(RECORDED / "nvidia-h100" / "d3q19-cavity-192-fp32"))
    assert "micro-benchmarks; curves of NVIDIA H100 80GB HBM3 scaled to it. Predictions are calibrated" in drawn.caption
    one_step = time_parts(read_study(RECORDED / "nvidia-h100" / "d3q27-box-trt-fp64"))
    told = {one.name: one.figures for one in one_step}
    assert told["partial sectors"] == "0.281 sectors loaded in part and 0 stored in part per update"
    study = read_study(RECORDED / "nvidia-h200" / "d3q19-cavity-fast-fp32")
    kernel = printed_kernel(study)
    assert kernel is not None
    shown = page.page(study, page.Beyond(kernel))
    assert "28 x 32 x 35; the first and the last block together 4 x 0 x 0 more" in shown
    ((launch,), *_) = kernel.period
    for blocks, each, more, cells in zip(
        launch.grid, launch.covers, launch.ends, study.header.spec.case.domain, strict=True
    ):
        assert 0 <= blocks * each + more - cells < each, "all cells, by no block too many"


def test_occupancy_stands_beside_registers() -> None:
    """12 warps of 168 registers are 64,512 of 65,536: a second block has no room."""
    known = beyond(read_study(H100_FAST)).occupancy
    assert known == (1, 12, 64)
    table = dict(winner_table(read_study(H100_FAST), None, known))
    assert table["occupancy"] == "1 block per multiprocessor, 12 of 64 warps"
    assert "occupancy" not in dict(winner_table(read_study(H100_FAST)))
    assert beyond(made.cpu_study()).occupancy is None


def test_ties_are_told(fast: StudyRecord) -> None:
    assert "No other trial is tied with it within this run." in verdict.verdict(fast)
    tied = read_study(RECORDED / "nvidia-h200" / "d3q19-box-fp32")
    assert f"Tied with trials {', '.join(map(str, sorted(tied.tied)))}: their order is chance." in verdict.verdict(tied)


def test_the_default_is_named_where_it_is_the_best_of_one_step(fast: StudyRecord) -> None:
    usual = next(one for one in fast.ranked if is_default(one.kernel_config))
    few = replace(fast, trials=(fast.ranked[0], usual))
    assert f"times the default ({usual.mlups:,.0f}, pull)" in verdict.verdict(few)
    assert "best of one step" not in verdict.verdict(few)


def test_rounds_that_are_too_few_leave_the_order_open() -> None:
    study = read_study(RECORDED / "nvidia-h200" / "d3q19-box-fast-fp32")
    first, second = study.ranked[:2]
    assert first.final

    def told(speed: float) -> str:
        few = (replace(first, final=cut(first.final, 4, 1e5)), replace(second, final=cut(second.final, 4, speed)))
        short = replace(study, header=replace(study.header, stopped="all were tried"), trials=few)
        assert short.race
        assert short.race.untold == (second.number,)
        doubted = "rounds too few to tell of 1." in finals_panels(short)[0].caption
        assert doubted == bool(short.untold) == ("the rounds do not tell" in race_text(short))
        return verdict.verdict(short)

    low = study.interval(replace(first, final=cut(first.final, 4, 1e5))).low_mlups
    assert f"too few to tell if trial {second.number} is slower" in told(low - 1)
    assert "too few" not in told(0.5 * low)


def cut(measured: Measurement | None, rounds: int, mlups: float) -> Measurement:
    """Return a measurement of the first rounds alone, with another speed."""
    assert measured
    by = mlups / measured.mlups
    samples = tuple(one / by for one in measured.samples_s[:rounds])
    low, high = by * measured.ci_low_mlups, by * measured.ci_high_mlups
    return replace(measured, samples_s=samples, mlups=mlups, ci_low_mlups=low, ci_high_mlups=high)


def test_a_limit_that_a_profile_contradicts_is_not_certain(fast: StudyRecord) -> None:
    """The model takes less for the collision, and more without it, than was measured."""
    limit = binding(fast, fast.ranked[0])
    assert limit
    assert limit.name == "instructions"
    off, agreed = levels(measured_s(fast), 0.8, 0.95), levels(measured_s(fast), 0.8, 0.85)
    assert f"of the lowest limit by the model, {limit.name} (" in verdict.verdict(fast, off)
    assert "levels of the model are off by up to 15% of the time." in verdict.verdict(fast, off)
    assert verdict.verdict(fast, agreed) == verdict.verdict(fast)
    card = next(one for one in section.cards(fast, profile=off) if one[0] == f"of the model's limit: {limit.name}")
    assert card[2].endswith("may not bind: levels of the model are off by up to 15% of the time")
    assert section.cards(fast, profile=agreed)[1:] == section.cards(fast)[1:], "the first one tells the later run"
    tried = ("rows",)
    named = section.next_step(fast, tried, limit.name, off)
    assert named
    assert "is instructions by the model, which is not certain, on which rows acts" in named.reason
    assert section.next_step(fast, tried, limit.name, agreed) == section.next_step(fast, tried, limit.name)


def levels(kernel_s: float, streaming: float, predicted: float) -> Profile:
    """Return a profile of a kernel that takes so long, and shares of it without collision, measured and predicted."""
    measured = {STREAMING: streaming * kernel_s, KERNEL: kernel_s}
    model = {STREAMING: predicted * kernel_s, KERNEL: kernel_s}
    rungs = (
        replace(
            rung,
            seconds=measured.get(rung.name, 0.5 * kernel_s),
            model_s=model.get(rung.name, 0.5 * kernel_s),
        )
        for rung in PROFILE.rungs
    )
    return replace(PROFILE, rungs=tuple(rungs))


def test_who_was_slower_in_the_same_rounds_is_not_tied() -> None:
    """The winner's interval covers trial 9, but by pairs of rounds it is slower: the table of finals says alike."""
    study = read_study(RECORDED / "zen3-2-cores" / "d3q19-box-fast-fp32")
    assert sorted(study.tied) == [38, 43, 48, 49]
    rows = {row["trial"]: row for row in finals_table(finals_info(study))}
    assert rows["9"]["tied"] == ""
    assert float(rows["9"]["ratio_interval"].split()[-1]) < 1
    for number in study.tied:
        assert rows[str(number)]["tied"] == "tied"
        assert float(rows[str(number)]["ratio_interval"].split()[-1]) >= 1
    beside_it = {row["beside"]: row["source"] for row in section.beside_rows(study)}
    assert beside_it["fastest sustained"] == "trial 16, search only, where the winner had 321"
    assert beside_it["tied with it"] == "trial 48, round by round 1.030 x"
    info = steps_info(study)
    assert info is not None
    (one,) = (stage for stage in info.stages if stage.kind.steps == 1 and stage.kind.representation == "populations")
    assert (one.number, round(one.mlups)) == (9, 240), "finals are compared with finals"


def test_the_kernel_that_leads_over_seconds_is_the_one_to_use() -> None:
    study = read_study(RECORDED / "epyc-2-cores" / "d3q19-box-fast-fp32")
    found = use.used(study)
    assert found is not None
    assert use.over_seconds(study) is None, "it is the winner"
    python, *_, line = use.tabs(found)
    assert 'lbmtune.load("best.json", domain=' in python.text
    assert "the study measured 528 sustained, 532 in bursts, on 2 cores of AMD EPYC, 2 threads" in python.text
    assert "multiples of" not in python.text, "one step per launch"
    assert "lbmtune explain best.json" in line.text
    held = beyond(study)
    assert json.loads(held.best)["key"] == found.trial.key
    shown = page.page(study, held)
    assert shown.count('data-save="best.json" data-from="best-data"') == shown.count('id="best-data"') == 1
    assert "(format lbmtune.report, version 2)" in shown


def test_a_small_lead_over_seconds_is_exported_by_a_command() -> None:
    study = read_study(RECORDED / "nvidia-h200" / "d3q19-cavity-fast-fp32")
    step = use.over_seconds(study)
    assert step is not None
    assert "trial 332 is faster, 76,034 MLUPS sustained" in step.reason
    assert step.command == "lbmtune export . --trial 332 --output trial-332.json"
    assert step.command in page.page(study)
    assert use.over_seconds(read_study(RECORDED / "xeon-2-cores" / "d3q19-box-fp32")) is None


def test_cards_say_what_binds_a_long_run_and_what_is_not_measured() -> None:
    study = read_study(RECORDED / "nvidia-h100" / "d3q19-box-fast-fp32")
    remarks = {name: remark for name, _, remark in section.cards(study)}
    assert remarks["sustained"].endswith("; held at the power limit of 700 W")
    assert remarks["memory used"] == "26.7 B per update without halos, 27.9 B by the model"
    read = partial(cells_read, study.header.spec.case)
    assert "26.7 B per update without halos, 27.9 B by the model, 36.4 B with all halos" in [
        remark for _, _, remark in section.cards(study, read)
    ]
    found = steps_info(study, read)
    assert found is not None
    allowed = steps.halo_mlups(study.ranked[0], read)
    assert allowed
    assert allowed * 36.4e6 == pytest.approx(study.ranked[0].prediction.bandwidth_bytes_per_s, rel=2e-3)
    told = f"36.4 bytes, for which memory alone would allow {allowed:,.0f} MLUPS by the model's bandwidth; "
    share = f"{found.winner.mlups / allowed:.0%} of that is reached, because caches save some of these reads."
    assert told + share in " ".join(explanation(study, found, read))
    assert remarks["error"].startswith("relative, of the velocity against fp64, after 1,002 steps of a vortex")
    assert remarks["error"].endswith("with u0 = 0.05, relaxation rate 1.786")
    assert remarks["speed in bursts"].startswith("samples of 0.051 s; ±0.30 % within the run")
    on_cpu = {one[0]: one for one in section.cards(read_study(RECORDED / "epyc-2-cores" / "d3q19-box-fast-fp32"))}
    assert on_cpu["energy"] == ("energy", "not measured", "the device reports none")
    wavefront = {one[0]: one for one in section.cards(read_study(RECORDED / "zen3-2-cores" / "d3q19-box-fast-fp32"))}
    assert wavefront["memory used"][2] == "24 B per update, halos counted"


def test_a_small_lead_may_not_hold_and_fp64_has_no_error() -> None:
    study = read_study(RECORDED / "nvidia-h100" / "d3q27-box-trt-fp64")
    told = "Trial 246 is 0.39% slower; another run may reverse that."
    assert told in verdict.verdict(study)
    assert ("error", "none", "stored and computed in fp64") in section.cards(study)
    assert config_text(study.ranked[0]).endswith(",width=128,scheme=pull")


def test_both_tables_of_accuracy_tell_rate_and_steps() -> None:
    """At one peak velocity they hold the errors of two flows."""
    study = read_study(RECORDED / "nvidia-h100" / "d3q19-box-fp32")
    (one,) = (row for row in accuracy_table(study.ranked[0].accuracy) if row["u0"] == "0.05")
    (after,) = rounding_table(study)
    columns = ("u0", "relaxation rate", "time steps", "velocity against fp64")
    assert [one[name] for name in columns] == ["0.05", "1.538", "640", "3.81e-05"]
    assert [after[name] for name in columns] == ["0.05", "1.786", "1,000", "3.53e-07"]
    assert (after["cells"], one["of it per time step"]) == ("128 x 128 x 4", "5.96e-08")


def test_what_comes_next_is_a_whole_command(fast: StudyRecord) -> None:
    found = section.next_step(fast, ("storage", "steps", "rows"), "instructions")
    assert found is not None
    assert "on which storage, steps, rows act. Compare steps by the model:" in found.reason, "the study has one storage"
    assert found.command == "lbmtune vary steps best.json --study ."
    assert len(vary(fast.header.spec, "h200", "steps", from_flat(fast.ranked[0].config)).predictions) > 1
    assert section.next_step(fast, ("storage",), "memory") is None
    early = replace(fast, header=replace(fast.header, finished=False))
    again = section.next_step(early, ("rows",), "instructions")
    assert again is not None
    assert "--resume" in again.command
    assert section.next_step(made.hopeless_study(), (), "") is None


def test_importance_adds_up_and_finds_what_speed_depends_on() -> None:
    """The speed of the made-up trials is that of the block alone."""
    study = made.gpu_study(81)
    speed = {"64x1x1": 1.0, "128x1x1": 2.0, "256x1x1": 3.0}
    trials = [
        replace(t, final=None, measurement=replace(m, mlups=speed[str(t.config["block"])] + (37 * t.number % 81) / 1e3))
        for t in study.trials
        if (m := t.measurement)
    ]
    found = importance(trials)
    assert sum(found.values()) == pytest.approx(1)
    assert next(iter(found)) == "block"
    assert importance(trials[:10]) == {}


def test_a_profile_of_the_winner_beside_the_study_gives_the_measured_levels(tmp_path: Path, fast: StudyRecord) -> None:
    for file in (RECORDED / "zen3-2-cores" / "d3q19-box-fast-fp32").iterdir():
        shutil.copy(file, tmp_path)
    study = Study(tmp_path)
    profile = (RECORDED / "nvidia-h100" / "profiles" / "one-step-fp32.json").read_text()
    (tmp_path / "profile.json").write_text(profile)
    assert "From the ceiling to the kernel, measured" not in study.report().read_text(), "that of another kernel"
    key = json.loads(profile)["key"]
    (tmp_path / "profile.json").write_text(profile.replace(key, study.winner.key))
    page = study.report().read_text()
    assert "From the ceiling to the kernel, measured" in page
    assert "a copy with its streams takes 51.3; streaming adds 0.969 ps, the collision adds -0.62 ps." in page
    assert " Measured again: the kernel reaches " in page
    (tmp_path / "profile.json").write_text("{")
    with pytest.raises(InputError, match=r"profile\.json is no profile"):
        study.report()


def test_families_and_schemes_have_a_row_each(fast: StudyRecord) -> None:
    rows = kind_rows(fast)
    assert rows[0]["kind"] == words(from_flat(fast.ranked[0].config))
    assert rows[0]["finals, MLUPS>"].endswith(f"(trial {fast.ranked[0].number})")
    assert sum(int(row["trials>"].replace(",", "")) for row in rows) == len(fast.ranked)
    assert len({row["kind"] for row in rows}) == len(rows)
    speeds = [float(row["search, MLUPS>"].partition(" ")[0].replace(",", "")) for row in rows[1:]]
    assert speeds == sorted(speeds, reverse=True)
    assert kind_rows(replace(fast, trials=fast.ranked[:1])) == []


def test_speed_stands_beside_what_it_costs_although_one_objective_was_asked_for(fast: StudyRecord) -> None:
    assert beside_speed(fast) == ("footprint", "energy", "accuracy")
    assert [one.title for one in costs_panels(fast)] == ["Speed beside what it costs"]
    alone = replace(fast, trials=fast.ranked[:2])
    assert beside_speed(alone) == ()
    assert costs_panels(alone) == []


def recorded(name: str) -> StudyRecord:
    return read_study(RECORDED / name)


def test_several_reasons_for_doubt_are_one_sentence() -> None:
    disturbed = recorded("zen3-2-cores/d3q19-box-fast-fp32")
    told = doubts(disturbed)
    assert [bool(one) for one in told] == [False, True, False, False]
    assert "the winner had 224 to 301, trial 37 of the search alone 319; trial 38 had 335 in the search and" in told[1]
    assert "Which of the trials 45, 38, 43 and " in told[1]
    here = replace(disturbed, header=replace(disturbed.header, calibrated_how="quickly calibrated on this device"))
    doubted = "Limits and predictions were calibrated on it, and are in doubt, too."
    assert [doubted in doubts(one)[1] for one in (disturbed, here)] == [False, True]
    alone = doubts(replace(disturbed, trials=disturbed.ranked[:1]))
    assert "Which of the trials" not in "".join(alone), "there is no other one"
    steady = recorded("nvidia-h200/d3q19-box-fast-fp32")
    assert doubts(steady) == Doubts()


def test_a_limit_by_the_model_that_a_long_run_exceeds_is_no_bound() -> None:
    study = recorded("zen3-2-cores/d3q19-box-fast-fp32")
    limit = binding(study, study.ranked[0])
    assert limit
    assert limit.exceeded == pytest.approx(348.4 / 341 - 1, abs=2e-3)
    said = (
        "The winner reaches 80.1% of the arithmetic limit of the model in bursts (341 MLUPS, exceeded by 2% by this "
        "kernel itself)."
    )
    assert verdict.verdict(study).endswith(said)
    card = next(remark for name, _, remark in section.cards(study) if name == "of the model's limit: arithmetic")
    assert card == "341 MLUPS, by the model; no upper bound, exceeded by 2% by this kernel itself"
    assert why.sustained_said(study) == (
        "Over 2.3 s without a pause an update takes 2,873 ps, 790 less (the reason is not recorded)."
    )
    slower = replace(study.ranked[0], sustained=replace(study.ranked[0].sustained, mlups=340.0))
    trials = tuple(slower if one is study.ranked[0] else one for one in study.trials)
    assert binding(replace(study, trials=trials), slower).exceeded == 0


def test_a_faster_kernel_of_the_search_alone_stands_beside_the_best_of_one_step(fast: StudyRecord) -> None:
    said = "(26,522, esoteric-pull, in the finals; in the search alone trial 70 had 26,576; best of 144 tried)"
    assert said in verdict.verdict(fast)
    (row,) = (one for one in section.beside_rows(fast) if one["beside"].endswith("stores populations"))
    assert row["source"] == "trial 131, in the finals; in the search alone trial 70 had 26,576"
    slower = recorded("zen3-2-cores/d3q19-box-fast-fp32")  # trial 8 had 274 there, and trial 9 itself 281
    assert "in the search alone" not in verdict.verdict(slower)


def test_memory_with_all_halos_stands_beside_a_higher_limit(fast: StudyRecord) -> None:
    # half of the bytes are read, those of halos again: 1.88 cells for one that a launch updates
    rate = fast.ranked[0].prediction.bandwidth_bytes_per_s if fast.ranked[0].prediction else 0.0
    allowed = rate / (fast.ranked[0].best_measurement.bytes_per_update * (1 + 1.88) / 2) / 1e6
    said = f"; if all halos came from memory, it would be the limit: {allowed:,.0f}, of which 80% are reached"

    def limit(cells: float | None) -> str:
        found = section.cards(fast, None if cells is None else lambda _: cells)
        return next(remark for name, _, remark in found if name.startswith("of the limit"))

    assert limit(1.88).endswith(said)
    assert "halo" not in limit(9.0), "one that is exceeded says nothing"
    assert limit(None) == limit(9.0)


# texts to use the winner


def text_of(study: StudyRecord, name: str) -> str:
    return next(tab.text for tab in use.tabs(use.used(study)) if tab.name == name)


def test_the_text_in_python_runs_as_it_is_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = made.cpu_study()
    (tmp_path / "best.json").write_bytes(encode_best(best(study)))
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="EPYC"):
        exec(text_of(study, "Python"), {})
    printed, timed = capsys.readouterr().out.splitlines()
    density, speed = map(float, printed.split())
    assert float(timed.split()[0].replace(",", "")) > 0
    assert f"MLUPS; the study measured {study.ranked[0].mlups:,.0f} on 2 cores of EPYC, 1 thread" in timed
    assert density == pytest.approx(1, abs=1e-3)
    lid = study.header.spec.case.wall_velocity[0]
    assert 0.3 * lid < speed <= 1.1 * lid


def test_programs_in_c_begin_as_the_one_in_python_does(tmp_path: Path) -> None:
    """Vortices in a box of three different extents, and in two dimensions."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler (gcc)")
    for domain in ((6, 4, 8), (6, 4, 1)):
        case = box("d3q19" if domain[2] > 1 else "d2q9", "bgk", domain, 1.2)
        (nx, ny, nz), cells = domain, prod(domain)
        lines = (
            "#include <math.h>\n#include <stdio.h>\nint main(void) {",
            f"    const int nx = {nx}, ny = {ny}, nz = {nz};\n    const size_t cells = {cells};",
            f"    double density[{cells}], velocity[{3 * cells}] = {{0}};",
            *use.start(case, "size_t"),
            "    fwrite(density, 8, cells, stdout), fwrite(velocity, 8, 3 * cells, stdout);\n}",
        )
        (tmp_path / "start.c").write_text("\n".join(lines))
        subprocess.run([compiler, "-o", "start", "start.c", "-lm"], cwd=tmp_path, check=True)
        printed = subprocess.run([tmp_path / "start"], capture_output=True, check=True).stdout
        found = np.frombuffer(printed)
        density, velocity = initial_flow(case)
        np.testing.assert_allclose(found[:cells], density.ravel(), atol=1e-14)
        np.testing.assert_allclose(found[cells:], velocity.ravel(), atol=1e-14)
    assert use.start(replace(case, flow="cavity"), "size_t") == []


def test_a_cpu_object_says_where_it_runs() -> None:
    study = of_bursts()
    notes = {tab.name: tab.note for tab in use.tabs(use.used(study))}
    assert "object code for the processors of the machine that exports" in notes["C"]
    assert notes["Python"] == ""
    assert "lbm_step(flow, 104);" in text_of(study, "C"), "whole launches of 8 steps"
    threads = study.ranked[0].config["threads"]
    assert f"the study measured 663 on 2 cores of AMD EPYC, {threads} threads" in text_of(study, "C")
    hostile = replace(study.header.environment, device='x"; system("%s\\n{y}')
    asked = text_of(replace(study, header=replace(study.header, environment=hostile)), "C")
    assert "on 2 cores of x system(sny, " in asked, "the name of a device cannot end a string or format it"


def test_a_first_measurement_above_the_final_is_a_trial_with_a_command() -> None:
    study = read_study(RECORDED / "xeon-2-cores" / "d3q19-box-fp32")
    told = faster_first(study)
    (one,) = (t for t in study.trials if f"lbmtune measure {t.key} --study ." in told)
    assert f"first measurement of trial {one.number}, 263 MLUPS, lies above the winner's final" in told
    assert "trial 138 had 284 in the search and 210 in the finals" in told


def test_the_text_in_c_fits_the_exported_header(tmp_path: Path) -> None:
    """The shell writes the program as it would; the compiler checks it against the header."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler (gcc)")
    study = made.gpu_study(6)
    (tmp_path / "lbm.h").write_text(cuda_header(best(study), "lbm", "lbm.h"))
    export, *script = text_of(study, "C").splitlines()
    assert export == "lbmtune export best.json --format cuda --name lbm -o lbm.h &&"
    end, script[0] = script.index("END"), script[0].removesuffix(" &&")
    subprocess.run(["sh", "-c", "\n".join(script[: end + 1])], cwd=tmp_path, check=True)
    checked = [compiler, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c", "flow.c"]
    done = subprocess.run(checked, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "nvcc -std=c++17" in script[-1]
