"""A cache of rules: each is called once for each combination of values of the knobs that it reads.

A rule is a pure function, so the next knob that it reads depends only on the values of those before. Its answers are
kept in a decision tree with a knob at each node, which grows with new values: points go down it all together, and most
never call the rule itself.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lbmtune.catalogue.config import KernelConfig, Scalar, from_flat
from lbmtune.catalogue.families.rules import Limits, Rule
from lbmtune.catalogue.family_knobs import layout_knobs
from lbmtune.catalogue.problem.case import Case

Record = TypeVar("Record", Case, KernelConfig)
Point = Mapping[str, Scalar]
"""A configuration in flat form; missing knobs have their defaults."""
Places = NDArray[np.intp]
"""Which of several points, in their order."""
_TOP = ""


class Points:
    """Several points, with what all rules need of them made once: configurations, and the places of a knob's values."""

    def __init__(self, points: Sequence[Point]) -> None:
        self._points = points
        self._configs: dict[int, KernelConfig] = {}
        self._numbers: dict[str, Places] = {}

    def __getitem__(self, place: int) -> Point:
        return self._points[place]

    def config(self, place: int) -> KernelConfig:
        """Return the configuration of a point. Raises InputError for an unknown name."""
        if place not in self._configs:
            self._configs[place] = from_flat(self._points[place])
        return self._configs[place]

    def by_value(self, knob: str, places: Places) -> Iterator[tuple[Scalar | None, Places]]:
        """Yield the values that a knob has at some places, and where it has each; None: it is missing."""
        numbers = self._numbered(knob)[places]
        order = np.argsort(numbers, kind="stable")
        ends = [*(np.flatnonzero(np.diff(numbers[order])) + 1), len(order)]
        for start, end in zip((0, *ends[:-1]), ends, strict=True):
            several = places[order[start:end]]
            yield self._points[several[0]].get(knob), several

    def _numbered(self, knob: str) -> Places:
        """Return which value of a knob each point has."""
        if knob not in self._numbers:
            values = [point.get(knob) for point in self._points]
            number = {value: n for n, value in enumerate(dict.fromkeys(values))}
            self._numbers[knob] = np.fromiter(map(number.__getitem__, values), np.intp, len(values))
        return self._numbers[knob]


@dataclass(frozen=True)
class _Node:
    knob: str
    branches: dict[Scalar | None, Any] = field(default_factory=dict)


class CachedRule:
    """A rule for one case and device, cached for points that differ in `varied` knobs alone."""

    def __init__(self, rule: Rule, case: Case, limits: Limits, varied: Collection[str]) -> None:
        self._rule, self._case, self._limits, self._varied = rule, case, limits, varied
        self._root: dict[Scalar | None, Any] = {}

    def reasons(self, points: Points, places: Places) -> Iterator[tuple[str | None, Places]]:
        """Yield the reason against points, or None, with the places of those that agree in all that the rule reads.

        Raises InputError for an unknown name.
        """
        below: list[tuple[dict[Scalar | None, Any], Scalar | None, Places]] = []
        if len(places):
            below.append((self._root, _TOP, places))
        while below:
            branches, value, here = below.pop()
            if value not in branches:
                self._call_rule(points, here[0])
            found = branches[value]
            if type(found) is _Node:
                below += [(found.branches, *part) for part in points.by_value(found.knob, here)]
            else:
                yield found, here

    def _call_rule(self, points: Points, place: int) -> None:
        """Call the rule for a point, and keep the way to its answer."""
        config, read = tracked(points.config(place))
        reason = self._rule(self._case, config, self._limits)
        branches: dict[Scalar | None, Any] = self._root
        value: Scalar | None = _TOP
        # what is read after a layout may depend on its parameters
        parameters = {"layout": sorted(layout_knobs(type(config).__mro__[1]))}
        for knob in chain.from_iterable((knob, *parameters.get(knob, ())) for knob in read):
            if knob in self._varied:
                fork = branches.setdefault(value, _Node(knob))
                branches, value = fork.branches, points[place].get(knob)
        branches[value] = reason


def tracked(record: Record) -> tuple[Record, Mapping[str, None]]:
    """Return a copy of a configuration or case, and the fields read from it so far, in order of the first access."""
    read: dict[str, None] = {}
    kind: Any = type(record)
    seen: Record = object.__new__(_tracking(kind))
    vars(seen).update(vars(record), read=read)
    return seen, read


@cache
def _tracking(kind: Any) -> Any:
    names = frozenset(f.name for f in fields(kind))

    def access(self: object, name: str) -> object:
        if name in names:
            object.__getattribute__(self, "read")[name] = None
        return object.__getattribute__(self, name)

    # of a copy with other fields nobody asks what is read: to be made it has read all fields of the first one
    return type(f"Tracked{kind.__name__}", (kind,), {"__getattribute__": access, "read": {}})
