"""Several devices of one study: trials side by side, one pool of compilers, and a device that is lost."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.backend.protocol import Device
from lbmtune.errors import DeviceUnavailableError, InputError
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.measure.workers.worker_pool import WorkerPool
from lbmtune.records import Compiled, Outcome, Trial
from lbmtune.records.remarks import devices_text
from lbmtune.records.spec import Budget
from lbmtune.records.store import read_study
from lbmtune.search.clock import Clock
from lbmtune.search.spaces.space import Space
from lbmtune.search.study import run_study
from tests.measure.workers.test_evaluate_faults import PROTOCOL, predict
from tests.support.devices import fake_device
from tests.support.devices.fake_device import (
    CASE,
    MEETING,
    ONCE,
    compiler,
    config,
    open_another,
    open_cuda,
    open_first_once,
    open_nothing,
    open_second,
    open_second_once,
    renderer,
)
from tests.support.studies import fake_study

FAULTS = (*MEETING, "refused", "compiler crash")
"""Those that meet need both devices, the others none."""
Opener = Callable[[], Device]


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv(ONCE, str(tmp_path / "once"))
    return tmp_path / "once"


@contextmanager
def opened(first: Opener = open_cuda, *others: Opener) -> Iterator[Evaluator]:
    with (
        WorkerPool(first, PROTOCOL, others or (open_second,)) as pool,
        Evaluator(CASE, "0", PROTOCOL, predict, compiler=compiler, renderer=renderer, pool=pool) as found,
    ):
        yield found


def searched(evaluator: Evaluator, faults: Sequence[str]) -> dict[str, Trial]:
    """Compile and measure kernels as a search does, as many at once as there is room for."""
    configs = {config(fault, "cuda").key: (fault, config(fault, "cuda")) for fault in faults}
    ready, found, number = [], dict[str, Trial](), 0
    for _, one in configs.values():
        evaluator.compile(one)
    while len(found) < len(faults):
        event = evaluator.event()
        if isinstance(event, Compiled):
            ready.append(event.trial.key)
        else:
            found[configs[event.key][0]] = event
        while ready and evaluator.measure_room() > 0:
            evaluator.measure(number, configs[ready.pop()][1])
            number += 1
    return found


def test_two_devices_measure_at_once(once: Path) -> None:
    """Each of the kernels runs until the other runs, too."""
    with opened() as evaluator:
        found = searched(evaluator, MEETING)
    assert [found[fault].reason for fault in MEETING] == ["", ""]
    assert {found[fault].device for fault in MEETING} == {"", "fake-1"}


def test_whether_there_is_an_event_is_known_without_a_wait() -> None:
    with opened() as evaluator:
        assert not evaluator.has_event()
        evaluator.compile(config("right", "cuda"))
        assert not evaluator.has_event()
        assert isinstance(evaluator.event(), Compiled)
        evaluator.measure(0, config("right", "cuda"))
        while not evaluator.has_event():
            evaluator._start_measuring()
        assert isinstance(evaluator.event(), Trial)
        assert not evaluator.has_event()


def test_a_search_has_room_for_each_device_and_a_core_for_each_measurer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lbmtune.measure.workers.pipeline.usable_cores", lambda: 16)
    with opened() as two, opened(open_cuda, *[open_second] * 3) as four:
        assert (two.measure_room(), four.measure_room()) == (4, 8)
        assert (two.compile_workers, four.compile_workers) == (13, 11)
        assert [one.device_id for one in two.environments] == ["fake-0", "fake-1"]


def test_what_is_compared_is_measured_on_the_first_device() -> None:
    with opened() as evaluator:
        rights = [config("right", "cuda"), config("litter", "cuda"), config("chatter", "cuda")]
        for number, one in enumerate(rights):
            evaluator.submit(number, one)
        submitted = [evaluator.next() for _ in rights]
        proven = [evaluator.verify(one, full=True) for one in rights]
        trials = [
            *submitted,
            *proven,
            *evaluator.finals(rights),
            *evaluator.sustained(rights, [True] * 3, PROTOCOL.sustained_s),
        ]
        assert {trial.device for trial in trials} == {""}
        processes = [worker.process.pid for worker in evaluator.pool.measurers]
        evaluator.restart()
        assert not set(processes) & {worker.process.pid for worker in evaluator.pool.measurers}


def test_unlike_devices_are_refused_by_name() -> None:
    with (
        pytest.raises(
            InputError, match=r"devices fake \(fake-0\) and another \(fake-1\) are not .*'fake' and 'another'"
        ),
        opened(open_cuda, open_another),
    ):
        pass


def test_a_device_that_is_not_there_ends_a_study_before_it_begins() -> None:
    with pytest.raises(DeviceUnavailableError, match="there is no such device"), opened(open_cuda, open_nothing):
        pass


@pytest.mark.parametrize(
    ("openers", "lost", "left"),
    [((open_cuda, open_second_once), "fake-1", "fake-0"), ((open_first_once, open_second), "fake-0", "fake-1")],
)
def test_a_study_goes_on_without_a_device_that_is_lost(
    once: Path, openers: tuple[Opener, Opener], lost: str, left: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its trials are measured by the other device, which holds the finals then."""
    faults = ("right", "segfault", "litter", "chatter", "wrong cell")
    with opened(*openers) as evaluator, caplog.at_level(logging.WARNING, "lbmtune"):
        place = [one.device_id for one in evaluator.environments].index(lost)
        os.kill(evaluator.pool.measurers[place].process.pid, signal.SIGKILL)
        found = searched(evaluator, faults)
        assert [one.device_id for one in evaluator.environments] == [left]
        assert evaluator.measure_room() == 2
        finals = evaluator.finals([config("right", "cuda"), config("litter", "cuda")])
    assert caplog.messages == [
        f"fake {lost} is lost (it has fallen off the bus.): the study goes on with {left}",
    ]
    assert {fault: trial.outcome for fault, trial in found.items()} == {
        **dict.fromkeys(faults, Outcome.OK),
        "segfault": Outcome.CRASHED,
        "wrong cell": Outcome.WRONG_RESULT,
    }
    assert {trial.device for trial in found.values()} == {"" if left == "fake-0" else left}
    assert all(trial.final for trial in finals)


def test_finals_go_on_without_a_device_that_is_lost(once: Path, caplog: pytest.LogCaptureFixture) -> None:
    with opened(open_first_once, open_second) as evaluator, caplog.at_level(logging.WARNING, "lbmtune"):
        real = evaluator._on_stage
        killed: list[int] = []

        def kill_first(number: int, stage: str) -> None:
            if stage == "finals, number 1" and not killed:
                killed.append(evaluator.pool.measurer.process.pid)
                os.kill(killed[0], signal.SIGKILL)
            real(number, stage)

        evaluator._on_stage = kill_first
        trials = evaluator.finals([config("right", "cuda"), config("litter", "cuda")])
        assert [one.device_id for one in evaluator.environments] == ["fake-1"]
    assert killed
    assert "fake fake-0 is lost" in caplog.text
    assert all(trial.final for trial in trials)


def test_the_last_device_ends_the_study(once: Path) -> None:
    with opened(open_first_once, fake_device.open_second_gone) as evaluator:
        for worker in evaluator.pool.measurers:
            os.kill(worker.process.pid, signal.SIGKILL)
        with pytest.raises(DeviceUnavailableError, match="it has fallen off the bus"):
            searched(evaluator, ("right", "litter"))


def test_a_study_on_two_devices_tries_each_kernel_once_and_says_where(
    once: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lbmtune")
    configs = tuple(config(fault, "cuda") for fault in FAULTS)
    study = replace(fake_study.spec("cuda", budget=Budget(seconds=60.0)), case=CASE, protocol=PROTOCOL)
    with opened() as evaluator:
        needs = replace(fake_study.search(tmp_path, evaluator), predict=predict, clock=Clock(time.monotonic(), 60.0))
        made = replace(fake_study.header(fake_study.spec("cuda"), "cuda"), spec=study, legal_configurations=len(FAULTS))
        header = replace(made, environment=evaluator.environment)
        run_study(needs, header, Space(configs, {}, (len(configs),)))
        record = run_study(needs, header, Space(configs, {}, (len(configs),)), resume=True)
    assert "devices: fake-0, which holds the finals, fake-1" in caplog.messages
    assert sorted(trial.key for trial in record.trials) == sorted(one.key for one in configs)
    assert record == read_study(tmp_path)
    assert record.winner
    assert record.devices == {"fake-0": 1, "fake-1": 1}
    assert devices_text(record) == "1 trial on fake-0, 1 trial on fake-1; finals on fake-0"
    assert record.header.finals_device == ""


@pytest.mark.parametrize("gone", [True, False])
def test_the_header_says_which_device_held_the_finals(once: Path, tmp_path: Path, gone: bool) -> None:
    configs = tuple(config(fault, "cuda") for fault in ("right", "litter", "chatter"))
    study = replace(fake_study.spec("cuda", budget=Budget(trials=3)), case=CASE, protocol=PROTOCOL)
    with opened(open_first_once if gone else open_cuda, open_second) as evaluator:
        needs = replace(fake_study.search(tmp_path, evaluator), predict=predict)
        header = replace(fake_study.header(study, "cuda"), environment=evaluator.environment, legal_configurations=3)
        os.kill(evaluator.pool.measurer.process.pid, signal.SIGKILL)
        record = run_study(needs, header, Space(configs, {}, (len(configs),)))
    assert record.winner
    assert record.header.finals_device == ("fake-1" if gone else "")
