"""Entries that are told apart in recorded sets: where the very binary comes out again, and nowhere else."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.codegen.render import render
from lbmtune.records import Entry, Resources, Trial
from lbmtune.records.store import append_trial, read_study, write_header
from lbmtune.records.whole_files import HEADER, TRIALS
from tests.support.kernels.cuda_samples import needs_nvrtc
from tests.support.paths import ROOT
from tests.support.script_module import load
from tests.support.studies import made_up_records as made

SCRIPT = ROOT / "scripts" / "recorded" / "entries.py"
SPILLS = cuda.Direct(block=(64, 1, 1), cells_per_thread=2, register_limit="64-registers", scheme="aa")
MARCH = cuda.TemporalBlocking(
    block=(32, 16, 1), chunk_planes=32, register_limit="96-registers", representation="moments", rows=5, steps=1
)

pytestmark = needs_nvrtc


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """By one process: others could not import a script that was loaded from its file."""
    module = load(SCRIPT)
    monkeypatch.setattr(module, "usable_cores", lambda: 1)
    return module


def trial(config: CudaConfig) -> Trial:
    """As one was recorded before entries were told apart."""
    study = made.gpu_study(1)
    program = render(study.header.spec.case, config)
    binary = compile_cuda(program)
    return replace(
        study.trials[0],
        config=config.flat(),
        resources=replace(binary.resources, entries={}, overtaken=None),
        source_digest=program.digest,
        binary_digest=binary.digest,
    )


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[[Trial], Path]:
    def write(one: Trial) -> Path:
        folder = tmp_path / "device" / "made-up-fp32"
        write_header(folder, made.gpu_study(1).header)
        append_trial(folder, one)
        path = folder / TRIALS
        values = json.loads(path.read_text())
        del values["resources"]["entries"]
        (folder / f"{TRIALS}.gz").write_bytes(gzip.compress(msgspec.json.encode(values) + b"\n"))
        path.unlink()
        return folder

    return write


def test_entries_are_told_apart_and_nothing_else_changes(
    script: ModuleType, recorded: Callable[[Trial], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one = trial(SPILLS)
    folder = recorded(one)
    before = json.loads((folder / HEADER).read_text())
    assert script.main([str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder}: 1 told apart\n"
    (filled,) = read_study(folder).trials
    assert filled.resources is not None
    step_0, step_1 = (filled.resources.entries[name].spill_bytes for name in ("step_0", "step_1"))
    assert 0 <= step_0 < step_1 == filled.resources.spill_bytes
    assert replace(filled, resources=one.resources) == one
    after = json.loads((folder / HEADER).read_text())
    assert after == {**before, "entries_by": f"NVRTC {version('nvidia-cuda-nvrtc')}"}
    assert script.main([str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder}: nothing to tell apart\n"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (lambda one: replace(one, binary_digest="0" * 64), "1 not reproduced"),
        (lambda one: replace(one, source_digest="0" * 64), "1 of another text"),
        (lambda one: replace(one, resources=Resources(registers=64)), "nothing to tell apart"),
    ],
)
def test_what_does_not_come_out_again_stays_as_it_is(
    script: ModuleType,
    recorded: Callable[[Trial], Path],
    capsys: pytest.CaptureFixture[str],
    changed: Callable[[Trial], Trial],
    said: str,
) -> None:
    folder = recorded(changed(trial(SPILLS)))
    files = [folder / HEADER, folder / f"{TRIALS}.gz"]
    before = [path.read_bytes() for path in files]
    assert script.main([str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder}: {said}\n"
    assert [path.read_bytes() for path in files] == before


def test_of_one_entry_the_largest_is_its_own(
    script: ModuleType, recorded: Callable[[Trial], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    one = trial(replace(SPILLS, scheme="pull", block=(256, 1, 1), register_limit="8-blocks"))
    assert one.resources is not None
    assert one.resources.spill_bytes > 0
    folder = recorded(one)
    assert script.main([str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder}: nothing to tell apart\n"


def test_of_a_march_that_spills_the_words_that_it_overtakes_are_told(
    script: ModuleType, recorded: Callable[[Trial], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Though it has one entry, and others have been told apart before that was looked at."""
    one = trial(MARCH)
    assert one.resources is not None
    found = compile_cuda(render(made.gpu_study(1).header.spec.case, MARCH)).resources
    assert found.overtaken
    assert one.resources.overtaken is None
    folder = recorded(one)
    assert read_study(folder).trials == (one,)
    assert script.main([str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder}: 1 told apart\n"
    (filled,) = read_study(folder).trials
    assert filled.resources is not None
    assert filled.resources.overtaken == found.overtaken
    assert filled.resources.entries["step_0"].overtaken == found.overtaken


def test_entries_that_were_told_apart_before_are_looked_at_again(script: ModuleType) -> None:
    one, case = trial(MARCH), made.gpu_study(1).header.spec.case
    assert one.resources is not None
    entries = {"step_0": Entry(registers=one.resources.registers, spill_bytes=one.resources.spill_bytes)}
    told = script.compiled_entries(case, "sm_90", replace(one, resources=Resources(entries=entries))).entries
    assert told["step_0"].overtaken
    assert not script.compiled_entries(case, "sm_90", replace(one, resources=Resources(entries=told))).entries


def test_a_folder_without_a_set_is_said(script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"no recorded set below {tmp_path}\n"
