"""A bundle of a CPU kernel: its files, and its test program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lbmtune.api.bundles import write_cpu_bundle
from lbmtune.errors import InputError
from lbmtune.records.best_json.document import read_best
from tests.shim.device import COMPILER
from tests.support.kernels.headers import best_of
from tests.support.kernels.objects import C_COMPILER, KINDS, MORE


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_its_files_are_there_and_its_program_checks_the_mass(tmp_path: Path) -> None:
    found = best_of(*MORE["starts of slots exchanged"])
    write_cpu_bundle(found, tmp_path, "lbm")
    files = {"best.json", "lbm.h", "lbm.c", "lbm.f90", "lbm_kernel.o", "CMakeLists.txt", "check.cpp"}
    assert {path.name for path in tmp_path.iterdir()} == files
    assert read_best(tmp_path / "best.json") == found
    subprocess.run([str(C_COMPILER), "-c", "lbm.c"], cwd=tmp_path, check=True)
    sources = ["check.cpp", "lbm.o", "lbm_kernel.o", "-o", "check"]
    subprocess.run([str(COMPILER), "-std=c++11", *sources], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "check", "32", "5", "4", "3"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("32 x 5 x 4: ")


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("cmake"), reason="no CMake")
def test_cmake_builds_a_library_and_the_program(tmp_path: Path) -> None:
    write_cpu_bundle(best_of(*MORE["starts of slots exchanged"]), tmp_path / "lbm", "lbm")
    subprocess.run(["cmake", "-S", tmp_path / "lbm", "-B", tmp_path / "build"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, capture_output=True)
    subprocess.run([tmp_path / "build" / "check", "32", "5", "4", "3"], check=True, capture_output=True)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write .*file: File exists; give another --output"):
        write_cpu_bundle(best_of(*KINDS["sites listed"]), tmp_path / "file", "lbm")
