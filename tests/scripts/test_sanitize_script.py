"""The script that runs kernels under compute-sanitizer, as far as it needs no GPU."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from lbmtune.catalogue.families.rules import broken
from lbmtune.codegen.render import render
from scripts import sanitize
from tests.support.conformance.choices import LIMITS
from tests.support.paths import ROOT

SCRIPT = ROOT / "scripts" / "sanitize.py"
NO_STEP = {"temporal_blocking/ablation.cu", "passes/macroscopics.cu", "passes/walls.cu"}
"""Regions of kernels that leave out a part, and passes between launches, which no program of a configuration has."""


@pytest.fixture
def script() -> ModuleType:
    return sanitize


def test_every_skeleton_has_a_legal_case(script: ModuleType) -> None:
    found: set[str] = set()
    for name in script.CASES:
        sample = script.sample(name)
        assert broken(*sample, LIMITS) is None, name
        found |= set(re.findall(r'"kernels/cuda/(\w+/\w+\.cu)"', render(*sample).source))
    folder = ROOT / "kernels" / "cuda"
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.cu") if path.parent.name != "probes"}
    assert found == files - NO_STEP


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
