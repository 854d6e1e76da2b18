"""Reports describe the space that was searched."""

from dataclasses import replace

from lbmtune.records.header import KnobRange
from lbmtune.report.study.coverage import covered, range_rows
from tests.support.pages import page
from tests.support.studies import made_up_records as made


def test_coverage_counts_what_was_ranked_and_tried():
    study = made.gpu_study()
    legal, tried = study.header.legal_configurations, len(study.trials)
    assert (
        covered(study)
        == f"{legal:,} legal configurations, all ranked by the model; {tried} tried ({tried / legal:.2%})"
    )


def test_coverage_of_a_space_that_was_drawn_says_so():
    study = made.gpu_study()
    drawn = replace(study, header=replace(study.header, drawn_from=12_300_000))
    legal = study.header.legal_configurations
    assert covered(drawn).startswith(f"about 1.2e+07 legal configurations, of which {legal:,} were drawn and ranked")


def test_each_range_stands_with_its_reason():
    study = made.gpu_study()
    ranges = (
        KnobRange(family="direct", knob="padding", values=(0, 64), reason="arrays share sets"),
        KnobRange(family="temporal-blocking", knob="chunk_planes", values=tuple(range(8, 40)), reason="full waves"),
        KnobRange(family="sparse", knob="order", values=(), reason="no cell is solid"),
    )
    found = range_rows(replace(study, header=replace(study.header, ranges=ranges)))
    assert [row.values for row in found] == ["0, 64", "8 to 39, 32 values", "none"]
    assert found[2].reason == "no cell is solid"
    assert range_rows(study) == []


def test_the_page_has_the_ranges_if_there_are_any():
    study = made.gpu_study()
    closed = KnobRange(family="direct", knob="padding", values=(0, 64), reason="arrays share sets")
    shown = page(replace(study, header=replace(study.header, ranges=(closed,))))
    assert "why there are no others" in shown
    assert "arrays share sets" in shown
    assert "why there are no others" not in page(study)
    assert "all ranked by the model" in page(study)
