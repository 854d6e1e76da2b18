"""A search that shares its configurations with other workers: nothing is measured twice, and all results count."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

from optuna.storages import BaseStorage

from lbmtune.catalogue.config import KernelConfig
from lbmtune.records import Compiled, Outcome, Trial
from lbmtune.records.header import StudyHeader
from lbmtune.records.spec import StudySpec
from lbmtune.records.store import append_trial, holds_study, read_study
from lbmtune.search.clock import Clock, now
from lbmtune.search.estimates import Estimate
from lbmtune.search.interfaces import Evaluator, Gain, Search, Seen, Strategy
from lbmtune.search.joint.ledger import BEAT_S, Ledger, begin
from lbmtune.search.observations import seen_of
from lbmtune.search.optuna_view.storage import optuna_name
from lbmtune.search.spaces.space import Space

_POLL_S = 0.5
"""Seconds between two looks at what others measure, if nothing else is to be done."""


@contextmanager
def joint(
    storage: BaseStorage,
    search: Search,
    header: StudyHeader,
    space: Space,
    beat_s: float = BEAT_S,
) -> Iterator[Search]:
    """Begin a joint study, or go on with that of the folder, and yield the search as its first worker runs it.

    It waits for the others and holds the finals. beat_s: seconds between two signs of life.
    """
    goes_on = holds_study(search.folder)
    header = replace(read_study(search.folder).header, spec=header.spec) if goes_on else header
    begin(storage, optuna_name(header), header)
    with Ledger(storage, optuna_name(header), space.configs, beat_s) as ledger:
        if goes_on:
            absorb(search, ledger)
        yield replace(shared(search, ledger), gather=partial(gather, search, ledger, space.configs))
        ledger.note_finals(read_study(search.folder).trials)


def shared(search: Search, ledger: Ledger) -> Search:
    """Return the search as one of several workers runs it."""
    make, claims = search.strategy, dict[str, int]()

    def strategy(configs: Sequence[KernelConfig], found: Sequence[Estimate], spec: StudySpec) -> Strategy:
        return SharedStrategy(make(configs, found, spec), configs, ledger, claims)

    evaluator = cast("Evaluator", SharedEvaluator(search, ledger, claims))
    return replace(search, evaluator=evaluator, strategy=strategy)


class SharedStrategy:
    """A strategy that hears of the results of others, and claims what it chooses.

    claims: numbers of claims by key, for the evaluator.
    """

    def __init__(
        self, inner: Strategy, configs: Sequence[KernelConfig], ledger: Ledger, claims: dict[str, int]
    ) -> None:
        self._inner, self._ledger, self._claims = inner, ledger, claims
        self._configs = configs
        self._index = {config.key: n for n, config in enumerate(configs)}
        self._told: set[int] = set()
        self._left_out: list[int] = []

    def wanted(self, count: int) -> list[int]:
        """Return what to compile next: first what others had and lost, then what the strategy wants."""
        taken = self._taken()
        found = [one for one in self._left_out if one not in taken][:count]
        self._left_out = [one for one in self._left_out if one not in found]
        while len(found) < count and (more := self._inner.wanted(count - len(found))):
            found += [one for one in more if one not in taken]
            self._left_out += [one for one in more if one in taken]
        return found

    def next(self, ready: Collection[int]) -> int:
        """Return what the strategy measures now of what nobody has; anything if others have all of it."""
        taken = self._taken()
        free = [one for one in ready if one not in taken]
        while free:
            chosen = self._inner.next(free)
            config = self._configs[chosen]
            if (claimed := self._ledger.claim(config)) is not None:
                self._claims[config.key] = claimed
                return chosen
            free.remove(chosen)
        return self._inner.next(ready)

    def refine(self, index: int, mlups: float | None) -> None:
        """Tell the strategy."""
        self._inner.refine(index, mlups)

    def observe(self, index: int, seen: Seen) -> None:
        """Tell the strategy, once."""
        if index not in self._told:
            self._told.add(index)
            self._inner.observe(index, seen)

    def gain(self) -> Gain | None:
        """Return what the strategy expects."""
        return self._inner.gain()

    def _taken(self) -> set[int]:
        """Return what is finished or claimed, after the strategy has heard of all results."""
        for trial in self._ledger.results():
            if trial.key in self._index:
                self.observe(self._index[trial.key], seen_of(trial))
        return {self._index[key] for key in self._ledger.taken() if key in self._index}


class SharedEvaluator:
    """An evaluator that claims what it measures; of what others have it returns their trials.

    All else is that of the evaluator within.
    """

    def __init__(self, search: Search, ledger: Ledger, claims: dict[str, int]) -> None:
        self._inner, self._complete = search.evaluator, search.complete
        self._ledger, self._claims = ledger, claims
        self._limit = ledger.header.spec.budget.trials
        own, first = search.evaluator.environments[0].device_id, ledger.header.environment.device_id
        self._device = "" if own == first else own
        self._claimed: dict[int, int] = {}
        self._compiling = 0
        self._elsewhere: list[tuple[int, KernelConfig]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def incumbent_s(self) -> float | None:
        """Return the seconds per step of the best so far."""
        return self._inner.incumbent_s

    @incumbent_s.setter
    def incumbent_s(self, seconds: float | None) -> None:
        self._inner.incumbent_s = seconds

    def compile_room(self, ready: int) -> int:
        """Return how many more may be compiled; none once the search of all workers is over."""
        return 0 if self._ledger.is_over(self._limit) else self._inner.compile_room(ready)

    def measure_room(self) -> int:
        """Return how many the measurer takes; none once the search of all workers is over."""
        over = bool(self._elsewhere) or self._ledger.is_over(self._limit)
        return 0 if over else self._inner.measure_room()

    def compile(self, config: KernelConfig) -> None:
        """Compile a configuration."""
        self._compiling += 1
        self._inner.compile(config)

    def measure(self, number: int, config: KernelConfig) -> None:
        """Measure a configuration, or wait for another worker that does."""
        claimed = self._claims.pop(config.key, None)
        if claimed is None and (claimed := self._ledger.claim(config)) is None:
            self._elsewhere.append((number, config))
        else:
            self._claimed[number] = claimed
            self._inner.measure(number, config)

    def event(self) -> Compiled | Trial:
        """Wait until a configuration is compiled or a trial is finished, here or elsewhere."""
        while not (self._claimed or self._compiling):
            if not self._elsewhere:
                raise RuntimeError("nothing is compiled, measured or waited for: there will be no event")
            if trial := self._from_elsewhere():
                return trial
        found = self._inner.event()
        if isinstance(found, Compiled):
            self._compiling -= 1
            self._note_failure(found.trial)
            return found
        found = replace(found, device=found.device or self._device)
        if found.number in self._claimed:
            self._ledger.finish(self._claimed.pop(found.number), self._complete(found))
        return found

    def _note_failure(self, trial: Trial) -> None:
        """Note a kernel that does not compile: it is a trial that no worker needs to repeat."""
        if trial.outcome is not Outcome.OK and (claimed := self._ledger.claim(trial.kernel_config)) is not None:
            self._ledger.finish(claimed, trial)

    def _from_elsewhere(self) -> Trial | None:
        """Return a trial of another worker that is waited for; measure what was given back meanwhile."""
        running = self._ledger.running()  # first: what has ended since is in the results
        results = {trial.key: trial for trial in self._ledger.results()}
        for place, (number, config) in enumerate(self._elsewhere):
            if config.key not in running:
                del self._elsewhere[place]
                if config.key in results:
                    return replace(results[config.key], number=number)
                self.measure(number, config)
                return None
        time.sleep(_POLL_S)
        return None

    def forget(self) -> None:
        """Forget what is compiled, or will be, and was not measured."""
        for claims in (self._claimed, self._claims):
            for claimed in claims.values():
                self._ledger.give_up(claimed, "out of time")
            claims.clear()
        self._elsewhere.clear()
        self._compiling = 0
        self._inner.forget()


def gather(search: Search, ledger: Ledger, configs: Sequence[KernelConfig]) -> None:
    """Wait for the trials of others, measure what the dead left, and put all results into the folder of the study."""
    ledger.end_search()
    clock = search.clock or Clock(now())
    # results that were on disk, and not in the storage, when their process was killed
    here = {trial.key: trial for trial in read_study(search.folder).trials}
    by_key, waited = {config.key: config for config in configs}, set[str]()
    while ((under_way := ledger.running()) or not waited <= ledger.taken()) and clock.left_s > 0:
        waited |= under_way
        for key in sorted(waited - ledger.taken()):
            if (claimed := ledger.claim(by_key[key])) is not None:
                ledger.finish(claimed, here[key] if key in here else _measured(search, claimed, by_key[key]))
                ledger.flush()
        time.sleep(_POLL_S)
    absorb(search, ledger)


def _measured(search: Search, number: int, config: KernelConfig) -> Trial:
    search.evaluator.submit(number, config)
    return search.complete(search.evaluator.next())


def absorb(search: Search, ledger: Ledger) -> None:
    """Append the results of others to the folder of a study."""
    here = read_study(search.folder).trials
    known, number = {trial.key for trial in here}, max((trial.number for trial in here), default=-1)
    for trial in ledger.results():
        if trial.key not in known:
            number += 1
            append_trial(search.folder, replace(trial, number=number))
