"""Processes of a pool."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lbmtune.cores import pool

WORK = """
import os
from lbmtune.cores import pool
if __name__ == "__main__":
    with pool(1) as processes:
        print(processes.submit(os.getpid).result(), flush=True)
        input()
"""


def test_a_pool_ends_when_its_process_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "work.py"
    script.write_text(WORK)
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        worker = int(process.stdout.readline())
        assert is_running(worker)
        process.send_signal(signal.SIGKILL)
    end = time.monotonic() + 20
    while is_running(worker) and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_running(worker)


def test_where_there_are_no_semaphores_a_thread_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where /dev/shm is missing or cannot be written."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("multiprocessing.synchronize.SemLock.__init__", refused)
    with pool(4) as one:
        assert list(one.map(abs, range(-3, 0), chunksize=2)) == [3, 2, 1]
        assert one.submit(os.getpid).result() == os.getpid()


def is_running(process: int) -> bool:
    """Of another process: one that has ended and that nobody has waited for does not run."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
