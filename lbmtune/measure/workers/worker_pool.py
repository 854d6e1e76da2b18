"""The processes of an evaluator: the measurer of a device, and those that compile beside it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import wait

from lbmtune.backend.protocol import Device
from lbmtune.measure.workers.processes import (
    Answer,
    Death,
    Event,
    Greeting,
    Opener,
    Stage,
    Worker,
    scratch_folder,
    unavailable,
)
from lbmtune.measure.workers.worker_tasks import ACCURACY, FINALS, FULL_SIZE, SUSTAINED, Opened, open_measurer, turn_of
from lbmtune.records.study import TimingProtocol

_POLL_S = 0.5
_ACCURACY_LIMIT_S = 300.0
_MOST_FAMILIES = 100
"""Finalists beside the best: more than there are families."""
_FULL_SIZE_PATIENCE = 10
"""How many times the limit of a verification one at full size may take."""


class Crew:
    """Starts workers, listens to them, and puts others in the place of those that died.

    measurer, compilers: those that work now; spool: the folder in which they find what they are asked about.
    """

    def __init__(self, opener: Callable[[], Device], protocol: TimingProtocol) -> None:
        """Starts the measurer. opener: runs there, and must be picklable."""
        self._opener, self._protocol, self._started = opener, protocol, 0
        self.spool = scratch_folder()
        self.compilers: list[Worker] = []
        self.measurer = self._new_measurer()

    def introduced(self) -> Opened:
        """What the measurer says of itself once it is ready. Raises DeviceUnavailableError."""
        while True:
            event = _next_event(self.measurer)
            if isinstance(event, Greeting):
                assert isinstance(event.value, Opened)
                return event.value
            if isinstance(event, Death):
                raise unavailable("the measuring process could not start", event)

    def add_compiler(self, opener: Opener) -> Worker:
        """One more that compiles."""
        self.compilers.append(self._new_worker("compile", opener))
        return self.compilers[-1]

    def workers(self) -> Iterator[Worker]:
        """All that are running."""
        yield from self.compilers
        yield self.measurer

    def heard(self, patience_s: float | None = None) -> list[tuple[Worker, Event]]:
        """What they said, at most one event of each; waits for it as long as that.

        patience_s: None: until one of them has used up its time.
        """
        if patience_s is None:
            deadlines = [worker.deadline for worker in self.workers() if worker.deadline is not None]
            patience_s = min(deadlines, default=time.monotonic() + _POLL_S) - time.monotonic()
        workers = list(self.workers())
        wait([worker.connection for worker in workers], timeout=max(0.0, patience_s))
        said = ((worker, worker.event()) for worker in workers)
        return [(worker, event) for worker, event in said if event is not None]

    def answer(self, on_stage: Callable[[str], None] | None = None) -> Answer | Death:
        """The measurer's answer to its one request; where it dies of it, there is another one already."""
        while not isinstance(event := _next_event(self.measurer), (Answer, Death)):
            if isinstance(event, Stage) and on_stage:
                on_stage(event.name)
        if isinstance(event, Death):
            self.replace(self.measurer)
        return event

    def replace(self, worker: Worker) -> None:
        """Of one that died: compilers are started when they are needed."""
        if worker is self.measurer:
            self.measurer = self._new_measurer()
        else:
            self.compilers.remove(worker)

    def close(self) -> None:
        """Ends all."""
        for worker in self.workers():
            worker.end()
        shutil.rmtree(self.spool, ignore_errors=True)

    def _new_measurer(self) -> Worker:
        return self._new_worker("measure", partial(open_measurer, self._opener, self._protocol))

    def _new_worker(self, name: str, opener: Opener) -> Worker:
        self._started += 1
        return Worker(name, opener, _limits_s(self._protocol), self.spool / f"{name}-{self._started}.log")


def _limits_s(protocol: TimingProtocol) -> dict[str, float]:
    """How long each stage may take."""
    return {
        "compile": protocol.compile_limit_s,
        "verify": protocol.verify_limit_s,
        FULL_SIZE: _FULL_SIZE_PATIENCE * protocol.verify_limit_s,
        "measure": protocol.measure_limit_s,
        SUSTAINED: protocol.measure_limit_s + 2 * (protocol.settling_s + protocol.sustained_s),
        ACCURACY: _ACCURACY_LIMIT_S,
        FINALS: protocol.measure_limit_s * max(1, protocol.finalists),
        **{turn_of(n): protocol.measure_limit_s for n in range(protocol.finalists + _MOST_FAMILIES)},
    }


def _next_event(worker: Worker) -> Event:
    while (event := worker.event()) is None:
        wait([worker.connection], timeout=_POLL_S)
    return event
