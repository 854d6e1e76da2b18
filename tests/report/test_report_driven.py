"""The report of a study in a browser, driven as a reader drives it: hover, select, filter, sort, copy, keyboard."""

from __future__ import annotations

import base64
import csv
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lbmtune.records.study import StudyRecord
from tests.support.driven import Driven, browser
from tests.support.pages import write_report
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


@pytest.fixture
def page(opened: Driven) -> Iterator[Driven]:
    """The page as it was when it was opened; nothing may fail meanwhile."""
    yield opened
    opened.ask("closeDetail(); table.clearFilter(true); table.clearHeaderFilter(); byId('filter').value = ''")
    assert opened.said == []


SHOWN = "table.getRows('active').map((row) => row.getData().c0)"
"""Numbers of the trials that the table shows, in its order."""


def point_of(page: Driven, figure: str, number: int) -> tuple[float, float]:
    """Where the point of a trial lies on the screen."""
    page.box(f"#plot-{figure}")
    found = page.ask(
        f"""(() => {{
          const plot = byId("plot-{figure}"), held = (one) => [...one.customdata || []].includes({number});
          const [trace] = plot.data.filter(held);
          const place = [...trace.customdata].indexOf({number}), {{ xaxis, yaxis }} = plot._fullLayout;
          const area = plot.querySelector(".nsewdrag").getBoundingClientRect();
          return [area.left + xaxis.d2p(trace.x[place]), area.top + yaxis.d2p(trace.y[place])];
        }})()"""
    )
    return found[0], found[1]


def test_to_hover_the_winner_shows_the_winner(page: Driven, study: StudyRecord) -> None:
    number = study.ranked[0].number
    page.hover(*point_of(page, "roofline", number))
    page.wait("document.querySelector('#plot-roofline .hovertext')")
    said = page.ask("document.querySelector('#plot-roofline .hoverlayer').textContent")
    assert f"winner: trial {number}" in said
    assert f"{study.ranked[0].mlups:,.0f} MLUPS" in said


def test_a_point_and_a_row_show_the_same_trial_everywhere(page: Driven, study: StudyRecord) -> None:
    other = study.ranked[-1]
    page.click_at(*point_of(page, "history", other.number))
    page.wait("!byId('detail').hidden")
    by_point = page.ask("byId('detail').innerText")
    assert f"Trial {other.number}" in by_point
    assert page.ask("table.getSelectedData().map((row) => row.c0)") == [other.number]
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
    page.wait(f"{drawn} === {len(study.ranked)}")  # as it was before the filter of another test
    page.click("#filter")
    page.write("scheme=aa")
    count = sum(t.config["scheme"] == "aa" for t in study.ranked)
    page.wait(f"{drawn} === {count}")


def test_the_keyboard_alone_sorts_filters_and_shows(page: Driven, study: StudyRecord) -> None:
    page.ask("document.querySelector('#trial-table [tabulator-field=\"c2\"] .tabulator-col-content').focus()")
    page.press("Enter")
    speeds = [t.mlups for t in study.trials if t.mlups]
    assert page.ask("table.getRows('active')[0].getData()[field(at('MLUPS'))]") == pytest.approx(min(speeds), rel=1e-3)
    page.press("Enter")
    page.ask("document.querySelector('#trial-table .tabulator-row').focus()")
    page.press("ArrowDown")
    page.press("Enter")
    page.wait("!byId('detail').hidden")
    assert f"Trial {study.ranked[1].number}" in page.ask("byId('detail').innerText")


def test_tables_are_downloaded_as_csv_and_json(page: Driven, study: StudyRecord, tmp_path: Path) -> None:
    page.downloads(tmp_path)
    page.click("#filter")
    page.write("scheme=aa")
    expected = {str(t.number) for t in study.trials if t.config["scheme"] == "aa"}
    for kind in ("csv", "json"):
        page.click(f"#{kind}")
    page.click('#use [data-save="report.json"]')
    names = ("trials.csv", "trials.json", "report.json")
    for name in names:
        while not (tmp_path / name).exists():
            page.ask("new Promise((done) => setTimeout(done, 20))")
    with (tmp_path / "trials.csv").open() as lines:
        assert {row["trial"] for row in csv.DictReader(lines)} == expected
    rows = json.loads((tmp_path / "trials.json").read_text())
    assert {str(row["trial"]) for row in rows} == expected
    assert json.loads((tmp_path / "report.json").read_text())["format"] == "lbmtune.report"


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


def test_ways_to_use_the_kernel_are_chosen_by_keys_and_copied_whole(page: Driven) -> None:
    page.click("#tab-1")
    page.press("ArrowRight")
    assert page.ask("[...document.querySelectorAll('[role=tabpanel]')].map((one) => one.hidden)") == [
        True,
        False,
        True,
        True,
    ]
    page.ask("document.addEventListener('copy', () => { window.copied = String(document.activeElement.value); })")
    page.click("#use-2 .copy")
    assert page.ask("window.copied") == page.ask("byId('use-text-2').textContent")


@pytest.mark.parametrize("width", [1280, 400])
def test_axe_finds_nothing(page: Driven, width: int) -> None:
    """Rules of WCAG as far as a program can check them."""
    page.resize(width)
    found = page.axe()
    page.resize(1280)
    assert found == []


def test_the_twin_is_read_without_a_browser(file: Path, study: StudyRecord) -> None:
    text = file.read_text()
    held = dict(re.findall(r'<script type="application/[a-z-]+" id="([a-z-]+)">(.*?)</script>', text, re.S))
    twin = json.loads(held["report-data"])
    assert (twin["format"], twin["version"]) == ("lbmtune.report", 1)
    assert twin["winner"]["trial"] == study.ranked[0].number
    assert twin["winner"]["mlups"] == study.ranked[0].mlups
    trials = json.loads(gzip.decompress(base64.b64decode(held[twin["trials"]["element"]])))
    assert len(trials["rows"]) == twin["trials"]["count"] == len(study.trials)


def test_the_theme_is_kept(tmp_path: Path) -> None:
    page, theme = browser(), "document.documentElement.dataset.theme"
    write_report(made.empty_study(), tmp_path / "empty.html")
    page.open(tmp_path / "empty.html")
    assert page.ask(theme) == "light"
    page.click("#theme")
    page.open(tmp_path / "empty.html")
    assert page.ask(theme) == "dark"
    page.ask("localStorage.clear()")
