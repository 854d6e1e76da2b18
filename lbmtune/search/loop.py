"""The loop of a search: compile ahead, choose late, measure, record.

What is measured next is decided when the measurer is free. Compile workers go down the strategy's list without end, and
their registers and spills go back to it. A trial is on disk before anything else hears of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, log

from lbmtune.records import Compiled, Costs, Outcome, Trial
from lbmtune.records.store import append_trial
from lbmtune.records.study import StudyHeader, StudySpec
from lbmtune.search.estimates import estimates
from lbmtune.search.finals import fastest_s
from lbmtune.search.interfaces import Search, Seen
from lbmtune.search.space import Space

_UNKNOWN = frozenset({Outcome.UNSTABLE_TIMING, Outcome.TIMED_OUT})
"""Outcomes of which the machine may be the cause: they say nothing about the kernel."""
_LEAST_NOISE, _ONE_SAMPLE = 0.002, 0.02
"""Standard deviations of the logarithm of a speed: of the best measurements, and of one that ended after a sample."""
_SIGMAS = 1.96
"""Half of a 95 % interval in standard deviations."""


class Loop:
    """The search from the first trial that is not recorded to the end of the budget. tell: hears of recorded trials."""

    def __init__(
        self,
        search: Search,
        header: StudyHeader,
        space: Space,
        done: Sequence[Trial],
        tell: Callable[[Trial], None] = lambda _: None,
    ) -> None:
        self._search, self._space, self._spec, self._tell = search, space, header.spec, tell
        self._search_s, self._begin_s = 0.0, time.monotonic()
        self._clock_s = time.monotonic() - max((t.elapsed_s or 0.0 for t in done), default=0.0)
        self._next_number = max((t.number for t in done), default=-1) + 1
        self._trials_left, self._seconds = budget_left(header.spec, done)
        search.evaluator.incumbent_s = fastest_s(header.spec.case, done)
        self._compiling: set[int] = set()
        self._ready: set[int] = set()
        self._measuring: dict[int, int] = {}
        self._compiled = 0
        self._index = {config.key: i for i, config in enumerate(space.configs)}
        self._known = {self._index[t.key]: t for t in done if t.key in self._index}
        if self._may_start():
            search.evaluator.prepare(space.configs)
        self._strategy = search.strategy(space.configs, estimates(search.predict, space.configs), header.spec)
        for index, trial in self._known.items():
            self._strategy.observe(index, seen(trial))

    def run(self) -> None:
        """Search until the budget or the legal set is exhausted. Predicting and resuming do not count."""
        self._begin_s = time.monotonic()
        while True:
            if self._may_start():
                self._measure()
                self._compile()
            if not self._measuring and not (self._compiling and self._may_start()):
                break
            event = self._search.evaluator.event()
            if isinstance(event, Compiled):
                self._note(event)
            else:
                self._take(event)
        self._search.evaluator.forget()

    def _may_start(self) -> bool:
        return self._trials_left > 0 and time.monotonic() - self._begin_s < self._seconds

    def _measure(self) -> None:
        """Give the measurer what it takes. If trials are counted, the first of the list are compiled before."""
        waits = self._spec.budget.trials and self._compiling and self._compiled < self._search.compiled
        while not waits and self._ready and self._trials_left > 0 and self._search.evaluator.measure_room() > 0:
            begin = time.perf_counter()
            index = self._strategy.next(self._ready)
            self._search_s += time.perf_counter() - begin
            self._ready.remove(index)
            number = self._number(index)
            self._measuring[number] = index
            self._search.evaluator.measure(number, self._space.configs[index])

    def _compile(self) -> None:
        begin = time.perf_counter()
        room = min(self._search.evaluator.compile_room(len(self._ready)), self._trials_left)
        wanted = self._strategy.wanted(int(room)) if room > 0 else []
        self._search_s += time.perf_counter() - begin
        for index in wanted:
            self._compiling.add(index)
            self._search.evaluator.compile(self._space.configs[index])

    def _number(self, index: int) -> int:
        """Return the number of a trial, the same again if its first measurement said nothing."""
        if index in self._known:
            return self._known[index].number
        self._next_number += 1
        self._trials_left -= 1
        return self._next_number - 1

    def _note(self, compiled: Compiled) -> None:
        """Tell the strategy what the compiler says; a kernel that does not compile is a trial."""
        index, trial = self._index[compiled.trial.key], compiled.trial
        self._compiling.remove(index)
        self._compiled += 1
        works = trial.outcome is Outcome.OK
        self._strategy.refine(index, trial.prediction.mlups if works and trial.prediction else None)
        if works:
            self._ready.add(index)
        elif self._trials_left > 0:
            number = self._number(index)
            self._measuring[number] = index
            self._take(replace(trial, number=number))

    def _take(self, trial: Trial) -> None:
        index = self._measuring.pop(trial.number)
        if before := self._known.get(index):
            trial = replace(trial, costs=added(before.costs, trial.costs))
        spent = replace(trial.costs, search_s=trial.costs.search_s + self._search_s)
        trial = replace(trial, costs=spent, elapsed_s=time.monotonic() - self._clock_s)
        append_trial(self._search.folder, trial)
        begin = time.perf_counter()
        self._known[index] = trial
        self._tell(trial)
        self._strategy.observe(index, seen(trial))
        self._search_s = time.perf_counter() - begin
        self._search.observer.finished(trial)


def seen(trial: Trial) -> Seen:
    """Return what a trial tells a strategy: its speed with the noise of its interval, or that it says nothing."""
    if trial.mlups is None:
        return Seen(None, known=trial.outcome not in _UNKNOWN)
    found = trial.best_measurement
    half = log(max(found.ci_high_mlups, found.mlups) / min(found.ci_low_mlups, found.mlups)) / 2
    return Seen(found.mlups, max(half / _SIGMAS, _ONE_SAMPLE if found.dismissed else _LEAST_NOISE))


def added(one: Costs, other: Costs) -> Costs:
    """Return the costs of two measurements of a configuration."""
    return Costs(**{name: value + getattr(other, name) for name, value in vars(one).items()})


def budget_left(spec: StudySpec, done: Sequence[Trial]) -> tuple[float, float]:
    """Return the trials and seconds left, infinite without a limit. Earlier runs count with their device time."""
    spent_s = sum(t.costs.verify_s + t.costs.measure_s for t in done)
    trials = spec.budget.trials - len(done) if spec.budget.trials else inf
    return trials, spec.budget.seconds - spent_s if spec.budget.seconds else inf
