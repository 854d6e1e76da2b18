"""Worker processes that may die. The parent learns in which stage, and starts another one.

A worker opens its session once, then answers requests one after the other. It says which stage it enters, so
that a death or a hang can be put down to it. It ends with its parent, whatever ends the parent.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from lbmtune.errors import DeviceUnavailableError, InputError, LbmtuneError

Report = Callable[[str], None]
"""Announces the stage that begins."""
Session = Callable[[Any, Report], Any]
"""Answers one request."""
Opener = Callable[[], tuple[Any, Session]]
"""Makes, inside the worker, a greeting for the parent and the session. Must be picklable."""

START_LIMIT_S = 300.0
"""A start takes seconds, and ends a study where it takes longer than this: on a machine full of other work it may."""
OTHER_LIMIT_S = 120.0
STAGE_START = "start"
_STAGE_CALLED = "request"
_LOG_TAIL_BYTES = 4096
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Greeting:
    """The worker is ready."""

    value: Any


@dataclass(frozen=True)
class Stage:
    """The worker enters a stage."""

    name: str


@dataclass(frozen=True)
class Answer:
    """The result of a request. task: the note that the parent gave with it."""

    value: Any
    task: Any = None


@dataclass(frozen=True)
class Death:
    """The worker is gone. timed_out: the parent killed it; error: an expected error to raise in the parent.

    stage_s: seconds since the stage began.
    """

    stage: str
    reason: str
    stage_s: float = 0.0
    timed_out: bool = False
    error: LbmtuneError | None = None


Event = Greeting | Stage | Answer | Death


def scratch_folder() -> Path:
    """A new folder for what a run needs no longer than it lasts. Raises InputError where none can be made."""
    try:
        return Path(tempfile.mkdtemp(prefix="lbmtune-"))
    except OSError as error:
        raise InputError(f"no folder for temporary files: {error.strerror}; set TMPDIR to one with room.") from error


class Worker:
    """The parent's end of one worker process."""

    def __init__(
        self, name: str, opener: Opener, limits_s: Mapping[str, float], log: Path, other_limit_s: float = OTHER_LIMIT_S
    ) -> None:
        """Starts the process; limits_s: time limit of each stage, or else other_limit_s; log: for what it prints."""
        self.name, self._log, self._other_limit_s = name, log, other_limit_s
        self._limits_s = {STAGE_START: START_LIMIT_S, **limits_s}
        self.connection, theirs = Pipe()
        # a plain process rather than multiprocessing's: it does not import the caller's main module again
        call = f"from lbmtune.measure.workers.processes import serve; serve({theirs.fileno()}, {os.getpid()})"
        with log.open("ab") as output, theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {call}"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=[theirs.fileno()],
            )
        self.connection.send(opener)
        self.ready = False
        self.tasks: deque[Any] = deque()
        self._enter(STAGE_START)

    @property
    def task(self) -> Any:
        """The parent's note of the request that is being answered; None if there is none."""
        return self.tasks[0] if self.tasks else None

    def ask(self, task: Any, request: Any) -> None:
        """Sends a request; `task` is the parent's own note of what it is about.

        Requests wait for each other, and for a worker that is still starting; they must be small, so that the
        pipe holds them meanwhile.
        """
        self.tasks.append(task)
        if self.ready and len(self.tasks) == 1:
            self._enter(_STAGE_CALLED)
        try:
            self.connection.send(request)
        except (BrokenPipeError, ConnectionResetError):
            return  # it died meanwhile: the next event says so

    def event(self) -> Event | None:
        """What the worker has said, or its death or the end of its patience; None if nothing. Does not block."""
        try:
            message = self.connection.recv() if self.connection.poll() else None
        except (EOFError, ConnectionResetError):
            return self._buried()
        if message is None:
            return self._overdue()
        return self._noted(message)

    def end(self) -> None:
        """Kills the process."""
        self.process.kill()
        self.process.wait()
        self.connection.close()

    def _noted(self, message: Event) -> Event:
        task = self.task
        if isinstance(message, Stage):
            self._enter(message.name)
        elif isinstance(message, Greeting):
            self.ready = True
            self._enter(_STAGE_CALLED)
        elif isinstance(message, Answer):
            self.tasks.popleft()
            self._enter(_STAGE_CALLED)
            return replace(message, task=task)
        elif isinstance(message, Death):
            self.end()
            return replace(message, stage_s=self._stage_s())
        return message

    def _enter(self, stage: str) -> None:
        self.stage, self._began = stage, time.monotonic()

    def _stage_s(self) -> float:
        return time.monotonic() - self._began

    @property
    def _limit_s(self) -> float:
        return self._limits_s.get(self.stage, self._other_limit_s)

    @property
    def deadline(self) -> float | None:
        """When its patience ends, by the monotonic clock; None while it is idle."""
        return self._began + self._limit_s if self.tasks or not self.ready else None

    def _overdue(self) -> Death | None:
        if self.deadline is None or time.monotonic() < self.deadline:
            return None
        self.end()
        reason = f"{self.stage} took longer than {self._limit_s:g} s"
        return Death(self.stage, reason, self._stage_s(), timed_out=True)

    def _buried(self) -> Death:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5.0)
        cause = _cause(self.process.returncode)
        self.end()
        return Death(self.stage, f"{cause} during {self.stage}{self._last_words()}", self._stage_s())

    def _last_words(self) -> str:
        """The most telling line that the process left in its log."""
        if not self._log.exists():
            return ""
        with self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - _LOG_TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
        fatal = [line for line in lines if line.startswith("Fatal Python error")]
        return f" ({fatal[-1]})" if fatal else ""


def unavailable(what: str, death: Death) -> LbmtuneError:
    """The error for a device whose worker is gone. what: was not possible."""
    busy = "; where other programs keep the machine busy, try again when they have ended" if death.timed_out else ""
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


def serve(handle: int, parent: int) -> None:
    """The worker's main function. handle: its end of the pipe; parent: process id."""
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    faulthandler.enable()
    connection = Connection(handle)
    stage = STAGE_START

    def report(name: str) -> None:
        nonlocal stage
        stage = name
        connection.send(Stage(name))

    try:
        opener: Opener = connection.recv()
        greeting, session = opener()
        connection.send(Greeting(greeting))
        while True:
            connection.send(Answer(session(connection.recv(), report)))
    except EOFError:
        return  # the parent is gone or done
    except LbmtuneError as error:
        connection.send(Death(stage, str(error), error=error))
    except (
        BaseException
    ) as error:  # the boundary of the isolation: whatever it was, it costs this process and one trial
        traceback.print_exc()
        connection.send(Death(stage, f"{_described(error)} during {stage}"))
        sys.stderr.flush()
        os._exit(1)  # no tidying up: a device with a fault may not survive it


def _described(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {str(error).strip() or 'no message'}{where}"


def die_with_parent(parent: int) -> None:
    """Asks Linux to kill this process when its parent ends, however it ends."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before we asked
            os._exit(1)
