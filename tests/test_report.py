"""The report: what its tables and figures say, and the page in a browser."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

import made_up_records as made
from browser import visit
from lbmtune.catalogue.operations import flops_per_update
from lbmtune.errors import InputError
from lbmtune.records import Outcome
from lbmtune.records.study import StudyRecord
from lbmtune.report import build, figures, info, tables, write_report

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


def test_headline_says_speed_and_shares(gpu: StudyRecord) -> None:
    best = gpu.ranked[0]
    assert best.prediction is not None
    share = best.mlups * 1e6 * 152 / 4.2e12
    text = info.headline(gpu)
    assert text == f"Fastest: {best.mlups:,.0f} MLUPS on NVIDIA H200, {share:.1%} of the measured ceiling, " + (
        f"{best.mlups / best.prediction.mlups:.1%} of prediction."
    )
    assert "No configuration gave a verified measurement" in info.headline(made.hopeless_study())


def test_roofline_counts_flops_and_takes_the_highest_roof(gpu: StudyRecord) -> None:
    found = info.roofline_info(gpu)
    case = gpu.header.spec.case
    assert found.flops == flops_per_update(case) > 19
    assert (found.best_roof.name, found.best_roof.bytes_per_s) == ("update in place", 4.2e12)
    assert {"copy of one array", "19-stream copy, 16-byte access"} <= {roof.name for roof in found.roofs}
    assert len(found.points) == len(gpu.ranked)
    assert {p.intensity for p in found.points} == {found.flops / 152}
    # a point on the roof has all of the ceiling
    for p in found.points:
        assert p.share == pytest.approx(p.mlups * found.flops / p.intensity * 1e6 / 4.2e12)


def test_history_keeps_the_best_so_far_and_adds_up_time(gpu: StudyRecord) -> None:
    found = info.history_info(gpu)
    assert [a.number for a in found.attempts] == [t.number for t in gpu.trials]
    spent = gpu.costs.compile_s + gpu.costs.verify_s + gpu.costs.measure_s + gpu.costs.search_s
    assert found.attempts[-1].elapsed_s == pytest.approx(spent)
    assert found.best[-1] == max(a.mlups or 0 for a in found.attempts)
    assert info.history_info(made.hopeless_study()).best[-1] is None


def test_axes_are_ordered_by_what_they_explain(gpu: StudyRecord) -> None:
    axes = info.axes_info(gpu)
    assert {"scheme", "cells_per_thread", "block", "max_registers"} >= {a.name for a in axes}
    assert [a.explained for a in axes] == sorted((a.explained for a in axes), reverse=True)
    for axis in axes:
        assert sum(map(len, axis.mlups)) == len(gpu.ranked)
    assert info.explained_variance([[1.0, 1.0], [3.0, 3.0]]) == 1.0
    assert info.explained_variance([[1.0, 3.0], [3.0, 1.0]]) == 0.0


def test_parity_knows_the_error_of_the_model(gpu: StudyRecord) -> None:
    found = info.parity_info(gpu)
    assert found.median_error == median(abs(t.mlups / t.prediction.mlups - 1) for t in gpu.ranked)
    bare = replace(gpu, trials=tuple(replace(t, prediction=None) for t in gpu.trials))
    assert info.parity_info(bare).median_error is None
    assert "parity" not in {p.name for p in build.panels(bare)}


def test_costs_add_up(gpu: StudyRecord) -> None:
    found = info.cost_info(gpu)
    assert sum(c.seconds for c in found if c.stage == "verify") == pytest.approx(gpu.costs.verify_s)
    assert not [c for c in found if c.stage == "measure" and c.outcome is not Outcome.OK]


def test_outcomes_count_every_trial_with_its_reason(gpu: StudyRecord) -> None:
    found = info.outcome_info(gpu)
    assert sum(o.count for o in found) == len(gpu.trials)
    wrong = next(o for o in found if o.outcome is Outcome.WRONG_RESULT)
    assert wrong.reasons[0] == (made.REASONS[Outcome.WRONG_RESULT], wrong.count)


def test_distribution_holds_every_speed(gpu: StudyRecord) -> None:
    found = info.distribution_info(gpu)
    assert sorted(v for values in found.values() for v in values) == sorted(t.mlups for t in gpu.ranked)


def test_finals_are_paired_with_the_winner(gpu: StudyRecord) -> None:
    first, *others = info.finals_info(gpu)
    assert first.number == gpu.ranked[0].number
    assert first.ratio is None
    for f in others:
        assert f.ratio == pytest.approx(f.measurement.mlups / first.measurement.mlups)
        assert f.ratio_low <= f.ratio <= f.ratio_high < 1.0


def test_a_share_above_the_ceiling_is_explained(gpu: StudyRecord) -> None:
    assert "above 100 %" not in build.page(gpu)
    low = replace(gpu.header.ceiling, in_place_bytes_per_s=2e12, stream_bytes_per_s={"16": 2e12})
    assert "copy of one array moves 4100 GB/s" in info.above_the_ceiling(
        replace(gpu, header=replace(gpu.header, ceiling=low))
    )
    lower = replace(low, copy_bytes_per_s=1e12)
    assert info.above_the_ceiling(replace(gpu, header=replace(gpu.header, ceiling=lower))).endswith("little faster.")


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


def test_many_points_are_drawn_by_the_graphics_card(gpu: StudyRecord) -> None:
    found = info.history_info(gpu)
    attempts = tuple(replace(found.attempts[1], number=n) for n in range(figures.MANY + 1))
    many = figures.history_figure(info.HistoryInfo(attempts, (1.0,) * len(attempts)), 1.0)
    assert {trace.type for trace in many.data if trace.name == "ok"} == {"scattergl"}
    assert "scattergl" not in {trace.type for trace in figures.history_figure(found, 1.0).data}


def test_another_kernel_text_than_the_measured_one_is_told(gpu: StudyRecord) -> None:
    assert "prints another kernel" not in build.page(gpu)
    stale = replace(gpu, trials=tuple(replace(t, source_digest="0" * 64) for t in gpu.trials))
    assert "prints another kernel" in build.page(stale)


def test_text_of_records_is_escaped(gpu: StudyRecord) -> None:
    html = build.page(gpu, "if (a < b) </pre><script>alert(2)</script>")
    assert "<script>alert" not in html
    assert "made up &amp; &lt;b&gt;marked" in html
    assert "a &lt; b" in html


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot write"):
        write_report(made.empty_study(), tmp_path / "file" / "report.html")


@pytest.mark.parametrize("name", STUDIES)
def test_the_report_opens_in_a_browser(name: str, tmp_path: Path) -> None:
    study = STUDIES[name]()
    path = tmp_path / "report.html"
    write_report(study, path)
    assert path.stat().st_size < 8e6
    assert "plotly" not in sys.modules or "https://cdn" not in path.read_text()
    page = visit(path, tmp_path)
    assert page.console == []
    assert page.errors == ""
    expected = [p.name for p in build.panels(study)]
    assert page.drawn == expected
    assert 'data-ready="yes"' in page.html
    assert page.html.count('data-copy="backend=') == len(study.trials) + bool(study.ranked)
    if name == "gpu":
        assert set(expected) == {
            "roofline",
            "history",
            "axes",
            "parity",
            "finals",
            "distribution",
            "outcomes",
            "costs",
        }


def test_the_browser_notices_a_broken_page(tmp_path: Path) -> None:
    """What the browser test relies on: it can fail."""
    path = tmp_path / "report.html"
    write_report(made.cpu_study(), path)
    text = path.read_text()
    path.write_text(text.replace("heads(); fill();", "heads(); fill(); absent();"))
    broken = visit(path, tmp_path)
    assert any("absent is not defined" in line for line in broken.console)
    assert "absent" in broken.errors
    assert broken.drawn == []
    path.write_text(
        text.replace("heads(); fill();", "console.error('planted'); fetch('https://localhost/x'); heads();")
    )
    asked = visit(path, tmp_path)
    assert any("planted" in line for line in asked.console)
    assert any("Content Security Policy" in line for line in asked.console)


def test_figures_tell_kernels_of_moments_by_their_steps() -> None:
    assert info.family({"scheme": "aa"}) == "aa"
    assert info.family({"scheme": "aa", "representation": "populations", "steps": 1}) == "aa"
    assert info.family({"scheme": "pull", "representation": "moments", "steps": 2}) == "moments, 2 steps per launch"
    assert info.family({"scheme": "pull", "representation": "moments"}) == "moments, 1 step per launch"
