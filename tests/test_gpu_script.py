"""The script that does all that needs a GPU, as far as it needs none."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from script_module import load

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "gpu.py"


@pytest.fixture
def script() -> ModuleType:
    return load(SCRIPT)


def call(script: ModuleType, monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str) -> tuple[int, list[dict]]:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(folder / "out"), "--work", str(folder / "work"), *options])
    return script.main(), json.loads((folder / "out" / "summary.json").read_text())


def test_a_part_that_is_left_out_shows_in_the_exit_code(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code, (left_out,) = call(script, monkeypatch, tmp_path, "--parts", "fp32", "--limit", "20")
    assert code == 1
    assert left_out["left_out"] == "20 s left"


@pytest.mark.parametrize("ended", [0, 3, -9])
def test_without_a_limit_all_parts_run(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ended: int
) -> None:
    limits: list[float | None] = []

    def run(command: list[str], timeout: float | None, **_: object) -> object:
        limits.append(timeout)
        return script.subprocess.CompletedProcess(command, ended)

    monkeypatch.setattr(script.subprocess, "run", run)
    code, parts = call(script, monkeypatch, tmp_path, "--parts", "devices,cavity,tests")
    assert [part["part"] for part in parts] == ["devices", "cavity", "tests"]
    assert limits == [None] * 3
    assert code == abs(ended)


@pytest.mark.parametrize(
    ("speeds", "known", "code"),
    [((100, 98, 99), 101, 0), ((100, 96, 99), 90, 1), ((100, 98, 99), 104, 1), ((100, 98, 99), None, 3)],
)
def test_searches_with_several_seeds_have_to_find_the_speed_that_is_known(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    speeds: tuple[int, ...],
    known: int | None,
    code: int,
) -> None:
    found = iter(speeds)

    def run(command: list[str], **streams: Any) -> object:
        if "measure" in command:
            assert "d3q19-moments-fp32" in command[command.index("measure") + 1]
            streams["stdout"].write(json.dumps({"measurement": {"mlups": known}}))
            return script.subprocess.CompletedProcess(command, 0 if known else code)
        Path(command[command.index("--out") + 1]).mkdir(parents=True)
        return script.subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(script.subprocess, "run", run)
    monkeypatch.setattr(script, "facts", lambda folder: {"mlups": next(found)})
    ended, (part,) = call(script, monkeypatch, tmp_path, "--parts", "fast-seeds")
    assert (ended, part["within"]) == (code, code == 0)
    assert part["mlups"] == dict(zip("123", speeds, strict=True))


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
