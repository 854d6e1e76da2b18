"""Workers on further devices of a host: processes that begin with a study and end with it."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lbmtune.api.devices import several
from lbmtune.api.studies import study
from lbmtune.errors import InputError
from lbmtune.search.joint import helpers
from lbmtune.search.joint.helpers import helping
from lbmtune.search.joint.ledger import open_storage, searching
from tests.support.studies import fake_study

URL = "sqlite:////it.db"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[list[str]]]:
    """Let a program in Python stand for the worker; return its command lines."""
    real = subprocess.Popen

    def stand_for(program: str) -> list[list[str]]:
        commands: list[list[str]] = []

        def popen(command: list[str], **how: Any) -> subprocess.Popen[bytes]:
            commands.append(command)
            return real([sys.executable, "-c", program], **how)

        monkeypatch.setattr(helpers.subprocess, "Popen", popen)
        return commands

    return stand_for


def test_each_device_has_a_worker_that_is_waited_for(
    tmp_path: Path, started: Callable[[str], list[list[str]]], caplog: pytest.LogCaptureFixture
) -> None:
    commands = started("import time; time.sleep(0.3); print('done')")
    with helping(("1", "2"), URL, tmp_path, "box 1"):
        pass
    worker = [sys.executable, "-m", "lbmtune", "worker", "--study", "box 1", "--storage", URL, "--device"]
    assert commands == [[*worker, "1"], [*worker, "2"]]
    assert [(tmp_path / f"worker-{n}.log").read_text() for n in (1, 2)] == ["done\n"] * 2
    assert not caplog.messages


def test_a_worker_that_fails_is_told(
    tmp_path: Path, started: Callable[[str], list[list[str]]], caplog: pytest.LogCaptureFixture
) -> None:
    started("import sys; sys.exit('another device')")
    end = time.monotonic() + 30
    with caplog.at_level(logging.WARNING, "lbmtune"), helping(("1",), URL, tmp_path, "box 1"):
        while not caplog.messages and time.monotonic() < end:  # at once, not when the study is over
            time.sleep(0.01)
        assert caplog.messages
    assert caplog.messages == [f"a worker ended with exit code 1: {tmp_path / 'worker-1.log'} says why"]
    assert (tmp_path / "worker-1.log").read_text() == "another device\n"


@pytest.mark.parametrize("interrupted", [True, False])
def test_no_worker_is_left_behind(
    interrupted: bool,
    tmp_path: Path,
    started: Callable[[str], list[list[str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started("import time; time.sleep(60)")
    monkeypatch.setattr(helpers, "_EXIT_S", 0.2)
    begin = time.monotonic()
    try:
        with helping(("1", "2"), URL, tmp_path, "box 1"):
            if interrupted:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert interrupted
    assert time.monotonic() - begin < 30


def test_a_study_on_several_devices_shares_a_file_in_its_folder(
    tmp_path: Path, started: Callable[[str], list[list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_study.stand_in(monkeypatch, fake_study.FakeEvaluator("cuda"))
    commands = started("")
    found = study("quick", "0", tmp_path / "it", others=("1",), overrides=["budget.trials=3"])
    assert len(found.record.trials) == 3
    ((*_, name, _, url, _, device),) = commands
    assert (url, device) == (f"sqlite:///{tmp_path / 'it' / 'joint.db'}", "1")
    with pytest.raises(InputError, match=r"the search of study 'quick .*' is over"):
        searching(open_storage(url), name)


@pytest.mark.parametrize("devices", ["0,0", "0,cpu", "cpu"])
def test_devices_that_do_not_go_together(devices: str) -> None:
    with pytest.raises(InputError, match=f"devices={devices} is not supported .use indices of GPUs, such as 0,1"):
        several(devices)


def test_devices_are_listed() -> None:
    assert several("0, 1") == ("0", "1")
