"""The report of a study in a browser, driven as a reader drives it: hover, select, filter, sort, copy, keyboard."""

from __future__ import annotations

import base64
import csv
import gzip
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from lbmtune.records.study import StudyRecord
from lbmtune.report.study import page as study_page
from lbmtune.report.study.answer.use import tabs, used
from tests.support.browser import check_figures_fit, layout, shown, visit
from tests.support.driven import Driven, browser
from tests.support.pages import write_report
from tests.support.reading import SHOWN, check_winner_is_hovered, copied, downloaded, point_of
from tests.support.studies import made_up_records as made


@pytest.fixture(scope="module")
def study() -> StudyRecord:
    return made.gpu_study()


@pytest.fixture(scope="module")
def file(study: StudyRecord, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("driven") / "report.html"
    write_report(study, path)
    return path


@pytest.fixture(scope="module")
def opened(file: Path) -> Driven:
    found = browser()
    found.open(file)
    found.draw_all()
    return found


_AS_OPENED = """{
  if (!byId("detail").hidden) closeDetail();
  if (table.getFilters(true).length) { table.clearFilter(true); table.clearHeaderFilter(); byId("filter").value = ""; }
}"""


@pytest.fixture
def page(opened: Driven) -> Iterator[Driven]:
    """The page as it was when it was opened; nothing may fail meanwhile."""
    yield opened
    opened.ask(_AS_OPENED)
    assert opened.said == []


def test_to_hover_the_winner_shows_the_winner(page: Driven, study: StudyRecord) -> None:
    check_winner_is_hovered(page, study.ranked[0].number, study.ranked[0].mlups or 0.0)


def test_a_point_and_a_row_show_the_same_trial_everywhere(page: Driven, study: StudyRecord) -> None:
    other = study.ranked[-1]
    page.click_at(*point_of(page, "history", other.number))
    page.wait("!byId('detail').hidden")
    by_point = page.ask("byId('detail').innerText")
    assert f"Trial {other.number}" in by_point
    assert page.ask("table.getSelectedData().map((row) => row.c0)") == [other.number]
    page.box("#plot-parity")  # figures far from the screen follow when they come near it
    page.wait(f"byId('plot-parity').marked === {other.number}")
    marked = page.ask(
        "byId('plot-parity').data.filter((one) => one.meta === 'trials')"
        ".flatMap((one) => [...one.selectedpoints].map((place) => one.customdata[place]))"
    )
    assert marked == [other.number]
    page.ask("closeDetail()")
    page.click("#filter")
    page.write(f"trial={other.number}")
    page.click(f'#trial-table .tabulator-row[data-trial="{other.number}"] .tabulator-cell:nth-child(3)')
    page.wait("!byId('detail').hidden")
    assert page.ask("byId('detail').innerText") == by_point
    command = page.ask("document.querySelector('#detail .copy').dataset.copy")
    assert command.startswith("lbmtune measure backend=cuda,")
    assert command.endswith(" --study .")
    page.press("Escape")
    assert page.ask("byId('detail').hidden")


@pytest.mark.parametrize("typed", ["scheme=aa", "scheme = AA"])
def test_the_filter_finds_schemes_and_no_keys(page: Driven, study: StudyRecord, typed: str) -> None:
    page.click("#filter")
    page.write(typed)
    found = set(page.ask(SHOWN))
    assert found == {trial.number for trial in study.trials if trial.config["scheme"] == "aa"}
    assert page.ask("byId('shown').textContent") == f"{len(found)} of {len(study.trials)} shown"


def test_a_bare_word_is_not_sought_in_keys(page: Driven, study: StudyRecord) -> None:
    start = study.ranked[0].key[:4]
    page.click("#filter")
    page.write(start)
    assert study.ranked[0].number not in page.ask(SHOWN)


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        (">40", lambda value: value > 40),
        ("45..60", lambda value: 45 <= value <= 60),
        ("..50", lambda value: value <= 50),
        ("44", lambda value: value == 44),
    ],
)
def test_columns_of_numbers_are_filtered_by_ranges(page: Driven, study: StudyRecord, asked: str, holds: Any) -> None:
    page.ask("document.querySelector('#trial-table input[aria-label=\"filter registers\"]').focus()")
    page.write(asked)
    expected = {t.number for t in study.trials if t.resources and holds(t.resources.registers)}
    assert set(page.ask(SHOWN)) == expected


def test_figures_follow_the_filter_of_the_table(page: Driven, study: StudyRecord) -> None:
    drawn = "byId('plot-knobs').data.reduce((sum, one) => sum + one.y.length, 0)"
    page.box("#plot-knobs")
    page.wait(f"{drawn} === {len(study.ranked)}")  # as it was before the filter of another test
    page.click("#filter")
    page.write("scheme=aa")
    count = sum(t.config["scheme"] == "aa" for t in study.ranked)
    page.wait("byId('plot-knobs').late")
    page.box("#plot-knobs")  # figures far from the screen follow when they come near it
    page.wait(f"{drawn} === {count}")


def test_the_keyboard_alone_sorts_filters_and_shows(page: Driven, study: StudyRecord) -> None:
    page.ask("document.querySelector('#trial-table [tabulator-field=\"c2\"] .tabulator-col-content').focus()")
    page.press("Enter")
    speeds = [t.mlups for t in study.trials if t.mlups]
    first = "table.getRows('active')[0].getData()[field(at('MLUPS'))]"
    page.wait(f"Math.abs({first} / {min(speeds)} - 1) < 1e-3")  # a table sorts after the event that asked it to
    page.press("Enter")
    page.wait(f"Math.abs({first} / {max(speeds)} - 1) < 1e-3")
    row = "document.querySelector('#trial-table .tabulator-row')"
    for _ in range(10):  # rows are made anew some time after they are sorted, and the focus is gone with them
        page.wait(f"document.activeElement === {row} || ({row}.focus(), false)")
        page.press("ArrowDown")
        page.press("Enter")
        if not page.ask("byId('detail').hidden"):
            break
    page.wait("!byId('detail').hidden")
    assert f"Trial {study.ranked[1].number}" in page.ask("byId('detail').innerText")


def test_tables_are_downloaded_as_csv_and_json(page: Driven, study: StudyRecord, tmp_path: Path) -> None:
    page.click("#filter")
    page.write("scheme=aa")
    expected = {str(t.number) for t in study.trials if t.config["scheme"] == "aa"}
    page.wait(f"table.getDataCount('active') === {len(expected)}")
    lines = downloaded(page, "#csv", tmp_path / "trials.csv").splitlines()
    assert {row["trial"] for row in csv.DictReader(lines)} == expected
    rows = json.loads(downloaded(page, "#json", tmp_path / "trials.json"))
    assert {str(row["trial"]) for row in rows} == expected
    twin = json.loads(downloaded(page, '#use [data-save="report.json"]', tmp_path / "report.json"))
    assert twin["format"] == "lbmtune.report"


def test_columns_are_chosen_and_heads_and_the_first_column_stay(page: Driven) -> None:
    page.click("#trials summary")
    page.click("#columns label:nth-child(3) input")
    assert not page.ask("table.getColumn('c2').isVisible()")
    page.click("#columns label:nth-child(3) input")
    assert page.ask("table.getColumn('c2').isVisible()")
    page.ask("Object.assign(document.querySelector('.tabulator-tableholder'), { scrollLeft: 600, scrollTop: 300 })")
    first, frame = page.ask(
        "['#trial-table .tabulator-row .tabulator-frozen', '#trial-table']"
        ".map((one) => document.querySelector(one).getBoundingClientRect().left)"
    )
    assert first == pytest.approx(frame, abs=2)


def test_ways_to_use_the_kernel_are_chosen_by_keys_and_copied_whole(page: Driven, study: StudyRecord) -> None:
    page.click("#tab-1")
    page.press("ArrowRight")
    assert page.ask("[...document.querySelectorAll('[role=tabpanel]')].map((one) => one.hidden)") == [
        True,
        False,
        True,
        True,
    ]
    assert copied(page) == [tab.text for tab in tabs(used(study))]


def test_axe_finds_nothing(page: Driven) -> None:
    """Rules of WCAG as far as a program can check them."""
    assert page.axe() == []


def test_all_figures_are_drawn_and_fit(page: Driven, study: StudyRecord) -> None:
    """Legends leave the axes half of a figure."""
    seen = shown()
    assert (seen.console, seen.errors) == ([], "")
    assert seen.drawn == [*(one.name for one in study_page.panels(study)), "knobs", "pairs", "all"]
    assert {"roofline", "history", "parity", "finals", "distribution", "outcomes", "costs"} <= set(seen.drawn)
    assert f"{len(study.trials)} of {len(study.trials)} shown" in seen.html
    check_figures_fit(layout(), 1280)


def test_tables_of_the_winner_leave_no_gap_between_them(page: Driven) -> None:
    """The axes of a kernel on a GPU are three times as many lines as what was measured of it."""
    columns: dict[float, list[tuple[float, float]]] = {}
    for left, top, _, bottom in layout()["pairs"]:
        columns.setdefault(left, []).append((top, bottom))
    assert len(columns) == 2
    assert max(map(len, columns.values())) > 2
    for tables_of_one in columns.values():
        gaps = [below[0] - above[1] for above, below in pairwise(sorted(tables_of_one))]
        assert all(0 < gap < 60 for gap in gaps), gaps


def test_the_twin_is_read_without_a_browser(file: Path, study: StudyRecord) -> None:
    text = file.read_text()
    held = dict(re.findall(r'<script type="application/[a-z-]+" id="([a-z-]+)">(.*?)</script>', text, re.S))
    twin = json.loads(held["report-data"])
    assert (twin["format"], twin["version"]) == ("lbmtune.report", 2)
    assert twin["winner"]["trial"] == study.ranked[0].number
    assert twin["winner"]["mlups"] == study.ranked[0].mlups
    trials = json.loads(gzip.decompress(base64.b64decode(held[twin["trials"]["element"]])))
    assert len(trials["rows"]) == twin["trials"]["count"] == len(study.trials)


def test_pages_without_a_winner_open_and_the_theme_is_kept(tmp_path: Path) -> None:
    page, theme = browser(), "document.documentElement.dataset.theme"
    for study, mode in ((made.hopeless_study(), "light"), (made.empty_study(), "dark")):
        write_report(study, tmp_path / "page.html")
        page.open(tmp_path / "page.html")
        page.draw_all()
        assert page.ask(theme) == mode
        seen = shown()
        assert (seen.console, seen.errors) == ([], "")
        assert seen.drawn == [one.name for one in study_page.panels(study)]
        assert f"{len(study.trials)} of {len(study.trials)} shown" in seen.html
        page.click("#theme")
    page.ask("localStorage.clear()")


def test_the_browser_notices_a_broken_page(tmp_path: Path) -> None:
    """What tests of pages rely on: they can fail."""
    write_report(made.hopeless_study(), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    planted = "console.error('planted'); fetch('https://localhost/x').catch(() => {}); absent(); await draw();"
    (tmp_path / "report.html").write_text(text.replace("await draw();", planted))
    broken = visit(tmp_path / "report.html")
    for said in ("absent is not defined", "planted", "Content Security Policy"):
        assert any(said in line for line in broken.console), said
    assert "absent" in broken.errors
    assert broken.drawn == []
