"""Play strategies on configurations with a known speed, compiling ahead as a study does."""

from functools import cache
from itertools import islice

import numpy as np

from lbmtune.catalogue.config import from_flat
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict as model
from lbmtune.records.store import read_study
from lbmtune.search.interfaces import Seen
from lbmtune.search.observations import seen_of
from lbmtune.search.spaces.space import legal_set
from lbmtune.search.strategies.ordered import Task
from lbmtune.search.strategies.table import strategy
from tests.support.paths import RECORDED
from tests.support.studies.fake_study import CASE, LIMITS, predict, speed, usual_axes

AHEAD = 2
BUFFERS = {"cuda": 24, "cpu": 3}
"""Compiled configurations that wait: on a CPU nothing is compiled beside a sample."""


class World:
    """Configurations with the result of each, and what is expected, before and after compilation."""

    def __init__(self, configs, results, expected, compiled=None):
        self.configs, self.results, self.expected = configs, results, expected
        self.compiled = expected if compiled is None else compiled
        self.best = max(seen.mlups or 0.0 for seen in results)

    def __len__(self):
        return len(self.configs)

    def player(self, name, seed=1, **more):
        return strategy(name, Task(configs=self.configs, expected=self.expected, seed=seed, **more))

    def order(self, player, trials):
        """Indices in the order of their results."""
        return list(islice(self.results_of(player), trials))

    def results_of(self, player):
        """Indices, each once its result was told."""
        ready, under_way = set(), []
        while True:
            for index in player.wanted(BUFFERS[self.configs[0].backend] - len(ready)):
                player.refine(index, self.compiled[index])
                ready.add(index)
            while ready and len(under_way) < AHEAD:
                under_way.append(player.next(ready))
                ready.remove(under_way[-1])
            if not under_way:
                return
            index = under_way.pop(0)
            player.observe(index, self.results[index])
            yield index

    def share(self, order):
        return max(self.results[index].mlups or 0.0 for index in order) / self.best

    def evaluations(self, order, share):
        reached = [(self.results[index].mlups or 0.0) >= share * self.best for index in order]
        return reached.index(True) + 1 if any(reached) else np.inf


@cache
def made_up(backend, most=None):
    """The whole space of a formula that the model does not know."""
    configs = legal_set(CASE, backend, usual_axes(backend), LIMITS).configs[:most]
    return World(configs, [Seen(speed(c)) for c in configs], [predict(c).mlups for c in configs])


@cache
def recorded(name):
    """A recorded set, shuffled, since it lies in the order of its trials."""
    record = read_study(RECORDED / name)
    machine = read_machine(RECORDED / name.partition("/")[0] / "machine.toml")
    trials = [record.trials[i] for i in np.random.default_rng(7).permutation(len(record.trials))]
    configs, case = [from_flat(trial.config) for trial in trials], record.header.spec.case
    expected = [model(case, config, machine).mlups for config in configs]
    compiled = [
        model(case, config, machine, trial.resources).mlups if trial.resources else estimate
        for config, trial, estimate in zip(configs, trials, expected, strict=True)
    ]
    return World(configs, list(map(seen_of, trials)), expected, compiled)
