"""Covering arrays: points that have every pair of values of two knobs that some legal point has."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, NamedTuple

from tests.support.conformance.choices import Sample
from tests.support.conformance.directed import Conflict, Point, Search, UndecidedError

Values = tuple[tuple[str, Any], ...]
MOST_POINTS = 20_000
"""Points that a search looks at before it gives up."""


class Missing(NamedTuple):
    """What has no sample: values that no legal configuration of a family has together, with the reason.

    proved: whether that has been shown for all values of the other knobs, or for as many points as were looked at.
    """

    values: Values
    reason: str
    proved: bool = True
    family: str = ""


@dataclass(frozen=True)
class Covering:
    """samples: what to check, each once; pairs: of choices of a family that they cover; missing: what they cannot."""

    samples: tuple[Sample, ...]
    missing: tuple[Missing, ...]
    pairs: int

    @classmethod
    def of_family(cls, family: str, samples: Iterable[Sample], found: Array) -> Covering:
        """The samples of an array, each once."""
        missing = tuple(one._replace(family=family) for one in found.missing)
        return cls(tuple(dict.fromkeys(samples)), missing, found.pairs)


class Array(NamedTuple):
    """Points that have every pair of values but those that are missing."""

    points: list[Point]
    missing: tuple[Missing, ...]
    pairs: int


def covering_array(
    values: Mapping[str, tuple[Any, ...]],
    find: Callable[[Point], Iterator[Point | Missing]],
    wanted: Iterable[Point] = (),
) -> Array:
    """A covering array of some knobs. find: points with values given, or why there are none; wanted: first."""
    left = pairs_among(values)
    total, points, missing = len(left), list[Point](), list[Missing]()

    def add(given: Point) -> Missing | None:
        """The point that has the most of what is left."""
        found = find(given)
        first = next(found)
        if isinstance(first, Missing):
            return first
        legal = (first, *(point for point in found if not isinstance(point, Missing)))
        best = max(legal, key=lambda point: len(_pairs(point) & left))
        left.difference_update(_pairs(best))
        points.append(best)
        return None

    for given in wanted:
        assert add(given) is None, given
    for pair in sorted(left, key=repr):
        if pair in left and (reason := add(dict(pair))):
            missing.append(reason)
            left.discard(pair)
    return Array(points, tuple(missing), total - len(missing))


def pairs_among(values: Mapping[str, tuple[Any, ...]]) -> set[Values]:
    """Every pair of values of two of these knobs."""
    return {
        ((one, a), (other, b))
        for one, other in combinations(sorted(values), 2)
        for a, b in product(values[one], values[other])
    }


def decided(search: Search, given: Point, wished: Point, draw: random.Random) -> Point | Missing:
    """A legal point with some values given, near a wish, or what stands against it."""
    try:
        found = search.legal(given, wished, draw)
    except UndecidedError:
        return Missing(tuple(given.items()), f"none of {MOST_POINTS:,} points is legal", proved=False)
    if isinstance(found, Conflict):
        return Missing(tuple(one for one in given.items() if one[0] in found.axes), found.told())
    return found


def _pairs(point: Point) -> set[Values]:
    return set(combinations(sorted(point.items()), 2))
