"""Reports on kernels of several steps per launch, and on runs of seconds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import log10

import pytest

from lbmtune.catalogue.config import CudaConfig, cpu, cuda
from lbmtune.catalogue.footprint import bytes_per_update
from lbmtune.catalogue.layouts import Rows
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.model.gpu.temporal_blocking.instruction_issue import efficiency
from lbmtune.model.predict import cells_read
from lbmtune.records import Conditions, Measurement, Prediction, Sustained, Term, Trial
from lbmtune.records.study import StudyRecord
from lbmtune.report.limits import alone_s as read_alone_s
from lbmtune.report.limits import limits_of
from lbmtune.report.study import finals, page, roofline, steps, steps_figure, tables
from lbmtune.report.study.answer import section
from tests.support.pages import page as page_of
from tests.support.studies import made_up_records as made

CASE = box("d3q19", "regularised", (256, 256, 256))
ONE = cuda.Direct(block=(64, 1, 1), cells_per_thread=4)
TWO = cuda.TemporalBlocking(
    block=(32, 12, 1), chunk_planes=86, pack=4, plane_fetch="cp_async", representation="moments", rows=3
)
CAPPED = Sustained(
    mlups=78_000.0,
    seconds=2.0,
    steps=9_300,
    sites=CASE.sites,
    slices_s=(2.15e-4,) * 20,
    energy_j=1_380.0,
    energy_source="counter",
    power_w=690.0,
    power_limit_w=700.0,
    throttled={"software power cap": 0.95},
    conditions=Conditions(sm_clock_hz=1.74e9),
)


def trial(case: Case, number: int, config: CudaConfig, mlups: float, *, marches: bool = False) -> Trial:
    moved = bytes_per_update(case, config)
    by_memory = made.GPU_CEILING.best_bytes_per_s / moved / 1e6
    terms = (
        Term(name="instructions", seconds=6e-12, sentence="so many slots", source="planted", alone_s=8e-12),
        Term(name="memory", seconds=4e-12, sentence="so many bytes", source="planted", alone_s=5e-12),
    )
    prediction = Prediction(
        mlups=1e-6 / 10e-12 if marches else by_memory,
        bytes_per_update=moved,
        bandwidth_bytes_per_s=made.GPU_CEILING.best_bytes_per_s,
        footprint_bytes=1,
        limit="instructions: 215 issue slots per update" if marches else "memory: so many bytes",
        ceiling_source="planted",
        terms=terms if marches else (),
    )
    base = made._trial(case, 1, config, made.GPU_CEILING)
    assert base.measurement is not None
    measured = replace(at(base.measurement, mlups), bytes_per_update=moved)
    return replace(base, number=number, prediction=prediction, measurement=measured, final=measured)


@pytest.fixture(scope="module")
def fast() -> StudyRecord:
    trials = [
        trial(CASE, 1, ONE, 26_500.0),
        replace(trial(CASE, 2, TWO, 84_000.0, marches=True), sustained=CAPPED),
        trial(CASE, 3, replace(TWO, rows=2, steps=1), 46_000.0),
    ]
    return made._study(CASE, "cuda", made.GPU_CEILING, trials, made.GPU)


def why(study: StudyRecord) -> tuple[str, ...]:
    """The explanation of the best trial; empty where the study has no such figure."""
    found = steps.steps_info(study)
    return steps.explanation(study, found) if found else ()


def test_bytes_and_bounds_of_each_number_of_steps(fast: StudyRecord) -> None:
    found = steps.steps_info(fast, partial(cells_read, CASE))
    assert found is not None
    assert found.ideal["populations"] == (152, 76, 152 / 3, 38)
    assert found.ideal["moments"] == (80, 40, 80 / 3, 20)
    assert found.one_step_mlups == pytest.approx(4.2e12 / 152 / 1e6)
    assert [(s.number, s.kind.representation, s.kind.steps) for s in found.stages] == [
        (3, "moments", 1),
        (2, "moments", 2),
        (1, "populations", 1),
    ]
    two, one = found.stages[1:]
    assert two.memory_mlups == pytest.approx(4.2e12 / 40 / 1e6)
    assert (two.issue_mlups, one.issue_mlups) == (pytest.approx(125_000), None)
    assert (two.predicted_mlups, one.predicted_mlups) == (pytest.approx(100_000), pytest.approx(one.memory_mlups))
    assert (two.sustained_mlups, one.sustained_mlups) == (78_000, None)
    # half of the bytes are read, those of halos again
    assert two.halo_bytes == pytest.approx(20 + 20 / efficiency(CASE, TWO, 1).cells)
    assert one.halo_bytes == one.bytes_per_update == 152


@pytest.mark.parametrize(
    ("sentence", "alone_s", "said"),
    [
        ("207 slots per update, halos included, 7.18 ps, 3 warps of a scheduler on their way", None, 7.18e-12),
        ("3 x 89 planes, one after the other, 2.71 ps, 2 planes on their way", 2.7e-12, 2.7e-12),
        ("2,550 MB, +3 us", None, None),
        ("so many words, 7.18 ps if nothing hides it", None, None),
    ],
)
def test_what_a_term_takes_alone_is_read_in_records_of_before(
    sentence: str, alone_s: float | None, said: float | None
) -> None:
    assert read_alone_s(Term(name="x", seconds=1e-12, sentence=sentence, source="", alone_s=alone_s)) == said


CHIP = cuda.Persistent(
    layout=Rows(), block=(32, 8, 1), cells_per_thread=3, register_planes=3, representation="moments", tile_planes=9
)


@pytest.fixture(scope="module")
def on_chip() -> StudyRecord:
    """Moments on chip, which are said to take three quarters of their time for instructions, and two of one step."""
    case = replace(CASE, domain=(96, 96, 96))
    terms = (
        Term(name="instructions", seconds=7.5e-12, sentence="so many slots", source="planted"),
        Term(name="grid sync", seconds=2.5e-12, sentence="of all blocks", source="planted"),
    )
    best = trial(case, 1, CHIP, 93_000.0)
    assert best.prediction
    best = replace(best, prediction=replace(best.prediction, mlups=100_000.0, terms=terms))
    others = [trial(case, 2, ONE, 24_000.0), trial(case, 3, replace(TWO, steps=1, chunk_planes=32), 38_000.0)]
    return made._study(case, "cuda", made.GPU_CEILING, [best, *others], made.GPU)


def test_what_stays_on_chip_has_no_number_of_steps(on_chip: StudyRecord) -> None:
    found = steps.steps_info(on_chip)
    assert found is not None
    assert [(s.number, s.kind.representation, s.kind.on_chip) for s in found.stages] == [
        (3, "moments", False),
        (1, "moments", True),
        (2, "populations", False),
    ]
    figure = steps_figure.steps_figure(found)
    burst = next(t for t in figure.data if t.name == "burst, moments")
    assert (list(burst.x), list(burst.y)) == ([1], [38_000])
    across = [t for t in figure.data if t.name == "moments on chip, any number of steps, the winner"]
    assert [(t.yaxis, set(t.y)) for t in across] == [("y", {found.stages[1].bytes_per_update}), ("y2", {93_000})]
    assert all(list(t.x) == [1, 4] for t in across)


def test_shares_of_the_ceiling_are_said_to_be_no_bound_on_chip(on_chip: StudyRecord, fast: StudyRecord) -> None:
    for study, said in ((on_chip, True), (fast, False)):
        (caption,) = (p.caption for p in page.panels(study) if p.name == "roofline")
        assert ("the lines do not bound them" in caption) is said
        limits = {one.name: one.source for one in limits_of(study, study.ranked[0])}
        assert ("measured by this study" not in limits.get("memory", "")) is said


def test_words_of_what_stays_on_chip_take_memory_for_no_bound(on_chip: StudyRecord) -> None:
    past, beside, binds = why(on_chip)
    assert past.startswith("Moments on chip (D3Q19 regularised, 96 x 96 x 96 cells, fp32) reach 93,000 MLUPS")
    assert past.endswith("bytes per update, through the L2 cache, instead of 152.")
    assert beside.startswith("The best measured with T = 1, trial 3 ")
    assert binds == (
        "Terms of the model: instructions 75% of an update, grid sync 25%; 100,000 MLUPS, of which 93% are reached."
    )
    best = on_chip.ranked[0]
    assert best.prediction
    hardly = Term(name="launch", seconds=1e-6 * best.prediction.terms[0].seconds, sentence="hardly", source="planted")
    more = replace(best, prediction=replace(best.prediction, terms=(*best.prediction.terms, hardly)))
    *_, said = why(replace(on_chip, trials=(more, *on_chip.trials[1:])))
    assert said == binds, "what no figure shows is not told"
    unknown = replace(best, prediction=replace(best.prediction, terms=()))
    said = " ".join(why(replace(on_chip, trials=(unknown, *on_chip.trials[1:]))))
    assert "lowest known bound" not in said
    assert "is the bound" not in said
    of_bytes = Term(name="memory", seconds=1e-12, sentence="so many bytes", source="planted")
    by_bytes = replace(best, prediction=replace(best.prediction, mlups=216_000.0, terms=(of_bytes,)))
    *_, said = why(replace(on_chip, trials=(by_bytes, *on_chip.trials[1:])))
    assert said == "The predicted 216,000 MLUPS follow from bytes alone: the device was not calibrated."


def test_the_winner_is_named_and_no_roof_is_cut_off_above_steps(fast: StudyRecord, on_chip: StudyRecord) -> None:
    found = steps.steps_info(fast)
    assert found is not None
    figure = steps_figure.steps_figure(found)
    named = {trace.name: trace for trace in figure.data}
    ring = named["winner: trial 2, 84,000 MLUPS"]
    assert (ring.x, ring.y, ring.text) == ((2,), (84_000,), ("winner",))
    roofs = [y for name, trace in named.items() if name.startswith(("bandwidth", "roofline of pop")) for y in trace.y]
    assert len(roofs) == 2 * 4 + 2
    low, high = (10**end for end in figure.layout.yaxis2.range)
    assert low < min(roofs)
    assert max(roofs) < high
    stays = steps.steps_info(on_chip)
    assert stays is not None
    shown = [trace.name for trace in steps_figure.steps_figure(stays).data]
    assert "moments on chip, any number of steps, the winner" in shown
    assert not any(name.startswith("winner") for name in shown)
    others = replace(stays, stages=tuple(one for one in stays.stages if one is not stays.winner))
    shown = [trace.name for trace in steps_figure.steps_figure(others).data]
    assert shown.count("moments on chip, any number of steps, the winner") == 2, "its bytes, and its speed"


@pytest.mark.parametrize(
    ("field", "factor"), [("predicted_mlups", 0.3), ("predicted_mlups", 9), ("sustained_mlups", 0.3)]
)
def test_every_mark_lies_within_the_axis(fast: StudyRecord, field: str, factor: float) -> None:
    """A prediction far from what was measured is the one that a reader looks for."""
    found = steps.steps_info(fast)
    assert found is not None
    first, *others = found.stages
    slow, fastest = first.mlups, max(s.memory_mlups for s in found.stages)
    far = replace(first, **{field: slow * factor if factor < 1 else fastest * factor})
    figure = steps_figure.steps_figure(replace(found, stages=(far, *others)))
    low, high = figure.layout.yaxis2.range
    shown = [y for trace in figure.data if trace.yaxis == "y2" and trace.mode == "markers" for y in trace.y if y]
    assert getattr(far, field) in shown
    assert low + 0.05 < log10(min(shown)) <= log10(max(shown)) < high - 0.05


def test_words_name_operator_domain_and_steps_on_both_sides(fast: StudyRecord) -> None:
    past, beside, binds, power = why(fast)
    assert beside.startswith("The best measured with T = 1, trial 3 ")
    assert beside.endswith("reaches 46,000 MLUPS; the winner is 1.83 times as fast.")
    assert past.count("D3Q19 regularised, 256 x 256 x 256 cells, fp32") == 2
    assert "Moments with T = 2" in past
    assert "populations with T = 1" in past
    assert f"{84_000 / (4.2e12 / 152 / 1e6):.2f} times" in past
    assert binds == (
        "Each alone would allow: memory 105,000, instructions 125,000 MLUPS. The model predicts 100,000 MLUPS, of "
        "which 84% are reached."
    )
    figure = steps_figure.steps_figure(steps.steps_info(fast))
    marks = {t.name: list(t.y) for t in figure.data}
    assert marks["issue slots alone, moments"] == [None, pytest.approx(125_000)]
    assert marks["predicted, moments"][1] == pytest.approx(100_000)
    assert "78,000 MLUPS (-7.1%), 8.84 nJ per update; held at the power limit" in power
    assert "held at the power limit of 700 W" in power
    assert "95% of the samples" in power


@pytest.mark.parametrize(
    ("run", "bound"),
    [
        (CAPPED, True),
        (replace(CAPPED, mlups=83_900.0), False),
        (replace(CAPPED, throttled={}), False),
        (replace(CAPPED, throttled={"software thermal slowdown": 1.0}), False),
    ],
)
def test_power_binds_what_is_slower_for_its_sake(run: Sustained, bound: bool) -> None:
    assert steps.is_power_bound(run, 84_000.0) is bound
    assert ("power limit" in steps.sustained_text(run, 84_000.0)) is bound


def test_a_sentence_on_a_run_of_seconds_says_that_it_was_disturbed() -> None:
    assert ": disturbed, 78,000 MLUPS" in steps.sustained_text(replace(CAPPED, disturbed=True), 84_000.0)
    assert "disturbed" not in steps.sustained_text(CAPPED, 84_000.0)


def test_a_study_of_one_step_alone_has_no_such_figure() -> None:
    assert steps.steps_info(made.gpu_study()) is None
    assert why(made.gpu_study()) == ()
    assert not {"steps", "sustained"} & {p.name for p in page.panels(made.gpu_study())}


def test_runs_of_seconds_are_in_headline_cards_tables_and_figures(fast: StudyRecord) -> None:
    assert (
        "sustained",
        "78,000 MLUPS",
        "over 2.0 s without a pause, -7.1%; held at the power limit of 700 W",
    ) in section.cards(fast)
    table = tables.trial_table(fast)
    column = table.columns.index("sustained MLUPS")
    assert [row[column] for row in table.rows] == [None, 78_000, None]
    assert [row[column + 1] for row in table.rows] == [None, 8.84, None]
    assert {len(row) for row in table.rows} == {len(table.columns)} == {len(table.numeric)}
    shown = page.panels(fast)
    assert {"steps", "sustained"} <= {p.name for p in shown}
    assert [p.name for p in shown if p.wide][:2] == ["roofline", "steps"]
    # every trial of the figure has its label
    figure = finals.sustained_figure(fast)
    assert figure.layout.yaxis.dtick == 1
    low, high = figure.layout.xaxis.range
    drawn = [speed for trace in figure.data for speed in trace.x]
    assert low < min(drawn) < max(drawn) < high
    (ran,) = (trial for trial in fast.ranked if trial.sustained)
    alike = replace(ran, sustained=replace(ran.sustained, mlups=1.0005 * (ran.mlups or 0.0)))
    low, high = finals.sustained_figure(replace(fast, trials=(alike,))).layout.xaxis.range
    assert (high - low) / high >= 0.019, "noise is not blown up"
    text = page_of(fast)
    assert "software power cap in 95% of the samples" in text
    assert "8.84 nJ per update, by counter" in text


def at(measured: Measurement, mlups: float) -> Measurement:
    """Return a measurement at another speed, its samples, too."""
    samples_s = tuple(one * measured.mlups / mlups for one in measured.samples_s)
    return replace(measured, mlups=mlups, samples_s=samples_s)


def on_a_processor(last_cache_bytes: int) -> StudyRecord:
    """Eight steps in place beside one step in place, 64^3, as on two cores with 32 MiB of cache."""
    case = box("d3q19", "bgk", (64, 64, 64))
    several = cpu.Wavefront(steps=8, tile=(32, 1))
    trials = []
    for number, (config, mlups) in enumerate(((several, 595.0), (cpu.Direct(scheme="aa"), 522.0))):
        base = made._trial(case, 1, config, made.CPU_CEILING)
        assert base.measurement is not None
        assert base.prediction is not None
        measured = at(base.measurement, mlups)
        parts = (
            Term(name="arithmetic", seconds=9e-10, sentence="work", source="planted"),
            Term(name="memory", seconds=3e-10, sentence="bytes", source="planted"),
        )
        expected = replace(base.prediction, terms=parts, mlups=833.0, footprint_bytes=24 << 20)
        trials.append(replace(base, number=number, prediction=expected, measurement=measured, final=measured))
    study = made._study(case, "cpu", made.CPU_CEILING, trials, made.CPU)
    return replace(study, header=replace(study.header, last_cache_bytes=last_cache_bytes))


@pytest.mark.parametrize(("cache_bytes", "fits"), [(32 << 20, True), (16 << 20, False), (0, False)])
def test_on_a_processor_one_step_is_compared_as_measured_and_as_its_cache_allows(cache_bytes: int, fits: bool) -> None:
    study = on_a_processor(cache_bytes)
    said = " ".join(why(study))
    assert "reaches 522 MLUPS; the winner is 1.14 times as fast." in said
    assert ("24 MiB, fits in the last-level cache (32 MiB): memory bandwidth does not bound it." in said) == fits
    assert ("Trial 1 is faster than one step per launch could be at 54 GB/s (355 MLUPS)" in said) == (not fits)
    assert ("case.domain=128x128x128" in roofline.roofline_panel(study).caption) == fits


def test_one_step_that_stays_below_the_bandwidth_does_not_question_it(fast: StudyRecord) -> None:
    assert "underestimates" not in " ".join(why(fast))


def test_on_a_processor_what_binds_follows_from_the_terms_of_the_prediction() -> None:
    said = " ".join(why(on_a_processor(0)))
    assert "Terms of the model: arithmetic 75% of an update, memory 25%; 833 MLUPS, of which 71% are reached." in said
    assert "lowest known bound" not in said
