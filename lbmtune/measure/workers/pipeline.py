"""The way of configurations through processes that may die: they are rendered and compiled, verified and measured.

Compile workers write programs and binaries to a spool folder, from which the measurer of each device reads them, so
that messages stay small. A search measures on the device that is free first; all else is done on the first device. On a
GPU compilation runs ahead of measurement. On a CPU nothing else of the tool runs while a sample is taken: no
compilation, and the caller waits.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

from lbmtune.backend.protocol import Compiler, Device
from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.render import render
from lbmtune.cores import usable_cores
from lbmtune.measure.processes.events import STAGE_START, Answer, Death, Stage
from lbmtune.measure.processes.worker import POLL_S, Worker, unavailable
from lbmtune.measure.workers.messages import CompileResult, MeasureRequest, MeasureResult, Renderer
from lbmtune.measure.workers.outcomes import after_death
from lbmtune.measure.workers.worker_pool import WorkerPool
from lbmtune.measure.workers.worker_tasks import open_compiler
from lbmtune.records import Compiled, Environment, Outcome, Prediction, Resources, Trial, Verification
from lbmtune.records.claims import SideTask
from lbmtune.records.spec import TimingProtocol

_QUEUE_DEPTH = 3
"""Requests queued at the measurer of a GPU."""


class Predict(Protocol):
    """Predicts the performance of a configuration of the case on the device."""

    def __call__(self, config: KernelConfig, /, *, resources: Resources | None = None) -> Prediction:
        """Predict. resources: of the compiled kernel; None: an estimate."""
        ...


@dataclass(frozen=True)
class Job:
    """A configuration in progress. request: to the measurer, once it is compiled.

    killed: a worker was killed over it before, by something else; ahead: it is compiled, and whether it is measured is
    decided later; anywhere: any of several devices may measure it; proof: of a finalist that was verified at full size
    before.
    """

    trial: Trial
    config: KernelConfig
    request: MeasureRequest
    side_task: SideTask | None = None
    killed: bool = False
    ahead: bool = False
    anywhere: bool = False
    proof: Verification | None = None


class Pipeline:
    """Takes configurations to compile workers, then to the measurer, and collects what becomes of them.

    What is waited for goes all the way, what is compiled ahead stops before the measurer until `measure`.

    environment, limits: of the device. A trial's prediction uses the registers of its kernel as soon as it is compiled.
    incumbent_s: seconds per step of the best so far; set it to resume a study.
    on_stage: called with trial number and stage when a stage begins.
    """

    def __init__(
        self,
        case: Case,
        device_spec: str,
        protocol: TimingProtocol,
        predict: Predict | None = None,
        *,
        compiler: Compiler | None = None,
        renderer: Renderer = render,
        opener: Callable[[], Device] | None = None,
        on_stage: Callable[[int, str], None] | None = None,
        pool: WorkerPool | None = None,
        others: Sequence[str] = (),
    ) -> None:
        """Start the measurers. compiler, renderer and opener run in workers and must be picklable.

        pool: workers of the same devices that are left running for the next case, instead of workers of its own;
        others: further devices.

        Raises DeviceUnavailableError if a device cannot be opened, InputError if they are not alike.
        """
        self.case, self.protocol = case, protocol
        self.incumbent_s: float | None = None
        self._predict, self._renderer = predict, renderer
        self._on_stage = on_stage or (lambda _number, _stage: None)
        self._to_compile: deque[Job] = deque()
        self._to_measure: deque[Job] = deque()
        self._finished: deque[Trial] = deque()
        self._compiled: deque[Compiled] = deque()
        self._ready: dict[str, Job] = {}
        self._forgotten: set[Path] = set()
        self._verified: dict[int, Path] = {}
        self._jobs = 0
        self._own_pool = pool is None
        further = [partial(open_device, one) for one in others]
        self.pool = pool or WorkerPool(opener or partial(open_device, device_spec), protocol, further)
        try:
            self.environment, self.limits = self.pool.wait_ready()
        except BaseException:
            self.close()
            raise
        self._compiler = compiler or compiler_for(self.environment)
        self._quiet = BACKENDS[self.environment.backend].shares_host
        cores = usable_cores()
        self.compile_workers = min(cores, 4) if self._quiet else max(1, cores - 1 - len(self.pool.measurers))

    @property
    def environments(self) -> tuple[Environment, ...]:
        """Return the devices that are there; the first holds the finals."""
        return tuple(self.pool.environments)

    @property
    def in_flight(self) -> int:
        """Return the number of configurations to be measured and not yet returned."""
        busy = [job for worker in self.pool.workers() for job in worker.jobs if job]
        return len(self._finished) + sum(not job.ahead for job in (*busy, *self._to_compile, *self._to_measure))

    def compile(self, config: KernelConfig) -> None:
        """Queue a configuration to be compiled; an `event` tells when it is."""
        self._enqueue(self._jobs, config, ahead=True)

    def measure(self, number: int, config: KernelConfig) -> None:
        """Queue a configuration that was compiled to be verified and measured."""
        job = self._ready.pop(config.key)
        trial = replace(job.trial, number=number, date=_now())
        self._to_measure.append(replace(job, trial=trial, ahead=False, anywhere=True))

    def forget(self) -> None:
        """Forget what is compiled, or will be, and was not measured."""
        for job in (*self._ready.values(), *(job for job in self._to_compile if job.ahead)):
            job.request.path.unlink(missing_ok=True)
        in_work = (job for worker in self.pool.compilers for job in worker.jobs)
        self._forgotten |= {job.request.path for job in in_work if job and job.ahead}
        self._to_compile = deque(job for job in self._to_compile if not job.ahead)
        self._ready.clear()
        self._compiled.clear()

    def expire_at(self, deadline_s: float) -> None:
        """End what is in progress then, on `time.monotonic`, with a TimeOverError. Call `abandon` to go on after it."""
        self.pool.expire_at(deadline_s)

    def abandon(self) -> None:
        """Drop what is in progress or queued."""
        self.forget()
        in_work = [job for worker in self.pool.workers() for job in worker.jobs if job]
        self.pool.abandon()
        for job in (*in_work, *self._to_compile, *self._to_measure):
            job.request.path.unlink(missing_ok=True)
        for queue in (self._to_compile, self._to_measure, self._finished, self._forgotten):
            queue.clear()
        self._drop_verified()

    def close(self) -> None:
        """End all workers, unless they are left running."""
        if self._own_pool:
            self.pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _drop_verified(self) -> None:
        for path in self._verified.values():
            path.unlink()
        self._verified.clear()

    def _enqueue(
        self,
        number: int,
        config: KernelConfig,
        side_task: SideTask | None = None,
        *,
        ahead: bool = False,
        proof: Verification | None = None,
        **options: Any,
    ) -> None:
        """Queue a configuration. options: of the request to the measurer."""
        trial = Trial(number=number, key=config.key, config=config.flat(), outcome=Outcome.OK, date=_now())
        if reason := broken(self.case, config, self.limits):
            self._end(replace(trial, outcome=Outcome.ILLEGAL, reason=reason), ahead=ahead)
            return
        if self._predict:
            trial = replace(trial, prediction=self._predict(config))
        self._jobs += 1
        path = self.pool.spool / f"{self._jobs}.pickle"
        job = Job(trial, config, MeasureRequest(path=path, **options), side_task, ahead=ahead, proof=proof)
        if ahead:
            self._to_compile.append(job)
        else:  # it is waited for
            self._to_compile.insert(sum(not one.ahead for one in self._to_compile), job)

    def _end(self, trial: Trial, *, ahead: bool) -> None:
        if ahead:
            self._compiled.append(Compiled(trial))
        else:
            self._finished.append(trial)

    @property
    def _measuring(self) -> int:
        return len(self._to_measure) + sum(len(worker.jobs) for worker in self.pool.measurers)

    def _step(self) -> None:
        self._start_measuring()
        self._start_compiling()
        self._process_events()

    def _start_measuring(self) -> None:
        """Keep the measurers busy; on a GPU with queued requests, so that it never waits for the search."""
        depth = 1 if self._quiet else _QUEUE_DEPTH
        compiling = any(worker.jobs for worker in self.pool.compilers)
        while self._to_measure and not (self._quiet and compiling):
            fit = self.pool.measurers if self._to_measure[0].anywhere else [self.pool.measurer]
            worker = min(fit, key=lambda one: len(one.jobs))
            if len(worker.jobs) >= depth:
                return
            job = self._to_measure.popleft()
            worker.send(job, replace(job.request, incumbent_s=self.incumbent_s))

    def _start_compiling(self) -> None:
        if self._quiet and self._measuring:
            return
        while self._to_compile and (worker := self._free_compiler()):
            job = self._to_compile.popleft()
            worker.send(job, (self.case, job.config, job.request.path, job.side_task))

    def _free_compiler(self) -> Worker | None:
        if idle := next((worker for worker in self.pool.compilers if not worker.jobs), None):
            return idle
        return None if len(self.pool.compilers) == self.compile_workers else self._new_compiler()

    def _new_compiler(self) -> Worker:
        return self.pool.add_compiler(partial(open_compiler, self._renderer, self._compiler))

    def _process_events(self, timeout_s: float = POLL_S) -> None:
        for worker, event in self.pool.poll(timeout_s):
            if isinstance(event, Death):
                self._replace(worker, event)
            elif isinstance(event, Answer) and event.job:
                self._process_answer(self._at(event.job, worker), event.value)
            elif isinstance(event, Stage) and worker.job:
                self._on_stage(worker.job.trial.number, event.name)

    def _replace(self, worker: Worker, death: Death) -> None:
        """Fail the job in progress and requeue the others on a new worker, or on those of other devices.

        A first SIGKILL, of the operator or for want of memory, is no fault of the kernel: the job is tried once more.
        """
        queue = self._to_compile if worker in self.pool.compilers else self._to_measure
        if self.pool.lost(worker, death):
            queue.extendleft(reversed([job for job in worker.jobs if job]))
            return
        if death.error:
            raise death.error
        if death.stage == STAGE_START:
            raise unavailable("a worker could not start", death)
        job = self._at(worker.jobs.popleft(), worker) if worker.jobs else None
        self.pool.replace(worker)
        queue.extendleft(reversed(worker.jobs))
        if job is None:
            return  # a dry run: the first trial of its kind will report the fault
        if self._dropped(job):
            return
        if death.killed and not job.killed:
            queue.appendleft(replace(job, killed=True))
            return
        job.request.path.unlink(missing_ok=True)
        self._end(after_death(job.trial, death), ahead=job.ahead)

    def _at(self, job: Job | None, worker: Worker) -> Any:
        """Return a job with the device that had it, unless that is the first of the study."""
        if job is None or worker not in self.pool.measurers:
            return job
        device = self.pool.environment(worker).device_id
        return replace(job, trial=replace(job.trial, device="" if device == self.environment.device_id else device))

    def _dropped(self, job: Job) -> bool:
        """Return whether a job was forgotten while a worker had it; if so, its program goes as well."""
        if job.request.path not in self._forgotten:
            return False
        self._forgotten.remove(job.request.path)
        job.request.path.unlink(missing_ok=True)
        return True

    def _process_answer(self, job: Job, result: CompileResult | MeasureResult) -> None:
        if self._dropped(job):
            return
        trial, works = result.into(job.trial), result.outcome is Outcome.OK
        if isinstance(result, MeasureResult):
            self._finished.append(trial)
            if job.request.full and works:
                self._verified[trial.number] = job.request.path
            else:
                job.request.path.unlink()
            return
        if self._predict and result.resources:
            trial = replace(trial, prediction=self._predict(job.config, resources=result.resources))
        if not works:
            self._end(trial, ahead=job.ahead)
        elif job.ahead:
            self._ready[job.config.key] = replace(job, trial=trial)
            self._end(trial, ahead=True)
        elif job.proof:
            self._verified[trial.number] = job.request.path
            self._finished.append(replace(trial, verification=job.proof))
        else:
            self._to_measure.append(replace(job, trial=trial))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
