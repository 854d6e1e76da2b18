"""Time that the threads of this process had on processors, and the share that a CPU kernel had of what it wanted."""

import time
from pathlib import Path
from typing import Any, NamedTuple

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig

_TASKS = Path("/proc/self/task")


class Usage(NamedTuple):
    """Seconds since the start of the process, summed over threads. waited_s: ready to run but without a core."""

    ran_s: float
    waited_s: float | None
    wall_s: float


def usage() -> Usage:
    """Return the counters now; waited_s is None if the kernel does not report it."""
    schedules = [_schedule(task) for task in _TASKS.iterdir()] if _TASKS.is_dir() else []
    known = [s for s in schedules if s is not None]
    if not known or not any(ran for ran, _ in known):
        return Usage(time.process_time(), None, time.monotonic())
    return Usage(sum(ran for ran, _ in known) / 1e9, sum(waited for _, waited in known) / 1e9, time.monotonic())


def usage_before(config: KernelConfig) -> Usage | None:
    """Return the counters before a kernel runs; None if it does not run on the host."""
    return usage() if BACKENDS[config.backend].shares_host else None


def kernel_share(before: Usage, config: Any) -> float:
    """Return the share of the processor that a CPU kernel had since then."""
    return cpu_share(before, usage(), config.threads)


def cpu_share(before: Usage, after: Usage, threads: int) -> float:
    """Return running time over the time that threads were ready to run: 1 on an idle machine.

    If waiting times are unknown: process time over wall time per thread.
    """
    ran = after.ran_s - before.ran_s
    if before.waited_s is None or after.waited_s is None:
        return min(1.0, ran / max(threads * (after.wall_s - before.wall_s), 1e-9))
    wanted = ran + after.waited_s - before.waited_s
    return ran / wanted if wanted > 0 else 1.0


def _schedule(task: Path) -> tuple[int, int] | None:
    """Return (nanoseconds on a core, nanoseconds waiting for one) of a thread."""
    try:
        ran, waited, _ = (task / "schedstat").read_text().split()
    except (OSError, ValueError):
        return None  # the thread has just ended, or the kernel keeps no such statistics
    return int(ran), int(waited)
