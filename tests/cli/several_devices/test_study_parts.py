"""`study` on several devices: what is refused at once, and a study on two parts of a processor from start to end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune import api
from lbmtune.api.several_devices import finals
from lbmtune.catalogue.problem.flows import box
from lbmtune.cli.verbs import study as verb
from lbmtune.errors import InputError
from lbmtune.records.parts import PartsAsked
from lbmtune.records.store import read_study
from tests.cli.conftest import Run
from tests.support.studies.cpu_study import SPEC
from tests.support.studies.described_cpu import describe_cpu

TWO = PartsAsked(devices=("cpu", "cpu"), cut="y:2")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--weak",), "--weak goes with --cut or --parts; add one of them."),
        (("--cut", "z:2"), "cut=z:2 is not supported for one part (use --parts 2 or more, or --devices 0,1)"),
        (("--parts", 2, "--cut", "z:3"), "cut=z:3 is not supported for 2 parts"),
        (("--parts", 2, "--cut", "around"), "cut=around is not supported (use z:2 for slabs"),
    ],
)
def test_refusals(run: Run, asked: tuple[object, ...], said: str) -> None:
    code, _, err = run("study", "box", "--device", "cpu", *asked)
    assert (code, len(err.splitlines())) == (2, 1)
    assert said in err


def test_parts_of_one_gpu_or_parts_on_several(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "several", lambda _: ("0", "1"))
    code, _, err = run("study", "box", "--devices", "0,1", "--parts", 2)
    assert (code, len(err.splitlines())) == (2, 1)
    assert "--parts 2 does not go with --devices 0,1; leave one of them out." in err


def test_devices_share_trials_unless_a_cut_is_asked_for() -> None:
    assert verb._parts(("0", "1"), None, None, weak=False) is None
    assert verb._parts(("0", "1"), None, "auto", weak=True) == PartsAsked(devices=("0", "1"), weak=True)
    assert verb._parts(("0",), 3, None, weak=False) == PartsAsked(devices=("0", "0", "0"))


@pytest.fixture
def study_on_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> api.Study:
    describe_cpu(monkeypatch, tmp_path / "config")
    monkeypatch.setattr(finals, "_SAMPLE_S", 0.001)
    protocol = replace(SPEC.protocol, sustained_top=0, profiled=0)
    spec = replace(SPEC, case=box("d2q9", "bgk", (64, 48, 1)), protocol=protocol)
    return api.study(spec, "cpu", tmp_path / "study", parts=TWO, sources=(), calibrate=False)


def test_a_study_ends_with_finals_on_parts_and_is_resumed_as_it_was(
    study_on_parts: api.Study, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record, folder, spec = study_on_parts.record, study_on_parts.folder, study_on_parts.spec
    assert record.header.parts == TWO
    assert record.winner_on_parts
    best, trial = record.winner_on_parts
    assert (best.cut, best.devices, best.key) == ("y:2", ("cpu", "cpu"), trial.key)
    verb._show(study_on_parts, as_json=True)
    assert json.loads(capsys.readouterr().out)["on_parts"][0]["cut"] == "y:2"
    verb._show(study_on_parts, as_json=False)
    assert f"of 1 x one device; {best.key}, cut=y:2, overlap=none" in " ".join(capsys.readouterr().out.split())
    assert run("report", folder)[0] == 0
    monkeypatch.setattr(api.Study, "export_header", lambda *_, **__: folder / "kernel.cuh")
    code, _, err = run("export", folder, "--format", "cuda")
    assert code == 0
    assert "kernel.cuh runs on one device; best.json has the cut and the exchange of 2 parts" in err
    monkeypatch.setattr(api, "profile", lambda *_, **__: pytest.fail("only what comes before is asked"))
    with pytest.raises(pytest.fail.Exception):
        run("profile", folder / "best.json", "--device", "cpu")
    assert "is of 2 parts, and a profile is of its kernel on one device" in capsys.readouterr().err

    before = (folder / "parts.jsonl").read_text()
    with pytest.raises(InputError, match=r"holds a study on devices cpu,cpu with cut=y:2, and this one is on .*=x:2"):
        api.study(spec, "cpu", folder, parts=replace(TWO, cut="x:2"), resume=True, calibrate=False)
    again = api.study(spec, "cpu", folder, resume=True, calibrate=False)
    assert again.record.header.parts == TWO
    assert (folder / "parts.jsonl").read_text() == before
    assert read_study(folder).winner_on_parts
