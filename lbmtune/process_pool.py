"""A pool of spawned processes that end with the process that started them.

It computes pure functions, such as predictions and compilations. What uses a device and may die runs in a worker
(`measure.processes.worker`).
"""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from threading import Thread
from types import TracebackType
from typing import ParamSpec, TypeVar

from lbmtune.errors import InputError

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
_OF_TERMINALS = {signal.SIGINT, signal.SIGHUP}
"""Signals that a terminal sends to all processes of a program. The first one answers them."""


def pool(processes: int) -> Executor:
    """Return a pool of spawned processes, which end when this one does, even if it is killed.

    A system without semaphores, such as one without /dev/shm, has a thread in place of them.
    """
    try:
        return _Pool(processes, get_context("spawn"), initializer=_end_with_parent)
    except (OSError, ImportError, NotImplementedError):
        return ThreadPoolExecutor(1)


def mapped(workers: Executor, task: Callable[[S], T], values: Sequence[S], at_once: int) -> Iterator[T]:
    """Yield the results of a task for each value, in order. at_once: values that a process takes at once.

    `Executor.map` cancels tasks when it is stopped, which pools of Python 3.11 do not expect when their processes end.
    """
    shares = [values[start : start + at_once] for start in range(0, len(values), at_once)]
    for future in [workers.submit(_each, task, share) for share in shares]:
        yield from future.result()


def _each(task: Callable[[S], T], values: Sequence[S]) -> list[T]:
    return [task(value) for value in values]


class _Pool(ProcessPoolExecutor):
    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Submit a task. A process that starts for it never gets signals of terminals."""
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_TERMINALS)
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Wait for the tasks, or end them if something was raised. Raises InputError if a process was killed."""
        if kind:
            for process in list((self._processes or {}).values()):
                process.kill()
        self.shutdown(cancel_futures=kind is not None)
        if isinstance(error, BrokenProcessPool):
            why = "a process that helped was killed, perhaps for want of memory; see to it, and run the command again."
            raise InputError(why) from error


def _end_with_parent() -> None:
    """Start a thread that ends this process when its parent ends: a killed parent does not end its pool."""
    Thread(target=_wait_and_end, daemon=True).start()


def _wait_and_end() -> None:
    parent = parent_process()
    assert parent, "this is a process of a pool"
    parent.join()
    os._exit(1)
