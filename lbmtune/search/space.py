"""The legal set: the products of the axes of each space, filtered by the rules, each kernel once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import NamedTuple

from lbmtune.catalogue.axes import AXES, completed, depends_on, neutral
from lbmtune.catalogue.config import CONFIGS, KernelConfig, Scalar, from_flat
from lbmtune.catalogue.families.rules import RULES, Limits, Rule, broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError
from lbmtune.records.study import Axes, Table, tables
from lbmtune.search.rule_cache import Point, Remembered


@dataclass(frozen=True)
class Space:
    """What a study may try. configs: legal and distinct, in a deterministic order.

    illegal: an example of each kind of reason -> how many points it removed; sizes: legal configurations of each space
    whose union this is.
    """

    configs: tuple[KernelConfig, ...]
    illegal: dict[str, int]
    sizes: tuple[int, ...]

    @property
    def products(self) -> int:
        """Points of the products of the axes, legal or not; what is legal in two spaces counts once."""
        return len(self.configs) + sum(self.illegal.values())


class _Sifted(NamedTuple):
    """Points that keep all rules; of each rule that others broke, an example of its reason and how many they were."""

    legal: list[Point]
    illegal: dict[Rule, tuple[str, int]]


def legal_set(case: Case, backend: str, axes: Axes, limits: Limits) -> Space:
    """The legal configurations for a case on a device. Axes that are not given keep their default.

    Raises InputError for an unknown name, and where no configuration is legal.
    """
    spaces = [_sifted(case, backend, table, limits) for table in tables(axes)]
    illegal: dict[str, int] = {}
    for rule in RULES[backend]:
        found = [space.illegal[rule] for space in spaces if rule in space.illegal]
        if found:
            reason = found[0][0]
            illegal[reason] = illegal.get(reason, 0) + sum(count for _, count in found)
    if not any(space.legal for space in spaces):
        # the points that broke the last rule kept all others
        reason = list(illegal)[-1] if illegal else "an axis has no values"
        raise InputError(f"no configuration of these axes is legal: {reason}; change the axis or the case.")
    configs = dict.fromkeys(from_flat(point) for space in spaces for point in space.legal)
    most_first = dict(sorted(illegal.items(), key=lambda item: -item[1]))
    return Space(tuple(configs), most_first, tuple(len(space.legal) for space in spaces))


def check_any_is_legal(case: Case, backend: str, axes: Axes, limits: Limits) -> None:
    """Looks for the first legal configuration only, which takes no time where there are many. Raises as `legal_set`."""
    every = (from_flat(point) for table in tables(axes) for point in points(backend, table, limits))
    if all(broken(case, config, limits) for config in every):
        legal_set(case, backend, axes, limits)


def _sifted(case: Case, backend: str, table: Table, limits: Limits) -> _Sifted:
    left = list(points(backend, table, limits))
    several = _several(left)
    illegal: dict[Rule, tuple[str, int]] = {}
    for rule in RULES[backend]:
        remembered = Remembered(rule, case, limits, several)
        reasons = [remembered(point) for point in left]
        against = [reason for reason in reasons if reason is not None]
        if against:
            illegal[rule] = against[0], len(against)
            left = [point for point, reason in zip(left, reasons, strict=True) if reason is None]
    return _Sifted(left, illegal)


def points(backend: str, axes: Table, limits: Limits) -> Iterator[Point]:
    """Every distinct point of the product, first axis slowest. Axes that do not act are not varied."""
    names = [axis.name for axis in AXES[backend] if axis.name in axes]
    distinct = {name: _distinct(backend, name, axes[name], limits) for name in names}
    for values in _product(names, distinct, {"backend": backend}):
        yield completed(values, limits)


def _distinct(backend: str, name: str, values: Sequence[Scalar], limits: Limits) -> tuple[Scalar, ...]:
    """Values of an axis without those that say the same on this device, so that all points differ."""
    return tuple(dict.fromkeys(completed({"backend": backend, name: value}, limits)[name] for value in values))


def _several(space: Sequence[Point]) -> frozenset[str]:
    """Names of the axes that do not stand at one value in all points."""
    if not space:
        return frozenset()
    same = dict(space[0])
    for point in space:
        if not same.items() <= point.items():
            same = dict(same.items() & point.items())
    return frozenset().union(*space) - same.keys()


def varied(configs: Sequence[KernelConfig]) -> tuple[str, ...]:
    """Names of the axes that take more than one value."""
    cls = CONFIGS[configs[0].backend]
    return tuple(f.name for f in fields(cls) if len({getattr(config, f.name) for config in configs}) > 1)


def _product(names: Sequence[str], axes: Table, chosen: Point) -> Iterator[dict[str, Scalar]]:
    """Axis by axis; those that settle are so once for all points that agree on what decides them."""
    deciding = [depends_on(str(chosen["backend"]), name) for name in names]
    decisive = [tuple(dict.fromkeys(chain(*deciding[place:]))) for place in range(len(names) + 1)]
    known: dict[tuple[Scalar | None, ...], tuple[Point, Sequence[Scalar]]] = {}

    def settled(place: int, point: Point) -> tuple[Point, Sequence[Scalar]]:
        """The axes from a place on that can take one value alone, and the values of the next one."""
        found: dict[str, Scalar] = {}
        for name in names[place:]:
            fixed = neutral(name, {**point, **found})
            values = axes[name] if fixed is None else (fixed,)
            if len(values) != 1:
                return found, values
            found[name] = values[0]
        return found, ()

    def below(place: int, point: Point) -> Iterator[dict[str, Scalar]]:
        decided = (place, *map(point.get, decisive[place]))
        if decided not in known:
            known[decided] = settled(place, point)
        found, values = known[decided]
        full, at = {**point, **found}, place + len(found)
        if at == len(names):
            yield full
        for value in values:
            yield from below(at + 1, {**full, names[at]: value})

    return below(0, chosen)
