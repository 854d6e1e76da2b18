"""The legal set: the points of each space, filtered by the rules, each kernel once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from lbmtune.catalogue.config import KernelConfig, from_flat, knobs
from lbmtune.catalogue.families.rules import Limits, Rule, broken, rules
from lbmtune.catalogue.knobs import Scalar
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError
from lbmtune.records.header import KnobRange
from lbmtune.records.spec import Axes, Table, tables
from lbmtune.search.spaces.axes import Asked, families_of, points, product_of
from lbmtune.search.spaces.rule_cache import CachedRule, Point, Points

_EVERY, _DRAWN = 200_000, 50_000
"""Points of a family up to which all are looked at; of more, so many are drawn."""
_EVERY_PER_S, _DRAWN_PER_S = 2_000, 1_000
"""Points that are looked at or drawn for each second of a short study: a tenth to a fifth of it on two cores."""


@dataclass(frozen=True)
class Space:
    """The configurations that a study may try: legal and distinct, in a deterministic order.

    illegal: number of points that each kind of reason removed, by an example of it; sizes: legal configurations of each
    space of the union; ranges: the values that were made for knobs; legal: about how many configurations are legal, if
    those here were drawn from them, else 0.
    """

    configs: tuple[KernelConfig, ...]
    illegal: dict[str, int]
    sizes: tuple[int, ...]
    ranges: tuple[KnobRange, ...] = ()
    legal: int = 0


def legal_set(
    case: Case, backend: str, axes: Axes, limits: Limits, families: Sequence[str] = (), seconds: float = inf
) -> Space:
    """Return the legal configurations for a case on a device. Knobs that are not given keep their default.

    families: names, or 'all', of which the values of these knobs are made for the case and the device instead. Of a
    family with more than 200,000 points 50,000 are drawn, of one with more than 2,000 per second of the study's time
    1,000 per second. Raises InputError for an unknown name, and if no configuration is legal.
    """
    asked, broken_by = Asked(case, backend, limits, families), dict[Rule, tuple[str, int]]()
    spaces = [_sifted(asked, table, broken_by, seconds) for table in tables(axes)]
    by_reason: Counter[str] = Counter()
    for example, count in broken_by.values():
        by_reason[example] += count
    if not any(found for found, _ in spaces):
        # the points that broke the last rule kept all others
        reason = list(by_reason)[-1] if by_reason else _nothing(asked)
        raise InputError(f"no configuration of this space is legal: {reason}; change the knob or the case.")
    configs = dict.fromkeys(config for found, _ in spaces for config in found)
    sizes, legal = tuple(len(found) for found, _ in spaces), sum(several for _, several in spaces)
    drawn = legal if legal > sum(sizes) else 0
    return Space(tuple(configs), dict(by_reason.most_common()), sizes, asked.ranges, drawn)


def _nothing(asked: Asked) -> str:
    """Return why a space has no points."""
    return next((one.reason for one in asked.ranges if not one.values), "a knob has no values")


def check_any_is_legal(case: Case, backend: str, axes: Axes, limits: Limits, families: Sequence[str] = ()) -> None:
    """Look for the first legal configuration only, which is quick if there are many. Raises as `legal_set` does."""
    asked = Asked(case, backend, limits, families)
    every = (from_flat(point) for table in tables(axes) for point in points(asked, table))
    if all(broken(case, config, limits) for config in every):
        legal_set(case, backend, axes, limits, families)


def _sifted(
    asked: Asked, table: Table, broken_by: dict[Rule, tuple[str, int]], seconds: float
) -> tuple[list[KernelConfig], int]:
    """Return the legal configurations, and how many there are about if these are drawn.

    The points that break each rule are added to `broken_by`: the reason against the first one, and how many there are.
    """
    legal: list[KernelConfig] = []
    about = 0
    most, drawn = min(_EVERY, _EVERY_PER_S * seconds), int(min(_DRAWN, max(1, _DRAWN_PER_S * seconds)))
    for record in families_of(asked.backend, table, asked.families):
        product = product_of(asked, record, table)
        size = product.size
        every = list(product.points() if size <= most else product.drawn(drawn))
        points, left, several = Points(every), np.arange(len(every)), _several(every)
        for rule in rules(record):
            found = CachedRule(rule, asked.case, asked.limits, several).reasons(points, left)
            against = {places[0]: (reason, places) for reason, places in found if reason is not None}
            if against:
                example, before = broken_by.get(rule, (against[min(against)][0], 0))
                gone = np.concatenate([places for _, places in against.values()])
                broken_by[rule] = example, before + len(gone)
                left = np.setdiff1d(left, gone, assume_unique=True)
        legal += map(points.config, left.tolist())
        about += round(len(left) * size / max(1, len(every)))
    return legal, about


def _several(space: Sequence[Point]) -> frozenset[str]:
    """Return the names of the knobs that do not have one value in all points."""
    if not space:
        return frozenset()
    same = dict(space[0])
    for point in space:
        if not same.items() <= point.items():
            same = dict(same.items() & point.items())
    return frozenset().union(*space) - same.keys()


def values_of(configs: Sequence[KernelConfig]) -> dict[str, tuple[Scalar | None, ...]]:
    """Return the values of each knob, family included, in order of appearance; None: of those without it."""
    records = dict.fromkeys(type(config) for config in configs)
    names = dict.fromkeys(["family", *(one.name for record in records for one in knobs(record))])
    found: dict[str, dict[Scalar | None, None]] = {name: {} for name in names}
    for config in configs:
        flat = config.flat()
        for name, values in found.items():
            values[flat.get(name)] = None
    return {name: tuple(values) for name, values in found.items()}


def varied(configs: Sequence[KernelConfig]) -> tuple[str, ...]:
    """Return the names of the knobs that take more than one value, family included; absent ones count as a value."""
    return tuple(name for name, values in values_of(configs).items() if len(values) > 1)
