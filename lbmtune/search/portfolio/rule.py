"""A decision list by extents, learned from the kernels that are good on each domain.

Lines are grown one by one (separate and conquer; Clark, Niblett 1989): a line has the fewest conditions that keep the
domains out on which its kernel is not good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from lbmtune.records.best_json.portfolio import Rule, RuleLine, chosen_by
from lbmtune.search.portfolio.cover import Mask, Table
from lbmtune.search.regression.features import Array

_CONDITIONS, _LINES = 3, 12
"""Most conditions of a line, and most lines."""
_MULTIPLES = (2, 4, 8, 16, 32, 64, 128)
_CUTS = 200
"""Bounds that are tried of each number."""
_WRONG = 8.0
"""Good domains for which a line may hold on one where its kernel is not good."""


Add = Callable[[RuleLine], RuleLine]
"""Adds a condition to a line."""


class _Conditions(NamedTuple):
    """Conditions that a line may have: what adds each, and (conditions, domains), which domains meet it."""

    add: tuple[Add, ...]
    holds: Mask


def learned(table: Table, kernels: Sequence[int], tolerance: float, last: int) -> Rule:
    """Return the rule between some kernels of a table, whose lines name their places in `kernels`.

    last: place of the kernel of the last line, which has no conditions: one that takes every domain.
    """
    good, bad = table.good(tolerance)[:, kernels], table.bad(tolerance)[:, kernels]
    legal, worth = (
        table.speeds[:, kernels] > 0,
        table.weights[:, None] * np.where(bad, -_WRONG, np.where(good, 1.0, 0.0)),
    )
    conditions = _conditions(table.domains)
    left, lines = np.ones(len(table.domains), dtype=bool), list[RuleLine]()
    while left.any() and len(lines) < _LINES:
        grown = [_grown(k, conditions, worth[:, k], left & legal[:, k]) for k in range(len(kernels))]
        score, line, covered = max(grown, key=lambda one: one[0])
        if score <= 0:
            break
        lines.append(line)
        left &= ~covered
    lines.append(RuleLine(kernel=last))
    return _pruned(tuple(lines), table, kernels, tolerance)


def _grown(kernel: int, conditions: _Conditions, worth: Array, where: Mask) -> tuple[float, RuleLine, Mask]:
    """Return a line for a kernel with its score and the domains that it takes of those `where` it may.

    worth: of each domain that it takes.
    """
    line, covered = RuleLine(kernel=kernel), where
    for _ in range(_CONDITIONS):
        if not (covered & (worth < 0)).any():
            break
        scores = conditions.holds @ (worth * covered)
        best = int(np.argmax(scores))
        if scores[best] <= worth @ covered:
            break
        line, covered = conditions.add[best](line), covered & conditions.holds[best]
    return float(worth @ covered), line, covered


def _conditions(domains: Array) -> _Conditions:
    add, holds = zip(*_each_condition(domains), strict=True)
    return _Conditions(add, np.array(holds))


def _each_condition(domains: Array) -> Iterator[tuple[Add, Mask]]:
    for axis in range(3):
        extents = domains[:, axis].astype(int)
        for multiple in _MULTIPLES:
            yield (_put("multiple", axis, multiple, max), extents % multiple == 0)
        for low, high in _cuts(extents):
            yield (_put("least", axis, high, max), extents >= high)
            yield (_put("most", axis, low, min), extents <= low)
    cells = domains.astype(object).prod(axis=1).astype(float)
    for low, high in _cuts(cells):
        yield (partial(_with_cells, least=high), cells >= high)
        yield (partial(_with_cells, most=low), cells <= low)


def _put(name: str, axis: int, value: int, pick: Callable[[int, int], int]) -> Add:
    def add(line: RuleLine) -> RuleLine:
        """Return the line with the stricter of two bounds; multiples are powers of two."""
        values = list(getattr(line, name))
        values[axis] = pick(values[axis], value)
        changes: dict[str, Any] = {name: tuple(values)}
        return replace(line, **changes)

    return add


def _with_cells(line: RuleLine, least: int = 1, most: int | None = None) -> RuleLine:
    """Return the line with the stricter bounds of the number of cells."""
    bounds = [one for one in (most, line.most_cells) if one is not None]
    return replace(line, least_cells=max(least, line.least_cells), most_cells=min(bounds, default=None))


def _cuts(values: Array) -> list[tuple[int, int]]:
    """Return bounds between neighbouring values, a few: up to the first of a pair, from the second on."""
    ordered = np.unique(values)
    if len(ordered) < 2:
        return []
    places = np.unique(np.linspace(0, len(ordered) - 2, min(_CUTS, len(ordered) - 1)).round().astype(int))
    middles = [int(np.sqrt(float(ordered[n]) * float(ordered[n + 1]))) for n in places]
    return [(middle, middle + 1) for middle in middles]


def applied(rule: Rule, domains: Array, legal: Mask) -> list[int]:
    """Return the kernel for each domain. legal: (domains, kernels); the last kernel of the rule takes what is left."""
    found = []
    for row, taken in zip(domains.astype(int).tolist(), legal, strict=True):
        kernel = chosen_by(rule, tuple(row), taken.__getitem__)
        found.append(rule[-1].kernel if kernel is None else kernel)
    return found


def _faults(rule: Rule, table: Table, kernels: Sequence[int], tolerance: float) -> tuple[float, float]:
    """Return the weight of domains on which the choice is not good, and the largest loss."""
    picked = np.array(kernels)[applied(rule, table.domains, table.speeds[:, kernels] > 0)]
    rows = np.arange(len(picked))
    bad = table.bad(tolerance)[rows, picked]
    return float(table.weights @ bad), float(table.losses[rows, picked].max())


def _pruned(rule: Rule, table: Table, kernels: Sequence[int], tolerance: float) -> Rule:
    """Return the rule without lines that make it no better."""
    before = _faults(rule, table, kernels, tolerance)
    for line in rule[:-1]:
        shorter = tuple(one for one in rule if one is not line)
        if _faults(shorter, table, kernels, tolerance) <= before:
            rule = shorter
    return rule
