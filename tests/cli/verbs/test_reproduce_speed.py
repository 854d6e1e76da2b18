"""The verb reproduce with a best.json: the kernel again, in turns with the default, on a fake processor."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lbmtune.catalogue.config import KernelConfig
from lbmtune.records import Environment, Measurement, Outcome, Trial
from lbmtune.records.best_json.document import Best, encode_best
from tests.records.test_remeasured import again, recorded
from tests.support.studies.fake_study import FakeEvaluator, stand_in


class Processor(FakeEvaluator):
    """Runs the kernel of a best.json at a factor of its speed, and any other one at half of that."""

    def __init__(self, best: Best, factor: float, outcome: Outcome = Outcome.OK, **environment: Any) -> None:
        super().__init__("cpu")
        self.environment: Environment = replace(best.environment, **environment)
        self.environments = (self.environment,)
        self._best, self._factor, self._outcome = best, factor, outcome

    def finals(self, configs: Sequence[KernelConfig], **_: object) -> list[Trial]:  # type: ignore[override]
        self.finalists = [config.key for config in configs]
        return [self._final(n, config) for n, config in enumerate(configs)]

    def _final(self, number: int, config: KernelConfig) -> Trial:
        own = config.key == self._best.key
        speed: Measurement = again(self._best, self._factor * (1.0 if own else 0.5))
        final = speed if self._outcome is Outcome.OK else None
        return Trial(
            number=number, key=config.key, config=config.flat(), outcome=self._outcome, reason="planted", final=final
        )


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Processor]:
    """Puts a processor in the place of the device; best.json is in the folder."""
    best = recorded("cpu")
    (tmp_path / "best.json").write_bytes(encode_best(best))

    def put(factor: float, **how: Any) -> Processor:
        fake = Processor(best, factor, **how)
        stand_in(monkeypatch, fake)
        return fake

    return put


def test_a_speed_that_holds(run, on):
    fake = on(1.004)
    code, out, err = run("reproduce", "best.json")
    assert (code, err) == (0, "")
    assert fake.finalists[0] == recorded("cpu").key
    assert len(fake.finalists) == 2
    assert "holds within the noise" in out
    assert "the kernel is 2.000 (2.000 to 2.000) times as fast, in turns" in out


def test_a_slower_processor_ends_with_4_and_the_cause(run, on):
    on(0.8, device_id="AMD EPYC, 1 cores")
    code, out, err = run("reproduce", "best.json", "--device", "cpu")
    assert code == 4
    assert ", -20.0 % (" in out
    assert "slower than recorded" in out
    assert "cause     another processor: AMD EPYC, 2 cores -> AMD EPYC, 1 cores" in out
    assert err.startswith("lbmtune: the speed of best.json does not hold here, -20.0 % (")
    assert "another processor" in err


def test_it_is_facts_with_json(run, on):
    on(0.8)
    code, out, err = run("reproduce", "best.json", "--json")
    facts = json.loads(out)
    assert code == 4
    assert "as recorded" in err, "no cause is invented"
    assert facts["format"] == "lbmtune.reproduce-speed"
    assert facts["verdict"] == "slower"
    assert facts["ratio"]["ratio"] == pytest.approx(0.8)
    assert facts["causes"] == []


def test_a_kernel_that_fails_here_has_no_speed(run, on):
    on(1.0, outcome=Outcome.WRONG_RESULT)
    code, _, err = run("reproduce", "best.json")
    assert code == 1
    assert "has no speed here: wrong result: planted" in err


@pytest.mark.parametrize(
    "options",
    [("--only", "tran2017"), ("--resume",), ("--output", "here"), ("--parts", "2"), ("--max-footprint", "2GiB")],
)
def test_options_of_published_experiments_do_not_go_with_it(run, on, options):
    on(1.0)
    code, _, err = run("reproduce", "best.json", *options)
    assert code == 2
    assert f"{options[0]} does not go with best.json" in err


def test_a_geometry_needs_a_best_json(run):
    code, _, err = run("reproduce", "--geometry", "voxels.npy")
    assert code == 2
    assert "goes with a best.json" in err


def test_what_is_no_best_json_is_refused(run, on):
    on(1.0)
    assert run("reproduce", "absent.json")[0] == 2
