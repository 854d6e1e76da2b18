"""The scripts in examples/, each run with the arguments of a test."""

from __future__ import annotations

import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.problem.flows import cavity
from lbmtune.export.cuda_header import cuda_header
from tests.shim.device import COMPILER
from tests.support.headers import best_of, build_program
from tests.support.paths import ROOT
from tests.support.studies.fake_study import stand_in

EXAMPLES = ROOT / "examples"


def main_of(name: str) -> Any:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {"fastest_kernel", "predict_gpu", "run_best"}


@pytest.fixture
def cavity_header(tmp_path: Path) -> Path:
    found = best_of(cavity("d2q9", "bgk", (64, 64, 1), 1.0), cuda.Direct(block=(32, 1, 1)))
    (tmp_path / "cavity.h").write_text(cuda_header(found, "cavity", "cavity.h"))
    return tmp_path / "cavity.h"


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_a_program_in_cpp_solves_the_cavity_of_ghia(cavity_header: Path) -> None:
    """On the host shim; the threads of its kernel do not exchange values."""
    folder, program = EXAMPLES / "cuda-cavity", cavity_header.with_name("cavity")
    sources = [folder / "main.cpp", folder / "kernel.cu"]
    build_program(sources, program, "cavity", cavity_header.parent, "-DSHIM_AS_LOOP")
    done = subprocess.run([program, "32"], capture_output=True, text=True, check=True)
    assert 0 < float(done.stdout.split()[-1]) < 0.012, "of the velocity of the lid"
    assert "mass 1.000000" in done.stdout
    failed = subprocess.run([program, "0"], capture_output=True, text=True, check=False)
    assert (failed.returncode, failed.stderr) == (1, "an extent of the domain is below 1\n")


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("nvcc") and shutil.which("cmake")), reason="no nvcc or no CMake")
def test_cmake_builds_the_program(cavity_header: Path) -> None:
    options = [f"-DHEADER={cavity_header}", "-DCMAKE_CUDA_ARCHITECTURES=90"]
    build = cavity_header.with_name("build")
    subprocess.run(["cmake", "-S", EXAMPLES / "cuda-cavity", "-B", build, *options], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
    assert (build / "cavity").is_file()


def test_own_lines_of_a_program_are_few() -> None:
    files = [path.read_text() for path in (EXAMPLES / "cuda-cavity").iterdir()]
    assert sum(len(text.splitlines()) for text in files) <= 80


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
