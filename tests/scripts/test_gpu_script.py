"""The script that does all that needs a GPU, as far as it needs none."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from lbmtune.cli.app import verb
from scripts import gpu
from scripts.gpu_commands import COMMANDS, Asked
from tests.support.paths import ROOT

SCRIPT = ROOT / "scripts" / "gpu.py"


@pytest.fixture
def script() -> ModuleType:
    return gpu


def call(script: ModuleType, monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str) -> tuple[int, list[dict]]:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(folder / "out"), "--work", str(folder / "work"), *options])
    return script.main(), json.loads((folder / "out" / "summary.json").read_text())


def test_a_part_that_is_left_out_shows_in_the_exit_code(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, (left_out,) = call(script, monkeypatch, tmp_path, "--parts", "fp32", "--limit", "20")
    assert code == 1
    assert left_out["left_out"] == "20 s left, needs 300 s"


@pytest.mark.parametrize("ended", [0, 3, -9])
def test_without_a_limit_all_parts_run(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ended: int
) -> None:
    limits: list[float | None] = []

    def run(command: list[str], timeout: float | None, **_: object) -> object:
        limits.append(timeout)
        return script.subprocess.CompletedProcess(command, ended)

    monkeypatch.setattr(script.subprocess, "run", run)
    code, parts = call(script, monkeypatch, tmp_path, "--parts", "cavity,tests,devices")
    assert [part["part"] for part in parts] == ["devices", "cavity", "tests"], "studies search by its predictions"
    assert limits == [None] * 3
    assert code == abs(ended)


def test_a_plan_says_what_each_part_needs_and_runs_nothing(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A study its search, a minute, and its runs of seconds; others as long as they are known to take."""

    def planned(*options: str) -> tuple[int, list[str]]:
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(tmp_path / "out"), "--plan", *options])
        return script.main(), capsys.readouterr().out.splitlines()

    monkeypatch.setattr(script.subprocess, "run", lambda *_, **__: pytest.fail("ran", pytrace=False))
    code, lines = planned("--parts", "tests,small-80,turns,fp32", "--limit", "540")
    assert code == 1
    assert lines == [
        "tests                    needs 280 s",
        "small-80                 needs 160 s",
        "turns                    needs 90 s",
        "fp32                     needs 300 s; 10 s left for it: left out, unless others end sooner",
        "all: 830 s; limit: 540 s",
    ]
    code, lines = planned("--parts", "fp32,turns,small-80", "--limit", "260")
    assert code == 1
    assert ["left out" in line for line in lines[:-1]] == [True, False, False], "what is left out takes no time"
    assert planned("--parts", "fp32,small-80", "--time", "2m", "--sustained", "0")[1][:2] == [
        "fp32                     needs 180 s",
        "small-80                 needs 180 s",
    ]
    assert planned("--parts", "fast-seeds,fast-384")[0] == 0
    code, lines = planned()
    assert [line.split()[0] for line in lines[:-1]] == list(script.PARTS)
    assert not [line for line in lines if "no known time" in line]
    assert planned("--device", "cpu", "--parts", "devices")[1][0] == "devices                  needs no known time"
    assert not (tmp_path / "out").exists()
    with pytest.raises(SystemExit):
        planned("--time", "soon")


def test_the_help_tells_what_parts_take(script: ModuleType) -> None:
    told = script.__doc__.partition("Seconds that they take")[2].partition("a study its search")[0]
    assert {name: int(s) for name, s in re.findall(r"\b([a-z-]+) (\d+)", told.partition(": ")[2])} == script.TAKES_S
    asked = {name for name in script.TAKES_S if name not in script.PARTS}
    assert set(script.PARTS) - set(script.STUDIES) == set(script.TAKES_S) - asked
    named = script.__doc__.partition("Only on request")[2].partition("Seconds that they take")[0]
    assert all(name in named for name in asked)
    assert set(script.OTHERS) - set(script.TAKES_S) == {"fast-seeds", "pairs", "calibration-time"}


def test_a_part_that_hangs_leaves_the_others_their_time(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Twice what it should take; all calls of a part together."""
    now, limits = [0.0], []

    def run(command: list[str], timeout: float, **_: object) -> object:
        limits.append(timeout)
        now[0] += timeout
        raise script.subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(script.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(script.subprocess, "run", run)
    code, found = call(script, monkeypatch, tmp_path, "--parts", "conformance,profile,sanitize,turns", "--limit", "620")
    assert code == 124
    assert limits[:2] == [200, 300]
    assert set(limits[2:-1]) == {0}
    assert limits[-1] == 120
    assert found[-1] == {"part": "turns", "left_out": "0 s left, needs 90 s", "exit_code": 1}


def test_every_script_that_a_part_begins_knows_its_options(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And what accuracy finds gets the names that are recorded."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> object:
        commands.append(command)
        if command[2] == "scripts.measurements.accuracy":
            Path(command[3]).mkdir(parents=True)
            (Path(command[3]) / "accuracy.json").write_text("{}")
        return script.subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(script, "usable_cores", lambda: 16)
    monkeypatch.setattr(script.subprocess, "run", run)
    assert call(script, monkeypatch, tmp_path, "--parts", "turns,fastest,accuracy,physics,conformance,sanitize")[0] == 0
    assert [command[2].rpartition(".")[2] for command in commands] == [
        *("interleaved", "interleaved", "accuracy", "accuracy", "physics", "conformance", "sanitize"),
    ]
    assert ["--known" in command for command in commands[:2]] == [False, True]
    for command in commands:
        text = (ROOT / f"{command[2].replace('.', '/')}.py").read_text()
        assert all(f'add_argument("{option}"' in text for option in command if option.startswith("--"))
        if "--workers" in command:
            assert command[command.index("--workers") + 1] == "14"
    recorded = {path.name for path in script.RECORDED.glob("accuracy-*.json")}
    assert {path.name for path in (tmp_path / "out").glob("accuracy-*.json")} == recorded


@pytest.mark.parametrize(
    ("speeds", "known", "code"),
    [
        ((100, 98, 99), 101, 0),
        ((100, 98, 99), 90, 0),
        ((100, 97.1, 99), 90, 0),
        ((100, 96.9, 99), 90, 1),
        ((100, 98, 99), 104, 1),
        ((100, 98, 99), None, 3),
        ((100, None, 99), 101, 3),
    ],
)
def test_searches_with_several_seeds_have_to_find_the_speed_that_is_known(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    speeds: tuple[float | None, ...],
    known: int | None,
    code: int,
) -> None:
    """What each chose is measured by itself, as the known kernel is; speeds of finals in turn are told beside that."""
    alone = dict(zip(("1", "2", "3", "known"), (*speeds, known), strict=True))

    def run(command: list[str], **streams: Any) -> object:
        assert command[command.index("--device") + 1] == "1"
        if "measure" in command:
            path = Path(command[command.index("measure") + 1])
            mlups = alone[path.parent.name.removeprefix("fast-seed-") if path != script.KNOWN else "known"]
            streams["stdout"].write(json.dumps({"measurement": {"mlups": mlups}}))
            return script.subprocess.CompletedProcess(command, 0 if mlups else code)
        Path(command[command.index("--output") + 1]).mkdir(parents=True)
        return script.subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(script.subprocess, "run", run)
    monkeypatch.setattr(script, "facts", lambda folder: {"mlups": 70 + int(folder.name[-1])})
    ended, (part,) = call(script, monkeypatch, tmp_path, "--parts", "fast-seeds", "--device", "1")
    assert (ended, part["within"]) == (code, code == 0)
    assert part["finals_mlups"] == {"1": 71.0, "2": 72.0, "3": 73.0}
    assert part["alone_mlups"] == {name: mlups for name, mlups in alone.items() if mlups}


def test_a_search_that_left_nothing_is_not_within(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(command: list[str], **streams: Any) -> object:
        if "measure" in command:
            streams["stdout"].write(json.dumps({"measurement": {"mlups": 100}}))
        elif command[command.index("--seed") + 1] != "2":
            Path(command[command.index("--output") + 1]).mkdir(parents=True)
        return script.subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(script.subprocess, "run", run)
    monkeypatch.setattr(script, "facts", lambda _: {"mlups": 100})
    ended, (part,) = call(script, monkeypatch, tmp_path, "--parts", "fast-seeds")
    assert (ended, part["within"], sorted(part["alone_mlups"])) == (1, False, ["1", "3", "known"])


@pytest.mark.parametrize("described", [True, False])
def test_profiles_are_made_by_what_is_known_of_the_device(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, described: bool
) -> None:
    """Each by the description of this call if there is one; a kernel that fails shows in the exit code."""
    machine = tmp_path / "out" / "machine.toml" if described else script.RECORDED / "machine.toml"
    if described:
        machine.parent.mkdir()
        machine.touch()
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> object:
        commands.append(command)
        return script.subprocess.CompletedProcess(command, 3 if "aos.html" in command[-3] else 0)

    monkeypatch.setattr(script.subprocess, "run", run)
    code, (part,) = call(script, monkeypatch, tmp_path, "--parts", "profile")
    assert code == 3
    assert part["exit_codes"] == {**dict.fromkeys(script.PROFILES, 0), "aos": 3}
    for command, subject in zip(commands, script.PROFILES.values(), strict=True):
        assert command[3] == "profile"
        assert command[4 : 4 + len(subject)] == list(subject)
        assert command[-1] == str(machine)
        assert not subject[0].endswith(".json") or Path(subject[0]).is_file()


@pytest.mark.parametrize(("device", "backend"), [("0", "cuda"), ("cpu", "cpu")])
def test_a_set_keeps_the_description_of_its_device_and_no_other(
    script: ModuleType, tmp_path: Path, device: str, backend: str
) -> None:
    folder = tmp_path / "config" / "machines"
    folder.mkdir(parents=True)
    for name, known in (("a", "cuda"), ("b", "cpu")):
        (folder / f"{name}.toml").write_text(f'backend = "{known}"\n')
    script.keep_machine(script.Run(tmp_path, tmp_path, 0.0, device, None, False, 0), tmp_path / "machine.toml")
    assert (tmp_path / "machine.toml").read_text() == f'backend = "{backend}"\n'


@pytest.mark.parametrize("part", COMMANDS)
def test_every_command_of_a_part_knows_its_options(part: str, tmp_path: Path) -> None:
    words = COMMANDS[part](Asked(tmp_path, tmp_path, "0", 4, "3", 100.0)).words[2:]
    module, options = words[0], {word for word in words if re.match("--[a-z]", word)}
    if module == "pytest":
        return
    if module in ("lbmtune", "scripts.measurements.proof_cost", "scripts.measurements.first_minute"):
        known = {name for option in verb(words[1] if module == "lbmtune" else "study").params for name in option.opts}
    else:
        file = ROOT / module.replace(".", "/")
        text = (file / "__main__.py" if file.is_dir() else file.with_suffix(".py")).read_text()
        known = set(re.findall(r'add_argument\(\s*"(--[a-z-]+)"', text))
    assert options <= known


def test_parts_on_several_devices_name_all_of_them(tmp_path: Path) -> None:
    asked = Asked(tmp_path, tmp_path, "0", 4, "3", 100.0)
    for part in ("cut-study", "claims-parts", "all-devices"):
        assert "0,1,2,3" in COMMANDS[part](asked).words
    assert COMMANDS["scaling"](asked).words[-2:] == ("--devices", "4")
