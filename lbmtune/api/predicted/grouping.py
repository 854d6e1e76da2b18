"""Group the configurations of a ranking: those that print alike, and the best of each kind.

The first hundreds of a large space are permutations of values that the model says the same of.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from lbmtune.api.configs import config_text
from lbmtune.catalogue.config import KernelConfig, Scalar
from lbmtune.search.kinds import kind_of
from lbmtune.units import format_mlups

Differences = dict[str, list[Scalar]]
"""Names of knobs with the values that they take."""


def folded(order: Sequence[int], configs: Sequence[KernelConfig], speeds: Mapping[int, float]) -> list[list[int]]:
    """Return groups of configurations of one printed speed and one storage format, in the order of their first ones.

    order: of a ranking, which stays within a group, too.
    """
    return _groups(order, lambda n: (format_mlups(speeds[n]), _kept_as(configs[n])))


def families(order: Sequence[int], configs: Sequence[KernelConfig]) -> list[list[int]]:
    """Return groups of configurations by scheme, stored state, and one or several steps (`search.kinds`).

    How many steps several are makes no family: the first one of a group has the number that is best.
    """
    return _groups(order, lambda n: (kind_of(configs[n]).requirements, configs[n].scheme))


def differences(configs: Iterable[KernelConfig]) -> Differences:
    """Return the knobs in which configurations differ, with their values in order of appearance."""
    found: dict[str, dict[Scalar, None]] = {}
    for config in configs:
        for name, value in config.flat().items():
            found.setdefault(name, {})[value] = None
    return {name: list(values) for name, values in found.items() if len(values) > 1}


def others(count: int, differ: Iterable[str]) -> str:
    """Return in words how many more a row holds, and in which knobs they differ; empty if there are none."""
    return (
        f" (and {count - 1:,} more that differ{'s' if count == 2 else ''} in {', '.join(differ)})" if count > 1 else ""
    )


def with_scheme(config: KernelConfig) -> str:
    """Return the text that is read back as the configuration, with the scheme first."""
    rest = (part for part in config_text(config).split(",") if not part.startswith("scheme="))
    return ",".join((f"scheme={config.scheme}", *rest))


def _kept_as(config: KernelConfig) -> Hashable:
    """Return what a solver that takes the kernel has to know of its state."""
    return kind_of(config), config.layout, config.storage, config.compute


def _groups(order: Sequence[int], of: Callable[[int], Hashable]) -> list[list[int]]:
    found: dict[Hashable, list[int]] = {}
    for n in order:
        found.setdefault(of(n), []).append(n)
    return list(found.values())
