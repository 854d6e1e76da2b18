"""The [axes.cuda] and [axes.cpu] of a study file: one table, or several with double brackets, each a space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lbmtune.catalogue.axes import AXES, Axis
from lbmtune.catalogue.config import CONFIGS, Scalar
from lbmtune.files.source import Source

Values = dict[str, tuple[Scalar, ...]]
AxesFile = dict[str, Any] | list[dict[str, Any]]


def spaces(given: AxesFile | None, backend: str, source: Source) -> Values | tuple[Values, ...]:
    """The values of each axis, in each table. A backend without a table searches the usual values of all axes.

    Raises InputError.
    """
    key = f"axes.{backend}"
    if given is None:
        return {axis.name: axis.values for axis in AXES[backend]}
    if isinstance(given, list):
        return tuple(_values(table, backend, f"{key}[{n}]", source) for n, table in enumerate(given, 1))
    return _values(given, backend, key, source)


def _values(table: Mapping[str, Any], backend: str, key: str, source: Source) -> Values:
    known = {axis.name: axis for axis in AXES[backend]}
    return {name: _axis(known[name], values, backend, f"{key}.{name}", source) for name, values in table.items()}


def _axis(axis: Axis, values: object, backend: str, key: str, source: Source) -> tuple[Scalar, ...]:
    default = getattr(CONFIGS[backend], axis.name)
    items = values if isinstance(values, list) and not _is_extent(values, default) else [values]
    if not items:
        source.fail(key, "has no values; give at least one.")
    return tuple(dict.fromkeys(_scalar(axis, item, default, key, source) for item in items))


def _is_extent(values: list[object], default: object) -> bool:
    return isinstance(default, tuple) and bool(values) and all(isinstance(v, int) for v in values)


def _scalar(axis: Axis, value: object, default: object, key: str, source: Source) -> Scalar:
    """One value in the type of the axis: a name, a whole number, or extents such as '256x1x1'."""
    if isinstance(default, tuple):
        return _extents(value, len(default), key, source)
    if isinstance(value, str) and axis.names:
        source.check_name(key, value, axis.names)
        return value
    if isinstance(value, bool) or not isinstance(value, int) or isinstance(default, str):
        source.fail(key, f"{value!r} is not {'a name' if isinstance(default, str) else 'a whole number'}; correct it.")
    return value


def _extents(value: object, length: int, key: str, source: Source) -> str:
    parts = value.split("x") if isinstance(value, str) else value
    if not isinstance(parts, list) or len(parts) != length or not all(str(p).isdecimal() for p in parts):
        source.fail(key, f"{value!r} is not of the form {'x'.join(['256', '1', '1'][:length])}; correct it.")
    return "x".join(str(int(p)) for p in parts)
