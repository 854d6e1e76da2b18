"""Features of configurations for the surrogate: points of a unit cube."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbmtune.catalogue.config import KernelConfig, field_names
from lbmtune.search.space import varied

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Features:
    """Points. values: (configurations, features), each within 0..1; groups: the knob of each feature, from 0 on."""

    values: Array
    groups: NDArray[np.intp]


def features(configs: Sequence[KernelConfig]) -> Features:
    """Return the knobs that vary: numbers on a logarithmic scale, texts as indicators, extents as three numbers."""
    columns: list[Array] = []
    groups: list[int] = []
    for group, name in enumerate(varied(configs)):
        for column in _columns([_value(config, name) for config in configs]):
            columns.append(column)
            groups.append(group)
    if not columns:
        columns, groups = [np.zeros(len(configs))], [0]
    return Features(np.stack(columns, axis=1), np.array(groups, dtype=np.intp))


def _value(config: KernelConfig, name: str) -> Any:
    """Return the value of a knob, or of a layout's knob; None if the configuration has none of that name."""
    if name in field_names(type(config)):
        found = getattr(config, name)
        return found if isinstance(found, (int, str, tuple)) else found.name
    if name == "family":
        return config.family
    layout = getattr(config, "layout", None)
    return getattr(layout, name) if is_dataclass(layout) and name in (f.name for f in fields(layout)) else None


def _columns(given: Sequence[Any]) -> list[Array]:
    """Return the columns of a knob; a configuration that lacks it has the first value that another has."""
    first = next(value for value in given if value is not None)
    values = [first if value is None else value for value in given]
    if isinstance(values[0], tuple):
        return [_scaled(np.log2(np.array(part, dtype=float))) for part in zip(*values, strict=True)]
    if isinstance(values[0], str):
        # two different names lie at distance one
        return [np.array([v == name for v in values]) / np.sqrt(2) for name in sorted(set(values))]
    return [_scaled(np.log2(1.0 + np.array(values, dtype=float)))]


def _scaled(column: Array) -> Array:
    low, high = column.min(), column.max()
    return (column - low) / (high - low) if high > low else np.zeros_like(column)
