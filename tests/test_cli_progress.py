import io

import pytest
from rich.console import Console

from fake_study import FakeEvaluator, header, search, space_of, spec
from lbmtune.cli.output import short
from lbmtune.cli.progress import Progress, clock
from lbmtune.records import Outcome
from lbmtune.records.study import Budget
from lbmtune.search.study import run_study


def shown(tmp_path, terminal, **changes):
    """What is printed of a study, without control sequences."""
    study = spec(budget=Budget(trials=7), **changes)
    console = Console(file=io.StringIO(), force_terminal=terminal, width=160, color_system=None)
    with Progress(console) as progress:
        record = run_study(search(tmp_path, FakeEvaluator(), progress), header(study), space_of(study))
    return console.file.getvalue(), record


@pytest.mark.parametrize("terminal", [True, False])
def test_trial_best_prediction_and_time_left_are_shown(tmp_path, terminal):
    text, record = shown(tmp_path, terminal)
    best = max(trial.measurement.mlups for trial in record.trials if trial.measurement)
    last = next(t for t in record.trials if t.measurement and t.measurement.mlups == best)
    assert "made-up on Made-up 1" in text
    assert f"best {best:,.0f} MLUPS" in text
    assert f"{last.prediction.mlups:,.0f}" in text
    assert short(last.config) in text
    assert "left" in text
    assert "finals: 5 configurations" in text
    assert "trial 1/7" in text
    assert "trial 7/7" in text or not terminal


def test_failures_are_named(tmp_path):
    text, record = shown(tmp_path, False, seed=3)
    failed = [trial for trial in record.trials if trial.outcome is Outcome.WRONG_RESULT]
    assert failed
    assert text.count("wrong result: planted") == len(failed)


def test_a_configuration_in_one_line():
    config = space_of(spec(axes={"scheme": ("aa",), "block": ("64x1x1",)})).configs[0]
    assert short(config.flat()) == "aa soa fp32 block=64x1x1"


def test_clock():
    assert clock(125.9) == "2:05"
