"""Study folders on disk: what is written comes back, and a crash costs at most the line in flight."""

from __future__ import annotations

import errno
import gzip
import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.problem.flows import cavity
from lbmtune.errors import InputError
from lbmtune.records import (
    SCHEMA_VERSION,
    Conditions,
    Costs,
    Entry,
    Environment,
    Measurement,
    Outcome,
    Prediction,
    Resources,
    Trial,
    Verification,
)
from lbmtune.records.header import Ceiling, StudyHeader
from lbmtune.records.spec import Budget, StudySpec
from lbmtune.records.store import append_trial, drop_torn_line, read_study, write_header
from lbmtune.records.whole_files import HEADER, TRIALS, remove_unfinished, replace_file

HEADER_RECORD = StudyHeader(
    spec=StudySpec(
        name="lid",
        case=cavity("d3q19", "trt", (64, 48, 32), 1.7),
        axes={"cuda": {"scheme": ("aa", "pull"), "cells_per_thread": (1, 2)}},
        budget=Budget(trials=7, seconds=90.5),
        seed=5,
    ),
    backend="cuda",
    environment=Environment(
        backend="cuda", device="GPU", device_id="GPU-1", architecture="sm_90", packages={"numpy": "2.4.6"}
    ),
    ceiling=Ceiling(copy_bytes_per_s=4e12, in_place_bytes_per_s=3.9e12, stream_bytes_per_s={"16": 4.1e12}),
    legal_configurations=31,
    date="2026-01-01T00:00:00Z",
    version="0.1.0",
)
MEASUREMENT = Measurement(
    mlups=26800.0,
    ci_low_mlups=26700.25,
    ci_high_mlups=26900.75,
    bandwidth_bytes_per_s=4.07e12,
    bytes_per_update=152.0,
    samples_s=(6.25e-4, 6.26e-4),
    steps_per_sample=32,
    sites=256**3,
    conditions=Conditions(sm_clock_hz=1.98e9, throttle=("power cap",)),
)
CONFIG = cuda.Direct(block=(128, 2, 1), scheme="aa")
TRIAL = Trial(
    number=3,
    key=CONFIG.key,
    config=CONFIG.flat(),
    outcome=Outcome.OK,
    prediction=Prediction(
        mlups=27000.0,
        bytes_per_update=152.0,
        bandwidth_bytes_per_s=4.1e12,
        footprint_bytes=10**9,
        limit="memory bandwidth",
        ceiling_source="copy of 19 streams, 16 bytes",
    ),
    resources=Resources(registers=64, spill_bytes=8),
    verification=Verification(
        error=1e-8,
        bound=1e-7,
        worst_cell=(1, 2, 3),
        worst_direction=4,
        worst_steps=6,
        domains=((258, 5, 3),),
        full_size=True,
    ),
    measurement=MEASUREMENT,
    costs=Costs(compile_s=0.5, verify_s=0.01, measure_s=0.1),
    source_digest="ab" * 32,
    date="2026-01-01T00:00:01Z",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_header(tmp_path / "study", HEADER_RECORD)
    return tmp_path / "study"


def test_a_study_comes_back_as_it_was_written(folder: Path) -> None:
    trials = (replace(TRIAL, number=0), replace(TRIAL, number=1, outcome=Outcome.ILLEGAL, reason="why"), TRIAL)
    for trial in trials:
        append_trial(folder, trial)
    study = read_study(folder)
    assert study.header == HEADER_RECORD
    assert study.trials == trials


def test_what_entries_need_comes_back_and_the_largest_follows_from_it(folder: Path) -> None:
    entries = {"step_0": Entry(registers=64), "step_1": Entry(registers=60, spill_bytes=8, local_bytes=4)}
    append_trial(folder, replace(TRIAL, resources=Resources(entries=entries, code_bytes=7)))
    (trial,) = read_study(folder).trials
    assert trial.resources == Resources(registers=64, spill_bytes=8, local_bytes=4, code_bytes=7, entries=entries)
    assert trial.resources.entries == entries


def test_records_from_before_entries_were_told_apart_have_the_largest(folder: Path) -> None:
    append_trial(folder, TRIAL)
    path = folder / TRIALS
    values = json.loads(path.read_text())
    del values["resources"]["entries"]
    path.write_text(f"{json.dumps(values)}\n")
    assert read_study(folder).trials == (TRIAL,)


def test_a_figure_beside_entries_is_the_largest_of_theirs(folder: Path) -> None:
    entries = {"step_0": Entry(registers=64), "step_1": Entry(registers=60)}
    with pytest.raises(ValueError, match="registers 60, but 64 is the largest of the entries"):
        Resources(registers=60, entries=entries)
    append_trial(folder, replace(TRIAL, resources=Resources(entries=entries)))
    path = folder / TRIALS
    path.write_text(path.read_text().replace('"resources":{"registers":64', '"resources":{"registers":60'))
    with pytest.raises(InputError, match=r"line 1 is damaged .*64 is the largest"):
        read_study(folder)


def test_a_study_without_trials_is_empty(folder: Path) -> None:
    assert read_study(folder).trials == ()


def test_the_last_entry_of_a_trial_counts(folder: Path) -> None:
    append_trial(folder, TRIAL)
    append_trial(folder, replace(TRIAL, number=4))
    append_trial(folder, replace(TRIAL, final=replace(MEASUREMENT, mlups=26500.0)))
    trials = read_study(folder).trials
    assert [trial.number for trial in trials] == [3, 4]
    assert trials[0].mlups == 26500.0


def test_a_folder_that_is_gone_is_said_in_one_sentence(folder: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write .*trials.jsonl: No such file or directory; .*--resume"):
        append_trial(folder / "gone", TRIAL)


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_a_torn_last_line_costs_only_itself(folder: Path, kept: int) -> None:
    append_trial(folder, TRIAL)
    whole = (folder / TRIALS).read_bytes()
    (folder / TRIALS).write_bytes(whole + whole[:kept])
    assert read_study(folder).trials == (TRIAL,)
    drop_torn_line(folder / TRIALS)
    assert (folder / TRIALS).read_bytes() == whole
    append_trial(folder, replace(TRIAL, number=4))
    assert len(read_study(folder).trials) == 2


def test_dropping_a_torn_line_leaves_whole_files_alone(folder: Path) -> None:
    drop_torn_line(folder / TRIALS)
    assert not (folder / TRIALS).exists()
    append_trial(folder, TRIAL)
    before = (folder / TRIALS).read_bytes()
    drop_torn_line(folder / TRIALS)
    assert (folder / TRIALS).read_bytes() == before


def test_a_damaged_line_is_named(folder: Path) -> None:
    append_trial(folder, TRIAL)
    (folder / TRIALS).write_bytes(b'{"number": "x"}\n' + (folder / TRIALS).read_bytes())
    with pytest.raises(InputError, match=r"trials\.jsonl, line 1 is damaged .*; delete that line and resume\."):
        read_study(folder)


def test_a_damaged_header_and_a_missing_study_get_a_sentence(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no study at .*nowhere; give the folder"):
        read_study(tmp_path / "nowhere")
    (folder / HEADER).write_text("{")
    with pytest.raises(InputError, match=r"study\.json is damaged: "):
        read_study(folder)


def test_a_record_of_a_later_version_is_refused(folder: Path) -> None:
    later = json.loads((folder / HEADER).read_text()) | {"schema": SCHEMA_VERSION + 1}
    (folder / HEADER).write_text(json.dumps(later))
    with pytest.raises(InputError, match=f"has schema {SCHEMA_VERSION + 1}, this version reads up to {SCHEMA_VERSION}"):
        read_study(folder)


def test_writing_replaces_a_file_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    replace_file(path, b"one")
    replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_names_of_new_files_are_on_disk_when_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[Path, list[str]]] = []

    def fsync(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        synced.append((path, sorted(one.name for one in path.iterdir()) if path.is_dir() else []))

    monkeypatch.setattr("os.fsync", fsync)
    folder = tmp_path / "study"
    write_header(folder, HEADER_RECORD)
    assert [one for one in synced if one[0].is_dir()] == [(folder, [HEADER]), (tmp_path, ["study"])]
    synced.clear()
    for number in range(2):
        append_trial(folder, replace(TRIAL, number=number))
    assert synced == [(folder / TRIALS, []), (folder, [HEADER, TRIALS]), (folder / TRIALS, [])]


@pytest.mark.parametrize(("number", "expected"), [(errno.EINVAL, True), (errno.EACCES, True), (errno.EIO, False)])
def test_a_folder_that_cannot_be_synced_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, expected: bool
) -> None:
    def fsync(handle: int) -> None:
        if Path(f"/proc/self/fd/{handle}").readlink().is_dir():
            raise OSError(number, "why")

    monkeypatch.setattr("os.fsync", fsync)
    with nullcontext() if expected else pytest.raises(InputError, match=r"cannot write .*one: why"):
        replace_file(tmp_path / "one", b"1")


@pytest.mark.parametrize("killed", [False, True])
def test_what_was_not_written_to_its_end_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    replace_file(tmp_path / "study.json", b"1")
    (tmp_path / ".lock").touch()
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", stop)
        if killed:
            patched.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            replace_file(tmp_path / "study.json", b"2")
    assert len(list(tmp_path.iterdir())) == 2 + killed
    remove_unfinished(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "study.json"]
    assert (tmp_path / "study.json").read_bytes() == b"1"


def test_an_unwritable_folder_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=r"cannot write .*; choose another output folder"):
        replace_file(tmp_path / "file" / "study.json", b"")


def test_only_a_verified_measurement_has_a_speed() -> None:
    assert TRIAL.mlups == MEASUREMENT.mlups
    assert replace(TRIAL, outcome=Outcome.WRONG_RESULT).mlups is None
    assert replace(TRIAL, measurement=None).mlups is None


@pytest.mark.parametrize(("error", "passed"), [(1e-7, True), (1.1e-7, False), (float("nan"), False)])
def test_verification_passes_within_its_bound(error: float, passed: bool) -> None:
    assert TRIAL.verification is not None
    assert replace(TRIAL.verification, error=error).passed is passed


def test_a_compressed_set_is_read_and_can_go_on(tmp_path: Path) -> None:
    write_header(tmp_path, HEADER_RECORD)
    append_trial(tmp_path, TRIAL)
    plain = tmp_path / TRIALS
    plain.with_name(f"{TRIALS}.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert read_study(tmp_path).trials == (TRIAL,)
    drop_torn_line(tmp_path / TRIALS)
    append_trial(tmp_path, replace(TRIAL, number=TRIAL.number + 1))
    assert len(read_study(tmp_path).trials) == 2
