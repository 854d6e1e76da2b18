"""Processors that this process may use."""

import os
from collections.abc import Collection
from pathlib import Path

from lbmtune import quotas

_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def usable_cores() -> int:
    """Return the number of processors that this process may use at once."""
    allowed = len(os.sched_getaffinity(0))
    return min(allowed, quotas.cores() or allowed)


def siblings(processor: int) -> str:
    """Return the processors of one physical core (SMT), as Linux lists them; the processor alone if it does not."""
    try:
        return Path(_TOPOLOGY.format(processor)).read_text(encoding="ascii")
    except OSError:
        return str(processor)


def physical_cores(processors: Collection[int] | None = None) -> int:
    """Return the number of physical cores of some processors; by default of those that this process may use."""
    return len({siblings(one) for one in (os.sched_getaffinity(0) if processors is None else processors)})
