"""The verb compare: studies beside the first one, with an exit code for regressions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.records.store import append_trial, write_header
from lbmtune.records.study import StudyRecord
from tests.records.test_regression import TWENTY, slower, study

APART = (0.002, -0.002) * 6


def written(folder: Path, record: StudyRecord) -> Path:
    write_header(folder, record.header)
    for trial in record.trials:
        append_trial(folder, trial)
    return folder


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Return a study, a repeat, one that is slower by a twentieth, and one without a speed."""
    was = study(TWENTY, APART)
    slow = study([slower(one, 0.95) for one in TWENTY], APART)
    records = {"monday": was, "tuesday": was, "friday": slow, "nothing": replace(was, trials=())}
    return {name: written(tmp_path / "lbmtune-studies" / name, record) for name, record in records.items()}


def test_a_repeated_study_is_the_same(run, folders):
    code, out, err = run("compare", "monday", "tuesday")
    assert (code, err) == (0, "")
    assert "before       lbmtune-studies/monday, NVIDIA H200, 2026-01-02, lbmtune 0.1.0" in out
    assert "noise        +-0.76 % between runs (90 % of repeats)" in out
    assert "the same within the noise" in out
    assert "20 that both studies measured: 20 same" in out


def test_a_slower_study_ends_with_4(run, folders):
    code, out, err = run("compare", "monday", folders["friday"])
    assert code == 4
    assert "all kernels  -5.0 % (" in out
    assert "slower" in out
    assert err.startswith(
        f"lbmtune: {folders['friday']} is slower than lbmtune-studies/monday by the winner, all kernels"
    )
    assert run("compare", "friday", "monday")[0] == 0, "faster is no regression"


def test_several_studies_are_compared_with_the_first(run, folders):
    code, out, _ = run("compare", "monday", "tuesday", "friday", "--json")
    facts = json.loads(out)
    assert code == 4
    assert (facts["format"], facts["version"], facts["regression"]) == ("lbmtune.comparison", 1, True)
    tuesday, friday = facts["after"]
    assert tuesday["regressions"] == []
    assert friday["regressions"][:2] == ["the winner", "all kernels"]
    assert friday["all_kernels"]["ratio"] == pytest.approx(0.95)
    assert friday["winner"]["verdict"] == "slower"
    assert len(friday["kernels"]) == len(TWENTY)


def test_what_cannot_be_compared_is_refused(run, folders):
    assert run("compare", "monday")[0] == 2
    assert "named twice" in run("compare", "monday", folders["monday"])[2]
    assert "no study at sunday" in run("compare", "monday", "sunday")[2]
    assert run("compare", "monday", "nothing")[0] == 1


def test_a_report_of_several_studies_is_one_page(run, folders, tmp_path):
    code, out, _ = run("report", "monday", "friday")
    assert (code, out) == (0, "wrote lbmtune-studies/comparison.html\n")
    assert "friday 968 (-5.0 %)" in (tmp_path / "lbmtune-studies" / "comparison.html").read_text()
    assert json.loads(run("report", "monday", "friday", "-o", "both.html", "--json")[1])["path"] == "both.html"
    assert run("report", "monday", "nothing")[0] == 1
    code, _, err = run("report", "monday", "friday", "--geometry", "voxels.npy")
    assert code == 2
    assert "goes with one study" in err
