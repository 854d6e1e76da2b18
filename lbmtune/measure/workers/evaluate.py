"""Evaluate configurations in processes that may die: render, compile, verify and measure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.rules import broken
from lbmtune.errors import LbmtuneError, NothingValidError
from lbmtune.measure.processes.events import Death
from lbmtune.measure.verification.accuracy import fitted
from lbmtune.measure.workers.messages import AccuracyRequest, DryRunRequest, LossesRequest, OutputRatesRequest
from lbmtune.measure.workers.outcomes import time_interleaved
from lbmtune.measure.workers.pipeline import Pipeline
from lbmtune.model.machine.description import Machine
from lbmtune.model.output import fields_bytes
from lbmtune.records import Accuracy, Compiled, Outcome, Trial, Verification
from lbmtune.records.claims import SideTask
from lbmtune.records.output import Output, OutputRates
from lbmtune.records.profile import Profile

_LATE_DEPTH = 2
"""Configurations at the measurer of a GPU if the next is chosen late: one in progress, and one, or it would idle."""
_MOST_READY = 256
"""Compiled configurations that wait for the measurer of a GPU: each has a file in the spool folder."""


class Evaluator(Pipeline):
    """Evaluates configurations; the results are trials.

    Call `submit` up to `max_in_flight` times, then alternate `next` and `submit`; or `compile` what may be measured,
    `measure` what was compiled, and take each `event`.
    """

    @property
    def max_in_flight(self) -> int:
        """Return the number of configurations that may usefully be in progress at once."""
        return self.compile_workers if self._quiet else self.compile_workers + 1 + len(self.pool.measurers)

    def prepare(self, configs: Sequence[KernelConfig]) -> None:
        """Start the workers of a GPU and have them prepare for configurations that may be submitted."""
        if self._quiet:
            return  # nothing else may run beside a sample
        one_of_each = {(config.storage, config.family, config.order): config for config in reversed(configs)}
        request = DryRunRequest(case=self.case, configs=tuple(one_of_each.values()), renderer=self._renderer)
        for worker in self.pool.measurers:
            worker.send(None, request)
        while len(self.pool.compilers) < self.compile_workers:
            self._new_compiler().send(None, replace(request, configs=request.configs[:1]))

    def restart(self) -> None:
        """Measure what follows in a new process with new memory. Call it when idle."""
        assert not self.in_flight
        for worker in list(self.pool.measurers):
            worker.end()
            self.pool.replace(worker)

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
        """Return how many configurations the measurers take now."""
        if self._quiet and (self._to_compile or any(worker.jobs for worker in self.pool.compilers)):
            return 0
        return (1 if self._quiet else _LATE_DEPTH) * len(self.pool.measurers) - self._measuring

    def event(self) -> Compiled | Trial:
        """Wait until a configuration is compiled or a trial finished. Raises IndexError if nothing is in progress."""
        while not (self._finished or self._compiled):
            if not (self._to_compile or self._to_measure or any(worker.jobs for worker in self.pool.workers())):
                raise IndexError("no configuration is in progress")
            self._step()
        return self.next() if self._finished else self._compiled.popleft()

    def has_event(self) -> bool:
        """Return whether a configuration is compiled or a trial is finished by now."""
        if not (self._finished or self._compiled):
            self._process_events(0.0)
        return bool(self._finished or self._compiled)

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

    def sustained(self, configs: Sequence[KernelConfig], proven: Sequence[bool], seconds: float) -> list[Trial]:
        """Run each configuration for seconds without a pause; verify those at full size that are not proven yet.

        seconds: of each run. Call it when idle. Returns one trial per configuration, in order, numbered from 0.
        """
        trials = self._evaluated(configs, [{"full": not known, "sustained_s": seconds} for known in proven])
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

    def losses(self, config: KernelConfig, machine: Machine) -> Profile:
        """Measure where the speed of a kernel goes, level by level, without counters and a run of seconds.

        machine: predicts, and has the bandwidths of copies. Call it when idle. Raises NothingValidError,
        and InputError for a GPU without a calibration.
        """
        assert not self.in_flight
        try:
            event = self.pool.answer(config, LossesRequest(case=self.case, config=config, machine=machine))
        except LbmtuneError:
            self.pool.abandon()  # its worker has ended
            raise
        if isinstance(event, Death):
            raise NothingValidError(f"the kernel cannot be profiled: {event.reason}.")
        found: Profile = event.value
        return found

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
