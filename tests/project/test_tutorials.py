"""The tutorials, executed as a reader would: in order, in one folder, with the output that the pages show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lbmtune.api import Study
from lbmtune.cli import main
from tests.support.paths import ROOT
from tests.support.reading import check_page

TUTORIALS = ROOT / "docs" / "tutorial"
GUIDE = TUTORIALS.parent / "guide"
SHORT = ("case.domain=48x24x20", "budget.trials=4", "protocol.final_rounds=2")
BARE = ("protocol.sustained_top=0", "protocol.profiled=0")
ANY_SPEED = ("protocol.bail_out=1000", "protocol.min_cpu_share=0", "protocol.final_sample_s=0.005")
SMALL = (
    "--no-calibration",
    *(word for override in (*SHORT, *BARE, *ANY_SPEED) for word in ("--set", override)),
)
"""Options that make the study of the tutorial short, and take any speed: other tests may run beside it."""


def blocks(page: str) -> Iterator[tuple[str, str]]:
    """Yield language and text of each fenced block of a page, in order."""
    text = (TUTORIALS / f"{page}.md").read_text(encoding="utf-8")
    yield from re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the first two tutorials, with the study file of the first."""
    made = tmp_path_factory.mktemp("tutorial")
    study = next(text for language, text in blocks("find-the-fastest-kernel") if language == "toml")
    (made / "cavity.toml").write_text(study, encoding="utf-8")
    return made


def _run(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    arguments = shlex.split(command)
    assert arguments[0] == "lbmtune"
    with pytest.raises(SystemExit) as ended:
        main([*arguments[1:], *(SMALL if arguments[1] == "study" else ())])
    output = capsys.readouterr()
    assert not ended.value.code, output.err
    return output.out


def _pattern(shown: str) -> str:
    """Return a pattern for a line of a page: any numbers, any blanks, anything for '...'."""
    words = [re.escape(word).replace(re.escape("..."), ".*") for word in shown.split()]
    return r"\s+".join(re.sub(r"\d[\d,.]*|\.\*", lambda found: r"[\d,.]+" if found[0][0].isdigit() else ".*", word)
                       for word in words)  # fmt: skip


def test_the_first_tutorial_prints_what_it_shows(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "200")
    done = []
    for language, text in blocks("find-the-fastest-kernel"):
        if language != "console":
            continue
        command, _, shown = text.partition("\n")
        printed = _run(command.removeprefix("$ "), capsys)
        lines = iter(printed.splitlines())
        for line in (line for line in shown.splitlines() if line.strip(". ")):
            assert any(re.match(_pattern(line), there.strip()) for there in lines), f"{line!r} is not in:\n{printed}"
        done.append(command.split()[2])
    assert done == ["explain", "explain", "explain", "rank", "verify", "study", "report"]
    check_page(Study(folder / "results"), folder / "results" / "report.html")


@pytest.mark.filterwarnings("ignore:this kernel was tuned")
def test_the_second_tutorial_runs_what_the_first_one_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file of its own, if the first was not run in this process."""
    monkeypatch.chdir(folder)
    if not (folder / "results" / "best.json").exists():
        with pytest.raises(SystemExit):
            main(["study", "cavity.toml", "--device", "cpu", "--output", "results", *SMALL])
    names: dict[str, Any] = {}
    ran = [exec(text, names) for language, text in blocks("put-it-into-a-solver") if language == "python"]
    assert len(ran) == 4
    assert names["mlups"] > 0


def test_the_guide_to_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(GUIDE.parents[1])
    names: dict[str, Any] = {}
    texts = re.findall(r"^```python\n(.*?)^```$", (GUIDE / "python.md").read_text(encoding="utf-8"), re.DOTALL | re.M)
    for text in texts:
        exec(text, names)
    assert len(texts) == 5
    assert names["table"].mlups.max() == names["found"].winner.mlups
