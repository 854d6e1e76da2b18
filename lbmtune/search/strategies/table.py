"""The strategies by their names."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from lbmtune.catalogue.config import KernelConfig
from lbmtune.errors import InputError
from lbmtune.records.study import StudySpec
from lbmtune.search.estimates import Estimate
from lbmtune.search.interfaces import Strategy
from lbmtune.search.strategies.auto import Auto, Learned
from lbmtune.search.strategies.ordered import Exhaustive, Listed, Random, Task
from lbmtune.search.strategies.pareto import Pareto


def _sampled(name: str) -> Callable[[Task], Strategy]:
    def made(task: Task) -> Strategy:
        from lbmtune.search.strategies import sampled  # Optuna is slow to import

        found: Strategy = getattr(sampled, name)(task)
        return found

    return made


STRATEGIES: Mapping[str, Callable[[Task], Strategy]] = MappingProxyType(
    {
        "auto": Auto,
        "list": Listed,
        "gp": Learned,
        "pareto": Pareto,
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


def made_strategy(configs: Sequence[KernelConfig], found: Sequence[Estimate], spec: StudySpec) -> Strategy:
    """Return the strategy of a study. found: estimates of the configurations."""
    tiers = [one.footprint_bytes for one in found] if spec.objective == "footprint" else None
    expected = [one.mlups for one in found]
    return strategy(
        spec.strategy, Task(configs=configs, expected=expected, seed=spec.seed, tiers=tiers, sample=spec.budget.sample)
    )
