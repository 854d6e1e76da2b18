"""What of a ranking a person tells apart: configurations that print alike together, and the best of each family.

The first hundreds of a large space are permutations of values that the model says the same of.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from lbmtune.api.configs import config_text
from lbmtune.catalogue.config import KernelConfig, Scalar
from lbmtune.search.kinds import kind_of
from lbmtune.units import format_mlups

Differences = dict[str, list[Scalar]]
"""Names of axes, with the values that they take."""


def folded(order: Sequence[int], configs: Sequence[KernelConfig], speeds: Mapping[int, float]) -> list[list[int]]:
    """Numbers of configurations of one printed speed that a solver stores alike, each group where its first one stands.

    order: of a ranking, which stays within a group, too.
    """
    return _groups(order, lambda n: (format_mlups(speeds[n]), _kept_as(configs[n])))


def families(order: Sequence[int], configs: Sequence[KernelConfig]) -> list[list[int]]:
    """Numbers of configurations by what one would compare: scheme, what is kept, one step or several (`finalists`).

    How many steps several are makes no family: the first one of a group has the number that is best.
    """
    return _groups(order, lambda n: (kind_of(configs[n]).requirements, configs[n].scheme))


def differences(configs: Iterable[KernelConfig]) -> Differences:
    """The axes in which configurations differ; values in the order in which they are met."""
    found: dict[str, dict[Scalar, None]] = {}
    for config in configs:
        for name, value in config.flat().items():
            found.setdefault(name, {})[value] = None
    return {name: list(values) for name, values in found.items() if len(values) > 1}


def others(count: int, differ: Iterable[str]) -> str:
    """How many one configuration stands for beside itself, and in which axes they differ; empty where for none."""
    return (
        f" (and {count - 1:,} more that differ{'s' if count == 2 else ''} in {', '.join(differ)})" if count > 1 else ""
    )


def with_scheme(config: KernelConfig) -> str:
    """The text that the command line reads back, which begins with the scheme even where it is the default."""
    rest = (part for part in config_text(config).split(",") if not part.startswith("scheme="))
    return ",".join((f"scheme={config.scheme}", *rest))


def _kept_as(config: KernelConfig) -> Hashable:
    """What somebody who takes a kernel into a solver has to know of it."""
    return kind_of(config), config.layout, config.storage, config.compute


def _groups(order: Sequence[int], of: Callable[[int], Hashable]) -> list[list[int]]:
    found: dict[Hashable, list[int]] = {}
    for n in order:
        found.setdefault(of(n), []).append(n)
    return list(found.values())
