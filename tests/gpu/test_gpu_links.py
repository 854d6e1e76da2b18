"""Several GPUs of a host: their links, and trials side by side."""

from __future__ import annotations

import pytest

from lbmtune.backend.registry import available, link, open_device
from lbmtune.catalogue.config import parse_config
from lbmtune.catalogue.problem.flows import box
from lbmtune.measure.calibration.links import open_links
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Compiled, Outcome, Trial
from lbmtune.records.spec import TimingProtocol

GPUS = tuple(name for name in available() if name != "cpu")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(len(GPUS) < 2, reason="there are no two GPUs")]


def test_links_are_measured_within_reason() -> None:
    said: list[str] = []
    _, session = open_links(open_device, GPUS[:2])
    for found in session(None, said.append):
        assert found.name in (link(*GPUS[:2]), link(*GPUS[1::-1]))
        curve = [found.copy_s[name] for name in sorted(found.copy_s, key=int)]
        assert curve == sorted(curve)
        largest = max(map(int, found.copy_s))
        one_way = largest / found.copy_s[str(largest)]
        assert 1e9 < one_way < 2e12
        assert 0.9 * one_way < found.both_ways_bytes_per_s < 2.1 * one_way
        assert found.store_bytes_per_s
        assert found.load_bytes_per_s
        assert 1e-7 < (found.wait_s or 0) < 1e-3
        assert 1e-9 <= (found.met_wait_s or 0) < (found.wait_s or 0)
        for messages in (
            *(found.message_copy_s, found.message_store_s),
            *(found.busy_message_copy_s, found.busy_message_store_s),
        ):
            assert messages.keys() == found.copy_s.keys()
            assert all(0 < seconds < 1e-3 for seconds in messages.values())
            assert max(messages.values()) > 0.9 * largest / one_way
        assert found.message_host_s[str(largest)] > found.message_copy_s[str(largest)]
        assert all(found.busy_copy_s[name] > 0.9 * seconds for name, seconds in found.copy_s.items())
        assert all(1e-8 < seconds < 1e-4 for seconds in found.call_s.values())
    assert len(said) == 2


def test_trials_are_measured_on_both() -> None:
    case = box("d3q19", "bgk", (128, 128, 128))
    configs = [parse_config(f"scheme={scheme},block={n}x1x1") for scheme in ("pull", "aa") for n in (64, 128)]
    ready, found = [], list[Trial]()
    with Evaluator(case, GPUS[0], TimingProtocol(), others=GPUS[1:2]) as evaluator:
        evaluator.prepare(configs)
        for config in configs:
            evaluator.compile(config)
        while len(ready) < len(configs):
            event = evaluator.event()
            assert isinstance(event, Compiled)
            ready.append(event.trial.key)
        while len(found) < len(configs):
            while ready and evaluator.measure_room() > 0:
                config = next(one for one in configs if one.key == ready[0])
                evaluator.measure(len(configs) - len(ready), config)
                ready.pop(0)
            event = evaluator.event()
            assert isinstance(event, Trial)
            found.append(event)
        second = evaluator.environments[1].device_id
    assert [trial.outcome for trial in found] == [Outcome.OK] * len(configs), [trial.reason for trial in found]
    assert {trial.device for trial in found} == {"", second}
