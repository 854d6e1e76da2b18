"""One sphere in the middle of the box; a disc in two dimensions."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lbmtune.catalogue.problem.geometries.shape import Geometry, Shape, Voxels, check_positive, moved_axes


@dataclass(frozen=True)
class Sphere(Geometry):
    """A sphere. diameter: as a fraction of the shortest extent."""

    name = "sphere"
    has_surface = True
    diameter: float = 0.5

    def __post_init__(self) -> None:
        """Check the parameters. Raises InputError."""
        check_positive("sphere", "diameter", self.diameter)

    def leaves_fluid(self, shape: Shape) -> bool:
        """Return whether a corner lies outside the sphere."""
        return bool(sum(((shape[axis] - 1) / 2) ** 2 for axis in moved_axes(shape)) > self._radius(shape) ** 2)

    def _radius(self, shape: Shape) -> float:
        return self.diameter * min((shape[axis] for axis in moved_axes(shape)), default=1) / 2

    def solid(self, shape: Shape) -> Voxels:
        """Return the cells whose centre lies within the sphere."""
        made: Voxels = self._squares(shape) <= self._radius(shape) ** 2
        return made

    def level(self, shape: Shape) -> npt.NDArray[np.float32]:
        """Return the squared distance to the centre, less the squared radius."""
        return (self._squares(shape) - self._radius(shape) ** 2).astype(np.float32)

    def _squares(self, shape: Shape) -> npt.NDArray[np.float64]:
        axes = moved_axes(shape)
        away = [np.arange(n) - (n - 1) / 2 if axis in axes else np.zeros(1) for axis, n in enumerate(shape)]
        z, y, x = np.ix_(*away)
        squares: npt.NDArray[np.float64] = z**2 + y**2 + x**2
        return squares


GEOMETRY = Sphere
