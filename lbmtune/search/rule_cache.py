"""Rules that are asked once for each choice of the axes that they look at.

A rule is a pure function, so which axis it looks at next depends only on the values of those before. What it says is
kept as a tree with an axis at each fork, which grows where a point leaves it: most points never meet the rule itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, TypeVar

from lbmtune.catalogue.config import KernelConfig, Scalar, from_flat
from lbmtune.catalogue.families.rules import Limits, Rule
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import layout_knobs

Record = TypeVar("Record", Case, KernelConfig)
Point = Mapping[str, Scalar]
"""A configuration in flat form; axes that are not given stand at their default."""
_ROOT, _UNKNOWN = "", object()


@dataclass(frozen=True)
class _Fork:
    axis: str
    branches: dict[Scalar | None, Any] = field(default_factory=dict)


class Remembered:
    """A rule for one case and device that remembers what it said of points that differ in `varied` axes alone."""

    def __init__(self, rule: Rule, case: Case, limits: Limits, varied: Collection[str]) -> None:
        self._rule, self._case, self._limits, self._varied = rule, case, limits, varied
        self._trunk: dict[Scalar | None, Any] = {}

    def __call__(self, point: Point) -> str | None:
        """The reason against a point, or None. Raises InputError for an unknown name."""
        found = self._trunk.get(_ROOT, _UNKNOWN)
        while type(found) is _Fork:
            found = found.branches.get(point.get(found.axis), _UNKNOWN)
        reason: str | None = self._ask(point) if found is _UNKNOWN else found
        return reason

    def _ask(self, point: Point) -> str | None:
        config, looked_at = watched(from_flat(point))
        reason = self._rule(self._case, config, self._limits)
        branches: dict[Scalar | None, Any] = self._trunk
        value: Scalar | None = _ROOT
        parameters = sorted(layout_knobs(type(config).__mro__[1])) if "layout" in looked_at else []
        for axis in (*looked_at, *parameters):
            if axis in self._varied:
                fork = branches.setdefault(value, _Fork(axis))
                branches, value = fork.branches, point.get(axis)
        branches[value] = reason
        return reason


def watched(record: Record) -> tuple[Record, Mapping[str, None]]:
    """The same configuration or case, and which fields anybody has looked at, in the order of the first looks."""
    looked_at: dict[str, None] = {}
    kind: Any = type(record)
    seen: Record = object.__new__(_watching(kind))
    vars(seen).update(vars(record), looked_at=looked_at)
    return seen, looked_at


@cache
def _watching(kind: Any) -> Any:
    names = frozenset(f.name for f in fields(kind))

    def look(self: object, name: str) -> object:
        if name in names:
            object.__getattribute__(self, "looked_at")[name] = None
        return object.__getattribute__(self, name)

    return type(f"Watched{kind.__name__}", (kind,), {"__getattribute__": look})
