"""Square ducts through the box, joined in its middle.

Geier, Schonherr 2017, section 5.3: cross-sections of 5 x 5, 10 x 10 and 20 x 20 cells, each 128 cells long, in
three orientations, named after the axis of the largest one.
"""

from dataclasses import dataclass

import numpy as np

from lbmtune.catalogue.problem.geometries.shape import Geometry, Shape, Voxels
from lbmtune.errors import InputError, unknown


@dataclass(frozen=True)
class Ducts(Geometry):
    """Square ducts. sizes: edges in cells; axis: of the first duct, the others follow in the order x, y, z, x."""

    name = "ducts"
    sizes: str = "20x10x5"
    axis: str = "x"

    def __post_init__(self) -> None:
        """Check the parameters. Raises InputError."""
        if self.axis not in ("x", "y", "z"):
            raise unknown("axis of geometry ducts", self.axis, ("x", "y", "z"))
        parts = self.sizes.split("x")
        if not 1 <= len(parts) <= 3 or not all(part.isdecimal() and int(part) for part in parts):
            raise InputError(f"geometry ducts: sizes={self.sizes!r} is not one to three edges; write sizes=20x10x5.")

    def leaves_fluid(self, shape: Shape) -> bool:
        """Return whether there are cells: each duct has one then."""
        return all(shape)

    def solid(self, shape: Shape) -> Voxels:
        """Return all cells outside the ducts; a duct leaves a wall on each side if the extent allows it."""
        fluid = np.zeros(shape, bool)
        for number, size in enumerate(self.sizes.split("x")):
            along = 2 - ("xyz".index(self.axis) + number) % 3
            fluid[tuple(slice(None) if a == along else _middle(int(size), n) for a, n in enumerate(shape))] = True
        return ~fluid


def _middle(size: int, extent: int) -> slice:
    size = min(size, max(1, extent - 2))
    start = (extent - size) // 2
    return slice(start, start + size)


GEOMETRY = Ducts
