"""Accuracies that are measured once on a machine and kept for later studies."""

from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.api.studies import accuracies
from lbmtune.api.studies.accuracies import Accuracies
from lbmtune.catalogue.config import KernelConfig, cuda
from lbmtune.errors import NothingValidError
from lbmtune.records import Accuracy
from lbmtune.records.store import read_study
from lbmtune.search.kinds import rounding_of
from lbmtune.search.study import run_study
from tests.support.studies.fake_study import ACCURACY, CASE, FakeEvaluator, header, search, space_of, spec

FP32, WIDE, FP64 = cuda.Direct(), cuda.Direct(block=(128, 2, 1)), cuda.Direct(storage="fp64", compute="fp64")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Counting(FakeEvaluator):
    """Counts its measurements. fails: it can measure none."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.measured, self.none = list[bool](), fails

    def accuracy(self, config: KernelConfig, *, brief: bool = False) -> Accuracy:
        self.measured.append(brief)
        if self.none:
            raise NothingValidError("the accuracy cannot be measured: planted.")
        return replace(ACCURACY, points=() if brief else ACCURACY.points, after=ACCURACY.points[0])


def test_a_rounding_is_measured_once_on_a_machine_and_said_when_it_is_used_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    evaluator = Counting()
    first = Accuracies(CASE, evaluator).measured(FP32)
    assert first
    assert first.date
    with caplog.at_level("INFO"):
        later = Accuracies(CASE, evaluator)
        assert [later.measured(WIDE), later.kept(WIDE), later.measured(FP32, brief=True)] == [first] * 3
    assert evaluator.measured == [False]
    assert caplog.messages == [f"accuracy of {rounding_of(FP32).said}: as measured on {first.date}"]


def test_the_run_of_many_steps_alone_is_not_a_whole_accuracy() -> None:
    evaluator = Counting()
    assert Accuracies(CASE, evaluator).measured(FP32, brief=True)
    again = Accuracies(CASE, evaluator)
    assert again.measured(FP32, brief=True)
    assert again.kept(FP32) is None
    assert again.measured(FP32)
    assert again.kept(FP32)
    assert evaluator.measured == [True, False]


@pytest.mark.parametrize("change", ["device", "case", "rounding", "text"])
def test_another_machine_case_rounding_or_text_is_measured_anew(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    evaluator, case, config = Counting(), CASE, FP32
    Accuracies(case, evaluator).measured(config)
    if change == "device":
        evaluator.environment = replace(evaluator.environment, compiler="another")
    elif change == "text":
        monkeypatch.setattr(accuracies, "code_digest", lambda *_: "another")
    case = replace(CASE, collision="regularised") if change == "case" else CASE
    Accuracies(case, evaluator).measured(FP64 if change == "rounding" else config)
    assert evaluator.measured == [False, False]


def test_what_cannot_be_measured_is_not_kept(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    evaluator = Counting(fails=True)
    assert Accuracies(CASE, evaluator).measured(FP32) is None
    assert "planted" in caplog.text
    assert not list(cache.rglob("*.json"))


def test_what_cannot_be_written_is_measured_all_the_same(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    (cache / "accuracy").mkdir(parents=True)
    found = Accuracies(CASE, Counting())
    found._path(FP32).mkdir()  # in the way
    assert found.measured(FP32)
    assert "the accuracy is not kept for later studies: " in caplog.text


def test_a_damaged_file_is_measured_anew(cache: Path) -> None:
    evaluator = Counting()
    Accuracies(CASE, evaluator).measured(FP32)
    (path,) = cache.rglob("*.json")
    path.write_text("{}")
    assert Accuracies(CASE, evaluator).measured(FP32)
    assert evaluator.measured == [False, False]


def test_a_later_study_measures_no_accuracy(tmp_path: Path) -> None:
    evaluator, study, phases = Counting(), spec(), list[str]()
    for folder in (tmp_path / "one", tmp_path / "two"):
        kept = Accuracies(CASE, evaluator)
        needs = replace(search(folder, evaluator), accuracy=kept.measured, kept_accuracy=kept.kept)
        monitor = needs.observer
        monitor.phase = lambda name, _=None: phases.append(name)  # type: ignore[method-assign]
        run_study(needs, header(study), space_of(study))
    measured = len(evaluator.measured)
    finals = [[t for t in read_study(tmp_path / name).ranked if t.final] for name in ("one", "two")]
    assert all(trial.accuracy for several in finals for trial in several)
    assert measured == len({trial.config["storage"] for trial in finals[0]}) == phases.count("accuracy")
