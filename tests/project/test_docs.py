"""What the documents show must work: links, the study file of the README, the scheme of the how-to."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.cli import main
from lbmtune.cli.files.studyfile import load_study
from lbmtune.lattice import LATTICES
from tests.catalogue import test_scheme_tables as test_tables

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def _block(page: Path, language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return found[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_studies_and_recorded_sets_that_are_named_are_there(page: Path) -> None:
    studies = REPOSITORY / "studies"
    there = {path.stem for path in studies.glob("*.toml")} | {path.parent.name for path in studies.rglob("study.json")}
    named = re.findall(r"`(?:(?:d2q9|d3q19|d3q27)-|porous)[a-z0-9-]*`", page.read_text(encoding="utf-8"))
    assert {name.strip("`") for name in named} <= there


def test_study_file_of_the_readme(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(_block(REPOSITORY / "README.md", "toml"))
    spec = load_study(str(path), ["storage=fp16s", "case.domain=128x128x128", "budget.time=30s"])
    assert spec.case.domain == (128, 128, 128)
    assert spec.case.moving
    assert spec.budget.seconds == 30
    assert spec.axes["cuda"]["cells_per_thread"] == (1, 2, 4)
    assert spec.axes["cuda"]["storage"] == ("fp16s",)


@pytest.mark.parametrize("page", ["moments", "several-steps", "small-domains"])
def test_what_is_explained_of_a_machine_is_legal_there(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (REPOSITORY / "docs" / "guide" / f"{page}.md").read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(r"^lbmtune (explain .*--machine .*)$", text, re.MULTILINE)
    assert found
    for asked in found:
        with pytest.raises(SystemExit) as ended:
            main([*shlex.split(asked), "--json"])
        assert not ended.value.code
        assert json.loads(capsys.readouterr().out)["legal"]


@pytest.mark.parametrize("lattice", LATTICES)
@pytest.mark.parametrize("flow", ["box", "cavity", "channel"])
def test_scheme_of_the_how_to(flow: str, lattice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("example")
    exec(_block(REPOSITORY / "docs" / "tutorial" / "add-a-scheme.md", "python"), vars(module))
    monkeypatch.setitem(SCHEMES, module.SCHEME.name, module.SCHEME)  # type: ignore[arg-type]
    test_tables.test_table_reproduces_the_oracle(module.SCHEME.name, flow, lattice)
    test_tables.test_no_place_is_shared_between_cells(module.SCHEME.name, flow, lattice)
