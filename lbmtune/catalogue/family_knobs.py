"""Knobs of a kernel family: those of its fields, and those of the layouts that its kernels have."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar, Literal

from lbmtune.catalogue.knobs import Acts, Knob, Scalar, cached, converted, own_knobs
from lbmtune.catalogue.layouts import LAYOUTS
from lbmtune.catalogue.layouts.layout import Layout
from lbmtune.errors import InputError, unknown

ANY_LAYOUT = tuple(LAYOUTS)


class Declared:
    """The declarations of a family besides its fields."""

    backend: ClassVar[Literal["cuda", "cpu"]]
    family: ClassVar[str]
    title: ClassVar[str]
    """The family in words."""
    layouts: ClassVar[tuple[str, ...]] = ANY_LAYOUT
    """Names of the layouts that its kernels have."""
    without: ClassVar[frozenset[str]] = frozenset()
    """Knobs of layouts that its kernels do not have."""
    searched: ClassVar[Mapping[str, tuple[Scalar, ...]]] = {}
    """Values of knobs of layouts that a study of this family searches, if others than the layout says."""
    by_device: ClassVar[Mapping[str, str]] = {}
    """Knobs whose value comes from the device if none is given, and what it is in words."""


@cached
def knobs(record: type[Declared]) -> tuple[Knob, ...]:
    """Return the knobs of a family, each after those that decide whether it acts; those of layouts follow `layout`."""
    found: list[Knob] = []
    for one in own_knobs(record):
        if one.name != "layout":
            found.append(one)
            continue
        allowed = tuple(name for name in one.allowed if name in record.layouts)
        search = tuple(name for name in one.search if name in allowed)
        found += [replace(one, allowed=allowed, search=search), *_layout_knobs(record)]
    names = [one.name for one in found]
    return tuple(sorted(found, key=lambda one: max([names.index(one.name), *_after(one, names)])))


def _after(one: Knob, names: list[str]) -> list[int]:
    return [names.index(condition.on) for condition in one.acts if condition.on in names]


def _layout_knobs(record: type[Declared]) -> list[Knob]:
    owners: dict[str, list[str]] = {}
    first: dict[str, Knob] = {}
    for name in record.layouts:
        for one in own_knobs(LAYOUTS[name]):
            if one.name not in record.without:
                owners.setdefault(one.name, []).append(name)
                first.setdefault(one.name, one)
    because = "other layouts have no such parameter"
    return [
        replace(
            first[name],
            search=record.searched.get(name, first[name].search),
            acts=(*first[name].acts, Acts(on="layout", values=tuple(having), because=because)),
        )
        for name, having in owners.items()
    ]


@cached
def layout_knobs(record: type[Declared]) -> frozenset[str]:
    """Return the names of the knobs that belong to layouts of a family, not to the family itself."""
    return frozenset(one.name for one in _layout_knobs(record))


@cached
def knobs_by_name(record: type[Declared]) -> Mapping[str, Knob]:
    """Return the knobs of a family by name."""
    return MappingProxyType({one.name: one for one in knobs(record)})


@cached
def defaults(record: type[Declared]) -> Mapping[str, Scalar]:
    """Return the defaults of a family's knobs, those of every layout included."""
    return MappingProxyType({one.name: one.default for one in knobs(record)})


@cached
def _parameters(record: type[Declared]) -> Mapping[str, tuple[tuple[str, ...], frozenset[str]]]:
    """Return the parameters of each layout, and those that the other layouts of a family have alone."""
    every = frozenset(one.name for layout in record.layouts for one in own_knobs(LAYOUTS[layout]))
    own = {
        name: tuple(one.name for one in own_knobs(LAYOUTS[name]) if one.name not in record.without) for name in LAYOUTS
    }
    return {name: (names, every - {*names}) for name, names in own.items()}


def layout_of(record: type[Declared], values: Mapping[str, Scalar]) -> Layout:
    """Return the layout that flat values name, with its parameters. Raises InputError."""
    name = str(values.get("layout", defaults(record)["layout"]))
    if name not in LAYOUTS:
        raise unknown("layout", name, record.layouts)
    known = knobs_by_name(record)
    own, others = _parameters(record)[name]
    for parameter in others & values.keys():
        if values[parameter] != known[parameter].default:
            having = known[parameter].acts[-1].values
            raise InputError(
                f"{parameter}={values[parameter]} is not supported for layout={name} "
                f"(use layout={' or '.join(map(str, having))}, or leave it out): {known[parameter].acts[-1].because}."
            )
    given = {parameter: converted(known[parameter], values[parameter]) for parameter in own if parameter in values}
    return LAYOUTS[name](**given)
