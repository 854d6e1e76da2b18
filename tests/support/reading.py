"""The page of a study, read as its reader does in a browser: hovered, sorted, filtered, chosen from, copied."""

from __future__ import annotations

import csv
from pathlib import Path
from time import sleep

from lbmtune.api import Study
from lbmtune.report.study.answer.use import tabs, used
from tests.support.driven import Driven, browser

SHOWN = "table.getRows('active').map((row) => row.getData().c0)"
"""Numbers of the trials that the table shows, in its order."""


def point_of(page: Driven, figure: str, number: int) -> tuple[float, float]:
    """Return where the point of a trial lies on the screen."""
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


def check_winner_is_hovered(page: Driven, number: int, mlups: float) -> None:
    """The mouse on the winner shows the winner, and no point that lies beneath it."""
    page.hover(*point_of(page, "roofline", number))
    page.wait("document.querySelector('#plot-roofline .hovertext')")
    said = page.ask("document.querySelector('#plot-roofline .hoverlayer').textContent")
    assert f"winner: trial {number}" in said
    assert f"{mlups:,.0f} MLUPS" in said


def copied(page: Driven) -> list[str]:
    """Return what the buttons of the ways to use the kernel copy, each behind its tab."""
    page.ask("document.addEventListener('copy', () => { window.copied = String(document.activeElement.value); })")
    found = []
    for number in sorted(page.ask("[...document.querySelectorAll('#use [role=tab]')].map((one) => +one.id.slice(4))")):
        page.click(f"#tab-{number}")
        page.click(f"#use-{number} .copy")
        found.append(page.ask("window.copied"))
    return found


def downloaded(page: Driven, button: str, file: Path) -> str:
    """Return what a button writes into a file of the folder of downloads."""
    page.downloads(file.parent)
    page.click(button)
    for _ in range(500):
        if file.exists():
            return file.read_text()
        sleep(0.02)
    raise AssertionError(f"{button} has written no {file.name}")


def check_page(study: Study, file: Path) -> float:
    """Read the page of a study in one opening: its figures, table and texts are those of the records.

    Returns the processor seconds until the table and the figures on the screen were there.
    """
    page, trials, winner = browser(), study.record.trials, study.winner
    page.open(file)
    ready_s = page.processor_s()
    assert page.ask("performance.getEntriesByType('mark').map((one) => one.name)") == ["first screen", "ready"]
    page.draw_all()
    assert page.said == []
    check_winner_is_hovered(page, winner.number, winner.mlups or 0.0)
    assert page.ask(f"{SHOWN}[0]") == max(trials, key=lambda one: one.mlups or 0).number
    page.click('#trial-table [tabulator-field="c0"] .tabulator-col-content')
    assert page.ask(SHOWN) == sorted((one.number for one in trials), reverse=True)
    scheme = str(winner.config.get("scheme", "aa"))
    page.click("#filter")
    page.write(f"scheme = {scheme}")
    expected = {one.number for one in trials if one.config.get("scheme") == scheme}
    assert set(page.ask(SHOWN)) == expected
    file.with_name("trials.csv").unlink(missing_ok=True)
    lines = downloaded(page, "#csv", file.with_name("trials.csv")).splitlines()
    assert {int(row["trial"]) for row in csv.DictReader(lines)} == expected
    if expected:
        page.click("#trial-table .tabulator-row .tabulator-cell:nth-child(3)")
        assert page.ask("byId('detail-title').innerText").startswith(f"Trial {page.ask(f'{SHOWN}[0]')}")
    assert copied(page) == [tab.text for tab in tabs(used(study.record))]
    assert page.said == []
    return ready_s
