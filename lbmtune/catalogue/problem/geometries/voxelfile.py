"""A geometry from a voxel file of the user: .npy, .raw or .vti, zero for fluid and other values for solid.

On another domain the sample is cropped, or repeated periodically. A sample with fluid values (cells with a condition at
a face, `catalogue.problem.patches`) is stretched instead, so that its faces remain faces.
"""

from __future__ import annotations

import base64
import hashlib
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lbmtune.catalogue.problem.geometries.shape import Geometry, Shape, Voxels
from lbmtune.errors import InputError

Values = npt.NDArray[Any]
_TYPES = {"Int8": "i1", "UInt8": "u1", "Int16": "i2", "UInt16": "u2", "Int32": "i4", "UInt32": "u4", "Float32": "f4",
          "Float64": "f8", "Int64": "i8", "UInt64": "u8"}  # fmt: skip


@dataclass(frozen=True)
class VoxelFile(Geometry):
    """A voxel file. path: of the file; shape: 'nx x ny x nz' of a .raw file (bytes, x fastest); digest: of its content.

    fluid: values besides zero that are fluid, '2+3'; repeat: 1 if a domain may be larger than the sample.
    The digest belongs to the identity of a case: a changed file is another geometry.
    """

    name = "file"
    path: str
    shape: str = ""
    fluid: str = ""
    repeat: int = 0
    digest: str = ""

    def solid(self, shape: Shape) -> Voxels:
        """Return the solid cells of a domain: bool, (nz, ny, nx). Raises InputError."""
        values = self.values(shape)
        solid = values != 0
        for value in self._fluid_values():
            solid &= values != value
        return np.asarray(solid)

    def _fluid_values(self) -> list[int]:
        try:
            return [int(value) for value in self.fluid.split("+") if value]
        except ValueError:
            raise InputError(f"fluid={self.fluid} is not whole numbers; join them with +, as in fluid=2+3.") from None

    def values(self, shape: Shape) -> Values:
        """Return the values of the file on a domain, (nz, ny, nx). Raises InputError."""
        found = _voxels(self.path, self.shape, self.digest)
        places = _stretched if self.fluid else _repeated
        return found[np.ix_(*(places(n, own) for n, own in zip(shape, found.shape, strict=True)))]

    def check_domain(self, shape: Shape) -> None:
        """Raise InputError if the sample does not fill the domain as specified."""
        own = _voxels(self.path, self.shape, self.digest).shape
        has, wanted = ("x".join(map(str, reversed(extents))) for extents in (own, shape))
        if self.fluid and own != shape:
            raise InputError(f"the sample {self.path} has {has} cells and faces of its own; set domain to {has}.")
        if not self.repeat and any(n > cells for n, cells in zip(shape, own, strict=True)):
            raise InputError(
                f"the sample {self.path} has {has} cells and does not fill the domain {wanted}; set domain to {has}, "
                "or add :repeat=1 to its geometry to repeat it."
            )


def _repeated(extent: int, own: int) -> npt.NDArray[np.int64]:
    return np.arange(extent) % own


def _stretched(extent: int, own: int) -> npt.NDArray[np.int64]:
    return np.rint(np.linspace(0, own - 1, extent)).astype(np.int64)


def with_digest(geometry: str) -> str:
    """Return the text of a geometry with the digest of its file, if it has one. Raises InputError."""
    if not geometry.startswith("file:") or ":digest=" in geometry:
        return geometry
    path = next((part[5:] for part in geometry.split(":") if part.startswith("path=")), None)
    return geometry if path is None else f"{geometry}:digest={_digest(_content(path))}"


@lru_cache(maxsize=4)
def _voxels(path: str, shape: str, digest: str) -> Values:
    content = _content(path)
    if digest and _digest(content) != digest:
        raise InputError(
            f"{path} has the digest {_digest(content)}, the case was made with {digest}; restore the file or start "
            "another study."
        )
    try:
        found = _read(Path(path).suffix, content, shape)
    except (ValueError, KeyError, EOFError, ElementTree.ParseError) as error:
        raise InputError(f"cannot read the voxels of {path}: {error}; give one value for every cell.") from error
    return found.reshape((1,) * (3 - found.ndim) + found.shape)


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give the path of a voxel file.") from error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _read(kind: str, content: bytes, shape: str) -> Values:
    if kind == ".npy":
        return _npy(content)
    if kind == ".raw":
        return _raw(content, shape)
    if kind == ".vti":
        return _vti(content)
    raise ValueError(f"{kind or 'no suffix'} is no voxel file of the kinds .npy, .raw and .vti")


def _npy(content: bytes) -> Values:
    """Return an array [z, y, x] or [y, x]."""
    found = np.load(BytesIO(content), allow_pickle=False)
    if found.ndim not in (2, 3):
        raise ValueError(f"{found.ndim} axes where two or three are expected")
    return np.asarray(found)


def _raw(content: bytes, shape: str) -> Values:
    """Return one byte per cell, x fastest."""
    extents = [int(part) for part in shape.split("x") if part]
    if len(extents) not in (2, 3) or prod(extents) != len(content):
        raise ValueError(f"{len(content)} bytes and shape={shape or '?'}")
    return np.frombuffer(content, np.uint8).reshape(extents[::-1])


def _vti(content: bytes) -> Values:
    """Return the first array of an uncompressed VTK ImageData, ASCII or inline binary; cell data before point data."""
    root = ElementTree.fromstring(content)
    if root.get("compressor"):
        raise ValueError("it is compressed")
    image = root.find("ImageData")
    array = root.find(".//CellData/DataArray")
    of_points = array is None
    array = root.find(".//PointData/DataArray") if array is None else array
    if image is None or array is None:
        raise ValueError("it holds no ImageData with an array")
    bounds = [int(n) for n in image.attrib["WholeExtent"].split()]
    extents = [max(1, high - low + of_points) for low, high in zip(bounds[::2], bounds[1::2], strict=True)]
    return _values(array, root).reshape(extents[::-1])


def _values(array: ElementTree.Element, root: ElementTree.Element) -> npt.NDArray[np.generic]:
    order = "<" if root.get("byte_order", "LittleEndian") == "LittleEndian" else ">"
    kind = np.dtype(order + _TYPES[array.attrib["type"]])
    text = (array.text or "").strip()
    if array.get("format", "ascii") == "ascii":
        return np.array(text.split(), kind)
    if array.get("format") != "binary":
        raise ValueError(f"its data are {array.get('format')}; save them as ascii or binary")
    header = np.dtype(order + _TYPES[root.get("header_type", "UInt32")]).itemsize
    return np.frombuffer(base64.b64decode(text)[header:], kind)


GEOMETRY = VoxelFile
