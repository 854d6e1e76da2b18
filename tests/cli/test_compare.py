"""The verb compare: studies beside the first one, with an exit code for regressions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.records.store import append_trial, write_header
from lbmtune.records.study import StudyRecord
from tests.records.test_regression import TWENTY, slower, study
from tests.support.studies import made_up_records as made

APART = (0.002, -0.002) * 6


def written(folder: Path, record: StudyRecord) -> Path:
    write_header(folder, record.header)
    for trial in record.trials:
        append_trial(folder, trial)
    return folder


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Return a study, a repeat, one that is slower by a twentieth, and one without a speed."""
    was = real(study(TWENTY, APART))
    slow = real(study([slower(one, 0.95) for one in TWENTY], APART))
    records = {"monday": was, "tuesday": was, "friday": slow, "nothing": replace(was, trials=())}
    return {name: written(tmp_path / "lbmtune-studies" / name, record) for name, record in records.items()}


def real(record: StudyRecord) -> StudyRecord:
    """Return a study whose configurations exist, as files are checked."""
    configs = made.gpu_study().trials[: len(record.trials)]
    trials = (
        replace(one, key=config.key, config=config.config) for one, config in zip(record.trials, configs, strict=True)
    )
    return replace(record, trials=tuple(trials))


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
    assert (facts["format"], facts["regression"]) == ("lbmtune.compare", True)
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
