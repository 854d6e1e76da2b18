"""What is solid inside the box: a text of the case, and the voxels that it stands for on any domain.

The text names a generator and its parameters: 'packing:fraction=0.5:radius=8:seed=1'. A generator is a function of
the domain, so that a kernel can be verified on small extents and measured on large ones. `fraction` is always the
solid one (one minus the porosity), and is met to the cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from lbmtune.catalogue.geometries import GENERATORS
from lbmtune.catalogue.geometries.shape import Shape
from lbmtune.catalogue.remember import remembered
from lbmtune.errors import InputError, unknown

if TYPE_CHECKING:
    from lbmtune.catalogue.case import Case

Voxels = npt.NDArray[np.bool_]
_VOXELS_BYTES = 1 << 29
_FORM = "packing:fraction=0.5:radius=8:seed=1"


class Generator(Protocol):
    """Parameters of a geometry."""

    def solid(self, shape: Shape) -> Voxels:
        """Which cells are solid, (nz, ny, nx)."""


def solid(case: Case) -> Voxels:
    """Which cells of the case's domain are solid: bool, (nz, ny, nx), read-only; False where there is no geometry."""
    return voxels(case.geometry, case.domain)


@remembered(_VOXELS_BYTES)
def voxels(geometry: str, domain: tuple[int, int, int]) -> Voxels:
    """The same for a text and a domain. Raises InputError: unknown geometry, a file that cannot be read."""
    shape = domain[::-1]
    made = generator(geometry).solid(shape) if geometry else np.zeros(shape, bool)
    made.flags.writeable = False
    return made


@lru_cache(maxsize=1024)
def fluid_cells(geometry: str, domain: tuple[int, int, int]) -> int:
    """Number of cells that are not solid."""
    nx, ny, nz = domain
    return nx * ny * nz - (int(voxels(geometry, domain).sum()) if geometry else 0)


def generator(geometry: str) -> Generator:
    """The generator of a text, with its parameters. Raises InputError."""
    name, _, rest = geometry.partition(":")
    if name not in GENERATORS:
        raise unknown("geometry", name, GENERATORS)
    kind = GENERATORS[name]
    known = {f.name: f for f in fields(kind)}
    values: dict[str, Any] = {}
    for item in filter(None, rest.split(":")):
        key, equals, value = item.partition("=")
        if not equals:
            raise InputError(f"geometry part {item!r} is not of the form name=value; write for example {_FORM}.")
        if key not in known:
            raise unknown(f"parameter of geometry {name}", key, known)
        values[key] = _converted(geometry, known[key], value)
    _check_complete(geometry, known, values)
    made: Generator = kind(**values)
    return made


def _converted(geometry: str, field: Field[Any], text: str) -> object:
    """The value in the type of the parameter's default; a parameter without one is a text."""
    kind = str if field.default is MISSING else type(field.default)
    try:
        return kind(text)
    except ValueError:
        form = "a whole number" if kind is int else "a number"
        raise InputError(
            f"geometry {geometry!r}: {field.name}={text!r} is not {form}; write for example {_FORM}."
        ) from None


def _check_complete(geometry: str, known: Mapping[str, Field[Any]], values: Mapping[str, object]) -> None:
    missing = [name for name, field in known.items() if field.default is MISSING and name not in values]
    if missing:
        raise InputError(f"geometry {geometry!r} needs {missing[0]}; add :{missing[0]}=VALUE.")
