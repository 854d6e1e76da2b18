"""`lbmtune export --format c`: the files it writes of a recorded study on a CPU, and what it refuses."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.conftest import Run
from tests.support.paths import ROOT

RECORDED = ROOT / "studies/recorded"
CPU, GPU = RECORDED / "zen5-2-cores/d3q19-box-output-fp32", RECORDED / "nvidia-h100/d3q19-box-fp32"


def test_a_recorded_study_of_a_cpu_becomes_object_header_and_module(run: Run, tmp_path: Path) -> None:
    code, out, err = run("export", CPU, "--format", "c", "--name", "lbm", "-o", tmp_path / "lbm.h")
    beside = ("lbm_kernel.o", "lbm.f90")
    assert code == 0, err
    assert " ".join(out.split()) == f"wrote {tmp_path / 'lbm.h'}, and beside it {' and '.join(beside)}"
    assert {one.name for one in tmp_path.iterdir()} == {"lbm.h", *beside}
    command = ["nm", "--defined-only", "--extern-only", "--format=posix", tmp_path / "lbm_kernel.o"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    assert all(one.startswith("lbm_kernel_") for one in names if one)


def test_what_has_no_object_code_is_refused(run: Run, tmp_path: Path) -> None:
    for arguments, said in (
        ((GPU, "--format", "c"), "format=c is not supported for a kernel for target=cuda (use format=cuda"),
        ((CPU, "--format", "cuda"), "format=cuda is not supported for a kernel for target=cpu (use format=c"),
        ((CPU, "--target", "host"), "--target host is not supported for format=best (use c)"),
        ((CPU, "--format", "c", "--target", "x86-64-v9"), "unknown target 'x86-64-v9'"),
        ((CPU, "--format", "c", "--name", "my lbm"), "name=my lbm is not supported for a namespace of C++"),
    ):
        code, _, err = run("export", *arguments, "-o", tmp_path / "lbm.h")
        assert code == 2
        assert said in " ".join(err.split())
    assert not [*tmp_path.iterdir()]
