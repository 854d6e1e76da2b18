"""The default kernel, which users compare with: in every space that may have it."""

from collections.abc import Iterator
from dataclasses import replace

from lbmtune.catalogue.config import KernelConfig, completed, from_flat
from lbmtune.catalogue.families.rules import broken
from lbmtune.records.spec import Axes, Table, tables
from lbmtune.search.kinds import is_default, rounding_of
from lbmtune.search.spaces.axes import Asked, families_of
from lbmtune.search.spaces.space import Space


def with_default(space: Space, asked: Asked, axes: Axes) -> Space:
    """Return a space with the default kernel in the precision of its first one, if the study allows and it is legal."""
    if default_of(space):
        return space
    roundings = {rounding_of(config) for config in space.configs}  # others may be too inaccurate
    alike = (one for one in _defaults(space, asked, axes) if rounding_of(one) in roundings)
    found = next((one for one in alike if broken(asked.case, one, asked.limits) is None), None)
    return replace(space, configs=(*space.configs, found)) if found else space


def default_of(space: Space) -> KernelConfig | None:
    """Return the default kernel of a space; None if it has none."""
    return next((config for config in space.configs if is_default(config)), None)


def _defaults(space: Space, asked: Asked, axes: Axes) -> Iterator[KernelConfig]:
    """Yield the default kernel of each table that does not restrict a knob to other values."""
    first = space.configs[0]
    start = {"backend": asked.backend, "family": "direct", "storage": first.storage, "compute": first.compute}
    for table in tables(axes):
        if any(record.family == "direct" for record in families_of(asked.backend, table, asked.families)):
            config = from_flat(completed(start, asked.limits))
            if _allowed(config, table):
                yield config


def _allowed(config: KernelConfig, table: Table) -> bool:
    """Return whether a table gives each knob that it names the value of a configuration, among others."""
    flat = config.flat()
    return all(flat[name] in values for name, values in table.items() if name in flat)
