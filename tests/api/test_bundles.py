"""A bundle: its files, its modules, and its test program on the host shim."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.api import bundles
from lbmtune.api.bundles import MODULES, write_bundle
from lbmtune.backend.cuda import nvrtc
from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.problem.flows import box
from lbmtune.errors import DeviceUnavailableError, InputError
from lbmtune.records.best_json.document import read_best
from tests.shim.device import COMPILER
from tests.support.kernels.headers import best_of, build_program
from tests.support.kernels.kernel_kinds import KINDS

try:
    KNOWN = nvrtc.architectures()
except DeviceUnavailableError:
    pytest.skip("no NVRTC", allow_module_level=True)


@pytest.fixture
def sm_90(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "ARCHITECTURES", ("sm_90", "sm_9999"))


@pytest.mark.usefixtures("sm_90")
def test_a_bundle_holds_data_header_target_program_and_modules(tmp_path: Path) -> None:
    found = best_of(*KINDS["several steps"])
    modules = write_bundle(found, tmp_path / "bundle", "lbm")
    assert modules == ("kernel.sm_90.cubin", "kernel.sm_90.ptx", "single.sm_90.cubin", "single.sm_90.ptx")
    files = {path.name for path in (tmp_path / "bundle").iterdir()}
    assert files == {"best.json", "lbm.h", "lbm.cu", "CMakeLists.txt", "check.cpp", MODULES}
    assert read_best(tmp_path / "bundle" / "best.json") == found
    images = [(tmp_path / "bundle" / MODULES / name).read_bytes() for name in modules]
    assert images[0].startswith(b"\x7fELF")
    assert b".visible .entry step_0" in images[1]
    assert b".target sm_90" in images[3]


@pytest.mark.usefixtures("sm_90")
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize("kind", ["one step", "sites listed"])
def test_its_program_checks_the_mass(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    write_bundle(best_of(*KINDS[kind]), folder, "lbm")
    build_program([folder / "check.cpp", folder / "lbm.cu"], folder / "check", "lbm", folder)
    done = subprocess.run([folder / "check", "257", "5", "4", "3"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("257 x 5 x 4: ")
    assert "in the study, on NVIDIA H200 and 64 x 16 x 12 cells; mass off by " in done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("sm_90")
@pytest.mark.skipif(not (shutil.which("nvcc") and shutil.which("cmake")), reason="no nvcc or no CMake")
def test_cmake_builds_a_library_and_the_program(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    write_bundle(best_of(*KINDS["one step"]), folder, "lbm")
    options = ["-DCMAKE_CUDA_ARCHITECTURES=90"]
    subprocess.run(["cmake", "-S", folder, "-B", tmp_path / "build", *options], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, capture_output=True)
    assert (tmp_path / "build" / "check").is_file()
    assert (tmp_path / "build" / "liblbm.a").is_file()


def test_an_architecture_without_the_instructions_of_a_kernel_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Bulk copies, which devices before sm_90 do not have."""
    monkeypatch.setattr(bundles, "ARCHITECTURES", ("sm_80", "sm_90"))
    march = cuda.TemporalBlocking(chunk_planes=5, plane_fetch="bulk", z_buffer="shared")
    found = best_of(box("d3q19", "bgk", (64, 16, 12), 1.3), march)
    assert write_bundle(found, tmp_path, "lbm")[0] == "kernel.sm_90.cubin"


@pytest.mark.usefixtures("sm_90")
def test_modules_of_an_earlier_kernel_are_replaced(tmp_path: Path) -> None:
    earlier = write_bundle(best_of(*KINDS["several steps"]), tmp_path, "lbm")
    modules = write_bundle(best_of(*KINDS["one step"]), tmp_path, "lbm")
    assert {path.name for path in (tmp_path / MODULES).iterdir()} == set(modules) < set(earlier)


@pytest.mark.usefixtures("sm_90")
def test_an_error_of_the_text_is_told(tmp_path: Path) -> None:
    found = best_of(*KINDS["one step"])
    wrong = replace(found, kernel=replace(found.kernel, source=found.kernel.source + "\nint nonsense = ;\n"))
    with pytest.raises(InputError, match=r"compiles for none of sm_90, .*expected an expression"):
        write_bundle(wrong, tmp_path, "lbm")


def test_a_kernel_that_compiles_for_nothing_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bundles, "ARCHITECTURES", ("sm_9999",))
    with pytest.raises(InputError, match="compiles for none of sm_9999"):
        write_bundle(best_of(*KINDS["one step"]), tmp_path / "bundle", "lbm")
    assert not (tmp_path / "bundle").exists()
