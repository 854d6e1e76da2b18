"""The points of a space: products of the values of knobs, given by a study or made for case and device."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from lbmtune.catalogue.config import (
    DEFAULT_FAMILY,
    FAMILIES,
    KernelConfig,
    Knob,
    Scalar,
    completed,
    family,
    from_flat,
    knobs,
    knobs_by_name,
)
from lbmtune.catalogue.families.ranges import Made, Range, made_knobs
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.records.study import KnobRange, Table, made
from lbmtune.search.rule_cache import Point


@dataclass(frozen=True)
class Asked:
    """A case on a device, and the families whose values are made: names, or 'all'; none: tables name all values.

    made: the values made so far, by family, knob and reason.
    """

    case: Case
    backend: str
    limits: Limits
    families: Sequence[str] = ()
    made: dict[tuple[str, str, str], dict[Scalar, None]] = field(default_factory=dict)

    @property
    def ranges(self) -> tuple[KnobRange, ...]:
        """Return the ranges of knobs so far, if families make them."""
        return tuple(
            KnobRange(family=name, knob=knob, values=tuple(values), reason=reason)
            for (name, knob, reason), values in self.made.items()
        )

    def note(self, family: str, knob: str, closed: Range) -> Range:
        """Take note of the values that a knob may have, if families make them, and return them."""
        if not self.families:
            return closed
        self.made.setdefault((family, knob, closed.reason), {}).update(dict.fromkeys(closed.values))
        return closed


def families_of(backend: str, table: Table, families: Sequence[str] = ()) -> tuple[type[KernelConfig], ...]:
    """Return the families of a space: those that its table names, those that are made, or the default one.

    Raises InputError for an unknown one.
    """
    if "family" in table or not families:
        return tuple(family(backend, str(name)) for name in table.get("family", (DEFAULT_FAMILY,)))
    return tuple(record for name, record in FAMILIES[backend].items() if made(name, families))


def values_at(asked: Asked, config: KernelConfig, name: str) -> tuple[Scalar, ...]:
    """Return the values of a knob that a family makes around a configuration; none if the study gives all values."""
    start: Point = {"backend": config.backend, "family": config.family}
    axis = _axis(asked, start, type(config), knobs_by_name(type(config))[name], {})
    return tuple(axis.values(config.flat())) if axis else ()


def points(asked: Asked, table: Table) -> Iterator[Point]:
    """Yield every distinct point of a space. Knobs that do not act are not varied."""
    for record in families_of(asked.backend, table, asked.families):
        yield from family_points(asked, record, table)


def family_points(asked: Asked, record: type[KernelConfig], table: Table) -> Iterator[Point]:
    """Yield every distinct point of a family, the first knob slowest."""
    start: Point = {"backend": record.backend, "family": record.family}
    axes = [axis for one in knobs(record) if (axis := _axis(asked, start, record, one, table))]
    for values in _product(_ordered(axes), start):
        yield completed(values, asked.limits)


class _Axis(NamedTuple):
    """A knob that is varied, its values at a point, and the knobs that the point needs for them."""

    knob: Knob
    values: Callable[[Point], Sequence[Scalar]]
    after: tuple[str, ...] = ()

    @property
    def deciding(self) -> tuple[str, ...]:
        """Return the names of the knobs that decide which values it has."""
        return (*(condition.on for condition in self.knob.acts), *self.after)


def _axis(asked: Asked, start: Point, record: type[KernelConfig], one: Knob, table: Table) -> _Axis | None:
    """Return a knob with the values of the table, or with those that are made; None: it keeps its default."""
    if one.name in table:
        given = Range(_distinct(start, one.name, table[one.name], asked.limits), "given by the study")
        return _Axis(one, lambda _: asked.note(record.family, one.name, given).values)
    if not asked.families or one.name == "compute":  # that follows storage
        return None
    if how := made_knobs(record).get(one.name):
        return _Axis(one, lambda point: _made(asked, how, one.name, point), how.after)
    usual = Range(_distinct(start, one.name, one.search, asked.limits), "the usual values")
    return _Axis(one, lambda _: (asked.note(record.family, one.name, usual) if len(usual.values) > 1 else usual).values)


def _made(asked: Asked, how: Made, name: str, point: Point) -> Sequence[Scalar]:
    """Return the values that a family makes at a point, and take note of them."""
    config = from_flat(completed(point, asked.limits))
    return asked.note(config.family, name, how.make(asked.case, config, asked.limits)).values


def _distinct(start: Point, name: str, values: Sequence[Scalar], limits: Limits) -> tuple[Scalar, ...]:
    """Return the values of a knob without those that mean the same on this device, so that all points differ."""
    return tuple(dict.fromkeys(completed({**start, name: value}, limits)[name] for value in values))


def _ordered(axes: Sequence[_Axis]) -> list[_Axis]:
    """Return knobs each after those that decide on its values, else in their order."""
    left, placed = list(axes), []
    while left:
        names = {one.knob.name for one in left}
        placed.append(left.pop(next(n for n, one in enumerate(left) if names.isdisjoint(one.deciding))))
    return placed


def _product(axes: Sequence[_Axis], start: Point) -> Iterator[dict[str, Scalar]]:
    """Yield the product knob by knob; those that do not act are settled once for all points that agree so far."""
    decisive = [tuple(dict.fromkeys(chain(*(one.deciding for one in axes[n:])))) for n in range(len(axes) + 1)]
    known: dict[tuple[Scalar | None, ...], tuple[Point, Sequence[Scalar]]] = {}

    def settled(place: int, point: Point) -> tuple[Point, Sequence[Scalar]]:
        """Return the knobs from a place on that can take one value alone, and the values of the next one."""
        found: dict[str, Scalar] = {}
        for one in axes[place:]:
            here: Mapping[str, Scalar] = {**point, **found}
            fixed = one.knob.neutral(here)
            allowed = one.values(here) if fixed is None else (fixed,)
            if len(allowed) != 1:
                return found, allowed
            found[one.knob.name] = allowed[0]
        return found, ()

    def below(place: int, point: Point) -> Iterator[dict[str, Scalar]]:
        decided = (place, *map(point.get, decisive[place]))
        if decided not in known:
            known[decided] = settled(place, point)
        found, allowed = known[decided]
        full, at = {**point, **found}, place + len(found)
        if at == len(axes):
            yield full
        for value in allowed:
            yield from below(at + 1, {**full, axes[at].knob.name: value})

    return below(0, start)
