"""Worker processes that may die; the parent learns in which stage and can start another one.

A worker opens its session once, then answers requests in order. It announces each stage, so that a crash or a
timeout is attributed to one. It ends with its parent, however the parent ends. This is the parent's side of one worker
(`serve` is the other side); an evaluator has several (`measure.workers.worker_pool`).
"""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from math import inf
from multiprocessing.connection import Pipe, wait
from pathlib import Path
from typing import Any, BinaryIO

from lbmtune import quotas
from lbmtune.errors import DeviceUnavailableError, LbmtuneError, TimeOverError
from lbmtune.measure.processes.events import STAGE_START, Answer, Death, Event, Greeting, Stage
from lbmtune.measure.processes.machine_faults import fault_of_machine, too_many_processes
from lbmtune.measure.processes.template import forked
from lbmtune.scratch import scratch

Progress = Callable[[str], None]
"""Reports the stage that begins."""
Session = Callable[[Any, Progress], Any]
"""Answers one request."""
Opener = Callable[[], tuple[Any, Session]]
"""Creates, inside the worker, a greeting for the parent and the session. Must be picklable."""

START_LIMIT_S = 300.0
"""A start takes seconds, on a loaded machine minutes; one beyond this limit ends the study."""
OTHER_LIMIT_S = 120.0
_STAGE_CALLED = "request"
_LOG_TAIL_BYTES = 4096
_LOG_BYTES = 1 << 20
"""Longest log; what is printed before is dropped."""
POLL_S = 0.5
_EXIT_S = 5.0
"""How long a process may take to end after it closed its pipe."""
_WALL_FACTOR = 10
"""Time limit of a stage that counts processor time, in multiples of that: a busy machine is slow, a hang is endless."""
_NO_THREAD = "Resource temporarily unavailable"
"""Words that libraries print, before they end a process, if the system starts no more threads."""


_STARTED, _STARTED_ALONE = count(), 2
"""Workers that were started, and how many are before a template of them is worth its own start."""
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""For NumPy in workers: its products of small matrices are slower with more threads, ten times so on a busy machine."""


class Worker:
    """The parent's end of one worker process, which has a session of its own: what it forks ends with it.

    deadline_s: when a request in progress is ended, on `time.monotonic`, for want of time.
    """

    def __init__(
        self,
        name: str,
        opener: Opener,
        limits_s: Mapping[str, float],
        log: Path,
        other_limit_s: float = OTHER_LIMIT_S,
        computing: Container[str] = (),
    ) -> None:
        """Start the process. limits_s: time limit of each stage, else other_limit_s; log: file for its output.

        computing: stages whose limit is one of processor time. Raises InputError if there is no room for the log, or no
        process can be started.
        """
        self.name, self._log, self._other_limit_s, self._computing = name, log, other_limit_s, computing
        self._limits_s = {STAGE_START: START_LIMIT_S, **limits_s}
        self._oom_kills = quotas.oom_kills()
        self.connection, theirs = Pipe()
        # a plain process rather than multiprocessing's: it does not import the caller's main module again
        call = f"from lbmtune.measure.processes.serve import serve; serve({theirs.fileno()}, {os.getpid()})"
        environment = os.environ | _ONE_THREAD
        with _opened(log) as output, theirs:
            enough = next(_STARTED) >= _STARTED_ALONE
            fork = forked(opener, theirs.fileno(), output.fileno(), environment) if enough else None
            try:
                self.process = fork or subprocess.Popen(
                    [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {call}"],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                    env=environment,
                )
            except OSError as error:
                raise fault_of_machine(error) or error from error
        self.connection.send(opener)
        self.deadline_s = inf
        self.ready = False
        self.jobs: deque[Any] = deque()
        self._enter(STAGE_START)

    @property
    def job(self) -> Any:
        """Return the parent's record of the request in progress; None if the worker is idle."""
        return self.jobs[0] if self.jobs else None

    def send(self, job: Any, request: Any) -> None:
        """Queue a request. job: the parent's own record of it, which comes back with the answer.

        Requests must be small: the pipe holds them while the worker is starting or busy.
        """
        self.jobs.append(job)
        if self.ready and len(self.jobs) == 1:
            self._enter(_STAGE_CALLED)
        try:
            self.connection.send(request)
        except (BrokenPipeError, ConnectionResetError):
            return  # the worker has died: the next event reports it

    def poll(self) -> Event | None:
        """Return the next event, a death or a timeout included; None if there is none. Does not block."""
        with suppress(OSError):
            if self._log.stat().st_size > _LOG_BYTES:
                os.truncate(self._log, 0)
        ended = self._ended()  # a process that it forked may hold the pipe open
        try:
            message = self.connection.recv() if self.connection.poll() else None
        except (EOFError, ConnectionResetError):
            return self._exited()
        if message is None:
            return self._exited() if ended else self._expired()
        return self._record(message)

    def end(self) -> None:
        """Kill the process and those of its session."""
        if self.process.returncode is None:  # else its number may be another's
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.connection.close()

    def _ended(self) -> bool:
        """Return whether the process has ended; its number and that of its session stay reserved until `end`."""
        wait_for = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return self.process.returncode is not None or bool(os.waitid(os.P_PID, self.process.pid, wait_for))

    def _record(self, message: Event) -> Event:
        job = self.job
        if isinstance(message, Stage):
            self._enter(message.name)
        elif isinstance(message, Greeting):
            self.ready = True
            self._enter(_STAGE_CALLED)
        elif isinstance(message, Answer):
            self.jobs.popleft()
            self._enter(_STAGE_CALLED)
            return replace(message, job=job)
        elif isinstance(message, Death):
            self.end()
            return replace(message, stage_s=self._stage_s())
        return message

    def _enter(self, stage: str) -> None:
        self.stage, self._began = stage, time.monotonic()
        self._before_s = self._processor_s(recursive=False) if stage in self._computing else 0.0

    def _stage_s(self) -> float:
        return time.monotonic() - self._began

    def _processor_s(self, *, recursive: bool) -> float:
        """Return the processor time of the process, and of those that it started, for which all are looked through."""
        import psutil  # here: workers start often

        with suppress(psutil.Error):
            process = psutil.Process(self.process.pid)
            children = process.children(recursive=True) if recursive else []
            return sum(sum(one.cpu_times()[:4]) for one in (process, *children))
        return 0.0

    def _expired(self) -> Death | None:
        if self.jobs and time.monotonic() >= self.deadline_s:
            self.end()
            error = TimeOverError(f"the time of the study was over during {self.stage}.")
            return Death(self.stage, str(error), self._stage_s(), timed_out=True, error=error)
        limit_s = self._limits_s.get(self.stage, self._other_limit_s)
        if self._stage_s() < limit_s or not (self.jobs or not self.ready):
            return None
        limit = f"{limit_s:g} s"
        if self.stage in self._computing:
            if self._processor_s(recursive=True) - self._before_s >= limit_s:
                limit += " of processor time"
            elif self._stage_s() < _WALL_FACTOR * limit_s:
                return None
            else:
                limit = f"{_WALL_FACTOR * limit_s:g} s"
        self.end()
        return Death(self.stage, f"{self.stage} took longer than {limit}", self._stage_s(), timed_out=True)

    def _exited(self) -> Death:
        limit = time.monotonic() + _EXIT_S
        while not (ended := self._ended()) and time.monotonic() < limit:
            time.sleep(0.01)
        self.end()
        code = self.process.returncode if ended else None
        killed = code == -signal.SIGKILL
        starved = killed and quotas.oom_kills() > self._oom_kills
        cause = "killed by the system for want of memory" if starved else _cause(code)
        lines = self._last_lines()
        fatal = [f" ({line})" for line in lines if line.startswith("Fatal Python error")]
        reason = f"{cause} during {self.stage}{''.join(fatal[-1:])}"
        limited = next((line for line in lines if _NO_THREAD in line), None)
        error = (
            too_many_processes(f"a thread cannot be started during {self.stage} ({limited})")
            if limited and code
            else None
        )
        return Death(self.stage, reason, self._stage_s(), killed=killed, starved=starved, error=error)

    def _last_lines(self) -> list[str]:
        """Return the last lines of the log."""
        if not self._log.exists():
            return []
        with self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - _LOG_TAIL_BYTES))
            return file.read().decode(errors="replace").splitlines()


@contextmanager
def temporary_worker(name: str, opener: Opener, limit_s: float) -> Iterator[Worker]:
    """Run one worker whose log lies in a temporary folder. limit_s: seconds that a stage may take."""
    with scratch() as folder:
        worker = Worker(name, opener, {}, folder / f"{name}.log", limit_s)
        try:
            yield worker
        finally:
            worker.end()


def await_answer(worker: Worker, progress: Progress | None, what: str = "the device could not be measured") -> Any:
    """Wait for the next greeting or answer of a worker. Raises what ended it, or DeviceUnavailableError with `what`."""
    while True:
        event = next_event(worker)
        if isinstance(event, (Greeting, Answer)):
            return event.value
        if isinstance(event, Death):
            raise unavailable(what, event)
        if progress:
            progress(event.name)


def next_event(worker: Worker) -> Event:
    """Wait for the next event of a worker."""
    while (event := worker.poll()) is None:
        wait([worker.connection], timeout=POLL_S)
    return event


def unavailable(what: str, death: Death) -> LbmtuneError | TimeOverError:
    """Return the error for a device whose worker is gone. what: the action that failed."""
    busy = "; if other programs load the machine, try again when they have ended" if death.timed_out else ""
    return death.error or DeviceUnavailableError(f"{what}: {death.reason}{busy}.")


def _cause(code: int | None) -> str:
    if code is None:
        return "closed its pipe"
    if code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return f"ended with exit code {code}"


@contextmanager
def _opened(log: Path) -> Iterator[BinaryIO]:
    """Open a log to append to it. Raises InputError if there is no room for it."""
    try:
        file = log.open("ab")
    except OSError as error:
        raise fault_of_machine(error) or error from error
    with file:
        yield file
