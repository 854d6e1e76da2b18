"""A window of another geometry: what a part of a domain has of the solid cells of the whole."""

import re
from dataclasses import dataclass

import numpy as np

from lbmtune.catalogue.byte_lru_cache import remembered
from lbmtune.catalogue.problem.geometries.shape import Geometry, Shape, Voxels
from lbmtune.catalogue.problem.parameter_text import parsed
from lbmtune.errors import InputError

_WHOLE_BYTES = 1 << 29


@dataclass(frozen=True)
class Window(Geometry):
    """The cells of another geometry from one cell on. of: its text; domain, first: 'x by y by z', such as '64x64x128'.

    Beyond the domain it is repeated.
    """

    name = "window"
    less = "take a window elsewhere"
    of: str
    domain: str
    first: str

    def __post_init__(self) -> None:
        """Check the parameters. Raises InputError."""
        _three("domain", self.domain, least=1)
        _three("first", self.first, least=0)

    def solid(self, shape: Shape) -> Voxels:
        """Return the solid cells of the window. Raises InputError."""
        domain, first = _three("domain", self.domain, least=1), _three("first", self.first, least=0)
        places = [(at + np.arange(n)) % cells for at, n, cells in zip(first, shape[::-1], domain, strict=True)]
        found: Voxels = _whole(self.of, domain)[np.ix_(*places[::-1])]
        return found

    def leaves_fluid(self, shape: Shape) -> bool:
        """Return whether the window has a fluid cell. Raises InputError."""
        return not self.solid(shape).all()


@remembered(_WHOLE_BYTES)
def _whole(geometry: str, domain: tuple[int, int, int]) -> Voxels:
    """Return the solid cells of the other geometry. Raises InputError."""
    from lbmtune.catalogue.problem.geometries import GENERATORS  # here: this geometry is one of them

    made: Geometry = parsed(geometry, GENERATORS, "geometry", "sphere:diameter=0.5")
    return made.solid(domain[::-1])


def _three(name: str, text: str, least: int) -> tuple[int, int, int]:
    """Return three whole numbers. Raises InputError."""
    found = re.fullmatch(r"(\d{1,9})x(\d{1,9})x(\d{1,9})", text)
    if not found or min(map(int, found.groups())) < least:
        raise InputError(f"geometry window: {name}={text} is not three numbers from {least} on; write 64x64x128.")
    x, y, z = map(int, found.groups())
    return x, y, z


GEOMETRY = Window
