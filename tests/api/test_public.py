"""The names of `lbmtune`, and the examples of their docstrings."""

from __future__ import annotations

import doctest
import inspect
import os
import subprocess
import sys
from functools import partial

import pytest

import lbmtune
from lbmtune import Case, Study, api, load, study
from lbmtune.api import kernels
from lbmtune.api.machines.shipped import as_machine, named_machine
from lbmtune.api.studies import comparing, results
from lbmtune.api.studies import run as studies
from lbmtune.api.studies.folders import study_folder
from lbmtune.errors import InputError, NothingValidError
from lbmtune.files.studyfile import as_spec, load_study
from lbmtune.records.spec import TimingProtocol
from tests.support.paths import RECORDED, ROOT
from tests.support.studies.fake_study import FakeEvaluator, stand_in

CASE = Case("box", "d3q19", "bgk", (32, 32, 32), 1.6)
QUICK = {
    "bail_out": 1000.0,
    "min_cpu_share": 0.0,
    "final_sample_s": 0.005,
    "sustained_s": 0.2,
    "settling_s": 0.05,
}
"""Settings with which measurements are short, and take any speed: other tests may run beside them."""
EXAMPLES = (
    kernels.render,
    kernels.predict,
    kernels.verify,
    kernels.measure,
    studies.study,
    results.Study,
    comparing.compare,
)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.__name__)
def test_examples_of_docstrings(example, monkeypatch, tmp_path) -> None:
    """On this processor, whose bandwidths are those of a recorded one."""
    if example in (kernels.measure, studies.study):
        described = named_machine(str(RECORDED / "epyc-2-cores" / "machine.toml"))
        monkeypatch.setattr("lbmtune.api.machines.measured_machines.measured_machine", lambda *_, **__: described)
        monkeypatch.setattr(kernels, "TimingProtocol", partial(TimingProtocol, **QUICK))
        quick = [f"protocol.{name}={value}" for name, value in QUICK.items()]
        monkeypatch.setattr(studies, "as_spec", lambda spec, overrides: as_spec(spec, [*overrides, *quick]))
    if example not in (results.Study, comparing.compare):
        monkeypatch.chdir(tmp_path)
    names = {name: getattr(lbmtune, name) for name in lbmtune.__all__} | {"compare": api.compare}
    (found,) = doctest.DocTestFinder(recurse=False).find(example, example.__name__, globs=names)
    assert found.examples
    outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(found)
    assert outcome.failed == 0


def test_every_public_name_says_what_it_is() -> None:
    for name in lbmtune.__all__:
        if name != "__version__":
            assert len(inspect.getdoc(getattr(lbmtune, name)) or "") > 60, name
    assert set(lbmtune.__all__) == {*dir(lbmtune), "__version__"}
    assert set(api.__all__) == set(dir(api))
    assert all(getattr(api, name) for name in api.__all__)
    with pytest.raises(AttributeError, match=r"module 'lbmtune' has no attribute 'nonsense'"):
        _ = lbmtune.nonsense  # type: ignore[attr-defined]


def test_public_names_stay_usable_whatever_was_imported_before() -> None:
    """A package has the name of the function that measures."""
    code = (
        "from lbmtune.measure.timing import protocol\nimport lbmtune\nfrom lbmtune import *\n"
        "assert callable(measure) and callable(lbmtune.measure) and callable(predict)\n"
        "try: lbmtune.measure(Case('box', 'd3q19', 'bgk', (32, 32, 32), 1.6), 'scheme=nonsense', 'cpu')\n"
        "except Exception as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.startswith("unknown scheme 'nonsense'"), done.stderr


def test_a_configuration_is_a_record_a_dict_or_a_text() -> None:
    text = api.render(CASE, "backend=cpu,scheme=aa,threads=1")
    assert api.render(CASE, {"backend": "cpu", "scheme": "aa", "threads": 1}).digest == text.digest
    assert api.render(CASE, text.config).digest == text.digest
    assert api.render(CASE, "scheme=aa,vector_bits=512").target == "cpu", "an axis of CPU kernels alone"
    assert api.render(CASE, "scheme=aa", machine="h200").target == "cuda"
    with pytest.raises(InputError, match=r"illegal configuration: block 2048x1x1 = 2048 threads"):
        api.render(CASE, "scheme=aa,block=2048x1x1", machine="h200")


def test_a_kernel_that_fails_is_not_verified(monkeypatch) -> None:
    fake = stand_in(monkeypatch, FakeEvaluator("cpu"))

    def prove(config, *, full=False):
        fake.submit(0, config)
        return fake.next()

    monkeypatch.setattr(fake, "verify", prove, raising=False)
    with pytest.raises(NothingValidError, match="the kernel cannot be verified: ok"):
        api.verify(CASE, "scheme=aa", "cpu")


def test_a_study_is_run_read_and_exported(monkeypatch, tmp_path) -> None:
    stand_in(monkeypatch)
    found = api.study("quick", "cpu", tmp_path / "mine", overrides=["budget.trials=8", "case.domain=64x64x64"])
    assert isinstance(found, Study)
    assert len(found.record.trials) == 8
    frame = found.frame()
    assert list(frame["number"]) == [trial.number for trial in found.record.trials]
    assert set(frame.columns) >= {"key", "outcome", "mlups", "predicted_mlups", "scheme", "layout"}
    assert frame["mlups"].max() == max(trial.mlups or 0.0 for trial in found.record.trials)
    assert found.config.key == found.winner.key
    assert found.report().read_text().startswith("<!doctype html>")
    assert found.export(tmp_path / "best.json").stat().st_size > 0
    stand_in(monkeypatch)
    again = api.study(
        "quick", "cpu", tmp_path / "mine", overrides=["budget.trials=9", "case.domain=64x64x64"], resume=True
    )
    assert len(again.record.trials) == 9


def test_remarks_are_warnings_of_a_logger(caplog) -> None:
    api.predict(CASE, "scheme=aa,block=8x8x1", "a100")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "known by its data sheet alone" in caplog.text


@pytest.mark.parametrize(
    "ask",
    [load_study, as_machine, study_folder, Study, lambda name: study("quick", "cpu", name), load],
    ids=("load_study", "as_machine", "study_folder", "Study", "study", "load"),
)
@pytest.mark.parametrize("name", ["n" * 256, "n" * 256 + ".toml", "a/" * 2500 + "b"], ids=("name", "file", "path"))
def test_a_path_that_is_too_long_for_a_file_system_is_bad_input(ask, name) -> None:
    with pytest.raises(InputError, match="File name too long"):
        ask(name)
