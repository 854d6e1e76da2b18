"""A whole study with workers of a made-up GPU, some of whose kernels are broken."""

import time
from dataclasses import replace

import pytest

from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Outcome
from lbmtune.records.spec import Budget
from lbmtune.records.store import read_study
from lbmtune.search.clock import Clock
from lbmtune.search.spaces.space import Space
from lbmtune.search.study import run_study
from tests.measure.workers.test_evaluate_faults import PROTOCOL, predict
from tests.support.devices.fake_device import CASE, compiler, config, open_cpu, open_cuda, renderer
from tests.support.studies import fake_study

FAULTS = ("right", "refused", "segfault", "wrong cell", "idle", "compiler crash", "litter", "chatter")


@pytest.mark.parametrize(("backend", "opener"), [("cpu", open_cpu), ("cuda", open_cuda)])
def test_a_study_finds_what_works_and_proves_it(tmp_path, backend, opener):
    configs = tuple(config(fault, backend) for fault in FAULTS)
    study = replace(fake_study.spec(backend, budget=Budget(seconds=60.0)), case=CASE, protocol=PROTOCOL)
    with Evaluator(CASE, "0", PROTOCOL, predict, compiler=compiler, renderer=renderer, opener=opener) as evaluator:
        needs = replace(fake_study.search(tmp_path, evaluator), predict=predict, clock=Clock(time.monotonic(), 60.0))
        header = replace(fake_study.header(fake_study.spec(backend), backend), spec=study, legal_configurations=8)
        record = run_study(needs, header, Space(configs, {}, (len(configs),)))
    wanted = zip(FAULTS, configs, strict=True)
    by_fault = {fault: next(t for t in record.trials if t.key == one.key) for fault, one in wanted}
    assert record == read_study(tmp_path)
    assert by_fault["right"].outcome is Outcome.OK
    assert by_fault["right"].proven
    assert by_fault["right"].final
    assert record.winner in [by_fault[fault] for fault in ("right", "chatter", "litter")]
    assert by_fault["refused"].outcome is Outcome.COMPILE_FAILED
    assert {by_fault[fault].outcome for fault in ("segfault", "compiler crash")} == {Outcome.CRASHED}
    assert by_fault["wrong cell"].outcome is Outcome.WRONG_RESULT
    assert len(record.trials) == len(FAULTS)
    assert "all 8 legal configurations are tried" in record.header.stopped
