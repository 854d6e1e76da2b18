"""Pages of recorded sets, in a browser: complete, in budget, and each part tells what the records say."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from lbmtune.api import Study
from lbmtune.model.predict import TERMS
from lbmtune.records.terms import MEANINGS, MEMORY
from tests.report.test_report_driven import SHOWN, point_of
from tests.support.driven import Driven, browser
from tests.support.paths import RECORDED, ROOT

SETS = {
    "one step": "nvidia-h200/d3q19-box-fp32",
    "several steps": "nvidia-h200/d3q19-box-fast-fp32",
    "processor": "zen3-2-cores/d3q19-box-fast-fp32",
    "on chip": "nvidia-h200/d3q19-small-96",
    "16 bits": "nvidia-h200/d3q19-box-fp16s",
    "another card": "nvidia-h100/d3q19-moments-fp32",
}
LARGE = [pytest.param(name, marks=pytest.mark.slow) for name in ("one step", "on chip", "16 bits", "another card")]
EVERY_DAY = ["several steps", "processor"]
MOST_BYTES = 3_000_000
READY_S = 4.0
"""Seconds of the processor until the table and the figures on the screen are there. `scripts.measurements.pages` has
those of the wall, on a machine without other work."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Study, Path]]:
    folder = tmp_path_factory.mktemp("recorded")

    @cache
    def found(name: str) -> tuple[Study, Path]:
        study = Study(RECORDED / SETS[name])
        return study, study.report(folder / f"{name}.html")

    return found


def opened(file: Path) -> Driven:
    page = browser()
    page.open(file)
    page.draw_all()
    return page


@pytest.mark.parametrize("name", [*EVERY_DAY, *LARGE])
def test_a_recorded_page_is_complete_and_in_its_budgets(
    name: str, written: Callable[[str], tuple[Study, Path]]
) -> None:
    study, file = written(name)
    winner, page = study.winner, browser()
    page.open(file)
    assert page.processor_s() < READY_S
    assert page.ask("performance.getEntriesByType('mark').map((one) => one.name)") == ["first screen", "ready"]
    page.draw_all()
    assert page.said == []
    assert file.stat().st_size < MOST_BYTES
    assert page.ask(f"{SHOWN}[0]") == max(study.record.trials, key=lambda one: one.mlups or 0).number
    page.hover(*point_of(page, "roofline", winner.number))
    page.wait("document.querySelector('#plot-roofline .hovertext')")
    assert f"winner: trial {winner.number}" in page.ask(
        "document.querySelector('#plot-roofline .hoverlayer').textContent"
    )
    scheme = str(winner.config.get("scheme", "aa"))
    page.click("#filter")
    page.write(f"scheme = {scheme}")
    assert set(page.ask(SHOWN)) == {one.number for one in study.record.trials if one.config.get("scheme") == scheme}
    assert page.said == []


@pytest.mark.parametrize("name", EVERY_DAY)
def test_each_knob_and_term_has_its_meaning_on_hover(name: str, written: Callable[[str], tuple[Study, Path]]) -> None:
    study, file = written(name)
    assert study.winner.prediction
    terms = {term.name for trial in study.ranked if trial.prediction for term in trial.prediction.significant_terms}
    assert terms <= MEANINGS.keys() <= {MEMORY, *TERMS}
    text = file.read_text()
    for term in study.winner.prediction.significant_terms:
        assert f'<td title="{MEANINGS[term.name]}">{term.name}</td>' in text
    knobs = text.partition("<h3>Configuration</h3>")[2].partition("</table>")[0]
    without = [line for line in knobs.splitlines() if line.startswith("<tr>") and "title=" not in line]
    assert len(without) <= 2, "backend and family"


def test_committed_pages_open_without_an_error() -> None:
    pages = sorted((ROOT / "reports").rglob("*.html"))
    assert len(pages) > 5
    claims = [one for one in pages if one.stem == "claims"]
    for file in [*claims, min((one for one in pages if one not in claims), key=lambda one: one.stat().st_size)]:
        assert opened(file).said == [], file
