"""Pages of recorded sets, in a browser: complete, in budget, and each part tells what the records say."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from lbmtune.api import Study
from lbmtune.model.predict import TERMS
from lbmtune.records.terms import MEANINGS, MEMORY
from scripts.measurements.pages import many_trials
from tests.support.browser import check_figures_fit, laid_out, visit
from tests.support.driven import browser
from tests.support.pages import write_report
from tests.support.paths import RECORDED, ROOT
from tests.support.reading import check_page, check_winner_is_hovered

SETS = {
    "one step": "nvidia-h200/d3q19-box-fp32",
    "several steps": "nvidia-h200/d3q19-box-fast-fp32",
    "processor": "zen3-2-cores/d3q19-box-fast-fp32",
    "on chip": "nvidia-h200/d3q19-small-96",
    "16 bits": "nvidia-h200/d3q19-box-fp16s",
    "another card": "nvidia-h100/d3q19-moments-fp32",
}
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


def slow_but(*every_day: str) -> pytest.MarkDecorator:
    """Take all sets, those that are not named for `make test-slow`."""
    return pytest.mark.parametrize(
        "name", [pytest.param(one, marks=() if one in every_day else pytest.mark.slow) for one in SETS]
    )


@slow_but("several steps")
def test_a_recorded_page_is_read_and_in_its_budgets(name: str, written: Callable[[str], tuple[Study, Path]]) -> None:
    study, file = written(name)
    assert check_page(study, file) < READY_S
    assert file.stat().st_size < MOST_BYTES
    beyond = "(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(document.querySelector('#beside .scroll'))"
    assert browser().ask(beyond) <= 0, "at 1280 px the table beside the winner is whole"


@slow_but("processor")
def test_a_recorded_page_fits_a_telephone(name: str, written: Callable[[str], tuple[Study, Path]]) -> None:
    check_figures_fit(laid_out(written(name)[1], 400), 400)
    heads = (
        "[...document.querySelectorAll('#beside thead th')].slice(0, 4).map((one) => one.getBoundingClientRect().right)"
    )
    assert max(browser().ask(heads)) <= 400, "speeds, and how many times as fast the winner is, without scrolling"
    rows = "[...document.querySelectorAll('#beside tr, #why tr')].map((one) => one.getBoundingClientRect().height)"
    assert max(browser().ask(rows)) < 120, "columns to the right make no tall rows"
    assert browser().said == []


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, False), (1280, True)])
@pytest.mark.parametrize("name", SETS)
def test_axe_finds_nothing_on_a_recorded_page(
    name: str, width: int, dark: bool, written: Callable[[str], tuple[Study, Path]]
) -> None:
    browser().open(written(name)[1], width, dark=dark)
    assert browser().ask("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    if dark:
        browser().draw_all()
        rings = "[...document.querySelectorAll('.scatterlayer .point')].filter((one) => one.style.fill === 'none')"
        colours = browser().ask(f"{rings}.map((one) => [one.style.stroke, getComputedStyle(one).stroke])")
        assert colours
        assert all(own == seen for own, seen in colours), "open markers keep their colours"
    browser().ask(f"select({written(name)[0].winner.number})")
    assert browser().axe() == []


@slow_but("several steps", "processor")
def test_each_knob_and_term_has_its_meaning(name: str, written: Callable[[str], tuple[Study, Path]]) -> None:
    study, file = written(name)
    assert study.winner.prediction
    terms = {term.name for trial in study.ranked if trial.prediction for term in trial.prediction.significant_terms}
    assert terms <= MEANINGS.keys() <= {MEMORY, *TERMS}
    text = file.read_text()
    for term in study.winner.prediction.significant_terms:
        assert f'{term.name}<div class="remark">{MEANINGS[term.name]}</div>' in text
    knobs = text.partition("<h3>Configuration</h3>")[2].partition("</table>")[0]
    without = [line for line in knobs.splitlines() if line.startswith("<tr>") and "title=" not in line]
    assert len(without) <= 2, "backend and family"


@pytest.mark.slow
def test_of_thousands_of_points_those_in_view_are_drawn(tmp_path: Path) -> None:
    """Some of all, all of a part that a reader zooms into, and the selected one in any case."""
    study, page, file = many_trials(), browser(), tmp_path / "many.html"
    write_report(study, file)
    page.open(file)
    page.draw_all()
    points = "document.querySelectorAll('#plot-roofline .scatterlayer .point').length"
    assert 500 < page.ask(points) < 2000
    check_winner_is_hovered(page, study.ranked[0].number, study.ranked[0].mlups or 0.0)
    low, high = (study.ranked[place].mlups or 0.0 for place in (700, 300))
    zoom = "Plotly.relayout(byId('plot-roofline'), {{ 'yaxis.range': [Math.log10({}), Math.log10({})] }}).then(() => 0)"
    page.ask(zoom.format(low, high))
    assert page.ask(points) == pytest.approx(400, abs=5)
    page.ask(zoom.format(1, 1e6))
    for trial in study.ranked[401:411]:
        page.ask(f"select({trial.number})")
        chosen = "[...document.querySelectorAll('#plot-roofline .point')].filter((one) => one.style.opacity > 0.5)"
        page.wait(f"byId('plot-roofline').marked === {trial.number}")
        assert page.ask(f"{chosen}.length") == 2, "and the ring of the winner"
    assert page.said == []


COMMITTED = sorted((ROOT / "reports").rglob("*.html"))


def test_pages_are_committed() -> None:
    assert len(COMMITTED) > 5
    assert [file for file in COMMITTED if file.stem == "claims"]


@pytest.mark.slow
@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_a_committed_page_opens_without_an_error(file: Path) -> None:
    seen = visit(file)
    assert (seen.console, seen.errors) == ([], "")


CLAIMS = [file for file in COMMITTED if file.stem == "claims"]


@pytest.mark.parametrize("file", [CLAIMS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in CLAIMS[1:])])
def test_committed_claims_are_sorted_and_filtered(file: Path) -> None:
    page, rows = browser(), "filtered.flatMap(rowsOf).filter((row) => !row.hidden)"
    page.open(file)
    assert len(page.ask(f"{rows}.map((row) => row.id)")) > 50
    page.ask("byId('verdict').value = 'undecided'; filterTables()")
    found = page.ask(f"{rows}.map((row) => row.textContent)")
    assert found
    assert all("undecided" in text for text in found)
    page.ask(
        "byId('verdict').value = ''; filterTables(); document.querySelector('table.filtered thead button').focus()"
    )
    page.press("Enter")
    names = "[...document.querySelector('table.filtered').tBodies[0].rows].map((row) => row.cells[0].textContent)"
    assert page.ask(names) == sorted(page.ask(names))
    assert page.said == []
