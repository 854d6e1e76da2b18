"""Recorded studies with output: their costs are predicted again, agree with what was measured, and are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import from_flat
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.output import predicted_output
from lbmtune.records.output import Output
from lbmtune.records.store import read_study
from lbmtune.report.study.output import output_text, with_output_mlups
from lbmtune.report.study.page import page
from scripts.check_recorded import with_rows
from scripts.recorded.output_costs import HEAD, PAGE, folders, rows

SETS = folders()
OFF = {"cuda": 1.35, "cpu": 2.0}
"""How far a measured output is from its prediction at most, either way."""


def test_a_gpu_is_among_them() -> None:
    assert "cuda" in {read_study(folder).header.backend for folder in SETS}


@pytest.mark.parametrize("folder", SETS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_every_finalist_has_every_kind(folder: Path) -> None:
    study = read_study(folder)
    finalists = [trial for trial in study.ranked if trial.final]
    assert len(finalists) >= 2
    for trial in finalists:
        assert {one.kind: one.every for one in trial.output} == study.header.spec.output.intervals


@pytest.mark.parametrize("folder", SETS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_predictions_are_those_of_the_model_and_near_what_was_measured(folder: Path) -> None:
    study = read_study(folder)
    own, beside = folder / "machine.toml", folder.parent / "machine.toml"
    machine = read_machine(own if own.exists() else beside)
    case, rates = study.header.spec.case, study.header.output_rates
    assert rates
    for trial in study.ranked:
        for one in trial.output:
            assert one.predicted_s
            now, _ = predicted_output(case, from_flat(trial.config), machine, rates, Output(**{one.kind: one.every}))[
                one.kind
            ]
            assert now == pytest.approx(one.predicted_s)
            off = one.event_s / sum(now.values())
            assert 1 / OFF[study.header.backend] < off < OFF[study.header.backend], (trial.key, one.kind, off)
            assert one.low_s <= one.event_s <= one.high_s


@pytest.mark.parametrize("folder", SETS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_the_report_tells_the_cost(folder: Path) -> None:
    study = read_study(folder)
    best, text = study.ranked[0], page(study)
    assert 'id="output-table"' in text
    for kind, every in study.header.spec.output.intervals.items():
        assert f"{kind} every {every:,} steps" in text
        assert f"{kind} every {every:,} steps" in output_text(best)
    lost = sum(one.event_s / one.every for one in best.output)
    assert with_output_mlups(best) == pytest.approx((best.mlups or 0) / (1 + lost / best.output[0].step_s), rel=0.02)
    assert ("copies to the host" in text) is not BACKENDS[study.header.backend].shares_host


def test_the_page_has_the_figures_of_the_sets() -> None:
    lines = [line for folder in SETS for line in rows(folder)]
    assert len(lines) >= 6
    assert PAGE.read_text() == with_rows(PAGE.read_text(), HEAD, lines)
