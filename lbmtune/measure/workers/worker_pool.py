"""The worker processes of an evaluator: one that measures on each device, and some that compile.

A single one is `measure.processes.worker`; pure functions without a device run in a `lbmtune.process_pool`.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from multiprocessing.connection import wait
from typing import Any, Self

from lbmtune.backend.protocol import Device
from lbmtune.catalogue.families.rules import Limits
from lbmtune.errors import InputError, TimeOverError
from lbmtune.measure.processes.events import STAGE_START, Answer, Death, Event, Stage
from lbmtune.measure.processes.worker import POLL_S, Opener, Worker, await_answer, next_event
from lbmtune.measure.workers.one_kernel import FULL_SIZE, OUTPUT, SUSTAINED
from lbmtune.measure.workers.worker_tasks import ACCURACY, FINALS, final_stage, open_measurer
from lbmtune.records import Environment
from lbmtune.records.spec import TimingProtocol
from lbmtune.scratch import remove_scratch, scratch_folder

LOG = logging.getLogger("lbmtune")
_ACCURACY_LIMIT_S = 300.0
_OUTPUT_FACTOR = 5
"""Time limit of a measurement of output, which writes files, in multiples of that of a kernel alone."""
_MOST_FAMILIES = 100
"""Finalists beside the best: more than there are families."""
_FULL_SIZE_FACTOR = 10
"""Time limit of a verification at full size, in multiples of that on small domains."""


class WorkerPool:
    """Starts workers, collects their events, and replaces those that died.

    measurers, compilers: the present workers, of the former one for each device; spool: the folder through which
    programs travel between them; environments: of the devices, in their order.
    """

    def __init__(
        self, opener: Callable[[], Device], protocol: TimingProtocol, others: Sequence[Callable[[], Device]] = ()
    ) -> None:
        """Start the measurers. opener, others: of each device; they run in workers and must be picklable."""
        self._protocol, self._started = protocol, 0
        self._deadline_s = inf
        self.spool = scratch_folder()
        self.compilers: list[Worker] = []
        self.environments: list[Environment] = []
        self._limits: Limits | None = None
        self._openers = [opener, *others]
        self.measurers = [self._new_measurer(one) for one in self._openers]

    @property
    def measurer(self) -> Worker:
        """Return the worker of the first device, which does all that is compared: finals, and what follows them."""
        return self.measurers[0]

    def wait_ready(self) -> tuple[Environment, Limits]:
        """Wait for the first measurers to open their devices, and return what holds for all of them.

        Raises DeviceUnavailableError, and InputError for devices that are not alike.
        """
        if self._limits is None:
            failed = "the measuring process could not start"
            opened: list[tuple[Environment, Limits]] = [await_answer(one, None, failed) for one in self.measurers]
            self.environments = [environment for environment, _ in opened]
            _check_alike(self.environments)
            first, least = opened[0][1], min(limits.memory_bytes for _, limits in opened)
            self._limits = replace(first, memory_bytes=least)
        return self.environments[0], self._limits

    def environment(self, worker: Worker) -> Environment:
        """Return the device of a measurer."""
        return self.environments[self.measurers.index(worker)]

    def lost(self, worker: Worker, death: Death) -> bool:
        """Return whether a device cannot be opened again and others are left, which then go on without it."""
        if worker not in self.measurers or len(self.measurers) == 1:
            return False
        if death.stage != STAGE_START or isinstance(death.error, TimeOverError):
            return False
        place = self.measurers.index(worker)
        del self.measurers[place], self._openers[place]
        gone, left = self.environments.pop(place), len(self.measurers)
        others = f"{left} other devices" if left > 1 else self.environments[0].device_id
        LOG.warning(f"{gone.device} {gone.device_id} is lost ({death.reason}): the study goes on with {others}")
        return True

    def add_compiler(self, opener: Opener) -> Worker:
        """Start another compile worker."""
        self.compilers.append(self._new_worker("compile", opener))
        return self.compilers[-1]

    def workers(self) -> Iterator[Worker]:
        """Yield all running workers."""
        yield from self.compilers
        yield from self.measurers

    def expire_at(self, deadline_s: float) -> None:
        """End what is in progress then, on `time.monotonic`: a TimeOverError is raised."""
        self._deadline_s = deadline_s
        for worker in self.workers():
            worker.deadline_s = deadline_s

    def abandon(self) -> None:
        """Replace workers that are busy or dead."""
        for worker in list(self.workers()):
            if worker.jobs or worker.process.poll() is not None:
                worker.end()
                self.replace(worker)

    def poll(self, timeout_s: float = POLL_S) -> list[tuple[Worker, Event]]:
        """Return at most one event of each worker.

        timeout_s: longest wait for the first.
        """
        workers = list(self.workers())
        wait([worker.connection for worker in workers], timeout=timeout_s)
        events = ((worker, worker.poll()) for worker in workers)
        return [(worker, event) for worker, event in events if event is not None]

    def answer(self, job: Any, request: Any, on_stage: Callable[[str], None] | None = None) -> Answer | Death:
        """Return the idle measurer's answer to a request, which is sent again if the measurer is killed over it once.

        job: the parent's own record of the request. A measurer that dies is replaced.
        Raises the error of a death that no kernel caused.
        """
        event = self._answer(job, request, on_stage)
        return self._answer(job, request, on_stage) if isinstance(event, Death) and event.killed else event

    def _answer(self, job: Any, request: Any, on_stage: Callable[[str], None] | None) -> Answer | Death:
        worker = self.measurer
        worker.send(job, request)
        while not isinstance(event := next_event(worker), (Answer, Death)):
            if isinstance(event, Stage) and on_stage:
                on_stage(event.name)
        if isinstance(event, Death):
            if self.lost(worker, event):
                return self._answer(job, request, on_stage)
            if event.error:
                raise event.error
            self.replace(worker)
        return event

    def replace(self, worker: Worker) -> None:
        """Start another measurer for a dead one; forget a dead compiler, since those are started on demand."""
        if worker in self.measurers:
            place = self.measurers.index(worker)
            self.measurers[place] = self._new_measurer(self._openers[place])
        else:
            self.compilers.remove(worker)

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers():
            worker.end()
        remove_scratch(self.spool)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _new_measurer(self, opener: Callable[[], Device]) -> Worker:
        return self._new_worker("measure", partial(open_measurer, opener, self._protocol))

    def _new_worker(self, name: str, opener: Opener) -> Worker:
        self._started += 1
        log = self.spool / f"{name}-{self._started}.log"
        worker = Worker(name, opener, _limits_s(self._protocol), log, computing=("compile",))
        worker.deadline_s = self._deadline_s
        return worker


def _check_alike(found: Sequence[Environment]) -> None:
    """Raise InputError if speeds of some devices do not belong into one ranking."""
    first, *others = found
    for other in others:
        for field, one, two in first.differences(other):
            if field != "device_id":
                raise InputError(
                    f"devices {first.device} ({first.device_id}) and {other.device} ({other.device_id}) are not "
                    f"supported in one study (use one of them, or devices that are alike): {field} is {one!r} and "
                    f"{two!r}, and speeds of unlike devices are not one ranking."
                )


def _limits_s(protocol: TimingProtocol) -> dict[str, float]:
    return {
        "compile": protocol.compile_limit_s,
        "verify": protocol.verify_limit_s,
        FULL_SIZE: _FULL_SIZE_FACTOR * protocol.verify_limit_s,
        "measure": protocol.measure_limit_s,
        SUSTAINED: protocol.measure_limit_s + 2 * (protocol.settling_s + protocol.longest_run_s),
        OUTPUT: _OUTPUT_FACTOR * protocol.measure_limit_s,
        ACCURACY: _ACCURACY_LIMIT_S,
        FINALS: protocol.measure_limit_s * max(1, protocol.finalists),
        **{final_stage(n): protocol.measure_limit_s for n in range(protocol.finalists + _MOST_FAMILIES)},
    }
