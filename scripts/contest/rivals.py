"""Strategies of others on a closed world: Kernel Tuner's in simulation, and Optuna's samplers one trial at a time."""

from __future__ import annotations

import random
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from optuna.samplers import GPSampler

from lbmtune.search.regression.features import coded
from lbmtune.search.strategies.ordered import Task
from lbmtune.search.strategies.sampled import Sampled, tpe
from scripts.contest.play import IN_TURN, Maker, Run, played
from scripts.contest.sets import World

Rival = Callable[[World, Iterable[int], int], list[Run]]
_LIMIT_S = 0.3
"""CPU seconds after which a run is ended: some strategies look for the last ones of a small set for ever."""


class _Visited(dict[str, None]):
    """Keys in the order in which they were first evaluated."""

    def add(self, key: str) -> None:
        self[key] = None


def kernel_tuner(name: str, world: World, seeds: Iterable[int], budget: int) -> list[Run]:
    """Return the runs of a strategy of Kernel Tuner 1.5 in its simulation, on the set as its whole space.

    A run that ends early, because a configuration has no neighbours in the set, goes on at random.
    """
    from kernel_tuner.searchspace import Searchspace

    columns = _columns(world)
    points = list(zip(*columns.values(), strict=True))
    cache = {
        ",".join(map(str, point)): {**dict(zip(columns, point, strict=True)), **_result(seen.mlups)}
        for point, seen in zip(points, world.seen, strict=True)
    }
    values = {knob: sorted(set(column)) for knob, column in columns.items()}
    space = Searchspace(None, None, None, from_cache={"tune_params": values, "cache": cache})
    index = {key: i for i, key in enumerate(cache)}
    runs = []
    for seed in seeds:
        order = [index[key] for key in _visited(name, space, cache, seed, budget)]
        rest = np.setdiff1d(np.random.default_rng(seed).permutation(len(index)), order, assume_unique=True)
        runs.append(Run(tuple([*order, *map(int, rest)][:budget]), None))
    return runs


def _visited(name: str, space: Any, cache: dict[str, Any], seed: int, budget: int) -> Iterable[str]:
    from kernel_tuner.interface import Options, strategy_map
    from kernel_tuner.runners.simulation import SimulationRunner
    from kernel_tuner.util import TuningBudget

    runner = SimulationRunner(None, Options(kernel_name="lbm"), Options(quiet=True), 1, None)
    runner.visited_results = visited = _Visited()
    options = Options(
        strategy_options=Options(max_fevals=budget),
        tune_params=space.tune_params,
        restrictions=[],
        restrictions_unmodified=[],
        cache=cache,
        cachefile=None,
        metrics=None,
        verbose=False,
        objective=["time"],
        objective_higher_is_better=[False],
        budget=TuningBudget(None, budget),
    )
    random.seed(seed)
    np.random.seed(seed)
    with warnings.catch_warnings(), _limited():
        warnings.simplefilter("ignore")
        strategy_map[name].tune(space, runner, options)
    return visited


@contextmanager
def _limited() -> Iterator[None]:
    """End what takes too long, and what fails for want of a neighbour."""

    def over(*_: Any) -> None:
        raise TimeoutError

    signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, _LIMIT_S)
    try:
        yield
    except (TypeError, IndexError, ValueError, TimeoutError):
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _result(mlups: float | None) -> dict[str, Any]:
    times = {"compile_time": 1.0, "verification_time": 0.0, "benchmark_time": 1.0}
    if mlups is None:
        return {"time": "RuntimeFailedConfig", "__error__": "RuntimeFailedConfig", **times}
    return {"time": 1e6 / mlups, **times}


def _columns(world: World) -> dict[str, Sequence[int]]:
    """Return the knobs that vary as numbers: extents axis by axis, names by their place, numbers as they are."""
    found: dict[str, Sequence[int]] = {}
    for name, (values, codes) in coded(world.configs).items():
        one = next(value for value in values if value is not None)
        if isinstance(one, tuple):
            axes = max(len(value) for value in values if value)
            filled = [(*(value or ()), 0, 0, 0)[:axes] for value in values]
            parts = {f"{name}_{axis}": part for axis, part in enumerate(zip(*filled, strict=True))}
        elif isinstance(one, int):
            parts = {name: [-1 if value is None else int(value) for value in values]}
        else:
            parts = {name: range(len(values))}
        found |= {key: [part[code] for code in codes] for key, part in parts.items() if len(set(part)) > 1}
    return found


def optuna(make: Maker, world: World, seeds: Iterable[int], budget: int) -> list[Run]:
    """Return the runs of a sampler of Optuna that is told each result before it is asked again."""
    return [played(world, make, seed, budget, pace=IN_TURN) for seed in seeds]


def _gp(task: Task) -> Sampled:
    return Sampled(task, GPSampler(seed=task.seed), named=True)


RIVALS: dict[str, Rival] = {
    "optuna TPE": partial(optuna, tpe),
    "optuna GP": partial(optuna, _gp),
    **{
        f"kernel_tuner {name}": partial(kernel_tuner, name)
        for name in ("hybrid_vndx", "adaptive_tabu_greywolf", "genetic_algorithm", "greedy_mls", "simulated_annealing")
    },
}
"""By their names; each takes a world, seeds and a budget."""
