"""The threads that run parallel loops, and the processors that they are bound to."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from threading import get_native_id

import numba
import numpy as np
import numpy.typing as npt
from numba import prange, types

from lbmtune.backend.cpu.compilation.modules import cached_njit, call_cached
from lbmtune.backend.cpu.placement.numa import processors_of
from lbmtune.backend.protocol import TooManyResourcesError
from lbmtune.catalogue.backend_records import numa_of
from lbmtune.cores import siblings

ALLOWED = frozenset(os.sched_getaffinity(0))
"""Processors of this process at its start; threads that are bound later see fewer."""
_gettid = types.ExternalFunction("gettid", types.int32())
_bound: dict[int, frozenset[int]] = {}
"""System number of each thread that is bound now, and its processors."""


@cached_njit(parallel=True)
def _thread_numbers(numbers: npt.NDArray[np.int32]) -> None:
    for share in prange(numbers.size):
        numbers[share] = _gettid()


def team(threads: int) -> tuple[int, ...]:
    """Return the system number of the thread that runs each share of a parallel loop.

    Raises TooManyResourcesError if threads are fewer than shares.
    """
    if threads == 1:
        return (get_native_id(),)
    numba.set_num_threads(threads)
    numbers = np.zeros(threads, np.int32)
    call_cached(_thread_numbers, numbers)
    members = tuple(map(int, numbers))
    if len(set(members)) < threads:
        layer = numba.threading_layer()
        raise TooManyResourcesError(
            f"{threads} shares of a loop ran on {len(set(members))} threads of the layer {layer}"
        )
    return members


def bind(threads: int, pinning: str) -> None:
    """Bind each thread of a parallel loop to a processor (pinning "cores"), to one of a NUMA node ("node-0"), or none.

    Raises TooManyResourcesError if the system does not bind them.
    """
    wanted = _masks(threads, pinning)
    if wanted == tuple(_bound.values()):
        return
    for thread in {get_native_id(), *_bound}:
        _set(thread, ALLOWED)
    _bound.clear()
    # threads inherit the affinity of their parent, so all are started before the first is bound
    _bound.update(zip(team(threads), wanted, strict=False) if wanted else ())
    for thread, mask in _bound.items():
        _set(thread, mask)


@cache
def _masks(threads: int, pinning: str) -> tuple[frozenset[int], ...]:
    """Return the processor of each thread; empty if threads are not bound. A node of memory alone has those of all."""
    if pinning == "none":
        return ()
    allowed = (processors_of(numa_of(pinning)) & ALLOWED) or ALLOWED
    return tuple(frozenset({one}) for one in processors() if one in allowed)[:threads]


def _set(thread: int, processors_: Iterable[int]) -> None:
    try:
        os.sched_setaffinity(thread, processors_)
    except ProcessLookupError:
        return  # it has ended
    except OSError as error:
        raise TooManyResourcesError(f"thread {thread} cannot be bound to {sorted(processors_)}: {error}") from error


@cache
def processors() -> tuple[int, ...]:
    """Return the processors in the order in which threads are bound: one of each core before its second one."""
    groups: dict[str, list[int]] = {}
    for processor in sorted(ALLOWED):
        groups.setdefault(siblings(processor), []).append(processor)
    return tuple(sorted(ALLOWED, key=lambda p: (groups[siblings(p)].index(p), p)))
