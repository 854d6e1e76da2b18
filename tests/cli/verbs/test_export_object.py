"""`lbmtune export --format c`: files of a recorded study on a CPU or of its best.json, and what it refuses."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from lbmtune.records.best_json.document import encode_best, read_best
from lbmtune.records.best_json.kernel import source_digest
from lbmtune.records.store import read_study
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


def test_a_best_json_alone_is_enough(run: Run, tmp_path: Path) -> None:
    (tmp_path / "of file").mkdir()
    for study, kind in ((CPU, "c"), (GPU, "cuda")):
        assert run("export", study, "-o", tmp_path / f"{kind}.json")[0] == 0
        for named, source in (("of study", study), ("of file", tmp_path / f"{kind}.json")):
            target = tmp_path / named / f"{kind}.h"
            code, _, err = run("export", source, "--format", kind, "--name", "lbm", "-o", target)
            assert code == 0, err
        assert (tmp_path / "of file" / f"{kind}.h").read_text() == (tmp_path / "of study" / f"{kind}.h").read_text()
    assert {one.name for one in (tmp_path / "of file").iterdir()} == {"c.h", "c_kernel.o", "c.f90", "cuda.h"}


def test_a_trial_is_written_in_place_of_the_winner(run: Run, tmp_path: Path) -> None:
    study = read_study(CPU)
    other = study.ranked[1]
    code, _, err = run("export", CPU, "--trial", other.number, "-o", tmp_path / "other.json")
    assert code == 0, err
    found = read_best(tmp_path / "other.json")
    assert (found.key, found.expected.mlups) == (other.key, other.mlups)
    assert study.ranked[0].key in [one.key for one in found.alternates]
    number = max(trial.number for trial in study.trials) + 1
    for arguments, said in (
        (("--trial", number), "has no verified trial of that number; lbmtune report lists those it has, such as "),
        (("--trial", other.number, "--format", "c"), "is not supported for format=c (use best): export the file that"),
        (("--trial", other.number, "--member", 1), f"--member 1 and --trial {other.number} each name a kernel"),
    ):
        code, _, err = run("export", CPU, *arguments, "-o", tmp_path / "no")
        assert code == 2
        assert said in " ".join(err.split())
    assert [one.name for one in tmp_path.iterdir()] == ["other.json"]


def test_a_best_json_that_is_not_what_this_version_makes_is_refused(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "best.json"
    assert run("export", GPU, "-o", file)[0] == 0
    found = read_best(file)
    kernel = replace(found.kernel, source=f"{found.kernel.source}\nint more;\n")
    kernel = replace(kernel, source_digest=source_digest(kernel, "cuda"))
    file.write_bytes(encode_best(replace(found, kernel=kernel)))
    code, _, err = run("export", file, "--format", "cuda", "-o", tmp_path / "lbm.h")
    assert code == 2
    assert "is of another version of lbmtune, or was changed" in " ".join(err.split())
    for arguments, said in (
        (("--format", "csv"), "is a file and no study; give the folder that lbmtune study wrote"),
        (("--format", "cuda", "--member", "2"), "--member 2 is not supported for"),
    ):
        code, _, err = run("export", file, *arguments)
        assert code == 2
        assert said in " ".join(err.split())
    assert [one.name for one in tmp_path.iterdir()] == ["best.json"]
