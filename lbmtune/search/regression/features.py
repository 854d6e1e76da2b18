"""Configurations as points of a unit cube, for surrogates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbmtune.catalogue.config import KernelConfig, field_names, knobs

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Features:
    """Points. values: (configurations, features), each within 0..1; groups: the knob of each feature, from 0 on."""

    values: Array
    groups: Indices

    def at(self, rows: Indices) -> Features:
        """Return some of the points."""
        return Features(self.values[rows], self.groups)

    @property
    def knobs(self) -> int:
        """Return the number of knobs."""
        return int(self.groups.max()) + 1


def features(configs: Sequence[KernelConfig]) -> Features:
    """Return the knobs that vary: numbers on a logarithmic scale, texts as indicators, extents as three numbers."""
    columns: list[Array] = []
    groups: list[int] = []
    for values, codes in coded(configs).values():
        found = [column[codes] for column in _columns(values) if np.ptp(column)]
        columns += found
        groups += [max(groups, default=-1) + 1] * len(found)
    if not columns:
        columns, groups = [np.zeros(len(configs))], [0]
    return Features(np.stack(columns, axis=1), np.array(groups, dtype=np.intp))


def coded(configs: Sequence[KernelConfig]) -> dict[str, tuple[list[Any], list[int]]]:
    """Return the values of each knob that varies, in order of appearance, and the place of each configuration's."""
    records = dict.fromkeys(map(type, configs))
    found: dict[str, tuple[list[Any], list[int]]] = {}
    for name in dict.fromkeys(["family", *(one.name for record in records for one in knobs(record))]):
        place: dict[Any, int] = {}
        codes = [place.setdefault(value, len(place)) for value in _values(configs, name)]
        if len(place) > 1:
            found[name] = [_plain(value) for value in place], codes
    return found


def _values(configs: Sequence[KernelConfig], name: str) -> list[Any]:
    """Return the values of a knob, or of a layout's knob; None for a configuration that has none of that name."""
    if name == "family":
        return [config.family for config in configs]
    owners = {record: name in field_names(record) for record in set(map(type, configs))}
    return [
        getattr(config, name) if owners[type(config)] else getattr(getattr(config, "layout", None), name, None)
        for config in configs
    ]


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, (int, str, tuple)) else value.name


def _columns(given: Sequence[Any]) -> list[Array]:
    """Return the columns of a knob; a configuration that lacks it has the first value that another has.

    Extents of two and of three axes are of different families, and have columns of their own.
    """
    axes = {len(value) for value in given if isinstance(value, tuple)}
    if len(axes) > 1:
        apart = [[v if isinstance(v, tuple) and len(v) == n else None for v in given] for n in sorted(axes)]
        return [column for one in apart for column in _columns(one)]
    first = next(value for value in given if value is not None)
    values = [first if value is None else value for value in given]
    if isinstance(values[0], tuple):
        return [_scaled(np.log2(np.maximum(np.array(part, dtype=float), 1.0))) for part in zip(*values, strict=True)]
    if isinstance(values[0], str):
        # two different names lie at distance one
        return [np.array([v == name for v in values]) / np.sqrt(2) for name in sorted(set(values))]
    return [_scaled(np.log2(1.0 + np.maximum(np.array(values, dtype=float), 0.0)))]


def _scaled(column: Array) -> Array:
    low, high = column.min(), column.max()
    return (column - low) / (high - low) if high > low else np.zeros_like(column)


def spread(points: Array, count: int, random: np.random.Generator) -> list[int]:
    """Return indices of `count` points that fill the space: each is the farthest from those before it.

    points: (n, features). The first one and ties are random. Source: Gonzalez 1985 (farthest-point clustering).
    """
    order = random.permutation(len(points))
    shuffled = points[order]
    nearest = np.full(len(points), np.inf)
    chosen: list[int] = []
    for _ in range(min(count, len(points))):
        farthest = int(np.argmax(nearest))
        chosen.append(farthest)
        nearest = np.minimum(nearest, ((shuffled - shuffled[farthest]) ** 2).sum(1))
        nearest[chosen] = -1.0
    return [int(order[i]) for i in chosen]
