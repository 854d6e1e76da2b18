"""Processors that this process may use."""

import os

from lbmtune import quotas


def usable_cores() -> int:
    """Return the number of processors that this process may use at once."""
    allowed = len(os.sched_getaffinity(0))
    return min(allowed, quotas.cores() or allowed)
