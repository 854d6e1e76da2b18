"""Solid cells inside the box: the text of a case, and its voxels on any domain.

The text names a generator and its parameters: 'packing:fraction=0.5:radius=8:seed=1'. A generator is a function of
the domain, so that a kernel can be verified on small extents and measured on large ones. `fraction` is the solid
fraction (one minus the porosity), exact to one cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lbmtune.catalogue.byte_lru_cache import remembered
from lbmtune.catalogue.problem.faces import Problem
from lbmtune.catalogue.problem.geometries import GENERATORS
from lbmtune.catalogue.problem.geometries.shape import Geometry, Voxels
from lbmtune.errors import InputError, unknown

Values = npt.NDArray[Any]
_VOXELS_BYTES = 1 << 29
_FORM = "packing:fraction=0.5:radius=8:seed=1"


def solid(case: Problem) -> Voxels:
    """Return the solid cells of the case's domain: bool, (nz, ny, nx), read-only."""
    return voxels(case.geometry, case.domain)


@remembered(_VOXELS_BYTES)
def voxels(geometry: str, domain: tuple[int, int, int]) -> Voxels:
    """Return the solid cells of a geometry: bool, (nz, ny, nx), read-only. Raises InputError."""
    shape = domain[::-1]
    made = generator(geometry).solid(shape) if geometry else np.zeros(shape, bool)
    made.flags.writeable = False
    return made


@lru_cache(maxsize=1024)
def fluid_cells(geometry: str, domain: tuple[int, int, int]) -> int:
    """Return the number of cells that are not solid."""
    nx, ny, nz = domain
    return nx * ny * nz - (int(voxels(geometry, domain).sum()) if geometry else 0)


@remembered(_VOXELS_BYTES)
def cell_values(geometry: str, domain: tuple[int, int, int]) -> Values:
    """Return the values of a voxel file on a domain, (nz, ny, nx), read-only. Raises InputError."""
    found: Values = generator(geometry).values(domain[::-1])  # type: ignore[attr-defined]
    found.flags.writeable = False
    return found


def generator(geometry: str) -> Geometry:
    """Return the geometry of a text, with its parameters. Raises InputError."""
    made: Geometry = parsed(geometry, GENERATORS, "geometry", _FORM)
    return made


def parsed(text: str, kinds: Mapping[str, Any], word: str, form: str) -> Any:
    """Return the object of a text 'name:parameter=value:...'. Raises InputError.

    kinds: classes by name; word: the noun for them in errors; form: an example of a text.
    """
    name, _, rest = text.partition(":")
    if name not in kinds:
        raise unknown(word, name, kinds)
    known = {f.name: f for f in fields(kinds[name])}
    values: dict[str, Any] = {}
    for item in filter(None, rest.split(":")):
        key, equals, value = item.partition("=")
        if not equals:
            raise InputError(f"{word} part {item!r} is not of the form name=value; write for example {form}.")
        if key not in known:
            raise unknown(f"parameter of {word} {name}", key, known)
        values[key] = _converted(f"{word} {text!r}", known[key], value, form)
    _check_complete(text, known, values)
    return kinds[name](**values)


def _converted(what: str, field: Field[Any], text: str, form: str) -> object:
    """Return the value in the type of the parameter's default; a parameter without default is a text."""
    kind = str if field.default is MISSING else type(field.default)
    try:
        return kind(text)
    except ValueError:
        number = "a whole number" if kind is int else "a number"
        raise InputError(f"{what}: {field.name}={text!r} is not {number}; write for example {form}.") from None


def _check_complete(geometry: str, known: Mapping[str, Field[Any]], values: Mapping[str, object]) -> None:
    missing = [name for name, field in known.items() if field.default is MISSING and name not in values]
    if missing:
        raise InputError(f"geometry {geometry!r} needs {missing[0]}; add :{missing[0]}=VALUE.")
