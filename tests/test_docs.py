"""What the documents show must work: links, the study file of the README, the scheme of the how-to."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

import test_tables
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.cli.studyfile import load_study
from lbmtune.lattice import LATTICES

REPOSITORY = Path(__file__).resolve().parent.parent
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


_RECORDED = r"^\|.*\| `([a-z0-9-]+)` \| `([0-9a-f]{12})` \| *([\d,]*) *\| *([\d,]*) *\| *([\d,]*) *\|$"
"""The row of a table: set, key, and MLUPS of the first measurement, the final and the seconds without a pause."""


@pytest.mark.parametrize(("page", "rows"), [("moments", 13), ("small-domains", 5), ("several-steps", 5)])
def test_figures_of_recorded_sets_are_those_of_the_sets(page: str, rows: int) -> None:
    found = re.findall(_RECORDED, (REPOSITORY / "docs" / f"{page}.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) == rows
    for name, key, *said in found:
        path = REPOSITORY / "studies" / "recorded" / "nvidia-h200" / name / "trials.jsonl.gz"
        with gzip.open(path, "rt") as lines:
            *_, last = (line for line in lines if f'"{key}"' in line)
        trial = json.loads(last)
        measured = (trial[what] for what in ("measurement", "final", "sustained"))
        assert said == [f"{one['mlups']:,.0f}" if one else "" for one in measured], (name, key)


def test_study_file_of_the_readme(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(_block(REPOSITORY / "README.md", "toml"))
    spec = load_study(str(path), ["storage=fp16s", "case.domain=128x128x128", "budget.time=30s"])
    assert spec.case.domain == (128, 128, 128)
    assert spec.case.moving
    assert spec.budget.seconds == 30
    assert spec.axes["cuda"]["cells_per_thread"] == (1, 2, 4)
    assert spec.axes["cuda"]["storage"] == ("fp16s",)


@pytest.mark.parametrize("lattice", LATTICES)
@pytest.mark.parametrize("flow", ["box", "cavity", "channel"])
def test_scheme_of_the_how_to(flow: str, lattice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("example")
    exec(_block(REPOSITORY / "docs" / "adding-a-scheme.md", "python"), vars(module))
    monkeypatch.setitem(SCHEMES, module.SCHEME.name, module.SCHEME)  # type: ignore[arg-type]
    test_tables.test_table_reproduces_the_oracle(module.SCHEME.name, flow, lattice)
    test_tables.test_no_place_is_shared_between_cells(module.SCHEME.name, flow, lattice)
