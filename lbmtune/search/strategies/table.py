"""The strategies by their names."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from lbmtune.errors import InputError
from lbmtune.search.interfaces import Strategy
from lbmtune.search.strategies.auto import Auto, Learned
from lbmtune.search.strategies.ordered import Exhaustive, Listed, Random, Task


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
