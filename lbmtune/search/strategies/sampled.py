"""Strategies of Optuna: a sampler asks for a point, and the nearest configuration that is left stands for it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.samplers import BaseSampler, CmaEsSampler, NSGAIISampler, TPESampler
from optuna.study import StudyDirection
from optuna.trial import TrialState

from lbmtune.errors import InputError
from lbmtune.search.interfaces import Seen
from lbmtune.search.regression.features import Array, Indices, coded
from lbmtune.search.strategies.ordered import Ordered, Task

_AHEAD = 16
"""Points without a result, beyond which a sampler is not asked because it would learn nothing."""


class Sampled(Ordered):
    """Asks a sampler, and measures in the order of its points. named: knobs with names are categories.

    several: it searches a Pareto set if costs are known.
    """

    def __init__(self, task: Task, sampler: BaseSampler, *, named: bool, several: bool = True) -> None:
        super().__init__(task)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._costs = np.zeros((len(task.configs), 0)) if task.costs is None or not several else task.costs
        directions = [StudyDirection.MAXIMIZE, *[StudyDirection.MINIMIZE] * self._costs.shape[1]]
        self._study = optuna.create_study(directions=directions, sampler=sampler)
        self._space: dict[str, BaseDistribution] = {}
        self._codes = np.zeros((len(task.configs), 0))
        for name, (values, places) in coded(task.configs).items():
            is_name = isinstance(next(value for value in values if value is not None), str)
            # numbers in their order, so that neighbours are alike
            order = values if is_name else sorted(values, key=lambda value: (value is not None, value))
            codes = np.array([order.index(value) for value in values], dtype=float)[places]
            self._codes = np.column_stack([self._codes, codes])
            self._space[name] = (
                CategoricalDistribution(tuple(range(len(values))))
                if is_name and named
                else IntDistribution(0, len(values) - 1)
            )
        self._is_name = np.array([isinstance(one, CategoricalDistribution) for one in self._space.values()], dtype=bool)
        self._scale = np.maximum(self._codes.max(0, initial=1.0), 1.0)
        self._asked: dict[int, optuna.Trial] = {}

    def wanted(self, count: int) -> list[int]:
        """Return what to compile next, and nothing if results are missing."""
        return super().wanted(min(count, len(self._again) + max(0, _AHEAD - len(self._asked))))

    def refine(self, index: int, mlups: float | None) -> None:
        """Tell the sampler of a configuration that does not compile."""
        if mlups is None:
            self.observe(index, Seen(None))

    def observe(self, index: int, seen: Seen) -> None:
        """Tell the sampler, and note the result."""
        told = index in self._seen
        super().observe(index, seen)
        if told or index not in self._seen:
            return
        state = TrialState.COMPLETE if seen.mlups else TrialState.FAIL
        values = [seen.mlups, *map(float, self._costs[index])] if seen.mlups else None
        if index in self._asked:
            self._study.tell(self._asked.pop(index), values, state=state)
            return
        parameters = {name: int(code) for name, code in zip(self._space, self._codes[index], strict=True)}
        self._study.add_trial(
            optuna.create_trial(state=state, values=values, params=parameters, distributions=self._space)
        )

    def _pick(self, among: Indices, *, compiled: bool) -> int:
        if compiled:
            return next((index for index in self._asked if index in among), int(among[0]))
        trial = self._study.ask(self._space)
        index = int(among[np.argmin(self._distances(among, trial.params))])
        self._asked[index] = trial
        return index

    def _distances(self, among: Indices, point: dict[str, Any]) -> Array:
        """Return how far configurations lie from a point: parts of the range of each knob, of names zero or one."""
        apart = np.abs(self._codes[among] - np.array([float(point[name]) for name in self._space]))
        found: Array = np.where(self._is_name, apart > 0, apart / self._scale).sum(1)
        return found


def tpe(task: Task) -> Sampled:
    """Return Optuna's tree-structured Parzen estimator."""
    return Sampled(task, TPESampler(seed=task.seed), named=True)


def nsga2(task: Task) -> Sampled:
    """Return Optuna's NSGA-II."""
    return Sampled(task, NSGAIISampler(seed=task.seed), named=True)


def cmaes(task: Task) -> Sampled:
    """Return Optuna's CMA-ES, to which names are numbers. Raises InputError if its package is missing."""
    if find_spec("cmaes") is None:
        raise InputError(
            "strategy=cmaes is not supported here (use auto or tpe): it needs the package cmaes, pip install cmaes."
        )
    return Sampled(task, CmaEsSampler(seed=task.seed), named=False, several=False)
