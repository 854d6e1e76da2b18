"""Evaluate configurations in processes that may die: render, compile, verify and measure.

Compile workers write programs and binaries to a spool folder, from which the one measurer of the device reads them, so
that messages stay small. On a GPU compilation runs ahead of measurement. On a CPU nothing else of the tool runs
while a sample is taken: no compilation, and the caller waits in `next`.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
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
from lbmtune.errors import NothingValidError
from lbmtune.measure.processes.worker import POLL_S, STAGE_START, Answer, Death, Stage, Worker, unavailable
from lbmtune.measure.verification.accuracy import fitted
from lbmtune.measure.workers.messages import (
    AccuracyRequest,
    CompileResult,
    DryRunRequest,
    MeasureRequest,
    MeasureResult,
    OutputRatesRequest,
    Renderer,
)
from lbmtune.measure.workers.outcomes import after_death, time_interleaved
from lbmtune.measure.workers.worker_pool import WorkerPool
from lbmtune.measure.workers.worker_tasks import open_compiler
from lbmtune.model.output import fields_bytes
from lbmtune.records import Accuracy, Compiled, Outcome, Prediction, Resources, Trial, Verification
from lbmtune.records.claims import SideTask
from lbmtune.records.output import Output, OutputRates
from lbmtune.records.study import TimingProtocol

_QUEUE_DEPTH = 3
"""Requests queued at the measurer of a GPU."""
_LATE_DEPTH = 2
"""Configurations at the measurer of a GPU if the next is chosen late: one in progress, and one, or it would idle."""
_MOST_READY = 256
"""Compiled configurations that wait for the measurer of a GPU: each has a file in the spool folder."""


class Predict(Protocol):
    """Predicts the performance of a configuration of the case on the device."""

    def __call__(self, config: KernelConfig, /, *, resources: Resources | None = None) -> Prediction:
        """Predict. resources: of the compiled kernel; None: an estimate."""
        ...


@dataclass(frozen=True)
class Job:
    """A configuration in progress. request: to the measurer, once it is compiled.

    killed: a worker was killed over it before, by something else; ahead: it is compiled, and whether it is measured is
    decided later; proof: of a finalist that was verified at full size before.
    """

    trial: Trial
    config: KernelConfig
    request: MeasureRequest
    side_task: SideTask | None = None
    killed: bool = False
    ahead: bool = False
    proof: Verification | None = None


class Evaluator:
    """Evaluates configurations; the results are trials.

    Call `submit` up to `max_in_flight` times, then alternate `next` and `submit`; or `compile` what may be measured,
    `measure` what was compiled, and take each `event`. environment, limits: of the device.
    A trial's prediction uses the registers of its kernel as soon as it is compiled.
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
    ) -> None:
        """Start the measurer. compiler, renderer and opener run in workers and must be picklable.

        pool: workers of the same device that are left running for the next case, instead of workers of its own.

        Raises DeviceUnavailableError if the device cannot be opened.
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
        self.pool = pool or WorkerPool(opener or partial(open_device, device_spec), protocol)
        try:
            self.environment, self.limits = self.pool.wait_ready()
        except BaseException:
            self.close()
            raise
        self._compiler = compiler or compiler_for(self.environment)
        self._quiet = BACKENDS[self.environment.backend].shares_host
        cores = usable_cores()
        self.compile_workers = min(cores, 4) if self._quiet else max(1, cores - 2)

    @property
    def max_in_flight(self) -> int:
        """Return the number of configurations that may usefully be in progress at once."""
        return self.compile_workers if self._quiet else self.compile_workers + 2

    @property
    def in_flight(self) -> int:
        """Return the number of configurations to be measured and not yet returned."""
        busy = [job for worker in self.pool.workers() for job in worker.jobs if job]
        return len(self._finished) + sum(not job.ahead for job in (*busy, *self._to_compile, *self._to_measure))

    def prepare(self, configs: Sequence[KernelConfig]) -> None:
        """Start the workers of a GPU and have them prepare for configurations that may be submitted."""
        if self._quiet:
            return  # nothing else may run beside a sample
        one_of_each = {(config.storage, config.family, config.order): config for config in reversed(configs)}
        request = DryRunRequest(case=self.case, configs=tuple(one_of_each.values()), renderer=self._renderer)
        self.pool.measurer.send(None, request)
        while len(self.pool.compilers) < self.compile_workers:
            self._new_compiler().send(None, replace(request, configs=request.configs[:1]))

    def submit(self, number: int, config: KernelConfig) -> None:
        """Queue a configuration. For an illegal one the next `next` returns the reason of the rule."""
        self._process_events(0.0)  # replace workers that died while idle
        self._enqueue(number, config)
        self._start_compiling()
        if not self._quiet:
            self._process_events(0.0)
            self._start_measuring()

    def next(self) -> Trial:
        """Wait for the next finished trial, in any order. Raises IndexError if nothing is in progress."""
        if not self.in_flight:
            raise IndexError("no configuration is in progress")
        while not self._finished:
            self._step()
        trial = self._finished.popleft()
        if trial.mlups:
            step_s = self.case.fluid_sites / (trial.mlups * 1e6)
            self.incumbent_s = min(step_s, self.incumbent_s or step_s)
        return trial

    def compile_room(self, ready: int) -> int:
        """Return how many more configurations may be compiled now. ready: how many are compiled and not measured.

        On a CPU a few, once all that are compiled are measured.
        """
        busy = len(self._to_compile) + sum(bool(worker.jobs) for worker in self.pool.compilers)
        if self._quiet:
            return 0 if ready or busy or self._measuring else self.compile_workers
        return min(self.max_in_flight - busy, _MOST_READY - ready)

    def measure_room(self) -> int:
        """Return how many configurations the measurer takes now."""
        if self._quiet and (self._to_compile or any(worker.jobs for worker in self.pool.compilers)):
            return 0
        return (1 if self._quiet else _LATE_DEPTH) - self._measuring

    def compile(self, config: KernelConfig) -> None:
        """Queue a configuration to be compiled; an `event` tells when it is."""
        self._enqueue(self._jobs, config, ahead=True)

    def measure(self, number: int, config: KernelConfig) -> None:
        """Queue a configuration that was compiled to be verified and measured."""
        job = self._ready.pop(config.key)
        trial = replace(job.trial, number=number, date=_now())
        self._to_measure.append(replace(job, trial=trial, ahead=False))

    def event(self) -> Compiled | Trial:
        """Wait until a configuration is compiled or a trial finished. Raises IndexError if nothing is in progress."""
        while not (self._finished or self._compiled):
            if not (self._to_compile or self._to_measure or any(worker.jobs for worker in self.pool.workers())):
                raise IndexError("no configuration is in progress")
            self._step()
        return self.next() if self._finished else self._compiled.popleft()

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
        self._to_compile.clear()
        self._to_measure.clear()
        self._finished.clear()
        self.pool.abandon()
        self._drop_verified()

    def restart(self) -> None:
        """Measure what follows in a new process with new memory. Call it when idle."""
        assert not self.in_flight
        self.pool.measurer.end()
        self.pool.replace(self.pool.measurer)

    def finals(
        self,
        configs: Sequence[KernelConfig],
        side_tasks: Mapping[int, SideTask] | None = None,
        *,
        proofs: Mapping[int, Verification] | None = None,
        race_s: float | None = None,
    ) -> list[Trial]:
        """Verify each finalist at full size, then time all that passed interleaved. Call it when idle.

        side_tasks, and proofs of those that were verified before: by position. race_s: drop those that are slower at
        95 %, and end after so many seconds or once the first is told from the others; None: time all of them equally.
        Returns one trial per configuration, in order, numbered from 0, with `verification` at full size and `final`,
        the interleaved measurement. `final` is None if the outcome is not ok, or if the interleaved measurement failed
        and no finalist could be blamed; the reason says how.
        """
        tasks, known = side_tasks or {}, proofs or {}
        trials = self._evaluated(
            configs,
            [{"full": True, "side_task": tasks.get(n), "proof": known.get(n)} for n in range(len(configs))],
        )
        passed = [(trial, self._verified[trial.number]) for trial in trials if trial.outcome is Outcome.OK]
        final = {trial.number: trial for trial in time_interleaved(self.pool, passed, self._on_stage, race_s)}
        self._drop_verified()
        return [final.get(trial.number, trial) for trial in trials]

    def sustained(self, configs: Sequence[KernelConfig], proven: Sequence[bool]) -> list[Trial]:
        """Run each configuration for seconds without a pause; verify those at full size that are not proven yet.

        Call it when idle. Returns one trial per configuration, in order, numbered from 0.
        """
        trials = self._evaluated(configs, [{"full": not known, "sustained": True} for known in proven])
        self._drop_verified()
        return trials

    def output(self, configs: Sequence[KernelConfig], wanted: Output, folder: Path | None = None) -> list[Trial]:
        """Measure what output costs each configuration. folder: of the file. Call it when idle.

        Returns one trial per configuration, in order. Raises InputError if the file cannot be written.
        """
        return self._evaluated(configs, [{"output": wanted, "folder": folder}] * len(configs))

    def output_rates(self, folder: Path | None = None) -> OutputRates:
        """Measure the rates by which the cost of output is predicted. Call it when idle. Raises InputError."""
        size = fields_bytes(self.case)
        event = self.pool.answer(None, OutputRatesRequest(fields_bytes=size, folder=folder))
        if isinstance(event, Death):
            raise NothingValidError(f"the rates of output cannot be measured: {event.reason}.")
        found: OutputRates = event.value
        return found

    def verify(self, config: KernelConfig, *, full: bool = False) -> Trial:
        """Verify a configuration without timing it, on small domains or at full size. Call it when idle."""
        (trial,) = self._evaluated([config], [{"full": full, "timed": False}])
        self._drop_verified()
        return trial

    def accuracy(self, config: KernelConfig, *, brief: bool = False) -> Accuracy:
        """Measure the L2 errors of a Taylor-Green vortex in the precision of a configuration. Call it when idle.

        brief: only the run of many steps. Raises NothingValidError, with the reason, if it cannot be measured.
        """
        assert not self.in_flight
        if reason := broken(*fitted(self.case, config), self.limits):
            raise NothingValidError(f"the accuracy cannot be measured: {reason}.")
        while self.pool.measurer.jobs:
            self._process_events()  # a dry run may still be in progress
        event = self.pool.answer(config, AccuracyRequest(case=self.case, config=config, brief=brief))
        if isinstance(event, Death):
            raise NothingValidError(f"the accuracy cannot be measured: {event.reason}.")
        found: Accuracy = event.value
        return found

    def close(self) -> None:
        """End all workers, unless they are left running."""
        if self._own_pool:
            self.pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _evaluated(self, configs: Sequence[KernelConfig], options: Sequence[Mapping[str, Any]]) -> list[Trial]:
        """Return one trial per configuration, in order. options: of `_enqueue`."""
        assert not self.in_flight
        for number in self._by_steps(configs):
            self._enqueue(number, configs[number], **options[number])
        return sorted((self.next() for _ in configs), key=lambda trial: trial.number)

    def _by_steps(self, configs: Sequence[KernelConfig]) -> list[int]:
        """Return positions in ascending order of the steps to compare, so that reference states are continued."""

        def steps(number: int) -> int:
            config = configs[number]
            return config.fused_steps * max(config.propagation.period, 1 + config.exchanges(self.case.stencil))

        return sorted(range(len(configs)), key=steps)

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

    # requests to workers

    @property
    def _measuring(self) -> int:
        return len(self._to_measure) + len(self.pool.measurer.jobs)

    def _step(self) -> None:
        self._start_measuring()
        self._start_compiling()
        self._process_events()

    def _start_measuring(self) -> None:
        """Keep the measurer busy; on a GPU with queued requests, so that it never waits for the search."""
        depth = 1 if self._quiet else _QUEUE_DEPTH
        compiling = any(worker.jobs for worker in self.pool.compilers)
        while self._to_measure and len(self.pool.measurer.jobs) < depth and not (self._quiet and compiling):
            job = self._to_measure.popleft()
            self.pool.measurer.send(job, replace(job.request, incumbent_s=self.incumbent_s))

    def _start_compiling(self) -> None:
        if self._quiet and (self.pool.measurer.jobs or self._to_measure):
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

    # events of workers

    def _process_events(self, timeout_s: float = POLL_S) -> None:
        for worker, event in self.pool.poll(timeout_s):
            if isinstance(event, Death):
                self._replace(worker, event)
            elif isinstance(event, Answer) and event.job:
                self._process_answer(event.job, event.value)
            elif isinstance(event, Stage) and worker.job:
                self._on_stage(worker.job.trial.number, event.name)

    def _replace(self, worker: Worker, death: Death) -> None:
        """Fail the job in progress and requeue the others on a new worker.

        A first SIGKILL, of the operator or for want of memory, is no fault of the kernel: the job is tried once more.
        """
        if death.error:
            raise death.error
        if death.stage == STAGE_START:
            raise unavailable("a worker could not start", death)
        queue = self._to_measure if worker is self.pool.measurer else self._to_compile
        self.pool.replace(worker)
        if not worker.jobs:
            return
        job = worker.jobs.popleft()
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
        if isinstance(result, MeasureResult):
            self._finished.append(result.into(job.trial))
            if job.request.full and result.outcome is Outcome.OK:
                self._verified[job.trial.number] = job.request.path
            else:
                job.request.path.unlink()
            return
        trial = result.into(job.trial)
        if self._predict and result.resources:
            trial = replace(trial, prediction=self._predict(job.config, resources=result.resources))
        if job.ahead and result.outcome is Outcome.OK:
            self._ready[job.config.key] = replace(job, trial=trial)
        elif result.outcome is Outcome.OK and job.proof:
            self._verified[trial.number] = job.request.path
            self._finished.append(replace(trial, verification=job.proof))
        elif result.outcome is Outcome.OK:
            self._to_measure.append(replace(job, trial=trial))
        if job.ahead or result.outcome is not Outcome.OK:
            self._end(trial, ahead=job.ahead)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
