"""Damaged and hostile input ends in one short sentence; faults of an answer are noticed."""

import json
from pathlib import Path

import pytest

from lbmtune.errors import InputError
from scripts import fuzz
from scripts.fuzz import Input, faults, inputs
from tests.support.studies.described_cpu import describe_cpu


@pytest.fixture(autouse=True)
def own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    describe_cpu(monkeypatch, tmp_path / "config")


@pytest.mark.parametrize("seed", range(8))
def test_damaged_and_hostile_input_ends_in_a_sentence(seed: int) -> None:
    """`make fuzz` tries 5,000."""
    assert faults(inputs(25, seed)) == {}


def test_inputs_are_of_all_kinds_and_follow_from_the_seed() -> None:
    assert len({one.kind for one in inputs(7, 1)}) == 7
    assert list(inputs(21, 1)) == list(inputs(21, 1)) != list(inputs(21, 2))


def _raises(error: BaseException) -> object:
    def call(_: object) -> None:
        raise error

    return call


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (KeyError("a"), "KeyError at "),
        (RecursionError(), "RecursionError at "),
        (fuzz.HangError(), "hangs"),
        (SystemExit(1), "exit code 1 without a sentence"),
        (SystemExit(99), "exit code 99"),
    ],
)
def test_what_is_no_sentence_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ended: BaseException, said: str
) -> None:
    monkeypatch.setattr(fuzz, "lbmtune_main", _raises(ended))
    assert fuzz.fault(Input("a", arguments=("list",)), tmp_path).startswith(said)


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("lbmtune: no.\nlbmtune: no.\n", "exit code 2 with several sentences"),
        ("lbmtune: \x1b[31m.\n", "control characters"),
        ("lbmtune: \u202eno.\n", "control characters"),
        (f"lbmtune: {'a' * 400}.\n", "a line of 410 characters"),
        ("lbmtune: no\n", "no sentence"),
        ("remark\nlbmtune: no.\n", ""),
    ],
)
def test_a_sentence_is_short_and_alone(printed: str, said: str) -> None:
    found = fuzz._judged(2, "", printed, api=False)
    assert found.startswith(said)
    assert bool(found) == bool(said)


def test_a_file_that_is_loaded_is_judged_as_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = Input("best.json", {"b.json": b"{}"}, None, "b.json")
    assert fuzz.fault(given, tmp_path) == ""
    monkeypatch.setattr(fuzz.lbmtune, "load", lambda *_, **__: 1 // 0)
    assert fuzz.fault(given, tmp_path).startswith("ZeroDivisionError at test_fuzz_script.py")


def test_inputs_with_faults_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        fuzz, "fault", lambda given, folder: (folder / "s.toml").write_text("x") and f"hangs: {given.kind}"
    )
    found = faults([Input("a"), Input("b")], tmp_path)
    assert found == {"hangs": ["0 a: hangs: a", "1 b: hangs: b"]}
    assert (tmp_path / "1" / "s.toml").read_text() == "x"
    assert (tmp_path / "1" / "fault.txt").read_text().startswith("hangs: b")


def test_the_script_says_what_it_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fuzz, "fault", lambda given, _: "hangs" if given.kind == "records" else "")
    assert fuzz.main(["--count", "14", "--keep", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines()[0] == "2 x 4 records: hangs"
    monkeypatch.setattr(fuzz, "fault", lambda *_: "")
    assert fuzz.main(["--count", "7", "--keep", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("faults: 0\n")


def test_a_record_with_figures_that_cannot_be_is_damaged(tmp_path: Path) -> None:
    """A report would divide by zero, or leave the range of numbers."""
    from lbmtune.records.store import read_study

    header, trials = fuzz._records()[0]
    for name, value in (("mlups", 0.0), ("mlups", 1e308), ("bandwidth_bytes_per_s", -1.0), ("samples_s", [5e-324])):
        changed = json.loads(json.dumps(trials[-1]))
        changed["measurement"][name] = value
        (tmp_path / "study.json").write_text(json.dumps(header))
        (tmp_path / "trials.jsonl").write_text(json.dumps(changed) + "\n")
        with pytest.raises(InputError, match=rf"trials.jsonl, line 1 is damaged .*measurement.{name}"):
            read_study(tmp_path)
