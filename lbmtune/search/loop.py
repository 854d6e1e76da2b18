"""The loop of a search: compile ahead, choose late, measure, record.

What is measured next is decided when the measurer is free. Compile workers go down the strategy's list without end, and
their registers and spills go back to it. A trial is on disk before anything else hears of it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from lbmtune.catalogue.config import KernelConfig
from lbmtune.cores import usable_cores
from lbmtune.errors import TimeOverError
from lbmtune.records import Compiled, Costs, Outcome, Trial
from lbmtune.records.header import StudyHeader
from lbmtune.records.spec import StudySpec
from lbmtune.records.store import append_trial
from lbmtune.search.clock import now
from lbmtune.search.estimates import estimates
from lbmtune.search.finals import fastest_s, proven
from lbmtune.search.interfaces import Search
from lbmtune.search.observations import seen_of
from lbmtune.search.plan import Plan
from lbmtune.search.spaces.space import Space
from lbmtune.search.stopping import Stop, noise_of

OUT_OF_TIME = "what is left of the time is for the finals"
_NO_TRIALS, _NO_TIME = "the limit of trials is reached", "the time of the search is over"
_PROOF_EVERY = 3.0
"""Time between proofs in the search, in multiples of what one takes."""
_FEWEST = 2
"""Trials of a study whose time is over before the first."""
_PREDICTION_S = 4e-4
"""Seconds of a prediction on a core, roughly."""
_DEFAULT_AFTER = 12
"""Trials after which the default kernel has its turn: late enough that nothing else waits for it."""
_DEFAULT_BY = 0.5
"""Share of the time of the search from which on it has its turn whatever was tried: studies may be short."""
_ONE_STEP_AFTER = 24
"""Trials after which kernels of one step per launch have theirs, in a search of kernels that take several."""
_ONE_STEP = 4
"""Kernels of one step that store populations are at least so many, the best by the model: what users have, tuned."""
_LOOK_EVERY = 10.0
"""Time between looks at what is left to gain, in multiples of what one takes."""
_FIRST_PROOF = 0.25
"""Share of a short search after which the first proof is made."""


class Loop:
    """The search from the first trial that is not recorded to the end of the budget."""

    def __init__(
        self,
        search: Search,
        header: StudyHeader,
        space: Space,
        done: Sequence[Trial],
        plan: Plan,
    ) -> None:
        self._search, self._space, self._spec, self._plan = search, space, header.spec, plan
        self._search_s, self._begin_s = 0.0, now()
        self._clock_s = now() - max((t.elapsed_s or 0.0 for t in done), default=0.0)
        self._next_number = max((t.number for t in done), default=-1) + 1
        self._trials_left, self._seconds = budget_left(header.spec, done)
        search.evaluator.incumbent_s = fastest_s(header.spec.case, done)
        self._stop, self._look_due_s = Stop(header, noise_of(header)), 0.0
        self._compiling: set[int] = set()
        self._ready: set[int] = set()
        self._measuring: dict[int, int] = {}
        self._left: list[int] = []
        self._compiled, self._ended = 0, ""
        self._index = {config: i for i, config in enumerate(space.configs)}
        self._default = self._index.get(search.default) if search.default else None
        self._usual = set() if self._default is None else {self._default}
        self._of_one_step = {i for config, i in self._index.items() if _is_usual(config)}
        self._alike = all(config.fused_steps == 1 for config in space.configs)
        places = [(self._index.get(trial.kernel_config), trial) for trial in done]
        self._known = {index: trial for index, trial in places if index is not None}
        plan.needs.trials = len(self._known)
        if self._may_start():
            search.evaluator.prepare(space.configs)
        predicted_s = _PREDICTION_S * len(space.configs) / usable_cores()
        search.observer.phase(f"{len(space.configs):,} predictions", predicted_s)
        found = estimates(search.predict, space.configs)
        self._expected = {index: one.mlups for index, one in enumerate(found)}
        self._strategy = search.strategy(space.configs, found, header.spec)
        for index, trial in self._known.items():
            self._strategy.observe(index, seen_of(trial))
        self._begin_s = now()
        self._default_due_s = self._begin_s + _DEFAULT_BY * min(plan.search_left_s(), self._seconds)
        self._proof_due_s = self._begin_s + min(_PROOF_EVERY * plan.needs.proof_s, _FIRST_PROOF * plan.search_left_s())

    def run(self) -> str:
        """Search until something ends it, and return what. Predicting and resuming do not count."""
        evaluator, self._ended = self._search.evaluator, ""
        evaluator.expire_at(self._plan.search_deadline_s)
        self._search.observer.searching(min(self._plan.search_left_s(), self._seconds))
        try:
            while self._advance():
                pass
        except TimeOverError:
            self._ended = _NO_TIME
            evaluator.abandon()
        evaluator.forget()
        evaluator.expire_at(self._plan.end_s)
        # the strategy has given these away: they come first if the search goes on after the finals
        under_way = (*self._ready, *self._compiling, *self._measuring.values(), *self._left)
        self._left = [index for index in dict.fromkeys(under_way) if index not in self._known]
        for given in (self._compiling, self._ready, self._measuring):
            given.clear()
        return self._reason()

    def _advance(self) -> bool:
        """Start what may start, and wait for one event. Returns whether there was one."""
        if self._may_start() and not self._prove():
            self._measure()
            self._compile()
        if not self._measuring and not (self._compiling and self._may_start()):
            return False
        waiting = True
        while waiting:  # all that has ended meanwhile: several devices are faster than a strategy that learns each time
            event = self._search.evaluator.event()
            if isinstance(event, Compiled):
                self._note(event)
            else:
                self._take(event)
            waiting = self._search.evaluator.has_event()
        return True

    def _may_start(self) -> bool:
        return not self._over()

    def _over(self) -> str:
        """Return what ends the search; empty if nothing does."""
        if self._trials_left <= 0:
            return _NO_TRIALS
        if now() - self._begin_s >= self._seconds:
            return _NO_TIME
        if self._stop.reason:
            return self._stop.reason
        if self._plan.search_left_s() <= 0 and len(self._known) >= _FEWEST:
            return OUT_OF_TIME
        return ""

    def _look(self) -> None:
        """Ask what is left to gain, which takes time: at most a tenth of it."""
        if now() < self._look_due_s:
            return
        begin = time.perf_counter()
        self._stop.look(self._strategy.gain(), len(self._known))
        spent_s = time.perf_counter() - begin
        self._search_s += spent_s
        self._look_due_s = now() + _LOOK_EVERY * spent_s

    def _reason(self) -> str:
        count, why = len(self._known), self._over() or self._ended
        if not why:
            self._left = self._left or self._strategy.wanted(1)
            # of a joint study others may have made the trials that are allowed
            why = _NO_TRIALS if self._left else f"all {len(self._index):,} legal configurations are tried"
        return f"stopped after {count} evaluation{'s' if count != 1 else ''}: {why}"

    def _prove(self) -> bool:
        """Prove the fastest at full size if it is not and the last proof is long ago; return whether it is due.

        So what finals cost is known, and there is a proven best whenever the study is ended.
        """
        if now() < self._proof_due_s:
            return False
        first = max(self._known.values(), key=lambda trial: trial.mlups or 0.0, default=None)
        if first is None or first.mlups is None or first.proven:
            return False
        if self._measuring:
            return True
        begin = now()
        index = self._index[first.kernel_config]
        answer = self._search.evaluator.verify(self._space.configs[index], full=True)
        self._plan.needs.proven(now() - begin)
        self._proof_due_s = now() + _PROOF_EVERY * self._plan.needs.proof_s
        found = proven(first, answer)
        append_trial(self._search.folder, found)
        self._known[index] = found
        if found.mlups is None:
            self._search.evaluator.incumbent_s = fastest_s(self._spec.case, list(self._known.values()))
            self._strategy.observe(index, seen_of(found))
        return False

    def _measure(self) -> None:
        """Give the measurer what it takes. If trials are counted, the first of the list are compiled before."""
        waits = self._spec.budget.trials and self._compiling and self._compiled < self._search.compiled
        while not waits and self._ready and self._trials_left > 0 and self._search.evaluator.measure_room() > 0:
            begin = time.perf_counter()
            usual = self._usual & self._ready
            index = min(usual) if usual else self._strategy.next(self._ready)
            self._search_s += time.perf_counter() - begin
            self._ready.remove(index)
            number = self._number(index)
            self._measuring[number] = index
            self._search.evaluator.measure(number, self._space.configs[index])

    def _compile(self) -> None:
        begin = time.perf_counter()
        room = max(0, int(min(self._search.evaluator.compile_room(len(self._ready)), self._trials_left)))
        if room:
            self._left = [*self._default_if_due(), *self._one_step_if_due(), *self._left]
        wanted, self._left = self._left[:room], self._left[room:]
        if len(wanted) < room:
            wanted += self._strategy.wanted(room - len(wanted))
        under_way = {*self._compiling, *self._ready, *self._measuring.values()}
        wanted = [index for index in dict.fromkeys(wanted) if index not in under_way]
        self._search_s += time.perf_counter() - begin
        for index in wanted:
            self._compiling.add(index)
            self._search.evaluator.compile(self._space.configs[index])

    def _default_if_due(self) -> list[int]:
        """Return the default kernel if it is time for it and nobody has asked for it yet."""
        due = len(self._known) >= _DEFAULT_AFTER or now() >= self._default_due_s
        if self._default is None or not due or self._default in self._known:
            return []
        return [] if self._default in self._given() else [self._default]

    def _one_step_if_due(self) -> list[int]:
        """Return usual kernels of one step if it is time and too few were tried, the best by the model first.

        In a short search they are at most a third of what is known.
        """
        due = len(self._known) >= _ONE_STEP_AFTER or now() >= self._default_due_s
        if not due or self._alike or len(self._usual) >= 2 * _ONE_STEP:
            return []
        under_way = {*self._measuring.values(), *(self._usual - self._known.keys())}
        tried = {index for index, trial in self._known.items() if trial.mlups is not None} | under_way
        missing = min(_ONE_STEP, len(self._known) // 3) - len(self._of_one_step & tried)
        if missing <= 0:
            return []
        others = self._of_one_step - self._known.keys() - under_way
        best = sorted(others, key=lambda index: (-self._expected[index], index))[:missing]
        self._usual.update(best)
        return [index for index in best if index not in self._given()]

    def _given(self) -> set[int]:
        """Return what somebody has asked for."""
        return {*self._left, *self._compiling, *self._ready, *self._measuring.values()}

    def _number(self, index: int) -> int:
        """Return the number of a trial, the same again if its first measurement said nothing."""
        if index in self._known:
            return self._known[index].number
        self._next_number += 1
        self._trials_left -= 1
        return self._next_number - 1

    def _note(self, compiled: Compiled) -> None:
        """Tell the strategy what the compiler says; a kernel that does not compile is a trial."""
        index, trial = self._index[compiled.trial.kernel_config], compiled.trial
        self._compiling.remove(index)
        self._compiled += 1
        works = trial.outcome is Outcome.OK
        predicted = trial.prediction.mlups if works and trial.prediction else None
        self._expected[index] = predicted or 0.0
        self._strategy.refine(index, predicted)
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
        trial = self._search.complete(replace(trial, costs=spent, elapsed_s=now() - self._clock_s))
        append_trial(self._search.folder, trial)
        begin = time.perf_counter()
        self._known[index] = trial
        self._plan.needs.trials = len(self._known)
        self._strategy.observe(index, seen_of(trial))
        step_s, needs = fastest_s(self._spec.case, [trial]), self._plan.needs
        if step_s and not 0 < needs.step_s <= step_s:
            needs.step_s, needs.outputs_s = step_s, self._search.output_s(trial, self._spec.output)
        if self._spec.budget.target:
            self._stop.measured(trial, max(self._expected.values()))
        self._search_s = time.perf_counter() - begin
        self._look()
        self._search.observer.finished(trial)


def _is_usual(config: KernelConfig) -> bool:
    """Return whether a kernel takes one step per launch and stores populations in memory."""
    return config.fused_steps == 1 and config.kept.name == "populations" and not config.on_chip


def added(one: Costs, other: Costs) -> Costs:
    """Return the costs of two measurements of a configuration."""
    return Costs(**{name: value + getattr(other, name) for name, value in vars(one).items()})


def budget_left(spec: StudySpec, done: Sequence[Trial]) -> tuple[float, float]:
    """Return the trials and seconds of search left, infinite without a limit.

    Earlier runs count by device time, of several devices by that of the busiest.
    """
    spent = defaultdict[str, float](float)
    for trial in done:
        spent[trial.device] += trial.costs.verify_s + trial.costs.measure_s
    spent_s = max(spent.values(), default=0.0)
    trials = spec.budget.trials - len(done) if spec.budget.trials else inf
    return trials, spec.budget.search_seconds - spent_s if spec.budget.search_seconds else inf
