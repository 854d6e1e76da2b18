"""Signals that end a program: each ends it as Ctrl-C does, with what is to be said and removed."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_USUAL = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
"""The handlers that are replaced; others are of who began this process: nohup has a hang-up ignored."""
_IMPORTS = "<frozen importlib._bootstrap>"
_LATER_S = 0.01


@contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt in the main thread when a signal asks this process to end, unless it is ignored.

    A module that is being imported is finished before: it may swallow the exception, and a package of which a part is
    left cannot be imported again, by what is still to be written.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.getsignal(one) for one in _USUAL}
    for one, handler in before.items():
        if handler is _USUAL[one]:
            signal.signal(one, _interrupt)
    told, sys.unraisablehook = sys.unraisablehook, _unraisable(sys.unraisablehook)
    try:
        yield
    finally:
        sys.unraisablehook = told
        for one, handler in before.items():
            signal.signal(one, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if not _imports(frame):
        raise KeyboardInterrupt
    _again(number)


def _unraisable(told: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return what tells of exceptions that end nothing, those of finalizers and callbacks: a signal comes again."""

    def hook(lost: Any) -> None:
        if isinstance(lost.exc_value, KeyboardInterrupt):
            _again(signal.SIGINT)
        else:
            told(lost)

    return hook


def _again(number: int) -> None:
    again = threading.Timer(_LATER_S, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()


def _imports(frame: FrameType | None) -> bool:
    while frame:
        if frame.f_code.co_filename == _IMPORTS:
            return True
        frame = frame.f_back
    return False
