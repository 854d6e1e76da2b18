"""The time at which the command began, from which the time of a study is counted."""

from contextvars import ContextVar

from lbmtune.search.clock import now, process_begun_s

_begun: ContextVar[float | None] = ContextVar("begun", default=None)


def begin(*, with_process: bool) -> None:
    """Note that a command begins. with_process: it has been the program since its start, whose imports count."""
    _begun.set(process_begun_s() if with_process else now())


def begun_s() -> float:
    """Return when the command began, on `time.monotonic`."""
    known = _begun.get()
    return now() if known is None else known
