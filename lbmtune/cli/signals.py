"""Signals that end a program: each ends it as Ctrl-C does, with what is to be said and removed."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt in the main thread when a signal asks this process to end, unless it is ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {one: signal.getsignal(one) for one in _ENDING}
    for one, handler in before.items():
        if handler is signal.SIG_DFL:  # nohup has a hang-up ignored
            signal.signal(one, _interrupt)
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _interrupt(_number: int, _frame: Any) -> None:
    raise KeyboardInterrupt
