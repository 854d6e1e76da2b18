"""A cache of rules: each is called once for each combination of values of the knobs that it reads.

A rule is a pure function, so the next knob that it reads depends only on the values of those before. Its answers are
kept in a decision tree with a knob at each node, which grows with new values: most points never call the rule itself.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, TypeVar

from lbmtune.catalogue.config import KernelConfig, Scalar, from_flat
from lbmtune.catalogue.families.rules import Limits, Rule
from lbmtune.catalogue.family_knobs import layout_knobs
from lbmtune.catalogue.problem.case import Case

Record = TypeVar("Record", Case, KernelConfig)
Point = Mapping[str, Scalar]
"""A configuration in flat form; missing knobs have their defaults."""
_TOP, _UNKNOWN = "", object()


@dataclass(frozen=True)
class _Node:
    knob: str
    branches: dict[Scalar | None, Any] = field(default_factory=dict)


class CachedRule:
    """A rule for one case and device, cached for points that differ in `varied` knobs alone."""

    def __init__(self, rule: Rule, case: Case, limits: Limits, varied: Collection[str]) -> None:
        self._rule, self._case, self._limits, self._varied = rule, case, limits, varied
        self._root: dict[Scalar | None, Any] = {}

    @property
    def constant(self) -> bool:
        """Return whether the rule has read no varied knob, so that its answer is the same for all points."""
        return _TOP in self._root and type(self._root[_TOP]) is not _Node

    def __call__(self, point: Point) -> str | None:
        """Return the reason against a point, or None. Raises InputError for an unknown name."""
        (reason,) = self.reasons((point,))
        return reason

    def reasons(self, points: Iterable[Point]) -> list[str | None]:
        """Return the reason against each point, or None, with one call for hundreds of thousands."""
        root, reasons = self._root, list[str | None]()
        for point in points:
            found = root.get(_TOP, _UNKNOWN)
            while type(found) is _Node:
                found = found.branches.get(point.get(found.knob), _UNKNOWN)
            reasons.append(self._call_rule(point) if found is _UNKNOWN else found)
        return reasons

    def _call_rule(self, point: Point) -> str | None:
        config, read = tracked(from_flat(point))
        reason = self._rule(self._case, config, self._limits)
        branches: dict[Scalar | None, Any] = self._root
        value: Scalar | None = _TOP
        parameters = sorted(layout_knobs(type(config).__mro__[1])) if "layout" in read else []
        for knob in (*read, *parameters):
            if knob in self._varied:
                fork = branches.setdefault(value, _Node(knob))
                branches, value = fork.branches, point.get(knob)
        branches[value] = reason
        return reason


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

    return type(f"Tracked{kind.__name__}", (kind,), {"__getattribute__": access})
