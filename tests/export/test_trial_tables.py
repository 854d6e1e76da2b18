"""All trials for other tools: the data frame, CSV, and T4, against the schema that Kernel Tuner 1.5 ships."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pandas
import pytest

import lbmtune
from lbmtune.api import Study
from lbmtune.errors import InputError
from lbmtune.records import Outcome
from lbmtune.records.whole_files import HEADER
from tests.support.paths import RECORDED

SCHEMA = json.loads((Path(__file__).parent / "t4-results-1.0.0.schema.json").read_text())
BOX = RECORDED / "nvidia-h200" / "d3q19-box-fp32"
SETS = sorted(header.parent for header in RECORDED.rglob(HEADER))


@pytest.mark.parametrize("folder", SETS, ids=lambda one: f"{one.parent.name}-{one.name}")
def test_every_recorded_set_is_valid_t4(folder: Path, tmp_path: Path) -> None:
    study = Study(folder)
    path = study.export_trials("t4", tmp_path / "it.json")
    found = json.loads(path.read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    assert found["schema_version"] == "1.0.0"
    assert len(found["results"]) == len(study.record.trials)
    for told, trial in zip(found["results"], study.record.trials, strict=True):
        assert told["configuration"] == trial.config
        measured = {one["name"]: one["value"] for one in told["measurements"]}
        assert measured.get("MLUPS") == trial.mlups
        assert (told["invalidity"] == "correct") == (trial.outcome is Outcome.OK)
        assert (told["correctness"] == 1) == bool(told["times"]["runtimes"]) == (trial.mlups is not None)
        # the median of the run times is the speed
        if trial.mlups:
            sites = trial.best_measurement.sites
            assert sites / pandas.Series(told["times"]["runtimes"]).median() / 1e3 == pytest.approx(trial.mlups, 1e-6)


def test_every_outcome_has_a_word_in_t4() -> None:
    from lbmtune.export.trial_tables import _INVALIDITY

    words = SCHEMA["properties"]["results"]["items"]["properties"]["invalidity"]["enum"]
    assert set(_INVALIDITY) == set(Outcome)
    assert set(_INVALIDITY.values()) == set(words)


def test_trials_are_a_frame(tmp_path: Path) -> None:
    study, frame = Study(BOX), lbmtune.trials(BOX)
    assert len(frame) == len(study.record.trials)
    assert list(frame["key"]) == [trial.key for trial in study.record.trials]
    best = frame.loc[frame["mlups"].idxmax()]
    assert best["low_mlups"] <= best["mlups"] <= best["high_mlups"]
    assert 0 < best["share_of_ceiling"] < 1.1
    assert best["registers"] > 0
    assert frame[frame.outcome != "ok"].mlups.isna().all()
    assert {"scheme", "block", "storage"} <= set(frame.columns)
    pandas.testing.assert_frame_equal(frame, study.frame())

    path = study.export_trials("csv", tmp_path / "trials.csv")
    again = pandas.read_csv(path, keep_default_na=False, na_values=[""])
    assert list(again.columns) == list(frame.columns)
    assert list(again["mlups"].dropna()) == pytest.approx(list(frame["mlups"].dropna()))
    assert list(again["key"]) == list(frame["key"])


def test_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"format=xml is not supported for the trials of a study \(use csv or t4\)"):
        Study(BOX).export_trials("xml", tmp_path / "it")
    assert not list(tmp_path.iterdir())
