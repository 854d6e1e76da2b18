"""The [axes.cuda] and [axes.cpu] of a study file: one table, or several with double brackets, each a space."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lbmtune.catalogue.config import DEFAULT_FAMILY, FAMILIES, Knob, Scalar, backend_knobs, families_with, knobs_by_name
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError
from lbmtune.files.source import Source
from lbmtune.records.legacy.configurations import DEFAULTS, RENAMED
from lbmtune.records.legacy.spaces import is_legacy_table, migrated_tables
from lbmtune.records.spec import made

LOG = logging.getLogger("lbmtune")
Values = dict[str, tuple[Scalar, ...]]
AxesFile = dict[str, Any] | list[dict[str, Any]]
_LISTS_CELLS = "sparse"
"""The family that lists fluid cells."""


def known_keys(backend: str) -> tuple[str, ...]:
    """Return the keys of a space: the knobs of all families, and those of version 0.1."""
    return tuple(dict.fromkeys((*backend_knobs(backend), *DEFAULTS[backend])))


def usual_spaces(case: Case, backend: str) -> Values | tuple[Values, ...]:
    """Return the usual values of each knob of the default family.

    Solid cells, and patches, need flags in memory, or the family that lists fluid cells: each is a space then.
    """
    usual = _usual(backend, DEFAULT_FAMILY)
    if not case.geometry and not case.patches:
        return usual
    return ({**usual, "flags": ("memory",)}, {"family": (_LISTS_CELLS,), **_usual(backend, _LISTS_CELLS)})


def _usual(backend: str, family: str) -> Values:
    return {one.name: one.search for one in knobs_by_name(FAMILIES[backend][family]).values()}


def restrictions(
    given: AxesFile, backend: str, families: tuple[str, ...], source: Source
) -> Values | tuple[Values, ...]:
    """Return the values of the knobs that a study gives, in each space; the others are made. Raises InputError.

    families: those of tables that name none.
    """
    several = isinstance(given, list)
    found = tuple(
        _restricted(table, backend, f"axes.{backend}[{n}]" if several else f"axes.{backend}", families, source)
        for n, table in enumerate(given if isinstance(given, list) else [given], 1)
    )
    return found if several else found[0]


def _restricted(table: Mapping[str, Any], backend: str, key: str, families: tuple[str, ...], source: Source) -> Values:
    """Return the values of a table: each knob belongs to one of its families at least."""
    _check_values(table, key, source)
    found: Values = {}
    if "family" in table:
        found["family"] = _values_of(backend_knobs(backend)["family"], table["family"], f"{key}.family", source)
    names = [str(name) for name in found.get("family", [name for name in FAMILIES[backend] if made(name, families)])]
    for name in table:
        if name == "family":
            continue
        having = [known[name] for family in names if name in (known := knobs_by_name(FAMILIES[backend][family]))]
        if not having:
            source.fail(f"{key}.{name}", _not_of_family(name, " or ".join(names), backend))
        allowed = tuple(dict.fromkeys(value for one in having for value in one.allowed))
        for one in having:
            either = replace(one, allowed=allowed if one.allowed else ())
            found[name] = _values_of(either, table[name], f"{key}.{name}", source)
    return found


def _check_values(table: Mapping[str, Any], key: str, source: Source) -> None:
    for name, value in table.items():
        if value == []:
            source.fail(f"{key}.{name}", "has no values; give at least one.")


def spaces(given: AxesFile, backend: str, source: Source) -> Values | tuple[Values, ...]:
    """Return the values of each knob, in each space. Raises InputError."""
    key = f"axes.{backend}"
    several = isinstance(given, list)
    tables = given if isinstance(given, list) else [given]
    found = [
        one
        for n, table in enumerate(tables, 1)
        for one in _spaces(table, backend, f"{key}[{n}]" if several else key, source)
    ]
    return found[0] if len(found) == 1 and not several else tuple(found)


def _spaces(table: Mapping[str, Any], backend: str, key: str, source: Source) -> tuple[Values, ...]:
    """Return the spaces of a table: one, or of version 0.1 one for each family that it reaches."""
    _check_values(table, key, source)
    plain = {name: plain_values(value, name, backend) for name, value in table.items()}
    if is_legacy_table(plain, backend):
        LOG.info("%s has knobs of version 0.1; lbmtune list shows their names of today", key)
        try:
            migrated = migrated_tables(plain, backend)
        except (InputError, ValueError) as error:
            source.fail(key, str(error))
        return tuple(_values(one, backend, key, source) for one in migrated)
    return (_values(table, backend, key, source),)


def plain_values(value: Any, name: str, backend: str) -> tuple[Scalar, ...]:
    """Return the values of a key of a space as numbers and texts; extents may be lists of numbers."""
    usual = DEFAULTS[backend].get(name, "")
    extents = isinstance(usual, str) and "x" in usual and usual[0].isdecimal()
    items = value if isinstance(value, (list, tuple)) else [value]
    if extents and items and all(isinstance(item, int) for item in items):
        items = [items]
    return tuple("x".join(map(str, item)) if isinstance(item, (list, tuple)) else item for item in items)


def _values(table: Mapping[str, Any], backend: str, key: str, source: Source) -> Values:
    found: Values = {}
    if "family" in table:
        found["family"] = _values_of(backend_knobs(backend)["family"], table["family"], f"{key}.family", source)
    families = [str(name) for name in found.get("family", (DEFAULT_FAMILY,))]
    for name, values in table.items():
        if name == "family":
            continue
        for family in families:
            known = knobs_by_name(FAMILIES[backend][family])
            if name not in known:
                source.fail(f"{key}.{name}", _not_of_family(name, family, backend))
            found[name] = _values_of(known[name], values, f"{key}.{name}", source)
    return found


def _not_of_family(name: str, family: str, backend: str) -> str:
    """Return why a knob cannot be in a space: other families have it, or it is one of version 0.1."""
    if having := families_with(name, backend):
        return f"is not a knob of family {family} (use family {' or '.join(having)})."
    today = " or ".join(dict.fromkeys(one.name for one in RENAMED.get(name, ()))) or "the knobs of lbmtune list"
    return f"is a knob of version 0.1, which is not supported beside those of today (use {today})."


def _values_of(one: Knob, values: object, key: str, source: Source) -> tuple[Scalar, ...]:
    items = list(values) if isinstance(values, (list, tuple)) and not _is_extent(one, values) else [values]
    return tuple(dict.fromkeys(_scalar(one, item, key, source) for item in items))


def _is_extent(one: Knob, values: list[object] | tuple[object, ...]) -> bool:
    return one.is_extent and bool(values) and all(isinstance(v, int) for v in values)


def _scalar(one: Knob, value: Any, key: str, source: Source) -> Scalar:
    """Return one value in the type of the knob: a name, a whole number, or extents such as '256x1x1'."""
    if one.is_extent:
        return _extents(value, str(one.default), key, source)
    if isinstance(value, str) and one.is_name:
        if one.allowed:
            source.check_name(key, value, tuple(map(str, one.allowed)))
        return value
    if isinstance(value, str) and value in (*one.search, *one.words):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or one.is_name:
        source.fail(key, f"{value!r} is not {'a name' if one.is_name else 'a whole number'}; correct it.")
    return value


def _extents(value: Any, example: str, key: str, source: Source) -> str:
    parts = value.split("x") if isinstance(value, str) else value
    right = isinstance(parts, (list, tuple)) and len(parts) == example.count("x") + 1
    if not right or not all(str(p).isdecimal() for p in parts):
        source.fail(key, f"{value!r} is not of the form {example}; correct it.")
    return "x".join(str(int(p)) for p in parts)
