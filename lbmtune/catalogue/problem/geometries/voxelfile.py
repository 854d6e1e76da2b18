"""A geometry from a voxel file of the user: .npy, .raw or .vti, zero for fluid and other values for solid.

On another domain the sample is cropped, or repeated periodically. A sample with fluid values (cells with a condition at
a face, `catalogue.problem.patches`) is stretched instead, so that its faces remain faces.
"""

import hashlib
import os
import stat
import warnings
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lbmtune.catalogue.problem.geometries.shape import Geometry, Shape, Voxels
from lbmtune.catalogue.problem.geometries.vti import read_vti
from lbmtune.catalogue.problem.parameter_text import GeometryError
from lbmtune.units import format_bytes

Values = npt.NDArray[Any]
_KINDS = (".npy", ".raw", ".vti")
_RAW_TYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8")
_TYPE_OF_BYTES = {1: "u1", 2: "u2", 4: "u4"}
"""Types of .raw files by the bytes of a cell, which tomographs write."""
_MEMORY_SHARE = 4
"""A file and what is made of it are held at once, so a file takes up to this part of the memory."""
_REASON_LETTERS = 150


@dataclass(frozen=True)
class VoxelFile(Geometry):
    """A voxel file. path: of the file; shape: 'nx x ny x nz' of a .raw file (x fastest); digest: of its content.

    dtype: of a .raw file, such as 'u2' or '>u2' (default: unsigned integers by the size of the file); array: of a .vti
    file (default: the active one); invert: 1 if zero is solid; fluid: values besides zero that are fluid, '2+3';
    repeat: 1 if a domain may be larger than the sample.
    The digest belongs to the identity of a case: a changed file is another geometry.
    """

    name = "file"
    less = "name another array, or add :invert=1 if zero is solid"
    path: str
    shape: str = ""
    dtype: str = ""
    array: str = ""
    invert: int = 0
    fluid: str = ""
    repeat: int = 0
    digest: str = ""

    def __post_init__(self) -> None:
        """Check the parameters. Raises InputError."""
        if self.dtype.lstrip("<>") not in ("", *_RAW_TYPES):
            raise GeometryError(f"geometry file: unknown dtype {self.dtype!r}; choose one of {', '.join(_RAW_TYPES)}.")
        if self.invert and self.fluid:
            raise GeometryError("geometry file: invert=1 is not supported for cells with a condition (leave it out).")

    def solid(self, shape: Shape) -> Voxels:
        """Return the solid cells of a domain: bool, (nz, ny, nx). Raises InputError."""
        values = self.values(shape)
        solid = (values != 0) != bool(self.invert)
        for value in self._fluid_values():
            solid &= values != value
        return np.asarray(solid)

    def _fluid_values(self) -> list[int]:
        try:
            return [int(value) for value in self.fluid.split("+") if value]
        except ValueError:
            raise GeometryError(
                f"geometry file: fluid={self.fluid} is not whole numbers; join them with +, as in fluid=2+3."
            ) from None

    def values(self, shape: Shape) -> Values:
        """Return the values of the file on a domain, (nz, ny, nx). Raises InputError."""
        found = _sample(self)
        places = _stretched if self.fluid else _repeated
        return found[np.ix_(*(places(n, own) for n, own in zip(shape, found.shape, strict=True)))]

    def leaves_fluid(self, shape: Shape) -> bool:
        """Return whether the part of the sample that lies in a domain has a fluid cell. Raises InputError."""
        return not self.solid(self._used(shape)).all()

    def _used(self, shape: Shape) -> Shape:
        """Return the part of the sample that lies in a domain. Raises InputError if it does not fill it as said."""
        if not self.shape and self.path.lower().endswith(".raw"):
            raise GeometryError(
                f"{self.path} needs its cells along x, y and z; add for example :shape={_cells(shape)}."
            )
        own = _sample(self).shape
        has = _cells(own)
        if self.fluid and own != shape:
            raise GeometryError(f"the sample {self.path} has {has} cells and faces of its own; set domain to {has}.")
        if not self.repeat and any(n > cells for n, cells in zip(shape, own, strict=True)):
            raise GeometryError(
                f"the sample {self.path} has {has} cells and does not fill the domain {_cells(shape)}; set domain to "
                f"{has}, or add :repeat=1 to its geometry to repeat it."
            )
        z, y, x = map(min, shape, own)
        return z, y, x


def _cells(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, reversed(shape)))


def _repeated(extent: int, own: int) -> npt.NDArray[np.int64]:
    return np.arange(extent) % own


def _stretched(extent: int, own: int) -> npt.NDArray[np.int64]:
    return np.rint(np.linspace(0, own - 1, extent)).astype(np.int64)


def digest_of(path: str) -> str:
    """Return the digest of a voxel file. Raises InputError."""
    return _digest(_content(path, known=False))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@lru_cache(maxsize=4)
def _sample(file: VoxelFile) -> Values:
    """Return the values of a file, (nz, ny, nx)."""
    content = _content(file.path, known=bool(file.digest))
    if file.digest and _digest(content) != file.digest:
        raise GeometryError(
            f"{file.path} has the digest {_digest(content)}, the case was made with {file.digest}; restore the file or "
            "start another study."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of parsers, about content that is refused below
            found = _read(file, content)
    except Exception as error:  # a damaged file makes NumPy and the parsers raise nearly anything
        lines = str(error).splitlines() if isinstance(error, ValueError) else []
        reason = lines[0][:_REASON_LETTERS].rstrip(".") if lines else f"it is damaged ({type(error).__name__})"
        raise GeometryError(
            f"cannot read the voxels of {file.path}: {reason}; give one value for every cell."
        ) from error
    return found.reshape((1,) * (3 - found.ndim) + found.shape)


def _content(path: str, known: bool) -> bytes:
    """Return the content of a regular file. known: its case has been recorded with it."""
    correct = "restore it, or name it with --geometry (load: geometry=)" if known else "give the path of a voxel file"
    if Path(path).suffix.lower() not in _KINDS:
        kind = Path(path).suffix or "no suffix"
        raise GeometryError(f"cannot read {path}: {kind} is no voxel file of the kinds {', '.join(_KINDS)}; {correct}.")
    try:
        # not blocking: opening a pipe would wait for its writer
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise GeometryError(f"cannot read {path}: it is no regular file; {correct}.")
            if found.st_size > _most_bytes():
                size = format_bytes(found.st_size)
                raise GeometryError(f"cannot read {path}: it has {size}, more than a quarter of the memory; crop it.")
            return file.read(found.st_size)
    except (OSError, ValueError) as error:  # a path with NUL is no value of a path
        reason = error.strerror if isinstance(error, OSError) else error
        raise GeometryError(f"cannot read {path}: {reason}; {correct}.") from error


def _most_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _MEMORY_SHARE


def _read(file: VoxelFile, content: bytes) -> Values:
    kind = Path(file.path).suffix.lower()
    if kind == ".vti":
        return read_vti(content, file.array, _most_bytes())
    return _npy(content) if kind == ".npy" else _raw(content, file.shape, file.dtype)


def _npy(content: bytes) -> Values:
    """Return an array [z, y, x] or [y, x]."""
    found = np.load(BytesIO(content), allow_pickle=False)
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "biuf":
        raise ValueError("it is not an array of numbers")
    if found.ndim not in (2, 3) or not found.size:
        raise ValueError(f"its shape is {found.shape} where two or three axes with cells are expected")
    return found


def _raw(content: bytes, shape: str, dtype: str) -> Values:
    """Return the values of a file without a header, x fastest."""
    extents = [int(part) for part in shape.split("x") if part]
    cells = prod(extents) if len(extents) in (2, 3) and min(extents) > 0 else 0
    kind = dtype or _TYPE_OF_BYTES.get(len(content) // max(cells, 1), "u1")
    if not cells or cells * np.dtype(kind).itemsize != len(content):
        typed = f" and dtype={dtype}" if dtype else ""
        raise ValueError(f"{len(content)} bytes and shape={shape or '?'}{typed}")
    return np.frombuffer(content, kind).reshape(extents[::-1])


GEOMETRY = VoxelFile
