"""The legal set: the products of the knobs of each space, filtered by the rules, each kernel once."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from lbmtune.catalogue.config import (
    DEFAULT_FAMILY,
    KernelConfig,
    Knob,
    Scalar,
    completed,
    family,
    from_flat,
    knobs,
)
from lbmtune.catalogue.families.rules import Limits, Rule, broken, rules
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError
from lbmtune.records import Accuracy
from lbmtune.records.study import Axes, Table, tables
from lbmtune.search.kinds import Rounding, rounding_of, steps_per_launch
from lbmtune.search.rule_cache import CachedRule, Point

Accurate = Callable[[KernelConfig], Accuracy | None]
"""Measures the accuracy of a configuration; None if it has none."""


@dataclass(frozen=True)
class Space:
    """The configurations that a study may try: legal and distinct, in a deterministic order.

    illegal: number of points that each kind of reason removed, by an example of it; sizes: legal configurations of each
    space of the union.
    """

    configs: tuple[KernelConfig, ...]
    illegal: dict[str, int]
    sizes: tuple[int, ...]


def legal_set(case: Case, backend: str, axes: Axes, limits: Limits) -> Space:
    """Return the legal configurations for a case on a device. Knobs that are not given keep their default.

    Raises InputError for an unknown name, and if no configuration is legal.
    """
    broken_by: dict[Rule, list[str]] = {}
    spaces = [_sifted(case, backend, table, limits, broken_by) for table in tables(axes)]
    by_reason: Counter[str] = Counter()
    for reasons in broken_by.values():
        by_reason[reasons[0]] += len(reasons)
    if not any(spaces):
        # the points that broke the last rule kept all others
        reason = list(by_reason)[-1] if by_reason else "a knob has no values"
        raise InputError(f"no configuration of this space is legal: {reason}; change the knob or the case.")
    configs = dict.fromkeys(from_flat(point) for space in spaces for point in space)
    return Space(tuple(configs), dict(by_reason.most_common()), tuple(map(len, spaces)))


def check_any_is_legal(case: Case, backend: str, axes: Axes, limits: Limits) -> None:
    """Look for the first legal configuration only, which is quick if there are many. Raises as `legal_set` does."""
    every = (from_flat(point) for table in tables(axes) for point in points(backend, table, limits))
    if all(broken(case, config, limits) for config in every):
        legal_set(case, backend, axes, limits)


def _sifted(case: Case, backend: str, table: Table, limits: Limits, broken_by: dict[Rule, list[str]]) -> list[Point]:
    """Return the legal points, and add to `broken_by` the reasons of each rule against the others."""
    legal: list[Point] = []
    for record in families_of(backend, table):
        left = list(_points(record, table, limits))
        several = _several(left)
        for rule in rules(record):
            cached = CachedRule(rule, case, limits, several)
            reasons = [cached(point) for point in left]
            if against := [reason for reason in reasons if reason is not None]:
                broken_by.setdefault(rule, []).extend(against)
                left = [point for point, reason in zip(left, reasons, strict=True) if reason is None]
        legal += left
    return legal


def families_of(backend: str, table: Table) -> tuple[type[KernelConfig], ...]:
    """Return the families of a space: those that its table names, or the default one. Raises InputError."""
    return tuple(family(backend, str(name)) for name in table.get("family", (DEFAULT_FAMILY,)))


def points(backend: str, table: Table, limits: Limits) -> Iterator[Point]:
    """Yield every distinct point of the product, first knob slowest. Knobs that do not act are not varied."""
    for record in families_of(backend, table):
        yield from _points(record, table, limits)


def _points(record: type[KernelConfig], table: Table, limits: Limits) -> Iterator[Point]:
    start: Point = {"backend": record.backend, "family": record.family}
    varied_knobs = [one for one in knobs(record) if one.name in table]
    distinct = {one.name: _distinct(start, one.name, table[one.name], limits) for one in varied_knobs}
    for values in _product(varied_knobs, distinct, start):
        yield completed(values, limits)


def _distinct(start: Point, name: str, values: Sequence[Scalar], limits: Limits) -> tuple[Scalar, ...]:
    """Return the values of a knob without those that mean the same on this device, so that all points differ."""
    return tuple(dict.fromkeys(completed({**start, name: value}, limits)[name] for value in values))


def _several(space: Sequence[Point]) -> frozenset[str]:
    """Return the names of the knobs that do not have one value in all points."""
    if not space:
        return frozenset()
    same = dict(space[0])
    for point in space:
        if not same.items() <= point.items():
            same = dict(same.items() & point.items())
    return frozenset().union(*space) - same.keys()


def varied(configs: Sequence[KernelConfig]) -> tuple[str, ...]:
    """Return the names of the knobs that take more than one value, family included; absent ones count as a value."""
    records = dict.fromkeys(type(config) for config in configs)
    names = dict.fromkeys(["family", *(one.name for record in records for one in knobs(record))])
    flat = [config.flat() for config in configs]
    return tuple(name for name in names if len({point.get(name) for point in flat}) > 1)


def _product(varied_knobs: Sequence[Knob], values: Table, chosen: Point) -> Iterator[dict[str, Scalar]]:
    """Yield the product knob by knob; those that do not act are settled once for all points that agree so far."""
    deciding = [tuple(condition.on for condition in one.acts) for one in varied_knobs]
    decisive = [tuple(dict.fromkeys(chain(*deciding[place:]))) for place in range(len(varied_knobs) + 1)]
    known: dict[tuple[Scalar | None, ...], tuple[Point, Sequence[Scalar]]] = {}

    def settled(place: int, point: Point) -> tuple[Point, Sequence[Scalar]]:
        """Return the knobs from a place on that can take one value alone, and the values of the next one."""
        found: dict[str, Scalar] = {}
        for one in varied_knobs[place:]:
            fixed = one.neutral({**point, **found})
            allowed = values[one.name] if fixed is None else (fixed,)
            if len(allowed) != 1:
                return found, allowed
            found[one.name] = allowed[0]
        return found, ()

    def below(place: int, point: Point) -> Iterator[dict[str, Scalar]]:
        decided = (place, *map(point.get, decisive[place]))
        if decided not in known:
            known[decided] = settled(place, point)
        found, allowed = known[decided]
        full, at = {**point, **found}, place + len(found)
        if at == len(varied_knobs):
            yield full
        for value in allowed:
            yield from below(at + 1, {**full, varied_knobs[at].name: value})

    return below(0, chosen)


def within(space: Space, bound: float, accuracy: Accurate) -> Space:
    """Return the configurations whose rounding stays within a bound; the others count as illegal, with the reason.

    bound: relative L2 error of the velocity after many steps. Raises InputError if no configuration stays.
    """
    roundings = {rounding_of(config): config for config in reversed(space.configs)}
    reasons = {rounding: excess(accuracy(config), rounding, bound) for rounding, config in roundings.items()}
    configs = tuple(config for config in space.configs if not reasons[rounding_of(config)])
    if not configs:
        raise InputError(
            f"no configuration is accurate enough: {next(iter(reasons.values()))}; allow more or change storage."
        )
    lost = {
        reason: sum(rounding_of(config) == rounding for config in space.configs)
        for rounding, reason in reasons.items()
        if reason
    }
    return replace(space, configs=configs, illegal={**space.illegal, **lost})


def excess(accuracy: Accuracy | None, rounding: Rounding, bound: float) -> str:
    """Explain why kernels of a rounding exceed a bound; empty if they do not."""
    state, storage, compute, steps = rounding
    what = f"{state} stored as {storage}, computed in {compute}, {steps_per_launch(steps)}"
    after = accuracy.after if accuracy else None
    if after is None:
        return f"{what}: the accuracy is unknown, and the study allows {bound:g}"
    if after.velocity is not None and after.velocity <= bound:
        return ""
    error = "no finite number" if after.velocity is None else f"{after.velocity:.2g}"
    return f"{what}: error of the velocity after {after.steps} steps {error}; the study allows {bound:g}"
