"""Standard streams that are closed, full or read by nobody end no work; what a file says is shown and not obeyed."""

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.cli import main
from lbmtune.cli.format import output
from lbmtune.errors import InputError, unknown
from lbmtune.printable import printable
from lbmtune.records.store import read_study, write_header
from lbmtune.search.lock import LOCKS_VARIABLE
from tests.support.paths import RECORDED, ROOT
from tests.support.studies.fake_study import stand_in

NO_ROOM = "lbmtune: cannot write standard output: No space left on device; send it to another place.\n"
STUDY = """
import pytest
from lbmtune.cli import main
from tests.support.studies.fake_study import stand_in
with pytest.MonkeyPatch.context() as patch:
    stand_in(patch)
    main(["study", "--device", "cpu", "--output", "mine", "--set", "case.domain=64x64x64", "--trials", "6"])
"""


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of bash in a folder, whose last part that fails gives the exit code."""
    text = ["bash", "-c", f"set -o pipefail; {command}"]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "LBMTUNE_CACHE": str(folder / "cache")}
    environment[LOCKS_VARIABLE] = str(folder)  # others may run a study on this machine
    return subprocess.run(text, cwd=folder, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize(
    ("streams", "code", "said"),
    [
        (">&-", 0, ""),
        ("2>&-", 0, ""),
        (">&- 2>&-", 0, ""),
        ("<&- >&- 2>&-", 0, ""),
        (">/dev/full", 2, NO_ROOM),
        ("2>/dev/full", 0, ""),
        (">/dev/full 2>&1", 2, ""),
        ("| head -c 1", 0, ""),
        ("2>&1 >/dev/null | head -c 1 >/dev/null", 0, ""),
    ],
)
def test_a_study_keeps_its_files_whatever_becomes_of_its_output(tmp_path, streams, code, said):
    (tmp_path / "study.py").write_text(STUDY)
    done = shell(f"{sys.executable} study.py {streams}", tmp_path)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert done.stderr.endswith(said)
    assert len(read_study(tmp_path / "mine").trials) == 6
    assert {"best.json", "report.html"} <= {path.name for path in (tmp_path / "mine").iterdir()}


@pytest.mark.parametrize("verb", ["--version", "--help", "list --machine h200", "list --machine h200 --json"])
@pytest.mark.parametrize(("streams", "code", "said"), [(">&-", 0, ""), (">/dev/full", 2, NO_ROOM)])
def test_facts_without_a_place(tmp_path, verb, streams, code, said):
    done = shell(f"{sys.executable} -m lbmtune {verb} {streams}", tmp_path)
    assert (done.returncode, done.stderr) == (code, said)


def test_names_of_other_encodings_are_shown(tmp_path):
    (tmp_path / "run.py").write_text("from lbmtune.cli import main; main(['report', '\\udcff\\u00fc'])")
    done = shell(f"PYTHONIOENCODING=ascii {sys.executable} run.py", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(r"lbmtune: no study at \udcff\xfc; give the folder")


HOSTILE = "\x1b]0;title\x07\x9b2J\u202egnp\r\x00"
SHOWN = r"\u001b]0;title\u0007\u009b2J\u202egnp\u000d\u0000"


def test_control_characters_are_shown():
    assert printable(HOSTILE) == SHOWN
    assert printable("a\tb\nc, ü, 中") == "a\tb\nc, ü, 中"
    assert str(InputError(HOSTILE)) == SHOWN


@pytest.mark.parametrize("terminal", [False, True])
def test_a_console_obeys_no_text(terminal):
    console = output._Console(file=io.StringIO(), force_terminal=terminal, width=200, color_system=None)
    console.print(HOSTILE, output.table(HOSTILE, (HOSTILE,), [(HOSTILE,)]), markup=False)
    printed = console.file.getvalue()
    assert printed.count(SHOWN) == 4
    assert not {*printed} & {*HOSTILE} - {*"]0;title2Jgnp"}


def test_nothing_of_a_record_reaches_a_terminal_raw(tmp_path, monkeypatch, capsys):
    """Names of studies, devices and outcomes in what is printed, remarked and refused."""
    stand_in(monkeypatch)
    monkeypatch.chdir(tmp_path)
    values = json.loads((RECORDED / "nvidia-h200" / "d3q19-box-fp32" / "best.json").read_text())
    values["environment"]["device"] = HOSTILE
    Path("best.json").write_text(json.dumps(values))
    Path("damaged.json").write_text(json.dumps(values | {"version": HOSTILE}))
    with pytest.raises(SystemExit):
        main(["study", "--device", "cpu", "--output", "mine", "--set", "case.domain=64x64x64", "--trials", "2"])
    kept = read_study(Path("mine")).header
    write_header(Path("mine"), replace(kept, environment=replace(kept.environment, device=HOSTILE), version=HOSTILE))
    capsys.readouterr()
    printed = ""
    for asked in (
        "explain best.json --machine h200",
        "explain best.json --machine h200 --json",
        "render best.json --machine h200",
        "render best.json --machine h200 --json",
        "explain damaged.json --machine h200",
        "study --device cpu --output mine --resume",
        "report mine",
    ):
        with pytest.raises(SystemExit):
            main(asked.split())
        printed += "".join(capsys.readouterr())
    with pytest.raises(SystemExit):
        main(["explain", HOSTILE])
    printed += "".join(capsys.readouterr())
    assert not {*printed} & {*HOSTILE} - {*"]0;title2Jgnp"}
    assert printed.count("gnp") > 6


@pytest.mark.parametrize("text", ["1" * 5000, "a b " * 5000])
def test_an_error_of_python_is_one_short_line(text):
    said = str(unknown("geometry", text, ("blocks", "sphere")))
    assert len(said) == 2000
    assert said.startswith(f"unknown geometry '{text[:1000]}")
    assert said.endswith("; choose one of blocks, sphere.")
    assert str(InputError("é" * 2000)) == "é" * 2000


def test_an_error_is_one_short_line(capsys):
    for text in ("a" * 100_000 + "=1", "scheme=" + "b" * 100_000, "c" * 3000):
        with pytest.raises(SystemExit) as ended:
            main(["explain", text])
        (line,) = capsys.readouterr().err.splitlines()
        assert ended.value.code == 2
        assert line.startswith("lbmtune: ")
        assert len(line) <= len("lbmtune: ") + 400
        assert line[-1] in ".?"
