"""Queues and reads of devices that work as they are called, in the memory of the host."""

import time
from collections.abc import Callable, Sequence
from typing import Any


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


class HostMemory:
    """Reads of a device whose arrays are those of the host."""

    def gathered(self, array: Any, indices: Any) -> Any:
        """Return elements of an array (`Device.gathered`)."""
        return array[indices]

    def filled(self, parts: Sequence[Any], value: int) -> bool:
        """Return whether every byte has a value (`Device.filled`)."""
        return all(part.min() == value == part.max() for part in parts if part.size)
