"""Solid cells inside the box: the text of a case, and its voxels on any domain.

The text names a generator and its parameters: 'packing:fraction=0.5:radius=8:seed=1'. A generator is a function of
the domain, so that a kernel can be verified on small extents and measured on large ones. `fraction` is the solid
fraction (one minus the porosity), exact to one cell.
"""

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lbmtune.catalogue.byte_lru_cache import remembered
from lbmtune.catalogue.problem.faces import Problem
from lbmtune.catalogue.problem.geometries import GENERATORS
from lbmtune.catalogue.problem.geometries.shape import Geometry, Voxels
from lbmtune.catalogue.problem.geometries.voxelfile import digest_of
from lbmtune.catalogue.problem.parameter_text import GeometryError, parsed, split, written

Values = npt.NDArray[Any]
_VOXELS_BYTES = 1 << 29
_FORM = "packing:fraction=0.5:radius=8:seed=1"
_WORD = "geometry"


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


@remembered(_VOXELS_BYTES)
def levels(geometry: str, domain: tuple[int, int, int]) -> npt.NDArray[np.float32]:
    """Return where the surfaces of a geometry that has some lie (`Geometry.level`), (nz, ny, nx), read-only."""
    found = generator(geometry).level(domain[::-1])
    found.flags.writeable = False
    return found


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
    made: Geometry = parsed(geometry, GENERATORS, _WORD, _FORM)
    return made


def check_solid(case: Problem) -> None:
    """Raise InputError if a voxel file does not fill the domain of a case, or if no cell of it is fluid."""
    made = generator(case.geometry) if case.geometry else None
    if made and not made.leaves_fluid(case.domain[::-1]):
        domain = "x".join(map(str, case.domain))
        raise GeometryError(f"geometry {case.geometry} leaves no fluid cell in the domain {domain}; {made.less}.")


def identified(geometry: str, folder: Path, fluid: Sequence[int] = ()) -> str:
    """Return a geometry with what identifies its voxel file, if it has one: absolute path and digest.

    folder: where a relative path begins; fluid: values of cells with a condition at a face. Raises InputError.
    """
    name, values = split(geometry, _WORD, _FORM)
    if name != "file" or "path" not in values:
        return geometry
    values["path"] = os.path.normpath((folder / _home(values["path"])).absolute())
    if fluid:
        values.setdefault("fluid", "+".join(map(str, fluid)))
    if "digest" not in values:
        values["digest"] = digest_of(values["path"])
    return written(name, values)


def moved(geometry: str, path: str | os.PathLike[str]) -> str:
    """Return a geometry whose voxel file lies at another path. Raises InputError."""
    name, values = split(geometry, _WORD, _FORM)
    if name != "file":
        what = f"{_WORD} {geometry}, which is computed" if geometry else "no solid cells"
        raise GeometryError(f"geometry={path} is not supported for this case (leave it out): it has {what}.")
    return written(name, {**values, "path": os.path.normpath(_home(path).absolute())})


def without_path(geometry: str) -> str:
    """Return what identifies a geometry: not the path of a voxel file with a digest."""
    name, values = split(geometry, _WORD, _FORM) if geometry.startswith("file:") else (geometry, {})
    return written(name, {**values, "path": ""}) if "digest" in values else geometry


def _home(path: str | os.PathLike[str]) -> Path:
    """Return a path in whose beginning ~ stands for the user's home."""
    try:
        return Path(path).expanduser()
    except (RuntimeError, ValueError):  # no such user, or NUL in its name: the path is not found then
        return Path(path)
