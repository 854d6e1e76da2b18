"""The points of a space: products of the values of knobs, given by a study or made for case and device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from random import Random
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
from lbmtune.records.header import KnobRange
from lbmtune.records.spec import Table, made
from lbmtune.search.spaces.rule_cache import Point

_SEED = 1
"""Seed of points that are drawn: a study that is resumed has the same ones."""


_FEW, _NEAR = 16, 2
"""Values of a knob up to which all are neighbours; of more those within some places."""


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
        yield from product_of(asked, record, table).points()


def product_of(asked: Asked, record: type[KernelConfig], table: Table) -> Product:
    """Return the product of the knobs of a family in a space."""
    start: Point = {"backend": record.backend, "family": record.family}
    axes = [axis for one in knobs(record) if (axis := _axis(asked, start, record, one, table))]
    return Product(_ordered(axes), start, asked.limits)


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
        return _Axis(one, _maker(asked, how, one.name), how.after)
    usual = Range(_distinct(start, one.name, one.search, asked.limits), "the usual values")
    return _Axis(one, lambda _: (asked.note(record.family, one.name, usual) if len(usual.values) > 1 else usual).values)


def _maker(asked: Asked, how: Made, name: str) -> Callable[[Point], Sequence[Scalar]]:
    """Return what makes the values of a knob at a point, once for all points that agree in the knobs they depend on."""
    known: dict[tuple[Scalar | None, ...], Sequence[Scalar]] = {}

    def made_at(point: Point) -> Sequence[Scalar]:
        """Return the values that a family makes at a point, and take note of them."""
        given = tuple(map(point.get, how.after))
        if given not in known:
            config = from_flat(completed(point, asked.limits))
            known[given] = asked.note(config.family, name, how.make(asked.case, config, asked.limits)).values
        return known[given]

    return made_at


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


class Product:
    """The points of a family: the product of its knobs, the first one slowest, without those that do not act.

    Knobs that do not act are settled once for all points that agree so far; so is the number of points below them, by
    which a point is found from its number alone.
    """

    def __init__(self, axes: Sequence[_Axis], start: Point, limits: Limits) -> None:
        self._axes, self._start, self._limits = axes, start, limits
        places = range(len(axes) + 1)
        self._decisive = [tuple(dict.fromkeys(chain(*(one.deciding for one in axes[n:])))) for n in places]
        self._known: dict[tuple[Scalar | None, ...], tuple[Point, Sequence[Scalar]]] = {}
        self._sizes: dict[tuple[Scalar | None, ...], int] = {}

    def points(self) -> Iterator[Point]:
        """Yield every point."""
        return (completed(point, self._limits) for point in self._below(0, self._start))

    @property
    def size(self) -> int:
        """Return the number of points."""
        return self._size(0, self._start)

    def drawn(self, count: int) -> Iterator[Point]:
        """Yield points that are drawn alike likely, none twice, in their order; the same ones each time."""
        for number in sorted(Random(_SEED).sample(range(self.size), count)):
            yield completed(self._numbered(number), self._limits)

    def neighbours(self, point: Point) -> Iterator[Point]:
        """Yield the points that differ from one in a knob; of many values of it in those next to its own.

        Knobs that depend on it keep their values where they may.
        """
        for name, allowed, _ in self._steps(point):
            at = allowed.index(point[name]) if point.get(name) in allowed else 0
            near = allowed if len(allowed) <= _FEW else allowed[max(0, at - _NEAR) : at + _NEAR + 1]
            for value in near:
                if value != point.get(name) and (found := self._repaired({**point, name: value})) is not None:
                    yield found

    def _repaired(self, wanted: Point) -> Point | None:
        """Return the point with wanted values, where they may be, or the first ones; None if there is no such point."""
        *_, (_, allowed, full) = self._steps(wanted)
        return completed(full, self._limits) if allowed else None

    def _steps(self, wanted: Point) -> Iterator[tuple[str, Sequence[Scalar], Point]]:
        """Go down to a point: yield each knob that may vary, its values, and the point with the one that is taken."""
        full, at, allowed = self._branches(0, self._start)
        while at < len(self._axes):
            name = self._axes[at].knob.name
            value = wanted[name] if wanted.get(name) in allowed else next(iter(allowed), None)
            if value is None:
                yield name, (), full
                return
            inner = {**full, name: value}
            full, after, following = self._branches(at + 1, inner)
            yield name, allowed, full
            at, allowed = after, following

    def _below(self, place: int, point: Point) -> Iterator[Point]:
        full, at, allowed = self._branches(place, point)
        if at == len(self._axes):
            yield full
        for value in allowed:
            yield from self._below(at + 1, {**full, self._axes[at].knob.name: value})

    def _numbered(self, number: int) -> Point:
        """Return the point of a number from 0."""
        full, at, allowed = self._branches(0, self._start)
        while at < len(self._axes):
            for value in allowed:
                inner = {**full, self._axes[at].knob.name: value}
                if number < (size := self._size(at + 1, inner)):
                    break
                number -= size
            full, at, allowed = self._branches(at + 1, inner)
        return full

    def _size(self, place: int, point: Point) -> int:
        decided = self._decided(place, point)
        if decided not in self._sizes:
            full, at, allowed = self._branches(place, point)
            inner = ({**full, self._axes[at].knob.name: value} for value in allowed)
            self._sizes[decided] = 1 if at == len(self._axes) else sum(self._size(at + 1, one) for one in inner)
        return self._sizes[decided]

    def _decided(self, place: int, point: Point) -> tuple[Scalar | None, ...]:
        return (place, *map(point.get, self._decisive[place]))

    def _branches(self, place: int, point: Point) -> tuple[Point, int, Sequence[Scalar]]:
        """Return the point with the knobs that can take one value alone, the place after them, and the values there."""
        decided = self._decided(place, point)
        if decided not in self._known:
            self._known[decided] = self._settled(place, point)
        found, allowed = self._known[decided]
        return {**point, **found}, place + len(found), allowed

    def _settled(self, place: int, point: Point) -> tuple[Point, Sequence[Scalar]]:
        found: dict[str, Scalar] = {}
        for one in self._axes[place:]:
            here: Mapping[str, Scalar] = {**point, **found}
            fixed = one.knob.neutral(here)
            allowed = one.values(here) if fixed is None else (fixed,)
            if len(allowed) != 1:
                return found, allowed
            found[one.knob.name] = allowed[0]
        return found, ()
