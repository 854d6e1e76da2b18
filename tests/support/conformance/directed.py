"""A point with some values given that breaks no rule, or the proof that there is none.

What a rule says depends on the axes that it looks at alone. So a point that breaks one tells what all points with the
same values of those axes break, and one of them has to change: they are gone through, value by value, and what breaks
then says which axes come next. Where a value is refused for reasons that have nothing to do with its axis, the other
values need no trial. Each conflict is remembered, with those that follow from it. (Conflict-directed backjumping with
recorded conflicts: R. Dechter, Enhancement schemes for constraint processing, Artificial Intelligence 41, 1990;
P. Prosser, Hybrid algorithms for the constraint satisfaction problem, Computational Intelligence 9, 1993.)
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

Point = dict[str, Any]


@dataclass(frozen=True)
class Conflict:
    """Values that no legal point has together.

    axes: whose values those are; reasons: what has to be ruled out, each with the axes that it follows from.
    """

    axes: frozenset[str]
    reasons: Mapping[str, frozenset[str]]

    def told(self) -> str:
        """A few of the reasons that are about every axis: those first that name more of them and follow from fewer."""
        left, told = set(self.axes), list[str]()

        def weight(reason: str) -> tuple[int, int, int]:
            about = self.reasons[reason] & left
            return sum(axis in reason for axis in about), len(about), -len(self.reasons[reason])

        while left and self.reasons and weight(reason := max(self.reasons, key=weight))[1]:
            told.append(reason)
            left -= self.reasons[reason]
        return "; ".join(told)


class UndecidedError(Exception):
    """As many points as allowed were looked at: none is legal, and others are left."""


class Rules(Protocol):
    """What a search asks of a set of rules."""

    @property
    def domain(self) -> Mapping[str, Sequence[Any]]:
        """Every value that each axis can have."""

    def completed(self, given: Point, wished: Point) -> Point:
        """A whole point of the values given, and of those wished for where nothing else follows from the others."""

    def conflict(self, given: Point, point: Point) -> Conflict | None:
        """What is wrong with a point that was completed from what was given, or None."""


class Known(NamedTuple):
    """Conflicts of the same axes, by the values of those, which `of` takes from a point.

    number: in the order of finding; watched: the axis by whose values they are looked for.
    """

    number: int
    watched: str
    of: Callable[[Point], Any]
    conflicts: dict[Any, Conflict]


class Search:
    """Searches of one set of rules; what one of them finds out, the next ones know."""

    def __init__(self, rules: Rules, most: int) -> None:
        self._rules, self._most, self._asked = rules, most, 0
        self._known: dict[frozenset[str], Known] = {}
        self._known_with: dict[str, dict[Any, list[Known]]] = {name: {} for name in rules.domain}

    def legal(self, given: Point, wished: Point, draw: random.Random) -> Point | Conflict:
        """A legal point with the values given, near the wish, or why there is none. Raises UndecidedError.

        draw: the order in which values are tried in place of a wish that breaks a rule.
        """
        self._asked = 0
        return self._legal(given, wished, draw)

    def _legal(self, given: Point, wished: Point, draw: random.Random) -> Point | Conflict:
        point = self._rules.completed(given, wished)
        conflict = self._recalled(given, point) or self._found(given, point)
        if conflict is None:
            return point
        axis = next((name for name in self._rules.domain if name in conflict.axes and name not in given), None)
        if axis is None:
            return conflict
        others = [value for value in self._rules.domain[axis] if value != point[axis]]
        axes, reasons = frozenset[str](), dict[str, frozenset[str]]()
        for value in (*draw.sample(others, len(others)), point[axis]):
            found = self._legal({**given, axis: value}, wished, draw)
            if not isinstance(found, Conflict) or axis not in found.axes:
                return found
            axes |= found.axes
            reasons |= found.reasons
        return self._remembered(Conflict(axes - {axis}, reasons), point)

    def _found(self, given: Point, point: Point) -> Conflict | None:
        """Raises UndecidedError."""
        if self._asked == self._most:
            raise UndecidedError
        self._asked += 1
        conflict = self._rules.conflict(given, point)
        return conflict and self._remembered(conflict, point)

    def _recalled(self, given: Point, point: Point) -> Conflict | None:
        """The known conflict of a point that leaves the fewest axes to go through."""
        found = list[tuple[int, int, Conflict]]()
        for name, value in point.items():  # plain loops: most of the time of a list goes by here
            for number, _, of, conflicts in self._known_with[name].get(value, ()):
                conflict = conflicts.get(of(point))
                if conflict is not None:
                    found.append((len(conflict.axes - given.keys()), number, conflict))
        return min(found, key=itemgetter(0, 1))[2] if found else None

    def _remembered(self, conflict: Conflict, point: Point) -> Conflict:
        if not conflict.axes:
            return conflict  # no point is legal at all
        known = self._known.get(conflict.axes)
        if known is None:
            watched = max(sorted(conflict.axes), key=lambda name: len(self._rules.domain[name]))
            known = Known(len(self._known), watched, itemgetter(*sorted(conflict.axes)), {})
            self._known[conflict.axes] = known
        with_value = self._known_with[known.watched].setdefault(point[known.watched], [])
        if known not in with_value:
            with_value.append(known)
        return known.conflicts.setdefault(known.of(point), conflict)
