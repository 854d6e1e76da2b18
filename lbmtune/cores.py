"""Processors that this process may run on."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """How many there are: of a process that is bound to some of them, those."""
    return len(os.sched_getaffinity(0))
