"""Predictions of a machine that other programs disturbed are said to be unreliable wherever they are shown."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from lbmtune.api.studies.run import study_header
from lbmtune.cli.app import app
from lbmtune.cli.format.kernels import measurement_rows
from lbmtune.cli.format.studies.finished import _cost_rows, print_study, ranking
from lbmtune.cli.format.studies.progress import Progress
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine, write_machine
from lbmtune.records import Conditions
from lbmtune.records.remarks import prediction_doubt, predictions_hold
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.answer.section import cards
from lbmtune.report.study.page import page
from lbmtune.report.study.speeds import parity_panels
from lbmtune.report.study.winner import winner_table
from tests.support.paths import RECORDED
from tests.support.studies import made_up_records as made
from tests.support.studies.fake_study import FakeEvaluator

SHIPPED = read_machine(RECORDED / "xeon-2-cores" / "machine.toml")
ON_SMALL = ("--set", "case.domain=128x128x128")
BY_CALIBRATION = "not reliable: other programs left 17% of the processor when it was calibrated"
BY_BANDWIDTHS = "not reliable: other programs left 17% of the processor when its bandwidths were measured"
SHARES = [
    (0.99, 0.17, BY_CALIBRATION),
    (0.17, 0.17, BY_CALIBRATION),
    (0.17, None, BY_BANDWIDTHS),
    (0.17, 0.99, ""),
    (0.99, 0.99, ""),
    (None, None, ""),
]


def described(bandwidths: float | None, calibration: float | None) -> Machine:
    cpu = SHIPPED.cpu and replace(SHIPPED.cpu, conditions=Conditions(cpu_share=calibration))
    return replace(SHIPPED, conditions=Conditions(cpu_share=bandwidths), cpu=cpu)


def studied(bandwidths: float | None, calibration: float | None) -> StudyRecord:
    plain = made.gpu_study()
    ceiling = replace(plain.header.ceiling, cpu_share=bandwidths)
    header = replace(plain.header, ceiling=ceiling, calibration_cpu_share=calibration, calibrated_how="in full")
    return replace(plain, header=header)


@pytest.mark.parametrize(("bandwidths", "calibration", "said"), SHARES)
def test_a_prediction_holds_if_what_it_rests_on_was_left_alone(
    bandwidths: float | None, calibration: float | None, said: str
) -> None:
    assert prediction_doubt(bandwidths, calibration) == said
    assert predictions_hold(bandwidths, calibration) is (said == "")
    assert studied(bandwidths, calibration).header.cpu_shares == (bandwidths, calibration)
    assert described(bandwidths, calibration).cpu_shares == (bandwidths, calibration)


@pytest.mark.parametrize(("bandwidths", "calibration", "said"), SHARES)
def test_a_share_of_what_is_not_reliable_is_no_headline(
    bandwidths: float | None, calibration: float | None, said: str
) -> None:
    study = studied(bandwidths, calibration)
    ceiling_holds = bandwidths != 0.17
    shown = {title: remark for title, _, remark in cards(study)}
    assert ("of the prediction" in shown) is (said == "")
    assert shown.get("predicted", "") == said
    assert ("of the limit: memory" in shown) is ceiling_holds
    assert shown.get("ceiling", "").startswith("not reliable: ") is not ceiling_holds
    assert dict(winner_table(study)).get("remark on the prediction", "") == said
    (parity,) = parity_panels(study)
    assert parity.caption.endswith(f" Predictions are {said}.") is bool(said)
    assert page(study).count(said or "not reliable") == (3 if said else 0 if ceiling_holds else 2)


@pytest.mark.parametrize(("bandwidths", "calibration", "said"), SHARES)
def test_the_end_of_a_study_says_so(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    bandwidths: float | None,
    calibration: float | None,
    said: str,
) -> None:
    study = studied(bandwidths, calibration)
    assert dict(_cost_rows(study))["predictions"] == f"in full{'; ' if said else ''}{said}"
    columns = {str(one.header): list(one.cells) for one in ranking(study).columns}
    predicted, shares = columns["predicted"], columns["ceiling"]
    assert all(str(cell).endswith(" not reliable") is bool(said) for cell in predicted if cell)
    assert all(str(cell).endswith(" not reliable") is (bandwidths == 0.17) for cell in shares)
    print_study(study, tmp_path / "report.html", tmp_path / "best.json")
    assert ("when the machine is idle, lbmtune devices --refresh" in caplog.text) is (bool(said) or bandwidths == 0.17)
    console = Console(file=io.StringIO(), width=500)
    with Progress(console) as progress:
        progress.started(study.header, ())
        progress.finished(study.ranked[0])
    assert (" not reliable); " in console.file.getvalue()) is bool(said)  # type: ignore[attr-defined]
    assert "(predicted " in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("share", "kept"), [(0.17, False), (0.99, True), (None, True)])
def test_repeats_beside_other_programs_tell_of_those(share: float | None, kept: bool) -> None:
    machine = replace(described(0.99, share), repeats=(0.6, -0.7) * 6)
    assert machine.quiet_repeats == (machine.repeats if kept else ())
    assert (machine.between_runs is not None) is kept
    header = study_header(made.gpu_study().header.spec, machine, FakeEvaluator())  # type: ignore[arg-type]
    assert header.repeats == machine.quiet_repeats


@pytest.mark.parametrize(("share", "said"), [(0.17, BY_CALIBRATION), (0.99, "")])
def test_verbs_of_the_model_say_so_beside_their_figures(tmp_path: Path, share: float, said: str) -> None:
    path = tmp_path / "machine.toml"
    write_machine(path, described(0.99, share))
    on = [*ON_SMALL, "--machine", str(path)]
    config = "backend=cpu,scheme=aa,threads=2"
    for words in (
        ["predict", config, *on],
        ["explain", config, *on],
        ["predict", config, "--vary", "scheme", *on],
        ["rank", "quick", *on],
    ):
        found = CliRunner().invoke(app, words)
        assert found.exit_code == 0, found.output
        assert " ".join(found.stdout.split()).count(BY_CALIBRATION) == (said != ""), words
        facts = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
        assert facts["unreliable"] == said, words


@pytest.mark.parametrize(("share", "said"), [(0.17, BY_CALIBRATION), (0.99, "")])
def test_a_measurement_is_no_share_of_such_a_prediction(share: float, said: str) -> None:
    trial = next(trial for trial in made.gpu_study().ranked if trial.prediction)
    assert trial.measurement
    expected = str(dict(measurement_rows(trial, trial.measurement, described(0.99, share)))["expected"])
    assert expected.endswith(said or "% of it")
    assert ("measured is " in expected) is (said == "")
