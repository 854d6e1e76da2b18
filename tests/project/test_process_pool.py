"""Processes of a pool."""

import errno
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from lbmtune.errors import InputError
from lbmtune.process_pool import mapped, pool
from tests.conftest import let_children_be_interrupted
from tests.support.waiting import until

WORK = """
import os
from lbmtune.process_pool import pool
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
    until(lambda: not is_running(worker))


BUSY = """
import time
from lbmtune.process_pool import mapped, pool
if __name__ == "__main__":
    with pool(2) as processes:
        list(mapped(processes, time.sleep, [300.0] * 20, 2))
"""


@pytest.mark.parametrize("at_once", [True, False])
def test_ctrl_c_ends_a_pool_at_once_and_only_one_process_answers(tmp_path: Path, at_once: bool) -> None:
    """While its processes start, and while they work: a terminal sends the signal to all of them."""
    script = tmp_path / "work.py"
    script.write_text(BUSY)
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            while len(workers := started(process.pid)) < 2:
                assert process.poll() is None, process.communicate()[1]
                time.sleep(0.01)
            time.sleep(0.0 if at_once else 2.0)
            os.killpg(process.pid, signal.SIGINT)
            _, errors = process.communicate()
        finally:  # the block would wait for it for ever
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert errors.count("Traceback") == errors.count("KeyboardInterrupt\n") == 1, errors
    assert not any(map(is_running, workers))


def test_programs_of_tests_end_on_ctrl_c_also_if_the_tests_run_in_the_background() -> None:
    numbers = (signal.SIGINT, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        let_children_be_interrupted()
        asked = f"import signal; print(*(signal.getsignal(one) is signal.SIG_IGN for one in {[*map(int, numbers)]}))"
        said = subprocess.run([sys.executable, "-S", "-c", asked], capture_output=True, text=True, check=True).stdout
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    assert said.split() == ["False", "False"]


def started(process: int) -> list[int]:
    """Of a pool's process: the processes of the pool."""
    with suppress(psutil.NoSuchProcess):
        found = psutil.Process(process).children()
        return [one.pid for one in found if "spawn_main" in " ".join(one.cmdline())]
    return []


def test_a_process_of_a_pool_that_is_killed_ends_the_work_in_a_sentence() -> None:
    with pytest.raises(InputError, match="a process that helped was killed"), pool(2) as processes:
        processes.submit(os.kill, processes.submit(os.getpid).result(), signal.SIGKILL).result()


def test_where_there_are_no_semaphores_a_thread_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where /dev/shm is missing or cannot be written."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("multiprocessing.synchronize.SemLock.__init__", refused)
    with pool(4) as one:
        assert list(mapped(one, abs, range(-3, 0), 2)) == [3, 2, 1]
        assert one.submit(os.getpid).result() == os.getpid()


def is_running(process: int) -> bool:
    """Of another process: one that has ended and that nobody has waited for does not run."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
