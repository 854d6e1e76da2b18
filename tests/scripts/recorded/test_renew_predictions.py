"""Predictions of recorded sets by today's model: dated, and nothing else of a best.json changes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lbmtune.model.machine.toml import read_machine
from lbmtune.records.best_json.document import read_best
from lbmtune.records.profile import KERNEL
from lbmtune.records.store import read_study
from lbmtune.records.whole_files import HEADER
from lbmtune.report.study.speeds import parity_info
from scripts.recorded.model_page import by_set
from scripts.recorded.model_report import judged
from scripts.recorded.renew_predictions import main, profile_of, renewed
from tests.support.paths import RECORDED

CARD, SET = "epyc-2-cores", "d3q19-box-fast-fp32"


def test_the_prediction_alone_is_renewed_and_dated(tmp_path: Path) -> None:
    card, pages = tmp_path / CARD, tmp_path / "pages"
    shutil.copytree(RECORDED / CARD, card)
    best = card / SET / "best.json"
    before = json.loads(best.read_text())
    before["prediction"] = before["prediction"] | {"mlups": 1.0, "date": ""}
    best.write_text(json.dumps(before))
    (pages / CARD).mkdir(parents=True)
    page = pages / CARD / f"{SET}.html"
    page.touch()
    main([str(tmp_path), "--date", "2031-02-03", "--pages", str(pages)])
    now = json.loads(best.read_text())
    renewed, was = now.pop("prediction"), before.pop("prediction")
    assert now == before
    assert renewed["date"] == "2031-02-03"
    assert renewed["mlups"] > 100 * was["mlups"]
    assert read_best(best).prediction
    assert "Predictions made on 2031-02-03 from the record." in page.read_text()
    trials = read_study(card / SET).ranked
    assert not any(trial.prediction.date for trial in trials if trial.prediction), "what the study was searched by"


def test_predictions_of_recorded_sets_are_dated() -> None:
    found = [read_best(path) for path in sorted(RECORDED.rglob("best.json"))]
    assert len(found) > 30
    assert all(best.prediction and best.prediction.date > "2026" for best in found)


EVERY_DAY = ("nvidia-h200/d3q19-box-fast-fp32", "zen3-2-cores/d3q19-box-fast-fp32")
SETS = sorted(f"{one.parent.parent.name}/{one.parent.name}" for one in RECORDED.rglob(HEADER))


@pytest.mark.timeout(900)  # a set of kernels over solid cells takes minutes
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in EVERY_DAY else pytest.mark.slow) for one in SETS]
)
def test_the_error_on_a_page_is_that_of_the_report_on_the_model(name: str) -> None:
    """Of all verified trials, also those dismissed after a first look."""
    study, machine = read_study(RECORDED / name), read_machine((RECORDED / name).parent / "machine.toml")
    found = judged(name, study, machine)
    page = parity_info(renewed(study, machine, "2031-02-03"))
    assert any(one.dismissed for one in found) == any(one.dismissed for one in page.points)
    assert page.counted == len(found) == len(study.ranked)
    assert page.median_error == pytest.approx(by_set(found).loc[name, "median"])


def test_pages_have_the_recorded_profile_of_their_winner() -> None:
    card = RECORDED / "nvidia-h200"
    machine = read_machine(card / "machine.toml")
    best = read_best(card / "d3q19-box-fp32" / "best.json")
    found = profile_of(best.key, card, machine)
    assert found
    assert found.rungs[-1].name == KERNEL
    assert profile_of("another", card, machine) is None
