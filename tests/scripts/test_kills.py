"""The script that kills studies: a few kills of a real study, and the flaws that it must notice."""

import json
import signal
from pathlib import Path
from random import Random

import pytest

from lbmtune.records.whole_files import TRIALS
from scripts.kills.__main__ import attack, dealt
from scripts.kills.study import STAGES, WAYS, Kill, Study
from tests.support.studies.described_cpu import describe_cpu

KILLS = [Kill("SIGKILL", "all", "trials"), Kill("SIGTERM", "study", "finals")]


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """A study of few trials on this processor, whose bandwidths need not be measured."""
    describe_cpu(monkeypatch, tmp_path / "config")
    return Study(tmp_path / "study", trials=4)


def test_a_study_that_is_killed_loses_nothing(study: Study) -> None:
    found = attack(study, KILLS, Random(1))
    assert not any(found.values()), found
    assert KILLS[0] in found, "no kill came in time"


def line(number: int = 0, key: str = "a", measured: float = 1.0) -> str:
    return json.dumps({"number": number, "key": key, "config": {}, "measurement": {"mlups": measured}}) + "\n"


@pytest.mark.parametrize(
    ("before", "after", "said", "wrong"),
    [
        (line(), line() + line(1, "b") + "cut", "trial 1, 2 of 4 done", None),
        (line(), line() + line(), "", None),
        (line(), line(1, "b"), "", "lines that were there have changed"),
        (line(), line() + "{\n", "", "a line is damaged"),
        (line(), line() + line(measured=2.0), "", "trial 0 has changed"),
        (line(), line() + line(0, "b"), "", "trial 0 has changed"),
        (line(), line() + line(1, "a"), "", "a configuration was tried twice"),
        (line(), line(), "trial 3, 2 of 4 done", r"trials [3] were told of and are lost"),
    ],
)
def test_flaws_of_records_are_noticed(tmp_path: Path, before: str, after: str, said: str, wrong: str | None) -> None:
    study = Study(tmp_path, trials=4)
    study.folder.mkdir()
    (study.folder / TRIALS).write_text(before)
    study.check_records("")
    (study.folder / TRIALS).write_text(after)
    assert not study.take_flaws()
    study.check_records(said)
    flaws = study.take_flaws()
    assert any(one.startswith(wrong) for one in flaws) if wrong else not flaws


@pytest.mark.parametrize(
    ("code", "before", "after", "wrong"),
    [
        (130, "legal configurations", "--resume", 0),
        (130, "legal configurations", "", 1),
        (0, "legal configurations", "--resume", 1),
        (-15, "legal configurations", "--resume", 1),
        (-15, "", "", 0),
        (1, "", "", 1),
        (0, "legal configurations\nbest.json  there", "", 0),
        (0, "legal configurations", "\nbest.json  there", 2),
    ],
)
def test_flaws_of_an_answer_are_noticed(tmp_path: Path, code: int, before: str, after: str, wrong: int) -> None:
    study = Study(tmp_path, trials=4)
    study.check_answer(signal.SIGTERM, code, before, before + after)
    assert len(study.take_flaws()) == wrong


def test_all_kinds_of_kills_come_in_turn() -> None:
    kinds = len(WAYS) * len(STAGES)
    found = dealt(kinds + 3, Random(1))
    assert len(set(found[:kinds])) == kinds
    assert len(found) == kinds + 3
