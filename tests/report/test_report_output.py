"""The section on output: shares measured and predicted, the rates, and the speed that remains."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbmtune.cli.format.studies.finished import _cost_rows
from lbmtune.records.output import Output, OutputCost, OutputRates
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.answer.section import cards
from lbmtune.report.study.output import output_note, output_row, output_table, output_text, with_output_mlups
from lbmtune.report.study.page import page
from lbmtune.units import format_mlups
from tests.support.studies import made_up_records as made

SAVE = OutputCost(
    kind="save", every=500, apart=50, event_s=0.02, low_s=0.01, high_s=0.03, step_s=1e-3, predicted_s={"file": 0.015}
)
RESIDUAL = replace(SAVE, kind="residual", apart=500, event_s=-1e-4, predicted_s=None)
RATES = OutputRates(copy_bytes_per_s=5e10, file_bytes_per_s=1e9, residual_bytes_per_s=4e9, folder="/scratch")


@pytest.fixture
def study() -> StudyRecord:
    plain = made.gpu_study()
    winner = plain.ranked[0]
    trials = tuple(replace(t, output=(SAVE, RESIDUAL)) if t is winner else t for t in plain.trials)
    spec = replace(plain.header.spec, output=Output(save=500, residual=500))
    return replace(plain, trials=trials, header=replace(plain.header, spec=spec, output_rates=RATES))


def test_rows_set_the_measured_share_beside_the_predicted_one(study: StudyRecord) -> None:
    save, compared = output_table(study)
    assert (save["output"], save["share"], save["predicted"]) == ("save every 500 steps", "3.8 %", "2.9 %")
    assert (save["range"], save["parts"], save["apart"]) == ("2 % to 5.7 %", "file 15 ms", "measured after 50 steps")
    assert (compared["share"], compared["predicted"], compared["apart"]) == ("0 %", "-", "")


def test_the_speed_with_output_is_that_of_a_run(study: StudyRecord) -> None:
    winner = study.ranked[0]
    assert with_output_mlups(winner) == pytest.approx((winner.mlups or 0) * 500 / 520)
    assert output_text(winner) == (
        "save every 500 steps 3.8 % (2 % to 5.7 %, predicted 2.9 %), residual every 500 steps 0 % (2 % to 5.7 %)"
    )
    assert "with output" in [title for title, _, _ in cards(study)]
    assert any(name == "output costs" and "3.8 %" in str(text) for name, text in _cost_rows(study))


def test_the_end_of_a_study_has_the_range_of_each_cost_and_of_the_speed_with_it(study: StudyRecord) -> None:
    winner = study.ranked[0]
    own = winner.mlups or 0.0
    slow, fast = (own / (1 + 2 * event_s / (500 * 1e-3)) for event_s in (0.03, 0.01))
    speeds = f"{format_mlups(with_output_mlups(winner))} MLUPS ({format_mlups(slow)} to {format_mlups(fast)})"
    assert output_row(winner) == f"{output_text(winner)}; with it {speeds}"
    assert ("output costs", output_row(winner)) in _cost_rows(study)
    assert output_row(made.gpu_study().ranked[0]) == ""


def test_the_page_has_the_section_only_of_a_study_with_output(study: StudyRecord) -> None:
    text = page(study)
    assert 'id="output-table"' in text
    assert "a file in /scratch, synchronised (fsync), at 1 GB/s" in text
    assert "copies to the host at 50 GB/s" in output_note(study)
    assert "save every 500 steps, residual every 500 steps" in text
    assert 'id="output-table"' not in page(made.gpu_study())
