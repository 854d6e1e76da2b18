"""The check of recorded sets: what it passes, and all that it must notice."""

from __future__ import annotations

import gzip
import importlib.util
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

import made_up_records as made
from lbmtune.catalogue.config import from_flat
from lbmtune.claims.judge import verdicts
from lbmtune.cli.claimsfile import load_documents
from lbmtune.codegen.render import render
from lbmtune.export import write_best
from lbmtune.records.claims import Claims
from lbmtune.records.store import HEADER, TRIALS, append_trial, write_header

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "check_recorded.py"


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_recorded", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A set as it is kept: below a folder of its device, its trials compressed."""
    study = made.cpu_study()
    case = study.header.spec.case
    trials = [replace(t, source_digest=render(case, from_flat(t.config)).digest) for t in study.trials]
    folder = tmp_path / "device" / "made-up-fp32"
    write_header(folder, study.header)
    for trial in trials:
        append_trial(folder, trial)
    path = folder / TRIALS
    (folder / f"{TRIALS}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    write_best(replace(study, trials=tuple(trials)), folder / "best.json")
    return folder


def test_a_set_that_is_up_to_date_passes(check: ModuleType, recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main([str(recorded.parents[1])]) == 0
    assert capsys.readouterr().out.endswith("1 recorded sets, 0 stale\n")


def test_no_set_at_all_fails_unless_that_is_allowed(check: ModuleType, tmp_path: Path) -> None:
    assert check.main([str(tmp_path)]) == 1
    assert check.main([str(tmp_path / "absent")]) == 1
    assert check.main([str(tmp_path), "--allow-none"]) == 0


def _other_digests(folder: Path) -> None:
    path = folder / f"{TRIALS}.gz"
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    text = "".join(json.dumps({**line, "source_digest": "0" * 64}) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode()))


def _other_best(folder: Path) -> None:
    write_best(made.gpu_study(), folder / "best.json")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_other_digests, "recorded 000000000000, now"),
        (_other_best, "holds a kernel that is none of the set"),
        (lambda folder: (folder / "best.json").unlink(), "cannot read"),
        (lambda folder: (folder / "best.json").write_text("{}"), "is not a best.json"),
    ],
)
def test_what_is_stale_is_told(
    check: ModuleType,
    recorded: Path,
    capsys: pytest.CaptureFixture[str],
    spoil: Callable[[Path], None],
    said: str,
) -> None:
    assert (recorded / HEADER).exists()
    spoil(recorded)
    assert check.main([str(recorded.parents[1])]) == 1
    out = capsys.readouterr().out
    assert said in out
    assert out.endswith("1 recorded sets, 1 stale\n")


def test_recorded_claims_are_judged_as_they_would_be_now() -> None:
    path = SCRIPT.parent.parent / "studies" / "recorded" / "nvidia-h200" / "claims.json.gz"
    found = msgspec.json.decode(gzip.decompress(path.read_bytes()), type=Claims)
    shipped = {document.name: document for document in load_documents(())}
    assert {document.name for document in found.documents} == set(shipped)
    copy = found.header.copy_bytes_per_s
    now = [v for one in found.documents for v in verdicts(shipped[one.name], found.groups, found.header.backend, copy)]
    assert now == list(found.verdicts)
