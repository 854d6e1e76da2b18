"""Trials in isolation: render, compile, verify and measure in processes that may die.

Compile workers turn configurations into programs and binaries and lay them down in a spool folder; the one
measurer of the device picks them up there, so that all messages stay small. On a GPU compilation runs ahead of
measurement. On a CPU nothing of ours runs while a sample is taken: no compilation, and the caller waits in `next`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from lbmtune.backend.protocol import Compiler, Device
from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.render import render
from lbmtune.cores import usable_cores
from lbmtune.errors import NothingValidError
from lbmtune.measure.verification.accuracy import fitted
from lbmtune.measure.workers.outcomes import compiled, died, measured
from lbmtune.measure.workers.processes import STAGE_START, Answer, Death, Event, Stage, Worker, unavailable
from lbmtune.measure.workers.worker_pool import Crew
from lbmtune.measure.workers.worker_tasks import (
    Accurate,
    Compiled,
    Finals,
    Measured,
    Rehearsal,
    Renderer,
    Spoiled,
    Work,
    open_compiler,
    turn_of,
)
from lbmtune.records import Accuracy, Outcome, Prediction, Resources, Trial
from lbmtune.records.claims import Duty
from lbmtune.records.study import TimingProtocol

_IN_ADVANCE = 3
"""Requests that the measurer of a GPU has at hand."""


class Predict(Protocol):
    """The model of the case on the device."""

    def __call__(self, config: KernelConfig, /, *, resources: Resources | None = None) -> Prediction:
        """What a kernel is expected to do, with what was compiled, or by an estimate of it."""
        ...


@dataclass(frozen=True)
class Job:
    """One configuration on its way. full: verify at full size instead of measuring; sustained: run it for seconds."""

    trial: Trial
    config: KernelConfig
    full: bool
    path: Path
    timed: bool = True
    duty: Duty | None = None
    sustained: bool = False


class Evaluator:
    """Answers configurations with trials.

    `submit` as many as `ahead`, then alternate `next` and `submit`. environment, limits: of the device;
    crew: its workers. A trial's prediction knows what its kernel was compiled to, as soon as that is known.
    incumbent_s: seconds per step of the best so far; set it when a study is resumed.
    on_stage: called with trial number and stage as they begin.
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
    ) -> None:
        """Starts the measurer. compiler, renderer and opener run in workers and must be picklable.

        Raises DeviceUnavailableError where the device cannot be opened.
        """
        self.case, self.protocol = case, protocol
        self.incumbent_s: float | None = None
        self._predict, self._renderer, self._on_stage = predict, renderer, on_stage
        self._to_compile: deque[Job] = deque()
        self._to_measure: deque[Job] = deque()
        self._finished: deque[Trial] = deque()
        self._verified: dict[int, Path] = {}
        self._jobs = 0
        self.crew = Crew(opener or partial(open_device, device_spec), protocol)
        try:
            opened = self.crew.introduced()
        except BaseException:
            self.close()
            raise
        self.environment, self.limits = opened.environment, opened.limits
        self._compiler = compiler or compiler_for(self.environment)
        self._quiet = self.environment.backend == "cpu"
        cores = usable_cores()
        self.compile_workers = min(cores, 4) if self._quiet else max(1, cores - 2)

    @property
    def ahead(self) -> int:
        """How many configurations may usefully be under way at once."""
        return self.compile_workers if self._quiet else self.compile_workers + 2

    @property
    def under_way(self) -> int:
        """How many were submitted and not yet returned."""
        busy = sum(task is not None for worker in self.crew.workers() for task in worker.tasks)
        return busy + len(self._to_compile) + len(self._to_measure) + len(self._finished)

    def expect(self, configs: Sequence[KernelConfig]) -> None:
        """Hears what may come, so that the workers of a GPU start and get ready while the caller still thinks."""
        if self._quiet:
            return  # nothing of ours may run beside a sample
        one_of_each = {(config.storage, config.order, config.indirect): config for config in reversed(configs)}
        rehearsal = Rehearsal(case=self.case, configs=tuple(one_of_each.values()), renderer=self._renderer)
        self.crew.measurer.ask(None, rehearsal)
        while len(self.crew.compilers) < self.compile_workers:
            self._new_compiler().ask(None, replace(rehearsal, configs=rehearsal.configs[:1]))

    def submit(self, number: int, config: KernelConfig) -> None:
        """Takes a configuration in. An illegal one is answered by the next `next`, with the rule's reason."""
        self._listen(0.0)  # who died while there was nothing to do is replaced before it is asked
        self._take_in(number, config, full=False)
        self._start_compiling()
        if not self._quiet:
            self._listen(0.0)
            self._start_measuring()

    def next(self) -> Trial:
        """The next finished trial, in any order; waits for it. Raises IndexError when nothing is under way."""
        if not self.under_way:
            raise IndexError("no configuration is under way")
        while not self._finished:
            self._start_measuring()
            self._start_compiling()
            self._listen()
        trial = self._finished.popleft()
        self._note_best(trial)
        return trial

    def finals(self, configs: Sequence[KernelConfig], duties: Mapping[int, Duty] | None = None) -> list[Trial]:
        """Finalists once more: each verified at full size, then all that passed measured interleaved.

        duties: what some of them do besides stepping, by position.

        Call it when nothing is under way. One trial per configuration, in order, numbered from 0: verification
        is that at full size, final the interleaved measurement. final is None where the outcome is not ok, and
        where the interleaved measurement failed without telling which of them it was: then the reason says how.
        """
        assert not self.under_way
        for number in self._by_steps(configs):
            self._take_in(number, configs[number], full=True, duty=(duties or {}).get(number))
        trials = sorted((self.next() for _ in configs), key=lambda trial: trial.number)
        passed = [(trial, self._verified.pop(trial.number)) for trial in trials if trial.outcome is Outcome.OK]
        final = {trial.number: trial for trial in self._interleaved(passed)}
        for _, path in passed:
            path.unlink()
        return [final.get(trial.number, trial) for trial in trials]

    def sustained(self, configs: Sequence[KernelConfig], proven: Sequence[bool]) -> list[Trial]:
        """Runs each for seconds without a pause; what is not proven yet is verified at full size first.

        Call it when nothing is under way. One trial per configuration, in order, numbered from 0.
        """
        assert not self.under_way
        for number in self._by_steps(configs):
            self._take_in(number, configs[number], full=not proven[number], sustained=True)
        trials = sorted((self.next() for _ in configs), key=lambda trial: trial.number)
        for path in self._verified.values():
            path.unlink()
        self._verified.clear()
        return trials

    def prove(self, config: KernelConfig, *, full: bool = False) -> Trial:
        """Verifies a configuration and does not measure it, on small domains or on its own. Call it when idle."""
        assert not self.under_way
        self._take_in(0, config, full=full, timed=False)
        trial = self.next()
        if path := self._verified.pop(0, None):
            path.unlink()
        return trial

    def accuracy(self, config: KernelConfig, *, brief: bool = False) -> Accuracy:
        """L2 errors of a Taylor-Green vortex in the precision of a configuration. Call it when idle.

        brief: after many steps alone.

        Raises NothingValidError, with the reason, where it cannot be measured.
        """
        assert not self.under_way
        if reason := broken(*fitted(self.case, config), self.limits):
            raise NothingValidError(f"the accuracy cannot be measured: {reason}.")
        while self.crew.measurer.tasks:
            self._listen()  # a rehearsal that nothing has waited for
        self.crew.measurer.ask(config, Accurate(case=self.case, config=config, brief=brief))
        event = self.crew.answer()
        if isinstance(event, Death):
            raise NothingValidError(f"the accuracy cannot be measured: {event.reason}.")
        found: Accuracy = event.value
        return found

    def close(self) -> None:
        """Ends all workers."""
        self.crew.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _by_steps(self, configs: Sequence[KernelConfig]) -> list[int]:
        """Positions, ascending by the steps after which each is compared: the oracle goes on from those before."""

        def steps(config: KernelConfig) -> int:
            return config.fused_steps * max(config.propagation.period, 1 + config.exchanges(self.case.stencil))

        return sorted(range(len(configs)), key=lambda number: steps(configs[number]))

    def _take_in(
        self,
        number: int,
        config: KernelConfig,
        *,
        full: bool,
        timed: bool = True,
        duty: Duty | None = None,
        sustained: bool = False,
    ) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        trial = Trial(number=number, key=config.key, config=config.flat(), outcome=Outcome.OK, date=now)
        if reason := broken(self.case, config, self.limits):
            self._finished.append(replace(trial, outcome=Outcome.ILLEGAL, reason=reason))
            return
        if self._predict:
            trial = replace(trial, prediction=self._predict(config))
        self._jobs += 1
        self._to_compile.append(Job(trial, config, full, self._path(self._jobs), timed, duty, sustained))

    def _path(self, job: int) -> Path:
        return self.crew.spool / f"{job}.pickle"

    def _note_best(self, trial: Trial) -> None:
        if trial.mlups:
            step_s = self.case.fluid_sites / (trial.mlups * 1e6)
            self.incumbent_s = min(step_s, self.incumbent_s or step_s)

    # work is handed out

    def _start_measuring(self) -> None:
        """Keeps the measurer busy; on a GPU with a few in advance, so that it never waits for the search."""
        depth = 1 if self._quiet else _IN_ADVANCE
        compiling = any(worker.tasks for worker in self.crew.compilers)
        while self._to_measure and len(self.crew.measurer.tasks) < depth and not (self._quiet and compiling):
            job = self._to_measure.popleft()
            work = Work(path=job.path, full=job.full, timed=job.timed, sustained=job.sustained)
            self.crew.measurer.ask(job, replace(work, incumbent_s=self.incumbent_s))

    def _start_compiling(self) -> None:
        if self._quiet and (self.crew.measurer.tasks or self._to_measure):
            return
        while self._to_compile and (worker := self._free_compiler()):
            job = self._to_compile.popleft()
            worker.ask(job, (job.config, job.path, job.duty))

    def _free_compiler(self) -> Worker | None:
        for worker in self.crew.compilers:
            if not worker.tasks:
                return worker
        return None if len(self.crew.compilers) == self.compile_workers else self._new_compiler()

    def _new_compiler(self) -> Worker:
        return self.crew.add_compiler(partial(open_compiler, self.case, self._renderer, self._compiler))

    # answers come back

    def _listen(self, patience_s: float | None = None) -> None:
        """Deals with what workers say; waits for it as long as that (`Crew.heard`)."""
        for worker, event in self.crew.heard(patience_s):
            self._deal_with(worker, event)

    def _deal_with(self, worker: Worker, event: Event) -> None:
        if isinstance(event, Death):
            self._bury(worker, event)
        elif isinstance(event, Answer) and event.task:
            self._deal_with_answer(event.task, event.value)
        elif isinstance(event, Stage) and worker.task and self._on_stage:
            self._on_stage(worker.task.trial.number, event.name)

    def _bury(self, worker: Worker, death: Death) -> None:
        """The request in hand, if any, pays for the death; those behind it go to the next worker."""
        if death.stage == STAGE_START:
            raise unavailable("a worker could not start", death)
        self.crew.replace(worker)
        if not worker.tasks:
            return
        job = worker.tasks.popleft()
        self._to_measure.extendleft(reversed(worker.tasks))
        if job is None:
            return  # a rehearsal: the first trial of its kind will tell
        job.path.unlink(missing_ok=True)
        self._finished.append(died(job.trial, death))

    def _deal_with_answer(self, job: Job, answer: Compiled | Measured) -> None:
        if isinstance(answer, Measured):
            self._finished.append(measured(job.trial, answer))
            if job.full and answer.outcome is Outcome.OK:
                self._verified[job.trial.number] = job.path
            else:
                job.path.unlink()
            return
        trial = compiled(job.trial, answer)
        if self._predict and answer.resources:
            trial = replace(trial, prediction=self._predict(job.config, resources=answer.resources))
        if answer.outcome is Outcome.OK:
            self._to_measure.append(replace(job, trial=trial))
        else:
            self._finished.append(trial)

    def _interleaved(self, verified: Sequence[tuple[Trial, Path]]) -> list[Trial]:
        """The trials with their final measurements. One that spoils them is told apart, the others start again."""
        trials = [trial for trial, _ in verified]
        if not trials:
            return []
        event = self._final_round(trials, [path for _, path in verified])
        if isinstance(event, Answer) and not isinstance(event.value, Spoiled):
            return [replace(trial, final=final) for trial, final in zip(trials, event.value, strict=True)]
        reason = event.reason if isinstance(event, Death) else event.value.reason
        position = _culprit(event, len(trials))
        if position is None:
            return [replace(trial, reason=reason) for trial in trials]
        rest = [one for n, one in enumerate(verified) if n != position]
        return [_spoiled(trials[position], event), *self._interleaved(rest)]

    def _final_round(self, trials: Sequence[Trial], paths: Sequence[Path]) -> Answer | Death:
        def on_stage(stage: str) -> None:
            if self._on_stage:
                self._on_stage(trials[0].number, stage)

        self.crew.measurer.ask(trials, Finals(paths=tuple(paths)))
        return self.crew.answer(on_stage)


def _culprit(event: Answer | Death, count: int) -> int | None:
    """The position of the finalist that ran when the finals failed; None where none can be blamed."""
    if isinstance(event, Answer):
        position: int | None = event.value.position
        return position
    return next((n for n in range(count) if turn_of(n) == event.stage), None)


def _spoiled(trial: Trial, event: Answer | Death) -> Trial:
    if isinstance(event, Death):
        return died(trial, event)
    return replace(trial, outcome=Outcome.WRONG_RESULT, reason=event.value.reason)
