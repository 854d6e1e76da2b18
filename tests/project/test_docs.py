"""Documents show what works: links, the study file of the README, pages and pictures that are generated."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.cli import main
from lbmtune.files.studyfile import load_study
from lbmtune.lattice import LATTICES
from scripts.docs import pictures as docs_pictures
from scripts.docs import reference as docs_reference
from tests.catalogue.schemes import test_scheme_tables as test_tables
from tests.support.paths import RECORDED, ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


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
    studies = ROOT / "studies"
    listed = [*studies.glob("*.toml"), *studies.glob("spaces/*.toml")]
    there = {path.stem for path in listed} | {path.parent.name for path in studies.rglob("study.json")}
    named = re.findall(r"`(?:(?:d2q9|d3q19|d3q27)-|porous)[a-z0-9-]*`", page.read_text(encoding="utf-8"))
    assert {name.strip("`") for name in named} <= there


def test_study_file_of_the_readme(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(_block(ROOT / "README.md", "toml"))
    spec = load_study(str(path), ["storage=fp16s", "case.domain=128x128x128", "budget.time=30s"])
    assert spec.case.domain == (128, 128, 128)
    assert spec.case.moving
    assert spec.budget.seconds == 30
    assert spec.axes["cuda"]["cells_per_thread"] == (1, 2, 4)
    assert spec.axes["cuda"]["storage"] == ("fp16s",)


@pytest.mark.parametrize("page", ["moments", "several-steps", "small-domains"])
def test_what_is_explained_of_a_machine_is_legal_there(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "guide" / f"{page}.md").read_text(encoding="utf-8").replace("\\\n", " ")
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
    exec(_block(ROOT / "docs" / "tutorial" / "add-a-scheme.md", "python"), vars(module))
    monkeypatch.setitem(SCHEMES, module.SCHEME.name, module.SCHEME)  # type: ignore[arg-type]
    test_tables.test_table_reproduces_the_oracle(module.SCHEME.name, flow, lattice)
    test_tables.test_no_place_is_shared_between_cells(module.SCHEME.name, flow, lattice)


def test_generated_pages_and_pictures_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    """If not: python -m scripts.docs.reference; python -m scripts.docs.pictures."""
    assert docs_reference.main(["--check"]) == 0, capsys.readouterr().out
    assert docs_pictures.main(["--check"]) == 0, capsys.readouterr().out
    assert set(docs_pictures.FOLDER.glob("*.svg")) == set(docs_pictures.pictures())


@pytest.mark.parametrize("path", docs_pictures.pictures(), ids=lambda path: path.stem)
def test_a_picture_is_used_and_stays_within_its_frame(path: Path) -> None:
    tree = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    width, height = (float(tree.attrib[name]) for name in ("width", "height"))
    for text in tree.iter("{http://www.w3.org/2000/svg}text"):
        assert 0 < float(text.attrib["x"]) < width, text.text
        assert 0 < float(text.attrib["y"]) < height, text.text
    assert any(path.name in page.read_text(encoding="utf-8") for page in PAGES)


def test_the_glossary_is_in_alphabetical_order() -> None:
    text = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    terms = [re.sub("[^a-z0-9 ]", "", term.split(",")[0].lower()) for term in re.findall(r"^\*\*(.+?)\*\*", text, re.M)]
    assert len(terms) > 80
    assert terms == sorted(terms)


def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    """Every page is in the navigation, and links and their anchors lead somewhere within the site."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "index.html").exists()


WORDS_PER_SENTENCE, CHARACTERS_PER_CELL = 25, 120
GENERATED = [*docs_reference.pages(), *(ROOT / "docs" / "decisions").rglob("*.md")]
BY_HAND = [page for page in (*PAGES, ROOT / "kernels" / "README.md", RECORDED / "README.md") if page not in GENERATED]
PRIVATE = r"(?i)\b(march(?:es|ing)?|ladders?|rungs?|crew|somebody|nobody|whoever|far ends)\b"
"""Words that the glossary has a term of the field for."""


def _prose(text: str) -> str:
    """Return a page without code, tables, headings and the targets of links; code within a line counts as a word."""
    text = re.sub(r"^```.*?^```$", "\n\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(    .*|\|.*|#.*|<!--.*?-->)$", "\n", text, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`", "x", _without_targets(text))


def _without_targets(text: str) -> str:
    return re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)


def _sentences(text: str) -> list[str]:
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.|:) )", _prose(text))
    return [found for block in blocks for found in re.split(r"(?<=[.:;?!])[\"*)]*\s+", " ".join(block.split()))]


@pytest.mark.parametrize("page", BY_HAND, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_keeps_to_the_rule_of_style(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [found for found in _sentences(text) if len(found.split()) > WORDS_PER_SENTENCE] == []
    rows = [line for line in _without_targets(text).splitlines() if line.startswith("|")]
    assert [cell for row in rows for cell in row.split(" | ") if len(cell.strip("| ")) > CHARACTERS_PER_CELL] == []
    assert re.findall(PRIVATE, _prose(text)) == []


@pytest.mark.parametrize("page", [*BY_HAND, *GENERATED], ids=lambda page: str(page.relative_to(ROOT)))
def test_files_and_modules_that_are_named_are_there(page: Path) -> None:
    """Paths from the root of the repository, and modules of the package with or without its name."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    spans = re.findall(r"`([^`\s]+)`", text)
    paths = [
        span
        for span in spans
        if re.match(r"(lbmtune|kernels|scripts|studies|tests|docs|reports|machines)/[\w./-]+$", span)
    ]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    packages = "|".join(folder.name for folder in (ROOT / "lbmtune").iterdir() if folder.is_dir())
    modules = [re.match(rf"(?:lbmtune\.)?((?:{packages})(?:\.[a-z_]+)+)$", span) for span in spans]
    assert [found[1] for found in modules if found and not _is_there(found[1])] == []


def _is_there(dotted: str) -> bool:
    """Return whether a name is a module or package, or a name within one."""
    parts = ("lbmtune", *dotted.split("."))
    for count in range(len(parts), 1, -1):
        module = ROOT.joinpath(*parts[:count])
        if module.with_suffix(".py").exists() or module.is_dir():
            file = module.with_suffix(".py") if module.with_suffix(".py").exists() else module / "__init__.py"
            return count == len(parts) or parts[count] in file.read_text(encoding="utf-8")
    return False


def test_the_page_on_architecture_has_every_package() -> None:
    text = (ROOT / "docs" / "design" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("| package |")[2].partition("\n\n")[0]
    folders = {path.parent.name for path in (ROOT / "lbmtune").glob("*/__init__.py")}
    assert folders | {"lattice", "units", "errors"} == set(
        re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\|[^|]*\|", table, re.M)))
    )
