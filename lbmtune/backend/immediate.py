"""Queues of devices that work as they are called."""

from collections.abc import Callable


class ImmediateQueue:
    """A queue whose work is done when it is enqueued."""

    def run(self, work: Callable[[], None]) -> None:
        """Do the work."""
        work()

    def mark(self) -> None:
        """Return nothing: all work is done."""

    def wait(self, _: None) -> None:
        """Return at once."""
