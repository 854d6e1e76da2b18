"""The worker's side of a process that may die: open a session, answer requests, and end with the parent."""

import ctypes
import faulthandler
import gc
import os
import pickle
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from lbmtune.errors import LbmtuneError
from lbmtune.measure.processes.events import STAGE_START, Answer, Death, Greeting, Stage
from lbmtune.measure.processes.machine_faults import fault_of_machine

_PR_SET_PDEATHSIG = 1


def serve(handle: int, parent: int) -> None:
    """Run the worker's main loop. handle: its end of the pipe; parent: process id."""
    _die_with_parent(parent)
    os.register_at_fork(after_in_child=_end_with_parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    faulthandler.enable()
    connection = Connection(handle)
    stage = STAGE_START

    def progress(name: str) -> None:
        nonlocal stage
        stage = name
        connection.send(Stage(name))

    messages = _received(connection)
    try:
        if (opener := next(messages, None)) is None:
            return
        greeting, session = opener()
        connection.send(Greeting(greeting))
        for request in messages:
            connection.send(Answer(session(request, progress)))
    except LbmtuneError as error:
        connection.send(Death(stage, str(error), error=error))
    except BaseException as error:  # the isolation boundary: any error costs this process and one trial
        with suppress(OSError):  # the log may lie on a full disk
            traceback.print_exc()
            sys.stderr.flush()
        connection.send(Death(stage, f"{_described(error)} during {stage}", error=fault_of_machine(error)))
        os._exit(1)  # without clean-up, which may hang on a faulty device


def fork_workers(handle: int, parent: int) -> None:
    """Run the loop of a template (`measure.processes.template`). handle: its socket; parent: process id.

    Returns when the parent is gone, and in each worker when that is done.
    """
    _die_with_parent(parent)
    with socket.socket(fileno=handle) as asked:
        pickle.loads(asked.recv(1 << 20))  # which imports what workers need
        gc.collect()
        gc.freeze()  # else the collector of each worker writes to all pages that they share
        asked.send(b"ready")
        while True:
            message, files, *_ = socket.recv_fds(asked, 1 << 20, 2)
            if not message:
                return
            between = os.fork()
            if not between and _forked_again():
                break
            left = os.waitpid(between, 0)[1]
            for file in files:
                os.close(file)
            if left:
                return
        pipe, log = files
        os.setsid()
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        os.environ.clear()
        os.environ.update(pickle.loads(message))
        _end_with_parent()
        asked.send(str(os.getpid()).encode() if os.getppid() == parent else b"")
    serve(pipe, parent)


def _forked_again() -> bool:
    """Fork, and end as the parent: the child, which returns, has the one that adopts it for a parent."""
    before = os.getpid()
    try:
        if os.fork():
            os._exit(0)
    except OSError:
        os._exit(1)
    while os.getppid() == before:
        time.sleep(1e-4)
    return True


def _received(connection: Connection) -> Iterator[Any]:
    """Yield what the parent sends until it is gone or done."""
    while True:
        try:
            message = connection.recv()
        except EOFError:
            return
        yield message


def _described(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {str(error).strip() or 'no message'}{where}"


def _die_with_parent(parent: int) -> None:
    """Have Linux kill this process when its parent ends."""
    _end_with_parent()
    if os.getppid() != parent:  # the parent ended before the call
        os._exit(1)


def _end_with_parent() -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
