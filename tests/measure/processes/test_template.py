"""Workers that a template forks: children of this process like any other, which have what it has now."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from lbmtune.backend.registry import open_device
from lbmtune.measure.processes import template as templates
from lbmtune.measure.processes import worker as workers
from lbmtune.measure.processes.events import Answer, Death, Greeting
from lbmtune.measure.processes.template import Forked, Template
from lbmtune.measure.processes.worker import Worker, next_event
from lbmtune.measure.workers.worker_tasks import open_measurer
from lbmtune.records.spec import TimingProtocol
from tests.project.test_process_pool import is_running
from tests.support.paths import ROOT
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="templates adopt with Linux's prctl")
_PR_GET_CHILD_SUBREAPER = 37
PARENT = """
import os, sys, time
from pathlib import Path
from threading import Lock
from lbmtune.measure.processes import template, worker
from tests.measure.processes.test_template import opened
worker._STARTED_ALONE = 0
found = [worker.Worker("one", opened, {}, Path(sys.argv[1], "log")) for _ in range(2)]
print(template._template._process.pid, *(one.process.pid for one in found), flush=True)
time.sleep(600)
"""


def opened() -> tuple[int, Callable[[Any, Any], Any]]:
    """A session that says what its process has, or ends it."""

    def session(asked: Any, _: Any) -> Any:
        if asked == "end":
            os._exit(3)
        if asked == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        print(asked, flush=True)
        return {
            "parent": os.getppid(),
            "session": os.getsid(0),
            "variable": os.environ.get(asked),
            "threads of NumPy": os.environ["OPENBLAS_NUM_THREADS"],
            "folder": str(Path.cwd()),
            "processors": os.sched_getaffinity(0),
            "files": sorted(str(Path(f"/proc/self/fd/{n}").readlink()) for n in range(3)),
        }

    return os.getpid(), session


@pytest.fixture(autouse=True)
def from_the_first(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(workers, "_STARTED_ALONE", 0)
    monkeypatch.setattr(templates, "_failures", 0)
    yield
    assert not is_reaper(), "this process adopts others only while it asks for a worker"


def is_reaper() -> bool:
    found = ctypes.c_int()
    ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(found), 0, 0, 0)
    return bool(found.value)


@contextmanager
def worker(log: Path) -> Iterator[Worker]:
    one = Worker("one", opened, {}, log)
    try:
        yield one
    finally:
        one.end()


def answer(one: Worker, asked: str) -> Any:
    one.send(None, asked)
    while not isinstance(event := next_event(one), Answer | Death):
        pass
    return event.value if isinstance(event, Answer) else event


def present() -> Template:
    found = templates._template
    assert found
    return found


def test_what_a_template_forks_is_a_child_in_a_session_of_its_own(tmp_path: Path) -> None:
    with worker(tmp_path / "log") as one:
        assert isinstance(one.process, Forked)
        greeting = next_event(one)
        assert isinstance(greeting, Greeting)
        assert greeting.value == one.process.pid
        found = answer(one, "HOME")
        assert one.process.poll() is None
    assert (found["parent"], found["session"]) == (os.getpid(), one.process.pid)
    assert found["variable"] == os.environ.get("HOME")
    assert found["threads of NumPy"] == "1"
    assert found["files"] == sorted(["/dev/null", str(tmp_path / "log"), str(tmp_path / "log")])
    assert (tmp_path / "log").read_text() == "HOME\n"
    assert one.process.returncode == -signal.SIGKILL
    assert not is_running(one.process.pid)


@pytest.mark.parametrize(("asked", "code"), [("end", "ended with exit code 3"), ("kill", "killed by SIGKILL")])
def test_how_it_ended_is_known(tmp_path: Path, asked: str, code: str) -> None:
    with worker(tmp_path / "log") as one:
        death = answer(one, asked)
    assert isinstance(death, Death)
    assert death.reason == f"{code} during request"
    assert death.killed == (asked == "kill")


def test_a_variable_of_now_is_there_without_another_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with worker(tmp_path / "log") as one:
        assert answer(one, "LBMTUNE_TEST_OF_TEMPLATE")["variable"] is None
    before = present()
    monkeypatch.setenv("LBMTUNE_TEST_OF_TEMPLATE", "now")
    with worker(tmp_path / "log") as one:
        assert answer(one, "LBMTUNE_TEST_OF_TEMPLATE")["variable"] == "now"
    assert present() is before


@pytest.mark.parametrize("what", ["folder", "processors", "path", "read on import"])
def test_what_a_template_cannot_pass_on_has_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    with worker(tmp_path / "log") as one:
        answer(one, "HOME")
    before, processors = present(), os.sched_getaffinity(0)
    if what == "folder":
        monkeypatch.chdir(tmp_path)
    if what == "path":
        monkeypatch.syspath_prepend(tmp_path)
    if what == "read on import":
        monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    if what == "processors":
        if len(processors) == 1:
            pytest.skip("one processor")
        os.sched_setaffinity(0, {min(processors)})
    try:
        with worker(tmp_path / "log") as one:
            found = answer(one, "NUMBA_NUM_THREADS")
            assert (found["folder"], found["processors"]) == (str(Path.cwd()), os.sched_getaffinity(0))
        assert present() is not before
        assert not is_running(before._process.pid)
    finally:
        os.sched_setaffinity(0, processors)


def test_without_a_template_a_worker_starts_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the template was killed, and where there can be none."""
    with worker(tmp_path / "log") as one:
        answer(one, "HOME")
    os.kill(present()._process.pid, signal.SIGKILL)
    with worker(tmp_path / "log") as one:
        assert isinstance(one.process, subprocess.Popen)
        assert answer(one, "HOME")["parent"] == os.getpid()
    with worker(tmp_path / "log") as one:
        assert isinstance(one.process, Forked), "the next one has a new template"

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(templates, "_template", None)
    monkeypatch.setattr(templates, "Template", refused)
    with worker(tmp_path / "log") as one:
        assert isinstance(one.process, subprocess.Popen)
        assert answer(one, "HOME")["session"] == one.process.pid


def test_an_interrupt_leaves_no_answer_for_the_next_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with worker(tmp_path / "log") as one:
        answer(one, "HOME")
    before = present()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(templates, "Forked", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Worker("one", opened, {}, tmp_path / "log")
    assert not is_running(before._process.pid)
    with worker(tmp_path / "log") as one:
        assert answer(one, "HOME")["session"] == one.process.pid


def test_a_template_and_all_that_it_forked_end_with_a_killed_parent(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout
        found = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(found) == 3
        assert all(map(is_running, found))
        parent.kill()
    until(lambda: not any(map(is_running, found)))


class Imports:
    """What imports a module when it is received."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> Any:
        return import_module, (self._name,)


def test_a_template_that_cannot_start_is_tried_twice_and_its_error_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun: list[Template] = []

    class Failing(Template):
        def __init__(self, _: Any, environment: Any) -> None:
            begun.append(self)
            super().__init__(Imports("no_such_module"), environment)

        def _answer(self) -> bytes:
            assert not is_reaper(), "until it is ready it is waited for without adopting others"
            return super()._answer()

    monkeypatch.setattr(templates, "_template", None)
    monkeypatch.setattr(templates, "Template", Failing)
    with ExitStack() as started:
        for _ in range(4):
            one = started.enter_context(worker(tmp_path / "log"))
            assert isinstance(one.process, subprocess.Popen)
        assert answer(one, "HOME")["session"] == one.process.pid
    assert len(begun) == 2
    assert not any(is_running(one._process.pid) for one in begun)
    said = [one.getMessage() for one in caplog.records if "not forked" in one.getMessage()]
    assert len(said) == 1
    assert said[0].endswith(": ModuleNotFoundError: No module named 'no_such_module'.")


def test_a_template_that_is_told_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_files() -> int:
        return len([*Path("/proc/self/fd").iterdir()])

    begun: list[Any] = []
    plain = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: begun.append(plain(*a, **k)) or begun[-1])
    before = open_files()
    with pytest.raises(TypeError):
        Template(Lock(), os.environ)  # which cannot be pickled
    assert begun[0].returncode == -signal.SIGKILL
    assert open_files() == before


@pytest.mark.parametrize("device", ["cpu", "0", "imported"])
def test_a_template_has_one_thread_and_neither_numba_nor_a_device(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CuPy that leaves a trace stands before the one that may be here; what imports it is found out."""
    (tmp_path / "cupy.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w').close()")
    monkeypatch.syspath_prepend(tmp_path)
    opener = partial(open_measurer, partial(open_device, "cpu" if device == "imported" else device), TimingProtocol())
    template = Template((opener, Imports("cupy")) if device == "imported" else opener, os.environ)
    try:
        pipe, log = os.open(os.devnull, os.O_RDWR), os.open(os.devnull, os.O_RDWR)
        forked = template.fork(pipe, log, os.environ)  # so everything has been imported
        for file in (pipe, log):
            os.close(file)
        with suppress(ProcessLookupError):
            os.killpg(forked.pid, signal.SIGKILL)
        forked.wait()
        here = Path("/proc", str(template._process.pid))
        assert len(list((here / "task").iterdir())) == 1
        mapped = (here / "maps").read_text()
        assert "numpy" in mapped
        assert (tmp_path / "imported").exists() == (device == "imported")
        assert not [name for name in ("libcuda", "cupy", "llvmlite", "libgomp") if name in mapped]
    finally:
        template.end()
