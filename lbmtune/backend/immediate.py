"""Queues of devices that work as they are called."""

import time
from collections.abc import Callable


class ImmediateQueue:
    """A queue whose work is done when it is enqueued."""

    def run(self, work: Callable[[], None]) -> None:
        """Do the work."""
        work()

    def mark(self, *, timed: bool = False) -> float:
        """Return the time; 0 unless it is wanted."""
        return time.perf_counter() if timed else 0.0

    def wait(self, _: float) -> None:
        """Return at once."""

    def seconds(self, first: float, last: float) -> float:
        """Return the seconds between two times."""
        return last - first
