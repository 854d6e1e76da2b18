"""The scripts in examples/, each run with the arguments of a test."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lbmtune.api.objects import write_object
from lbmtune.catalogue.config import cpu, cuda
from lbmtune.catalogue.problem.flows import box, cavity, channel
from lbmtune.export.cuda_header import cuda_header
from lbmtune.records.best_json.document import encode_best
from tests.shim.device import COMPILER
from tests.support.kernels.headers import best_of, build_program
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


ONE_ROW = cpu.Direct(row_offset=1, scheme="aa")
ALONE = {"OMP_NUM_THREADS": "1"}
"""One thread: several wait for each other at every step of a small domain."""


def test_a_program_in_c_solves_the_cavity_of_ghia(tmp_path: Path) -> None:
    """Compiled by gcc with OpenMP, and by clang without it if that is here."""
    write_object(best_of(cavity("d2q9", "bgk", (64, 64, 1), 1.0), ONE_ROW), tmp_path / "cavity.h", "cavity")
    sources = [EXAMPLES / "c-cavity" / name for name in ("main.c", "kernel.c")]
    programs = {"gcc": ["-fopenmp"], "clang": ["-Wno-unknown-pragmas"]}
    here = [compiler for compiler in programs if shutil.which(compiler)]
    assert here
    for compiler in here:
        options = [compiler, "-O1", "-std=c11", "-Wall", "-Wextra", "-Werror", *programs[compiler], "-I."]
        command = [*map(str, (*options, *sources)), "cavity_kernel.o", "-o", compiler, "-lm"]
        subprocess.run(command, cwd=tmp_path, check=True)
        done = subprocess.run([tmp_path / compiler, "32"], env=ALONE, capture_output=True, text=True, check=True)
        assert 0 < float(done.stdout.split()[-1]) < 0.012, "of the velocity of the lid"
        assert "mass 1.000000" in done.stdout
        failed = subprocess.run([tmp_path / compiler, "24"], capture_output=True, text=True, check=False)
        assert failed.returncode == 1
        assert "nx=24 is not a multiple of 16 (16 lanes of fp32)" in failed.stderr


FORTRAN = shutil.which("gfortran")


@pytest.mark.skipif(FORTRAN is None, reason="no Fortran compiler (gfortran)")
def test_a_program_in_fortran_solves_the_channel_of_poiseuille(tmp_path: Path) -> None:
    write_object(best_of(channel("d2q9", "bgk", (64, 64, 1), 1.0), ONE_ROW), tmp_path / "channel.h", "channel")
    folder = EXAMPLES / "fortran-channel"
    compiled = ["gcc", "-O1", "-fopenmp", "-I.", "-c", folder / "kernel.c"]
    sources = ["channel.f90", folder / "main.f90", "kernel.o", "channel_kernel.o"]
    for command in (compiled, [FORTRAN, "-O1", "-Wall", "-Werror", "-fopenmp", *sources, "-o", "channel"]):
        subprocess.run([*map(str, command)], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "channel", "16"], env=ALONE, capture_output=True, text=True, check=True)
    assert 0 < float(done.stdout.split()[-1]) < 0.005, "of the velocity on the axis"
    failed = subprocess.run([tmp_path / "channel", "-1"], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "an extent of the domain is below 1" in failed.stderr


def of_guide(page: str, language: str) -> str:
    """The whole program in a language on a page, on a domain of 16 cells along each axis, for 10 steps."""
    blocks = re.findall(
        rf"^```{language}\n(.*?)^```$", (ROOT / "docs/guide" / page).read_text(), re.MULTILINE | re.DOTALL
    )
    (text,) = (block for block in blocks if "main" in block.splitlines()[0])
    return text.replace("256", "16").replace("1000", "10")


@pytest.mark.skipif(FORTRAN is None, reason="no Fortran compiler (gfortran)")
def test_programs_of_the_guide_to_objects_run_as_it_builds_them(tmp_path: Path) -> None:
    page = (ROOT / "docs/guide/c-object.md").read_text()
    write_object(best_of(box("d3q19", "bgk", (16, 16, 16), 1.0), ONE_ROW), tmp_path / "lbm.h", "lbm")
    (tmp_path / "solver.c").write_text('#define LBM_IMPLEMENTATION\n#include "lbm.h"\n')
    for language, name in (("c", "main.c"), ("fortran", "main.f90")):
        (tmp_path / name).write_text(of_guide("c-object.md", language))
    commands = re.findall(r"^(?:gcc|gfortran) .*$", page, re.MULTILINE)
    assert len(commands) == 3
    said = []
    for command in commands:
        words = command.partition("#")[0].replace("-O2", "-O1").split()
        subprocess.run(words, cwd=tmp_path, check=True)
        if "flow" in words:
            done = subprocess.run([tmp_path / "flow"], env=ALONE, capture_output=True, text=True, check=True)
            said.append(done.stdout.split())
    assert [(name, float(density)) for name, density in said] == [("density", 1.0)] * 2


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_the_program_of_the_guide_to_headers_runs(tmp_path: Path) -> None:
    found = best_of(box("d3q19", "bgk", (16, 16, 16), 1.0), cuda.Direct(block=(16, 1, 1)))
    (tmp_path / "lbm.h").write_text(cuda_header(found, "lbm", "lbm.h"))
    (tmp_path / "lbm.cu").write_text('#define LBM_IMPLEMENTATION\n#include "lbm.h"\n')
    (tmp_path / "main.cpp").write_text(of_guide("cuda-header.md", "cpp"))
    sources = [tmp_path / "main.cpp", tmp_path / "lbm.cu"]
    build_program(sources, tmp_path / "flow", "lbm", tmp_path, "-DSHIM_AS_LOOP", "-O0")
    done = subprocess.run([tmp_path / "flow"], capture_output=True, text=True, check=True)
    assert done.stdout == "density 1.000000\n"


def test_a_program_in_python_solves_the_cavity_of_ghia(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = best_of(cavity("d2q9", "bgk", (64, 64, 1), 1.0), ONE_ROW)
    (tmp_path / "best.json").write_bytes(encode_best(found))
    with pytest.warns(UserWarning, match="was tuned on NVIDIA H200"):
        assert 0 < main_of("python-cavity/cavity")(tmp_path / "best.json", "32") < 0.012
    assert "mass 1.000000" in capsys.readouterr().out


@pytest.mark.parametrize("folder", ["cuda-cavity", "c-cavity", "fortran-channel", "python-cavity"])
def test_own_lines_of_a_program_are_few(folder: str) -> None:
    files = [path.read_text() for path in (EXAMPLES / folder).iterdir() if path.is_file()]
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
