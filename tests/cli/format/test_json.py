"""Answers as JSON name their form, and one thing has one name in all of them."""

import json

import pytest

from lbmtune.cli.app import VERBS
from lbmtune.cli.format.output import JSON_VERSION, emit_json
from tests.support.paths import ROOT
from tests.support.studies.fake_study import stand_in

SMALL = ("--set", "case.domain=64x64x64", "--device", "cpu")
ASKED = {
    "devices": ("devices", "--device", "cpu"),
    "list": ("list", "--device", "cpu"),
    "explain": ("explain", "scheme=aa", *SMALL),
    "explain-parts": ("explain", "box", "--parts", "2", "--machine", "h200"),
    "render": ("render", "scheme=aa", *SMALL),
    "predict": ("predict", "scheme=aa", *SMALL),
    "scaling": ("predict", "scheme=aa,block=64x1x1", "--machine", "h200", "--devices", "2"),
    "rank": ("rank", "quick", "--machine", "h200", "--set", "scheme=aa", "--set", "steps=1", "--compile", "0"),
    "vary": ("vary", "threads", "scheme=aa", *SMALL),
    "plan": ("plan", "box", "--memory", "1GiB", "--device", "cpu"),
    "verify": ("verify", "scheme=aa", *SMALL),
    "measure": ("measure", "scheme=aa", *SMALL),
    "export": ("export", ROOT / "studies/recorded/epyc-2-cores/d3q19-box-fast-fp32", "--format", "csv", "-o", "t.csv"),
}
OF_A_KERNEL = {"explain", "explain-parts", "render", "predict", "scaling", "verify", "measure"}
PREDICTED = {"explain", "predict", "scaling", "rank", "vary", "measure"}
FORMER = {"configuration", "digest", "axis", "axes", "mlups_of_one"}


@pytest.mark.parametrize("form", ASKED)
def test_each_answer_names_its_form_and_one_thing_has_one_name(run, monkeypatch, form):
    stand_in(monkeypatch)
    _, out, err = run(*ASKED[form], "--json")
    facts = json.loads(out or "{}")
    assert facts, err
    assert (facts["format"], facts["version"]) == (f"lbmtune.{form}", JSON_VERSION)
    assert form.partition("-")[0] in (*VERBS, "scaling")
    assert not FORMER & set(facts)
    if form in OF_A_KERNEL:
        assert {"case", "config", "key"} <= set(facts)
        assert facts["config"]["backend"] == ("cuda" if form in ("explain-parts", "scaling") else "cpu")
    if form in PREDICTED:
        assert isinstance(facts["machine"], str)


def test_numbers_as_keys_and_values_that_are_none(capsys):
    emit_json("list", {"spaces": {1: float("nan")}, "machine": None})
    assert json.loads(capsys.readouterr().out)["spaces"] == {"1": None}
