"""The script that runs kernels under compute-sanitizer, as far as it needs no GPU."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.families.rules import broken
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from scripts import sanitize
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.conformance.choices import LIMITS
from tests.support.paths import ROOT

SCRIPT = ROOT / "scripts" / "sanitize.py"
NO_PROGRAM = {"temporal_blocking/ablation.cu"}
"""Regions of kernels that leave out a part, which no program has."""
SKELETONS = re.compile(r'"kernels/cuda/(\w+/\w+\.cu)"')


@pytest.fixture
def script() -> ModuleType:
    return sanitize


def test_every_skeleton_has_a_legal_case(script: ModuleType) -> None:
    found: set[str] = set()
    for name in script.CASES:
        sample = script.sample(name)
        assert broken(*sample, LIMITS) is None, name
        found |= set(SKELETONS.findall(render(*sample).source))
    folder = ROOT / "kernels" / "cuda"
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.cu") if path.parent.name != "probes"}
    assert found == {name for name in files - NO_PROGRAM if not name.startswith(("passes/", "exchange/"))}


def noting_skeletons() -> tuple[set[str], Callable[[Program], Binary]]:
    """A set, and a compiler that notes in it which files of `kernels` a text is made of."""
    found: set[str] = set()

    def compiled(program: Program) -> Binary:
        found.update(SKELETONS.findall(program.source))
        return compile_on_host(program)

    return found, compiled


@pytest.mark.skipif(not COMPILER, reason="g++ is not installed")
def test_every_pass_has_a_case_and_is_right(script: ModuleType) -> None:
    found, compiled = noting_skeletons()
    for name in script.PASSES:
        assert broken(*script.sample(name), LIMITS) is None, name
        assert script.wrong_pass(name, HostDevice(), compiled) is None, name
    files = {f"passes/{path.name}" for path in (ROOT / "kernels" / "cuda" / "passes").glob("*.cu")}
    assert files <= found


@pytest.mark.skipif(not COMPILER, reason="g++ is not installed")
def test_every_exchange_has_a_case_and_is_right(script: ModuleType) -> None:
    found, compiled = noting_skeletons()
    for name in script.PARTS:
        assert broken(*script.sample(name), LIMITS) is None, name
        assert script.wrong_parts(name, HostDevice(), compiled) is None, name
    assert {f"exchange/{path.name}" for path in (ROOT / "kernels" / "cuda" / "exchange").glob("*.cu")} <= found


@pytest.mark.skipif(not COMPILER, reason="g++ is not installed")
def test_a_wrong_exchange_is_found(script: ModuleType) -> None:
    def compiled(program: Program) -> Binary:
        return compile_on_host(replace(program, source=program.source.replace("taken[now.from", "taken[now.to")))

    assert "apart from the whole" in script.wrong_parts("parts, direct", HostDevice(), compiled)


@pytest.mark.skipif(not COMPILER, reason="g++ is not installed")
@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("pass, box", ("[cell] = solid", "[cell] = Real(2) * cell + solid"), "is off by"),
        ("pass, walls of second order", ("share[n] *", "Real(2) * share[n] *"), "is off by"),
        ("pass, output", ("[cell] = solid", "[cell] = Real(2) * cell + solid"), "density of the output is off by"),
    ],
)
def test_a_wrong_pass_is_found(script: ModuleType, name: str, change: tuple[str, str], said: str) -> None:
    def compiled(program: Program) -> Binary:
        return compile_on_host(replace(program, source=program.source.replace(*change)))

    assert said in script.wrong_pass(name, HostDevice(), compiled)


def test_passes_run_under_every_tool_and_steps_without_initcheck(script: ModuleType) -> None:
    assert script.TOOLS == ("memcheck", "racecheck", "synccheck", "initcheck")
    assert [tool for tool, _ in script.jobs(["pass, list"], list(script.TOOLS))] == list(script.TOOLS)
    assert [tool for tool, _ in script.jobs(["direct"], list(script.TOOLS))] == ["memcheck"]
    assert [tool for tool, _ in script.jobs(["temporal"], list(script.TOOLS))] == list(script.TOOLS[:3])
    assert [tool for tool, _ in script.jobs(["parts, temporal"], list(script.TOOLS))] == list(script.TOOLS[:3])
    assert script.chosen("") == [*script.CASES, *script.PASSES, *script.PARTS]
    assert script.chosen("pass") == list(script.PASSES)
    assert script.chosen("parts") == list(script.PARTS)
    assert len(script.ALL) == len(script.CASES) + len(script.PASSES) + len(script.PARTS)


@pytest.mark.skipif(not COMPILER, reason="g++ is not installed")
def test_a_case_of_either_kind_is_run(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(set_allocator=lambda _: None)))
    monkeypatch.setattr(script, "open_device", lambda _: HostDevice())
    monkeypatch.setattr(script, "compiler_for", lambda _: compile_on_host)
    for name in ("direct", "pass, box"):
        assert script.run(name, "0") == 0
        assert capsys.readouterr().out == "right\n"
    monkeypatch.setattr(script, "wrong_fields", lambda *_: "wrong: it is off")
    assert script.run("pass, box", "0") == script.WRONG
    assert capsys.readouterr().out == "wrong: it is off\n"


def test_tools_of_shared_memory_skip_kernels_without(script: ModuleType) -> None:
    assert list(script.jobs(["direct", "temporal"], ["memcheck", "racecheck"])) == [
        ("memcheck", "direct"),
        ("memcheck", "temporal"),
        ("racecheck", "temporal"),
    ]


def test_what_racecheck_does_not_follow_is_one_case_and_the_rest_of_it_counts(script: ModuleType) -> None:
    def known(name: str, tool: str, code: int) -> bool:
        return bool(script.Verdict(name, tool, code, "").known)

    assert known("temporal, neighbours", "racecheck", script.FOUND)
    assert not known("temporal, neighbours", "racecheck", script.WRONG)
    assert not known("temporal, neighbours", "memcheck", script.FOUND)
    assert not known("temporal, neighbours, all lanes", "racecheck", script.FOUND)


def test_races_in_kernels_of_cupy_alone_do_not_count(script: ModuleType) -> None:
    def known(tool: str, *names: str) -> bool:
        lines = [f"========= Warning: Race reported between Read access at {name}+0x460" for name in names]
        return bool(script.Verdict("pass, list", tool, script.FOUND, "\n".join(lines)).known)

    assert known("racecheck", "cupy_nonzero_kernel", "cupy_nonzero_kernel")
    assert not known("racecheck", "cupy_nonzero_kernel", "walls")
    assert not known("racecheck")
    assert not known("memcheck", "cupy_nonzero_kernel")


def test_where_all_lanes_raise_the_flag_the_kernel_is_the_same_otherwise(script: ModuleType) -> None:
    found, now = (
        script.program_of(name).source for name in ("temporal, neighbours, all lanes", "temporal, neighbours")
    )
    changed = [pair for pair in zip(found.splitlines(), now.splitlines(), strict=True) if len(set(pair)) == 2]
    assert len(changed) == len(script.ALL_LANES) == 3


@pytest.mark.parametrize(("code", "words"), [(0, "nothing found"), (9, "errors found"), (1, "wrong result")])
def test_what_a_tool_says_is_told(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, words: str
) -> None:
    def run(command: list[str], **_: object) -> object:
        if "--version" in command:
            return subprocess.CompletedProcess(command, 0, "Version 2025.3.1.0 (build 1)", "")
        assert command[command.index("--tool") + 1] == "memcheck"
        assert command[command.index("--run") + 1] == "direct"
        return subprocess.CompletedProcess(command, code, f"========= ERROR SUMMARY: {code} errors\n", "")

    monkeypatch.setattr(script.subprocess, "run", run)
    monkeypatch.setattr(script, "provenance", lambda _: "a tool on a device")
    report = tmp_path / "sanitize.txt"
    arguments = [str(SCRIPT), str(report), "--cases", "direct", "--tools", "memcheck", "--workers", "1"]
    monkeypatch.setattr(script, "chosen", lambda _: ["direct"])
    monkeypatch.setattr(sys, "argv", arguments)
    assert script.main() == (1 if code else 0)
    lines = report.read_text().splitlines()
    assert lines[0] == "a tool on a device"
    assert lines[2].split() == ["direct", "memcheck", *f"{words}; {code} errors".split()]
    assert len(lines) == 3 + bool(code)
