"""The best of a space that is too large to be ranked: points that were drawn, and better ones beside the best."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.families.rules import broken
from lbmtune.records import Prediction
from lbmtune.records.spec import Axes, tables
from lbmtune.search.estimates import estimates
from lbmtune.search.kinds import rounding_of
from lbmtune.search.spaces.axes import Asked, families_of, product_of
from lbmtune.search.spaces.space import Space

_BEST, _ROUNDS = 100, 10
"""Configurations whose neighbours are looked at in a round, and most rounds."""


def climbed(space: Space, asked: Asked, axes: Axes, predict: Callable[[KernelConfig], Prediction]) -> Space:
    """Return a space that was drawn with the neighbours of its best configurations, until no better one is found.

    A neighbour differs in one knob, and in those that depend on it. A space that has all points is returned as it is.
    """
    if not space.legal:
        return space
    speeds = dict(zip(space.configs, (one.mlups for one in estimates(predict, space.configs)), strict=True))
    neighbours = _Neighbours(asked, axes)
    roundings = {rounding_of(config) for config in space.configs}  # others may be too inaccurate
    seen: set[KernelConfig] = set()
    for _ in range(_ROUNDS):
        best = sorted(speeds, key=lambda config: -speeds[config])[:_BEST]
        around = dict.fromkeys(one for config in best if config not in seen for one in neighbours.of(config))
        seen.update(best)
        legal = (one for one in around if one not in speeds and rounding_of(one) in roundings)
        new = [one for one in legal if broken(asked.case, one, asked.limits) is None]
        if not new:
            break
        speeds |= zip(new, (one.mlups for one in estimates(predict, new)), strict=True)
    return replace(space, configs=tuple(speeds))


class _Neighbours:
    """Configurations beside others, in all spaces of a study."""

    def __init__(self, asked: Asked, axes: Axes) -> None:
        self._products = [
            (record, product_of(asked, record, table))
            for table in tables(axes)
            for record in families_of(asked.backend, table, asked.families)
        ]

    def of(self, config: KernelConfig) -> Iterator[KernelConfig]:
        """Yield the neighbours of a configuration."""
        for record, product in self._products:
            if type(config) is record:
                yield from map(from_flat, product.neighbours(config.flat()))
