"""The strategies by their names."""

from collections.abc import Callable, Mapping, Sequence
from math import inf, isinf, log10
from types import MappingProxyType

import numpy as np

from lbmtune.catalogue.config import KernelConfig
from lbmtune.errors import InputError
from lbmtune.records.spec import StudySpec
from lbmtune.search.estimates import Estimate
from lbmtune.search.interfaces import Strategy
from lbmtune.search.spaces.bounds import Accurate
from lbmtune.search.strategies.auto import Auto, Learned
from lbmtune.search.strategies.ordered import Exhaustive, Listed, Random, Task
from lbmtune.search.strategies.pareto import Pareto
from lbmtune.search.strategies.transfer import Source

_DIGITS = 16
"""Digits of a value in double precision."""


def _sampled(name: str) -> Callable[[Task], Strategy]:
    def made(task: Task) -> Strategy:
        from lbmtune.search.strategies import sampled  # Optuna is slow to import

        found: Strategy = getattr(sampled, name)(task)
        return found

    return made


def _auto(task: Task) -> Strategy:
    return Auto(task) if task.costs is None else Pareto(task)


STRATEGIES: Mapping[str, Callable[[Task], Strategy]] = MappingProxyType(
    {
        "auto": _auto,
        "list": Listed,
        "gp": Learned,
        "random": Random,
        "exhaustive": Exhaustive,
        **{name: _sampled(name) for name in ("tpe", "cmaes", "nsga2")},
    }
)


def strategy(name: str, task: Task) -> Strategy:
    """Return a strategy by its name. Raises InputError for an unknown one, and if its package is missing."""
    if name not in STRATEGIES:
        raise InputError(f"strategy={name} is not supported (use {', '.join(STRATEGIES)}).")
    return STRATEGIES[name](task)


def made_strategy(
    configs: Sequence[KernelConfig],
    found: Sequence[Estimate],
    spec: StudySpec,
    sources: Sequence[Source] = (),
    accuracy: Accurate | None = None,
) -> Strategy:
    """Return the strategy of a study.

    found: estimates of the configurations; sources: earlier studies; accuracy: of a configuration, if it is known.

    One objective that is known before anything is measured makes tiers, several objectives make costs. Configurations
    whose error is no finite number come last.
    """
    known = [_known(name, configs, found, accuracy) for name in spec.objectives if name in ("footprint", "accuracy")]
    tiers, costs = None, None
    if known and spec.beside:
        costs = np.column_stack(known)
        tiers = (~np.isfinite(costs).all(1)).astype(int).tolist()
        costs = np.where(np.isfinite(costs), costs, _DIGITS)
    elif known:
        tiers = np.unique(known[0], return_inverse=True)[1].tolist()
    task = Task(
        configs=configs,
        expected=[one.mlups for one in found],
        seed=spec.seed,
        tiers=tiers,
        costs=costs,
        sample=spec.budget.sample,
        sources=sources,
    )
    return strategy(spec.strategy, task)


def _known(
    objective: str, configs: Sequence[KernelConfig], found: Sequence[Estimate], accuracy: Accurate | None
) -> list[float]:
    """Return a cost of each configuration: bytes, or digits that are wrong, of sixteen, or infinite."""
    if objective == "footprint":
        return [one.footprint_bytes for one in found]
    every = [accuracy(config) if accuracy else None for config in configs]
    errors = [one.error_class if one else inf for one in every]
    return [inf if isinf(error) else _DIGITS + log10(min(max(error, 10.0**-_DIGITS), 1.0)) for error in errors]
