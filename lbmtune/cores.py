"""Processors that this process may use, and processes on them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lbmtune import quotas

if TYPE_CHECKING:
    from concurrent.futures import Executor


def usable_cores() -> int:
    """Return the number of processors that this process may use at once."""
    allowed = len(os.sched_getaffinity(0))
    return min(allowed, quotas.cores() or allowed)


def pool(processes: int) -> Executor:
    """Return a pool of spawned processes that end when this one does, even if it is killed.

    A system without semaphores, such as one without /dev/shm, has a thread in place of them.
    """
    from concurrent import futures  # here: what asks for processors alone starts without it
    from multiprocessing import get_context

    try:
        return futures.ProcessPoolExecutor(processes, get_context("spawn"), initializer=_end_with_parent)
    except (OSError, ImportError, NotImplementedError):
        return futures.ThreadPoolExecutor(1)


def _end_with_parent() -> None:
    """Start a thread that ends this process when its parent ends: a killed parent does not end its pool."""
    from threading import Thread

    Thread(target=_wait_and_end, daemon=True).start()


def _wait_and_end() -> None:
    from multiprocessing import parent_process

    parent = parent_process()
    assert parent, "this is a process of a pool"
    parent.join()
    os._exit(1)
