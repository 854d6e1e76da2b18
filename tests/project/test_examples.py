"""The scripts in examples/, each run with the arguments of a test."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.support.studies.fake_study import stand_in

EXAMPLES = ROOT / "examples"


def main_of(name: str) -> Any:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {"fastest_kernel", "predict_gpu", "run_best"}


def test_the_fastest_kernel_is_found_and_run(monkeypatch, capsys, tmp_path) -> None:
    """The search measures a made-up device, the kernel that it exports runs on this one."""
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patched:
        stand_in(patched)
        main_of("fastest_kernel")("found", 8)
    printed = capsys.readouterr().out
    assert "of 8 kernels are verified and timed" in printed
    assert "kernel: found/best.json" in printed
    with pytest.warns(UserWarning, match="Made-up 1"):
        main_of("run_best")("found/best.json", 10)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("<Solver: cavity d3q19 bgk on 64x32x32 cells")
    steps = [line.split(":")[0].split() for line in lines[1:]]
    assert [name for name, _ in steps] == ["step"] * 5
    energies = [float(line.partition("energy ")[2].split()[0]) for line in lines[1:]]
    assert energies[0] < 1e-30, "fluid at rest"
    assert min(energies[1:]) > 1e-6, "which the lid sets in motion"


def test_gpus_are_compared_by_the_model(capsys) -> None:
    main_of("predict_gpu")("h200", "k20")
    printed = capsys.readouterr().out
    assert "NVIDIA H200: pull" in printed
    assert "NVIDIA Tesla K20: pull" in printed
    assert printed.count("limit: ") == 2
