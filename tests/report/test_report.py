"""The report: what its tables and figures say, and the page in a browser."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from lbmtune.catalogue.config import KernelConfig, cpu, cuda, from_flat
from lbmtune.catalogue.layouts import SoA
from lbmtune.catalogue.operation_counts import flops_per_update
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.cli.format.studies.finished import _cost_rows
from lbmtune.codegen.describe import describe_kernel
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.export import printed_kernel
from lbmtune.records import Costs, Outcome, Resources, Sustained, Term, Trial
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.report import drawing, html
from lbmtune.report import tables as shared_tables
from lbmtune.report.study import (
    finals,
    outcomes,
    page,
    roofline,
    speeds,
    tables,
    winner,
)
from lbmtune.report.study.answer import section
from lbmtune.search.kinds import Kind, kind_of
from lbmtune.units import format_mlups, format_rate
from tests.support.pages import page as page_of
from tests.support.pages import write_report
from tests.support.paths import RECORDED, ROOT
from tests.support.studies import made_up_records as made

STUDIES: dict[str, Callable[[], StudyRecord]] = {
    "gpu": made.gpu_study,
    "cpu": made.cpu_study,
    "hopeless": made.hopeless_study,
    "empty": made.empty_study,
}


@pytest.fixture(scope="module")
def gpu() -> StudyRecord:
    return made.gpu_study()


def test_the_made_up_study_has_every_outcome(gpu: StudyRecord) -> None:
    assert {t.outcome for t in gpu.trials} == set(Outcome)


def test_roofline_counts_flops_and_has_a_ceiling(gpu: StudyRecord) -> None:
    found = roofline.roofline_info(gpu)
    case = gpu.header.spec.case
    assert found.flops == flops_per_update(case) > 19
    assert (found.ceiling.name, found.ceiling.bytes_per_s) == ("update in place", 4.2e12)
    assert {"copy of one array", "19-stream copy, 16-byte access"} <= {roof.name for roof in found.roofs}
    assert len(found.points) == len(gpu.ranked)
    assert {p.intensity for p in found.points} == {found.flops / 152}
    # a point on the roof has all of the ceiling
    for p in found.points:
        assert p.share == pytest.approx(p.mlups * found.flops / p.intensity * 1e6 / 4.2e12)


@pytest.mark.parametrize(
    ("rates", "name"), [({"16": 4.15e12}, "update in place"), ({"16": 4.25e12}, "19-stream copy, 16-byte access")]
)
def test_one_ceiling_in_card_table_line_and_caption(gpu: StudyRecord, rates: dict[str, float], name: str) -> None:
    """A plain copy of one array is shown, and is no ceiling however fast it is."""
    ceiling = replace(gpu.header.ceiling, copy_bytes_per_s=4.3e12, stream_bytes_per_s=rates)
    study = replace(gpu, header=replace(gpu.header, ceiling=ceiling))
    found = roofline.roofline_info(study)
    assert (found.ceiling.name, found.ceiling.bytes_per_s) == (name, ceiling.best_bytes_per_s)
    share = f"{study.share_of_ceiling(study.ranked[0]):.1%}"
    rate = format_rate(ceiling.best_bytes_per_s)
    allowed = format_mlups(ceiling.best_bytes_per_s / 152e6)
    card = ("of the limit: memory", share, f"{allowed} MLUPS, {name}, {rate}, measured by this study")
    assert card in section.cards(study)
    table = dict(winner.winner_table(study, printed_kernel(study)))
    assert table[f"of {name}, the limit"].startswith(share)
    assert table["of copy of one array"].endswith("of 4300 GB/s")
    lines = [trace for trace in roofline.roofline_figure(found).data if trace.mode == "lines"]
    assert [trace.name.split(":")[0] for trace in lines if trace.line.dash == "solid"] == [name]
    assert len(lines) == len(found.roofs)
    caption = next(panel for panel in page.panels(study) if panel.name == "roofline").caption
    assert f"the thick one, {name}, is {roofline.CEILING_TITLE}." in caption
    assert "Flop are those of the collision operator" in caption


@pytest.mark.parametrize("fastest", [1.0, 100.0])
def test_the_winner_is_marked_and_named_on_the_roofline_however_fast_it_is(gpu: StudyRecord, fastest: float) -> None:
    found = roofline.roofline_info(gpu)
    best, *others = found.points
    assert best.number == gpu.ranked[0].number
    beside = replace(next(one for one in others if one.kind != best.kind), intensity=best.intensity)
    points = (replace(best, mlups=best.mlups * fastest), beside)
    figure = roofline.roofline_figure(replace(found, points=points))
    (ring,) = (trace for trace in figure.data if trace.mode == "markers+text")
    assert ring.name == f"winner: trial {best.number}, {best.mlups * fastest:,.0f} MLUPS"
    assert ring.text == ("winner",)
    ranks = [1000 if trace.legendrank is None else trace.legendrank for trace in figure.data if trace is not ring]
    assert ring.legendrank < min(ranks), "the first of the legend, whatever scrolls"
    # around its point, also where kinds are moved aside to be seen apart
    (kind,) = (trace for trace in figure.data if trace.name == best.kind.label)
    assert ring.x[0] != best.intensity
    assert (ring.x[0], ring.y[0]) in zip(kind.x, kind.y, strict=True)
    assert ring.y[0] < 10 ** figure.layout.yaxis.range[1]


def test_a_roofline_without_points_has_its_roofs(gpu: StudyRecord) -> None:
    found = replace(roofline.roofline_info(gpu), points=())
    assert [trace.mode for trace in roofline.roofline_figure(found).data] == ["lines"] * len(found.roofs)


def _as_told(study: StudyRecord, terms: tuple[Term, ...]) -> StudyRecord:
    """With a winner whose prediction is made of these terms."""
    best = study.ranked[0]
    assert best.prediction
    told = replace(best, prediction=replace(best.prediction, terms=terms))
    return replace(study, trials=tuple(told if one is best else one for one in study.trials))


def test_the_issue_of_instructions_is_a_level_roof_that_begins_at_the_ceiling(gpu: StudyRecord) -> None:
    issue = Term(name="instructions", seconds=3e-12, sentence="so many slots", source="planted", alone_s=8e-12)
    study = _as_told(gpu, (issue,))
    found = roofline.roofline_info(study)
    assert [(one.name, one.mlups) for one in found.limits] == [("instructions", pytest.approx(125_000))]
    (level,) = (trace for trace in roofline.roofline_figure(found).data if trace.name.startswith("limit of the winner"))
    assert level.y == pytest.approx((125_000, 125_000))
    # where the ceiling allows as much, and on from there
    assert found.ceiling.bytes_per_s * level.x[0] / found.flops == pytest.approx(125_000e6)
    assert level.x[1] > level.x[0]
    assert level.name == "limit of the winner, instructions: 125,000 MLUPS"
    assert roofline.other_roofs(study).endswith("each alone: instructions 125,000 MLUPS.")


def test_where_no_other_roof_is_known_a_sentence_says_so(gpu: StudyRecord) -> None:
    memory, work = (Term(name=name, seconds=1e-9, sentence="", source="") for name in ("memory", "arithmetic"))
    said = roofline.other_roofs(_as_told(gpu, ()))
    assert said.startswith("No other roof is known: the record has no time of the winner's instructions")
    (caption,) = (one.caption for one in page.panels(_as_told(gpu, ())) if one.name == "roofline")
    assert said in caption
    assert "the model predicts the winner from memory alone" in roofline.other_roofs(_as_told(gpu, (memory,)))
    assert "adds up terms of the winner (memory, arithmetic)" in roofline.other_roofs(_as_told(gpu, (memory, work)))
    assert roofline.other_roofs(made.hopeless_study()) == ""


def test_shared_memory_is_what_a_launch_asks_for_too(gpu: StudyRecord) -> None:
    """8 warps exchange twice five populations in two stages; records from before that was counted say 0."""
    asked = 2 * 2 * (5 * 256 + 4 * 32) * 4
    config = cuda.TemporalBlocking(chunk_planes=1, plane_fetch="none")
    kernel = describe_kernel(render(gpu.header.spec.case, config))
    for recorded, shown in ((0, asked), (asked + 16, asked + 16)):
        trials = [replace(t, resources=Resources(registers=64, shared_bytes=recorded)) for t in gpu.trials]
        table = dict(winner.winner_table(replace(gpu, trials=tuple(trials)), kernel))
        assert table["shared memory per block"] == f"{shown:,} B"


def test_history_keeps_the_best_so_far_and_adds_up_time(gpu: StudyRecord) -> None:
    found = outcomes.attempts(gpu)
    assert [a.trial.number for a in found] == [t.number for t in gpu.trials]
    spent = gpu.costs.compile_s + gpu.costs.verify_s + gpu.costs.measure_s + gpu.costs.search_s
    assert found[-1].elapsed_s == pytest.approx(spent)
    assert outcomes.best_so_far(found)[-1] == max(a.mlups or 0 for a in found)
    assert outcomes.best_so_far(outcomes.attempts(made.hopeless_study()))[-1] is None


def test_parity_knows_the_error_of_the_model(gpu: StudyRecord) -> None:
    found = speeds.parity_info(gpu)
    assert found.median_error == median(abs(t.prediction.mlups / t.mlups - 1) for t in gpu.ranked)
    said = f"over {len(gpu.ranked)} of {len(gpu.ranked)} trials: {found.median_error:.1%}."
    model = f"Predictions of lbmtune {gpu.header.version}, {gpu.header.date[:10]}."
    assert speeds.error_caption(found) == f"Median error of the model, |predicted / measured - 1|, {said} {model}"
    bare = replace(gpu, trials=tuple(replace(t, prediction=None) for t in gpu.trials))
    assert speeds.parity_info(bare).median_error is None
    assert "parity" not in {p.name for p in page.panels(bare)}


def flawed(study: StudyRecord, disturbed: int, dismissed: int) -> StudyRecord:
    """The study with so many of the verified trials, best first, disturbed and then dismissed, at half their speed.

    The last of those that are disturbed was dismissed, too.
    """
    changed = {}
    for place, trial in enumerate(study.ranked[: disturbed + dismissed]):
        found = trial.best_measurement
        marks = {"disturbed": place < disturbed, "dismissed": place >= disturbed - 1}
        slow = replace(found, mlups=found.mlups / 2, **marks)
        changed[trial.number] = replace(trial, measurement=slow, final=None)
    return replace(study, trials=tuple(changed.get(t.number, t) for t in study.trials))


def error(trials: Sequence[Trial]) -> float:
    return median(abs(t.prediction.mlups / t.mlups - 1) for t in trials if t.prediction and t.mlups)


def test_the_error_of_the_model_is_of_all_trials_that_were_left_alone(gpu: StudyRecord) -> None:
    study = flawed(gpu, 5, 12)
    found, every = speeds.parity_info(study), len(gpu.ranked)
    alone = [t for t in study.ranked if not t.best_measurement.disturbed]
    looked_at = [t for t in alone if t.best_measurement.dismissed]
    assert (len(alone), len(looked_at)) == (every - 5, 12)
    assert (found.median_error, found.of_dismissed) == (error(alone), error(looked_at))
    assert found.median_error != error(study.ranked)
    assert found.median_error != error([t for t in alone if not t.best_measurement.dismissed])
    assert (found.counted, found.left_out) == (every - 5, {"disturbed": 5})
    (caption,) = (panel.caption for panel in page.panels(study) if panel.name == "parity")
    assert f"over {every - 5} of {every} trials: {found.median_error:.1%}." in caption
    assert f"Of those dismissed after a first look: {found.of_dismissed:.1%}." in caption
    assert caption.endswith("Left out, and pale: 5 disturbed.")


def test_predictions_of_a_later_model_are_dated(gpu: StudyRecord) -> None:
    later = [replace(t, prediction=replace(t.prediction, date="2026-11-26")) for t in gpu.trials if t.prediction]
    study = replace(gpu, trials=tuple(later))
    (caption,) = (panel.caption for panel in page.panels(study) if panel.name == "parity")
    assert "Predictions made on 2026-11-26 from the record." in caption
    told = dict(winner.winner_table(study))["prediction"]
    assert ", made on 2026-11-26 from the record, limited by" in told
    assert "made on" not in dict(winner.winner_table(gpu))["prediction"]


def test_points_that_do_not_count_are_pale_and_say_why(gpu: StudyRecord) -> None:
    figure = speeds.parity_figure(speeds.parity_info(flawed(gpu, 5, 3)))
    drawn = [
        (trace.marker.opacity, text.removeprefix("<br>").replace("<br>", ", "))
        for trace in figure.data
        if trace.meta
        for text in trace.hovertext
    ]
    assert len(drawn) == len(gpu.ranked)
    both = "disturbed, dismissed after a first look"
    marks = ["dismissed after a first look"] * 3 + ["disturbed"] * 4 + [both]
    assert sorted(mark for _, mark in drawn if mark) == marks
    assert {("disturbed" in mark, shown) for shown, mark in drawn} == {(True, drawing.PALE), (False, 0.75)}
    named = [trace.name for trace in figure.data if trace.marker.symbol and trace.showlegend]
    assert sorted(named) == sorted({kind_of(from_flat(t.config)).label for t in gpu.ranked})


@pytest.mark.parametrize("left", [0, speeds.FEWEST - 1, speeds.FEWEST])
def test_of_too_few_trials_no_error_of_the_model_is_told(gpu: StudyRecord, left: int) -> None:
    study = flawed(gpu, len(gpu.ranked) - left, 0)
    (caption,) = (panel.caption for panel in page.panels(study) if panel.name == "parity")
    few = f"No median error of the model: {left} of {len(gpu.ranked)} trials are too few."
    assert (few in caption) == ("Median error" not in caption) == (left < speeds.FEWEST)
    assert (speeds.parity_info(study).median_error is None) == (left < speeds.FEWEST)
    assert caption.endswith(f"Left out, and pale: {len(gpu.ranked) - left} disturbed.")


def test_costs_add_up(gpu: StudyRecord) -> None:
    found = outcomes.cost_info(gpu)
    assert sum(mine.get("verify", 0) for mine in found.values()) == pytest.approx(gpu.costs.verify_s)
    assert not [outcome for outcome, mine in found.items() if "measure" in mine and outcome is not Outcome.OK]


def test_outcomes_count_every_trial_with_its_reason(gpu: StudyRecord) -> None:
    found = outcomes.outcome_info(gpu)
    assert sum(o.count for o in found) == len(gpu.trials)
    wrong = next(o for o in found if o.outcome is Outcome.WRONG_RESULT)
    assert wrong.reasons[0] == (made.REASONS[Outcome.WRONG_RESULT], wrong.count)


def test_distribution_holds_every_speed(gpu: StudyRecord) -> None:
    found = speeds.distribution_info(gpu)
    assert sorted(v for values in found.values() for v in values) == sorted(t.mlups for t in gpu.ranked)


def test_finals_are_paired_with_the_winner(gpu: StudyRecord) -> None:
    first, *others = finals.finals_info(gpu)
    assert first.number == gpu.ranked[0].number
    assert first.ratio is None
    for f in others:
        assert f.ratio is not None
        assert f.ratio.median == pytest.approx(f.measurement.mlups / first.measurement.mlups)
        assert f.ratio.low <= f.ratio.median <= f.ratio.high < 1.0


def test_a_share_above_the_ceiling_is_explained(gpu: StudyRecord) -> None:
    assert "no upper bound" not in page_of(gpu)
    low = replace(gpu.header.ceiling, in_place_bytes_per_s=2e12, stream_bytes_per_s={"16": 2e12})
    assert "copy of one array moves 4100 GB/s" in roofline.above_the_ceiling(
        replace(gpu, header=replace(gpu.header, ceiling=low))
    )
    lower = replace(low, copy_bytes_per_s=1e12)
    assert roofline.above_the_ceiling(replace(gpu, header=replace(gpu.header, ceiling=lower))).endswith(
        "than its many streams. It is no upper bound: shares are relative."
    )
    highest = max(t.best_measurement.bandwidth_bytes_per_s for t in gpu.ranked) / 2e12 - 1
    assert f"exceeded this benchmark by up to {highest:.0%}" in roofline.above_the_ceiling(
        replace(gpu, header=replace(gpu.header, ceiling=lower))
    )


def test_trial_table_has_a_row_each_with_reason_and_config(gpu: StudyRecord) -> None:
    table = tables.trial_table(gpu)
    assert len(table.rows) == len(table.configs) == len(gpu.trials)
    assert {len(row) for row in table.rows} == {len(table.columns)} == {len(table.numeric)}
    speed = table.columns.index("MLUPS")
    assert [row[speed] is None for row in table.rows] == [t.mlups is None for t in gpu.trials]
    assert gpu.trials[table.winner] == gpu.ranked[0]
    assert tables.trial_table(made.hopeless_study()).winner == -1
    assert set(table.digits) <= set(table.columns)
    assert table.configs[0].startswith("backend=cuda,block=64x1x1,")


def test_of_several_devices_the_report_says_which_measured_each_trial(gpu: StudyRecord) -> None:
    assert "device" not in tables.trial_table(gpu).columns
    assert "devices" not in dict(tables.case_table(gpu))
    trials = [replace(t, device="GPU-2" if t.number % 2 else "", costs=Costs(verify_s=1.0)) for t in gpu.trials]
    environment = replace(gpu.header.environment, device_id="GPU-1")
    two = replace(gpu, header=replace(gpu.header, environment=environment), trials=tuple(trials))
    table = tables.trial_table(two)
    place = table.columns.index("device")
    assert [row[place] for row in table.rows] == [t.device or "GPU-1" for t in trials]
    odd = sum(t.number % 2 for t in trials)
    said = f"{len(trials) - odd} trials on GPU-1, {odd} trials on GPU-2; finals on GPU-1"
    assert dict(tables.case_table(two))["devices"] == said == dict(_cost_rows(two))["devices"]
    lost = replace(two, header=replace(two.header, finals_device="GPU-2"))
    assert dict(tables.case_table(lost))["devices"].endswith("finals on GPU-2")


@pytest.mark.parametrize("count", [drawing.MANY, 5 * drawing.MANY])
def test_of_many_points_some_are_drawn_at_a_time(gpu: StudyRecord, count: int) -> None:
    """The others are in the page all the same."""
    few, good = [one for one in outcomes.attempts(gpu) if not one.mlups][:3], outcomes.attempts(gpu)[1]
    found = [*few, *(good._replace(trial=replace(good.trial, number=number)) for number in range(count - len(few)))]
    figure = outcomes.history_figure(found, None)
    assert drawing.thin(figure) is (count > drawing.MANY)
    traces = [trace for trace in figure.data if trace.mode == "markers"]
    assert sum(len(trace.customdata) for trace in traces) == count
    drawn = [trace.marker.maxdisplayed for trace in traces]
    if count > drawing.MANY:
        assert max(drawn) == (count - len(few)) * drawing.MANY // count
        assert min(drawn) == drawing.FEWEST, "all of a kind with few"
    else:
        assert drawn == [None] * len(drawn)


def test_a_figure_that_draws_some_of_its_points_says_so(gpu: StudyRecord) -> None:
    numbers = range(drawing.MANY + 1)
    figure = drawing.plain_figure("x", "y").add_trace(drawing.scatter(x=list(numbers), y=list(numbers)))
    assert "zooming in draws the others" in html.panel("many", "", "Points.", figure).caption
    assert not [one.title for one in page.panels(gpu) if "zooming" in one.caption]


def test_a_page_carries_the_part_of_plotly_that_can_draw_it(gpu: StudyRecord) -> None:
    figures = [json.loads(gzip.decompress(base64.b64decode(one.figure))) for one in page.panels(gpu)]
    assert {trace["type"] for one in figures for trace in one["data"]} == {"scatter", "bar"}
    held = page_of(gpu).partition('id="plotly-packed">')[2].partition("<")[0]
    assert len(held) < 700_000
    assert "plotly.js (cartesian" in gzip.decompress(base64.b64decode(held))[:200].decode()


def test_another_kernel_text_than_the_measured_one_is_told(gpu: StudyRecord) -> None:
    program = render(gpu.header.spec.case, from_flat(gpu.ranked[0].config))
    assert "//" in program.source, "comments, which are no code"
    measured = replace(gpu, trials=tuple(replace(t, source_digest=program.digest) for t in gpu.trials))
    assert "prints another kernel" not in page_of(measured)
    stale = replace(gpu, trials=tuple(replace(t, source_digest="0" * 64) for t in gpu.trials))
    assert "prints another kernel" in page_of(stale)


def test_text_of_records_is_escaped(gpu: StudyRecord) -> None:
    kernel = printed_kernel(gpu)
    assert kernel
    beyond = page.Beyond(replace(kernel, source="if (a < b) </pre><script>alert(2)</script>"))
    text = page.page(gpu, beyond)
    assert "<script>alert" not in text
    assert "made up &amp; &lt;b&gt;marked" in text
    assert "a &lt; b" in text


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot write"):
        write_report(made.empty_study(), tmp_path / "file" / "report.html")


@pytest.mark.parametrize(
    ("config", "label"),
    [
        (cuda.Direct(scheme="aa"), "aa"),
        (cuda.Column(scheme="aa"), "aa"),
        (cuda.TemporalBlocking(representation="moments", steps=2), "moments, 2 steps per launch"),
        (cuda.TemporalBlocking(representation="moments", steps=1), "moments, 1 step per launch"),
        (cuda.TemporalBlocking(steps=3), "push, 3 steps per launch"),
    ],
)
def test_figures_tell_kernels_of_moments_by_their_steps(config: KernelConfig, label: str) -> None:
    assert kind_of(config).label == label


def kind(pattern: str, steps: int, *, on_chip: bool = False) -> Kind:
    """A kind of kernel of a scheme, or of moments."""
    moments = pattern == "moments"
    return Kind(
        representation="moments" if moments else "populations",
        place="on chip" if on_chip else "",
        lattices=2,
        links="compiled",
        scheme="pull" if moments else pattern,
        steps=steps,
        on_chip=on_chip,
    )


CUDA_KINDS = [
    *(kind(scheme, 1) for scheme in SCHEMES),
    *(kind("push", steps) for steps in range(2, 9)),
    *(kind("moments", steps) for steps in range(1, 9)),
    *(kind(pattern, 1, on_chip=True) for pattern in ("pull", "moments")),
]
CPU_KINDS = [
    *(kind(scheme, 1) for scheme in ("pull", "push")),
    *(kind(s, steps) for s in ("aa", "esoteric-pull", "esoteric-twist") for steps in range(1, 9)),
]
VISION = {
    "normal": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
"""Linear sRGB as it is seen: Machado, Oliveira and Fernandes 2009, severity 1."""


def cielab(colour: str, vision: str) -> np.ndarray:
    """[L, a, b] of a colour #rrggbb under D65."""
    coded = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(VISION[vision]) @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = to_xyz @ seen / (0.9505, 1.0, 1.089)
    x, y, z = (np.cbrt(v) if v > 216 / 24389 else (24389 / 27 * v + 16) / 116 for v in (x, y, z))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_a_kernel_that_stays_on_chip_says_so_and_not_how_many_steps_a_launch_does() -> None:
    kernels = cuda.Persistent(), cuda.Persistent(representation="moments"), cuda.Direct(launch="graph")
    assert [kind_of(one).label for one in kernels] == ["pull on chip", "moments on chip", "pull"]


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("kinds", [CUDA_KINDS, CPU_KINDS], ids=["cuda", "cpu"])
def test_kinds_differ_in_symbol_or_colour_for_every_eye(kinds: list[Kind], vision: str) -> None:
    for one, other in combinations(kinds, 2):
        a, b = drawing.look(one), drawing.look(other)
        if a.symbol == b.symbol:
            assert np.linalg.norm(cielab(a.colour, vision) - cielab(b.colour, vision)) > 12, (one, other)


def test_kinds_have_their_own_traces_with_name_and_look(gpu: StudyRecord) -> None:
    kinds = [kind("push", 1), kind("push", 3), kind("moments", 3)]
    found = roofline.roofline_info(gpu)
    mixed = tuple(replace(p, kind=kinds[i % 3]) for i, p in enumerate(found.points))
    beside = speeds.parity_figure(replace(speeds.parity_info(gpu), points=mixed))
    spread = speeds.distribution_figure(dict.fromkeys(kinds, (1.0, 2.0)))
    for figure in (roofline.roofline_figure(replace(found, points=mixed)), beside, spread):
        traces = [t for t in figure.data if t.marker.symbol and not t.name.startswith("winner")]
        drawn = {t.name.removesuffix(" (2)"): (t.marker.color, t.marker.symbol) for t in traces}
        assert drawn == {k.label: (drawing.look(k).colour, drawing.look(k).symbol) for k in kinds}


@pytest.mark.parametrize(
    ("collision", "title"), [("bgk", "D3Q19 BGK"), ("regularised", "D3Q19 regularised"), ("mrt", "D3Q19 MRT")]
)
def test_operators_are_written_as_in_text(gpu: StudyRecord, collision: str, title: str) -> None:
    assert shared_tables.case_title(replace(gpu.header.spec.case, collision=collision)) == title


@pytest.mark.parametrize(
    ("configs", "told"),
    [
        (
            [cuda.Direct(storage="fp16s"), cuda.Direct(scheme="aa", storage="fp16s")],
            "fp16s/fp32 {}, one step per launch",
        ),
        (
            [cuda.Direct(compute="fp64", storage="fp64"), cuda.Direct()],
            "fp32/fp32 and fp64/fp64 {}, one step per launch",
        ),
        (
            [cuda.TemporalBlocking(layout=SoA(), block=(256, 1, 1), chunk_planes=1, plane_fetch="none")],
            "fp32/fp32 {}, 2 steps per launch",
        ),
        (
            [
                cuda.TemporalBlocking(layout=SoA(), block=(256, 1, 1), chunk_planes=1, plane_fetch="none", steps=3),
                cuda.Direct(),
                cpu.Wavefront(scheme="pull", steps=2, tile=(0, 0)),
            ],
            "fp32/fp32 {}, 1 to 3 steps per launch",
        ),
        (
            [
                cuda.Persistent(block=(256, 1, 1), tile_planes=1),
                cuda.TemporalBlocking(layout=SoA(), block=(256, 1, 1), chunk_planes=1, plane_fetch="none"),
            ],
            "fp32/fp32 {}, 2 or many steps per launch",
        ),
        ([cuda.Persistent(block=(256, 1, 1), tile_planes=1)], "fp32/fp32 {}, many steps per launch"),
    ],
)
def test_the_subject_names_precision_and_steps(gpu: StudyRecord, configs: list[KernelConfig], told: str) -> None:
    case = gpu.header.spec.case
    assert shared_tables.subject(case, []) == "D3Q19 BGK box, 256 x 256 x 256 cells"
    assert (
        shared_tables.subject(case, configs) == f"{shared_tables.subject(case, [])}, {told.format('(stored/computed)')}"
    )


@pytest.mark.parametrize(("storage", "told"), [("fp32", "fp32/fp32"), ("fp16s", "fp16s/fp32")])
def test_title_and_first_line_name_the_precision(gpu: StudyRecord, storage: str, told: str) -> None:
    """Studies of one case in several precisions are told apart by the names of their tabs."""
    study = replace(gpu, trials=tuple(replace(t, config={**t.config, "storage": storage}) for t in gpu.trials))
    about = f"D3Q19 BGK box, 256 x 256 x 256 cells, {told} (stored/computed), one step per launch"
    text = page_of(study)
    name = "made up &amp; &lt;b&gt;marked&lt;/b&gt;"
    assert f"<title>{name}: {about}, on NVIDIA H200 - lbmtune</title>" in text
    assert f'<p class="study">{name}: {about}, CUDA, 2026-01-02</p>' in text


def test_speeds_of_a_case_with_solid_cells_are_of_its_fluid_ones_wherever_they_stand(gpu: StudyRecord) -> None:
    run = Sustained(mlups=91.6, seconds=2.0, steps=100, sites=64, slices_s=(0.02,))
    kept_up = replace(gpu, trials=tuple(replace(t, sustained=run) if t.final else t for t in gpu.trials))
    spec = gpu.header.spec
    solid = replace(kept_up, header=replace(gpu.header, spec=replace(spec, case=replace(spec.case, geometry="sphere"))))
    for study, unit in ((kept_up, "MLUPS"), (solid, "MFLUPS")):
        assert winner.winner_section(study, None)["sustained"][0] == (
            "sustained",
            f"91.6 {unit} over 2.0 s, 100 time steps",
        )
        (caption,) = (panel.caption for panel in page.panels(study) if panel.name == "roofline")
        assert ("MLUPS are MFLUPS here." in caption) == (study is solid)


def test_case_and_protocol_are_in_the_words_and_units_of_the_field(gpu: StudyRecord) -> None:
    spec = replace(gpu.header.spec, case=replace(gpu.header.spec.case, collision="trt", relaxation_rate=1.6))
    rows = dict(tables.case_table(replace(gpu, header=replace(gpu.header, spec=spec))))
    assert rows["relaxation rate"] == "1.6 per time step"
    assert rows["viscosity"] == "0.0417 in lattice units"
    assert rows["magic parameter"] == "0.1875"
    assert "magic parameter" not in dict(tables.case_table(gpu))
    protocol = dict(tables.protocol_table(gpu.header))
    assert protocol["factor of slowness at which a candidate is dismissed"] == str(spec.protocol.bail_out)
    assert protocol["warmup (s)"] == str(spec.protocol.warmup_s)
    assert len(protocol) == len(fields(spec.protocol))
    assert "CPU cores" in dict(shared_tables.environment_table(made.cpu_study().header.environment))


def test_bytes_of_an_update_are_rounded() -> None:
    assert [tables.moved(value) for value in (80 / 3, 152.0, 158.37)] == ["26.7 B", "152 B", "158.4 B"]


@pytest.mark.parametrize("name", ["gpu", "cpu", "hopeless"])
def test_no_row_of_figures_is_half_empty(name: str) -> None:
    shown = page.panels(STUDIES[name]())
    assert [p.name for p in shown if not p.wide]
    assert sum(not p.wide for p in shown) % 2 == 0
    wide = [p.wide for p in shown]
    assert wide[:-1] == sorted(wide[:-1], reverse=True)


PAGES = sorted((ROOT / "reports").glob("*/*.html"))
KEPT = [page for page in PAGES if (RECORDED / page.parent.name / page.stem).is_dir()]


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: kept.stem)
def test_a_kept_page_warns_of_another_kernel_only_if_there_is_one(kept: Path) -> None:
    study = read_study(RECORDED / kept.parent.name / kept.stem)
    kernel = printed_kernel(study)
    assert kernel
    differs = kernel.source_digest != study.ranked[0].source_digest
    assert ("prints another kernel" in kept.read_text(encoding="utf-8")) is differs
