"""Wait for what other threads and processes do, for as long as it takes them on a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(holds: Callable[[], object]) -> None:
    """Wait until a condition holds; if it never does, the time limit of every test ends the wait."""
    while not holds():
        time.sleep(0.01)
