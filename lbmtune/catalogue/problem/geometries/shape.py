"""The record of a geometry, and functions that geometries share."""

from math import prod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lbmtune.errors import InputError

Shape = tuple[int, int, int]
"""Cells along z, y, x."""
Voxels = npt.NDArray[np.bool_]


class Geometry:
    """Solid cells of any domain; the fields of a subclass are its parameters.

    less: how to have fewer. has_surface: where the surface lies between two cells is known.
    """

    name: ClassVar[str]
    has_surface: ClassVar[bool] = False
    less: ClassVar[str] = "give smaller bodies, or a larger domain"

    def solid(self, shape: Shape) -> Voxels:
        """Return the solid cells: bool, (nz, ny, nx)."""
        raise NotImplementedError

    def leaves_fluid(self, shape: Shape) -> bool:
        """Return whether a domain has a fluid cell, without making a large one. Raises InputError."""
        raise NotImplementedError

    def level(self, shape: Shape) -> npt.NDArray[np.float32]:
        """Return the squared distance of each cell to a centre, less the squared radius, of a geometry with a surface.

        It is positive in fluid cells; infinite far from the surface.
        """
        raise NotImplementedError


class Sample(Geometry):
    """Random solid cells. fraction: of solid, up to `most`; seed: of the random numbers; `length`: name of a length."""

    length: ClassVar[str]
    most: ClassVar[float] = 0.99
    fraction: float
    seed: int

    def __post_init__(self) -> None:
        """Check the parameters. Raises InputError."""
        if not 0.0 <= self.fraction <= self.most:
            raise InputError(
                f"geometry {self.name}: fraction={self.fraction:g} is not between 0 and {self.most:g}; give the solid "
                "fraction."
            )
        check_positive(self.name, self.length, getattr(self, self.length))

    def leaves_fluid(self, shape: Shape) -> bool:
        """Return whether the fraction of some cells is not all of them."""
        return round(self.fraction * prod(shape)) < prod(shape)


def lowest(field: npt.NDArray[Any], fraction: float) -> Voxels:
    """Return the cells with the smallest values, exactly that fraction; of equal values the first ones."""
    count, values = round(fraction * field.size), field.reshape(-1)
    if not count:
        return np.zeros(field.shape, bool)
    level = np.partition(values, count - 1)[count - 1]
    chosen: Voxels = values < level
    chosen[np.flatnonzero(values == level)[: count - int(chosen.sum())]] = True
    return chosen.reshape(field.shape)


def random(seed: int, shape: Shape) -> np.random.Generator:
    """Return a random generator that depends on the seed and the extents."""
    return np.random.default_rng([seed, *shape])


def check_positive(name: str, parameter: str, value: float) -> None:
    """Raise InputError if a length is not positive."""
    if not value > 0:
        raise InputError(f"geometry {name}: {parameter}={value:g} is not positive; give a length in cells.")


def moved_axes(shape: Shape) -> tuple[int, ...]:
    """Return the axes with more than one cell."""
    return tuple(axis for axis, n in enumerate(shape) if n > 1)


def resolved(length: float, shape: Shape, share: float) -> float:
    """Return a length, limited to a share of the domain's shortest extent, but at least one cell."""
    extents = [n for n in shape if n > 1] or [prod(shape)]
    return max(1.0, min(length, share * min(extents)))
