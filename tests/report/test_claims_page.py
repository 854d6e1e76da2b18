"""The page of published claims: what it says, and that it opens offline in a browser."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lbmtune.claims.judge import shown_range
from lbmtune.claims.store import PAGE, claims_folder, write_claims
from lbmtune.claims.tally import MEANINGS, Standing, of_claims, of_questions, standings, tally
from lbmtune.cli.app import app
from lbmtune.cli.format.claims import variant_table, verdict_table
from lbmtune.cli.format.output import emit_json
from lbmtune.cli.verbs import reproduce
from lbmtune.errors import NothingValidError
from lbmtune.records.claims import Claims, Holding, Verdict
from lbmtune.report.claims import claims_page, headline, sections, write_claims_page
from tests.claims.test_claims import document, run
from tests.claims.test_sizing import MANY, measured_on
from tests.claims.test_sizing import TEXT as ON_PROCESSOR
from tests.support.browser import check_fits, layout, shown
from tests.support.driven import Driven, browser
from tests.support.paths import ROOT
from tests.support.studies.fake_study import environment


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> Claims:
    """A made-up run with one verdict of each kind, and a share."""
    text = document()
    losing = replace(text.claims[0], name="losing", kind="loss", published=(0.1, 0.2), sentence="It costs </script>.")
    unsure = replace(text.claims[0], name="unsure", published=None)
    failing = replace(text.claims[0], name="failing", at_least=2.0)
    mine = replace(text.claims[0], name="mine", own=True, sentence="It is asked by nobody else.")
    elsewhere = replace(text.claims[0], name="elsewhere", untestable={"cuda": "only a processor has it"})
    every = (*text.claims, losing, unsure, failing, mine, elsewhere)
    found = run(tmp_path_factory.mktemp("claims"), replace(text, claims=every))
    assert isinstance(found, Claims)
    return replace(found, verdicts=tuple(_undecided(v) if v.claim == "unsure" else v for v in found.verdicts))


def _undecided(verdict: Verdict) -> Verdict:
    return replace(verdict, holding=Holding.UNDECIDED, low=0.9, high=1.3, disturbed=True)


def test_the_headline_counts_published_claims_alone(claims: Claims) -> None:
    assert {v.holding for v in claims.verdicts} == set(Holding)
    assert headline(claims) == (
        "Of 6 claims: 1 as published, 0 more, 0 less, 2 not here, 1 undecided, 1 not measured, 1 cannot be asked, "
        f"on {environment('cuda').device}."
    )
    assert "Besides, own questions, 1: 1 holds." in claims_page(claims)


def test_claims_and_own_questions_and_what_cannot_be_asked_have_tables_of_their_own(claims: Claims) -> None:
    (section,) = sections(claims)
    found = {title: [one.claim.name for one in judged] for title, judged in section.tables}
    assert found == {
        "Claims": ["faster", "unheard-of", "losing", "unsure", "failing"],
        "Own questions": ["mine"],
        "Claims that cannot be asked here": ["elsewhere"],
    }
    page = claims_page(claims)
    assert all(f"<h3>{title}</h3>" in page for title in found)
    own = verdict_table(claims, claims.documents[0], own=True)
    assert (own.title, list(own.columns[1].cells)) == ("own questions, 1: 1 holds", ["It is asked by nobody else."])
    every = verdict_table(claims, claims.documents[0])
    assert (every.row_count, str(every.title).partition(":")[0]) == (6, "of 6 claims")
    assert "only a processor has it" in page


def test_every_claim_and_every_variant_has_a_row(claims: Claims) -> None:
    (section,) = sections(claims)
    assert [one.claim.name for one in section.judged] == [v.claim for v in claims.verdicts]
    assert len(section.rows) == 6
    assert {panel.name for panel in section.panels} == {"madeupratios", "madeupshares"}
    first = section.judged[0]
    assert (first.measured, shown_range(first.claim)) == ("1.15x", "1.1x .. 1.2x")
    assert section.judged[1].measured == ""
    page = claims_page(claims)
    assert '<td class="n wide">150 (Old card)<br>40 (Older card, 16x16x16)<br>50 (Older card, at its best)</td>' in page
    assert '<td class="n">0.667<br>2.5<br>2</td>' in page


def test_figures_of_every_device_are_in_the_table_and_in_the_json(
    claims: Claims, capsys: pytest.CaptureFixture[str]
) -> None:
    table = variant_table(claims, claims.documents[0])
    assert "150 (Old card); 40 (Older card, 16x16x16); 50 (Older card, at its best)" in table.columns[2].cells
    emit_json("reproduce", claims)
    first = json.loads(capsys.readouterr().out)["documents"][0]["variants"][0]
    assert [(one["device"], one["mlups"]) for one in first["published"]] == [
        ("Old card", 150),
        ("Old card", 200),
        ("Older card", 40),
        ("Older card", 50),
    ]


def test_the_command_prints_two_lists_and_their_counts_last(
    claims: Claims, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reproduce.show(claims, tmp_path, as_json=False)
    printed = capsys.readouterr().out
    mine, own = of_claims(claims), of_questions(claims)
    assert printed.index(mine) < printed.index(own) < printed.index("claims.json")
    lines = [line.strip() for line in printed.splitlines()]
    assert [lines.count(title) for title in (mine, own)] == [2, 2], "as titles of the only document and of all"
    assert "It is asked by nobody else." in printed[printed.index(own) :]


def test_an_undecided_claim_is_compared_with_nothing(claims: Claims) -> None:
    beside = tuple(replace(v, beside_published="as published") for v in claims.verdicts)
    (section,) = sections(replace(claims, verdicts=beside))
    shown = {one.claim.name: one.comparison for one in section.judged}
    assert (shown["unsure"], shown["faster"]) == ("", "as published")
    (row,) = re.findall('<tr class="claim" id="made-up-unsure".*?</tr>', claims_page(replace(claims, verdicts=beside)))
    assert "as published" not in row


def test_each_count_is_explained_where_it_stands(claims: Claims) -> None:
    page = claims_page(claims)
    meanings = page.partition('id="meanings">')[2].partition("</p>")[0]
    found = tally(standings(claims).values())
    assert [name.lower() for name in re.findall("<b>(.*?)</b>", meanings)] == list(found)
    assert "<b>Not here</b>: it was measured on this device and does not hold." in meanings
    assert "<b>Cannot be asked</b>: no measurement on this kind of device can answer it" in meanings
    assert set(MEANINGS) == set(Standing)
    guide = (ROOT / "docs" / "guide" / "claims.md").read_text()
    assert all(f"| {one} | {MEANINGS[one]} |" in guide for one in Standing)


def of_processor(claims: Claims) -> Claims:
    """The same run, as if the variants were for a processor: nothing of a GPU was read."""
    header = replace(claims.header, backend="cpu", environment=environment("cpu"))
    documents = tuple(
        replace(one, variants=tuple(replace(v, configs={"cpu": v.configs["cuda"]}) for v in one.variants))
        for one in claims.documents
    )
    return replace(claims, header=header, documents=documents)


def test_the_page_of_a_processor_says_nothing_of_a_gpu(claims: Claims) -> None:
    on_gpu, on_cpu = claims_page(claims), claims_page(of_processor(claims))
    assert "Nsight" in on_gpu
    assert "Nsight" not in on_cpu
    (section,) = sections(of_processor(claims))
    rows = next(one.evidence_table for one in section.judged if one.claim.name == "failing")
    assert [list(row) for row in rows] == [
        ["variant", "domain", "MLUPS", "us per step", "predicted bytes per update"] for _ in rows
    ]
    assert len(rows) == 2
    assert "spilled" not in on_cpu


def test_remarks_on_variants_are_in_the_json(
    claims: Claims, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reproduce.show(claims, tmp_path, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["remarks"], len(found["groups"])) == ([], 2)
    flat = ON_PROCESSOR.replace("d3q19", "d2q9").replace("96x96x96", "64x64").replace("256x256x256", "64x64")
    with pytest.raises(NothingValidError):  # nothing was measured, and the plan is remarked on
        reproduce.show(measured_on(MANY, flat), tmp_path, as_json=True)
    remarks = json.loads(capsys.readouterr().out)["remarks"]
    assert [(one["document"], one["variant"]) for one in remarks] == [
        ("made-up", "one lattice"),
        ("made-up", "two lattices"),
    ]
    assert all(one["remark"].startswith("1 of 64 threads has work") for one in remarks)


def test_text_of_documents_is_escaped(claims: Claims) -> None:
    assert "It costs &lt;/script&gt;." in claims_page(claims)
    assert "It costs </script>" not in claims_page(claims)


def test_report_makes_the_page_from_the_records(claims: Claims, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    assert claims_folder(str(folder), tmp_path) is None
    write_claims(folder, claims)
    done = CliRunner().invoke(app, ["report", "mine", "--studies", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert (folder / PAGE).read_text() == claims_page(claims)


@pytest.fixture(scope="module")
def driven(claims: Claims, tmp_path_factory: pytest.TempPathFactory) -> Driven:
    path = tmp_path_factory.mktemp("driven") / PAGE
    write_claims_page(claims, path)
    assert path.stat().st_size < 8e6
    found = browser()
    found.open(path, 1400)
    found.draw_all()
    return found


def test_the_page_opens_in_a_browser(driven: Driven, claims: Claims) -> None:
    seen = shown()
    assert (seen.console, seen.errors) == ([], "")
    assert seen.drawn == ["madeupratios", "madeupshares"]
    assert 'data-ready="yes"' in seen.html
    assert seen.html.count('<tr class="claim"') == len(claims.verdicts)
    for holding in Holding:
        assert str(holding) in seen.html
    assert "1 verdicts rest on" in seen.html


def test_documents_are_summed_up_and_claims_are_sorted_and_filtered(driven: Driven, claims: Claims) -> None:
    shown = "filtered.flatMap(rowsOf).filter((row) => !row.hidden).map((row) => row.id.split('-').at(-1))"
    summed = driven.ask(
        "[...byId('documents').tBodies[0].rows[0].cells].slice(1).map((one) => Number(one.textContent))"
    )
    assert summed == [6, *tally(standings(claims).values()).values()]
    every = driven.ask(shown)
    assert len(every) == len(claims.verdicts)
    driven.click("#filter")
    driven.write("asked by nobody")
    assert driven.ask(shown) == ["mine"]
    driven.ask("byId('filter').value = ''; byId('verdict').value = 'undecided'; filterTables()")
    assert driven.ask(shown) == ["unsure"]
    assert driven.ask("byId('shown').textContent") == f"1 of {len(every)} claims shown"
    driven.ask("byId('verdict').value = ''; filterTables()")
    names = "[...document.querySelector('table.filtered').tBodies[0].rows].map((row) => row.cells[0].textContent)"
    driven.ask("document.querySelector('table.filtered thead button').focus()")
    driven.press("Enter")
    assert driven.ask(names) == sorted(driven.ask(names))
    driven.press("Enter")
    assert driven.ask(names) == sorted(driven.ask(names), reverse=True)
    assert driven.said == []


@pytest.mark.parametrize("width", [1400, 400])
def test_the_page_of_claims_fits_the_screen_and_axe_finds_nothing(driven: Driven, width: int) -> None:
    driven.resize(width)
    driven.wait(f"plots.every((one) => (one.layout.margin.l === 40) === {str(width == 400).lower()})")
    check_fits(layout(), width)
    assert driven.axe() == []
