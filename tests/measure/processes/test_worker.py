"""Faults of the machine in a worker process are told as such, and are not faults of a kernel."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from lbmtune.errors import InputError
from lbmtune.measure.processes import template
from lbmtune.measure.processes.events import Death
from lbmtune.measure.processes.machine_faults import fault_of_machine
from lbmtune.measure.processes.worker import next_event, temporary_worker

LIMIT = "raise the limit of processes (ulimit -u, pids of a control group) and try again."


def ends_as_libgomp_does() -> Any:
    sys.stderr.write("libgomp: Thread creation failed: Resource temporarily unavailable\n")
    sys.stderr.flush()
    os._exit(1)


def has_no_thread() -> Any:
    raise RuntimeError("can't start new thread")


def has_no_process() -> Any:
    raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


def is_wrong() -> Any:
    raise RuntimeError("another error")


@pytest.mark.parametrize(
    ("opener", "said"),
    [
        (
            ends_as_libgomp_does,
            "a thread cannot be started during start (libgomp: Thread creation failed: Resource temporarily "
            f"unavailable); {LIMIT}",
        ),
        (has_no_thread, f"can't start new thread; {LIMIT}"),
        (has_no_process, f"a process cannot be started (Resource temporarily unavailable); {LIMIT}"),
        (is_wrong, ""),
    ],
)
def test_a_limit_of_threads_is_no_fault_of_what_runs(opener: Callable[[], Any], said: str) -> None:
    with temporary_worker("w", opener, 60.0) as worker:
        event = next_event(worker)
    assert isinstance(event, Death)
    assert str(event.error or "") == said
    assert event.reason


def test_a_process_that_cannot_be_started_is_told_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any, **__: Any) -> Any:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuses)
    monkeypatch.setattr(template, "_template", None)
    with (
        pytest.raises(InputError, match=r"^a process cannot be started .*ulimit -u"),
        temporary_worker("w", is_wrong, 1),
    ):
        pass


def test_other_errors_are_not_those_of_the_machine() -> None:
    assert fault_of_machine(OSError(errno.ENOENT, "No such file")) is None
    assert fault_of_machine(ValueError("can't start new thread")) is None
    assert fault_of_machine(OSError(errno.ENOSPC, "No space left on device", "/a")) is not None
