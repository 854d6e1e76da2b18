"""`lbmtune study --dry-run` says what a study would do; nothing runs, nothing is measured, nothing is left."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.api.studies.foresight import planned_s
from lbmtune.files.studyfile import load_study
from lbmtune.records.spec import Budget
from tests.support.studies.fake_study import stand_in

QUICK = load_study("quick", ["case.domain=64x64x64"])
SMALL = ("study", "quick", "--device", "cpu", "--set", "case.domain=64x64x64")


@pytest.fixture
def nothing_runs(monkeypatch):
    def refused(*_, **__):
        pytest.fail("something was run or measured")

    monkeypatch.setattr("lbmtune.api.machines.measured_machines.measured_machine", refused)
    monkeypatch.setattr("lbmtune.measure.processes.worker.Worker.__init__", refused)


def test_space_time_and_place_are_said(run, nothing_runs, tmp_path):
    code, out, err = run(*SMALL, "--time", "2m", "--dry-run")
    assert (code, err) == (0, "")
    assert re.search(r"^configurations +\d+ legal, \d+ points are not$", out, re.MULTILINE)
    assert re.search(r"^ends +after 120 s in all, 24 trials, or when all are tried$", out, re.MULTILINE)
    assert re.search(r"^folder +lbmtune-studies/quick-cpu$", out, re.MULTILINE)
    parts = re.findall(r"^(\w[\w ]*?) +(\d+) s$", out, re.MULTILINE)
    assert [name for name, _ in parts] == ["search", "finals", "accuracy", "sustained runs", "profile", "files"]
    assert 100 <= sum(int(seconds) for _, seconds in parts) <= 120
    assert not list(tmp_path.iterdir())


def test_as_json_and_without_a_limit_of_time(run, nothing_runs, tmp_path):
    case = '[case]\nflow = "box"\nlattice = "d3q19"\ndomain = "64x64x64"\nrelaxation_rate = 1.6\n'
    (tmp_path / "free.toml").write_text(f'name = "free"\n{case}[axes.cpu]\nscheme = ["aa", "pull"]\n')
    asked = ("study", "free.toml", "--device", "cpu", "--trials", "7", "--dry-run", "--json")
    facts = json.loads(run(*asked)[1])
    assert (facts["format"], facts["trials_done"], facts["budget"]["trials"]) == ("lbmtune.study-dry-run", 0, 7)
    assert facts["times_s"]["search"] is None
    assert facts["legal_configurations"] == sum(facts["families"].values()) > 0


def test_what_a_study_refuses_before_it_measures_is_refused_alike(run, nothing_runs):
    for more in (
        ("--lattice", "d3q20"),
        ("--set", "scheme=aaa"),
        ("--output", "/proc/nowhere"),
        ("--cut", "z:2"),
        ("--from", "none", "--from", "x"),
    ):
        assert run(*SMALL, *more, "--dry-run")[0::2] == run(*SMALL, *more)[0::2]


def test_of_a_study_that_is_resumed_trials_are_counted(run, monkeypatch):
    stand_in(monkeypatch)
    asked = (*SMALL, "--trials", "6", "--output", "mine")
    assert run(*asked)[0] == 0
    assert "already holds a study" in run(*asked, "--dry-run")[2]
    assert re.search(r"^trials done +6$", run(*asked, "--resume", "--dry-run")[1], re.MULTILINE)


@given(seconds=st.integers(30, 100_000), trials=st.integers(0, 50))
def test_the_parts_of_the_time_are_the_whole_of_it(seconds, trials):
    parts = planned_s(replace(QUICK, budget=Budget(trials=trials, seconds=seconds)), "cpu")
    assert all(part >= 0 for part in parts.values())
    assert sum(parts.values()) == pytest.approx(seconds, abs=0.5)
    assert parts["search"] >= seconds / 3


def test_a_limit_of_the_trials_alone_is_that_of_the_search():
    spec = replace(QUICK, budget=Budget(search_seconds=30.0))
    assert planned_s(spec, "cpu")["search"] == 30.0
