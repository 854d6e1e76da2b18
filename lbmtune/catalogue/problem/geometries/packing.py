"""Random packing of equal spheres, periodic; of discs in two dimensions.

Geier, Schonherr 2017 (section 5.4) run a random packing of beads with 46 to 52 % fluid.
"""

from dataclasses import dataclass
from itertools import product
from math import pi, prod

import numpy as np
import numpy.typing as npt

from lbmtune.catalogue.problem.geometries.shape import Sample, Shape, Voxels, lowest, moved_axes, random, resolved

Positions = npt.NDArray[np.float64]
_ROUNDS = 60
_REACH = 1.6


@dataclass(frozen=True)
class Packing(Sample):
    """Equal spheres. fraction: of solid; radius: in cells, at most a quarter of the shortest extent."""

    name = "packing"
    has_surface = True
    length = "radius"
    most = 0.64  # random close packing
    fraction: float = 0.5
    radius: float = 8.0
    seed: int = 1

    def solid(self, shape: Shape) -> Voxels:
        """Return the cells closest to the centres, up to the fraction, so that all spheres have one radius."""
        return lowest(self._squares(shape), self.fraction)

    def level(self, shape: Shape) -> npt.NDArray[np.float32]:
        """Return the squared distance to the closest centre, less the squared radius that gives the fraction."""
        squares = self._squares(shape)
        solid = lowest(squares, self.fraction)
        within, beyond = squares[solid].max(initial=0), squares[~solid].min(initial=np.inf)
        found: npt.NDArray[np.float32] = squares - ((within + beyond) / 2 if np.isfinite(beyond) else within)
        return found

    def _squares(self, shape: Shape) -> npt.NDArray[np.float32]:
        radius = resolved(self.radius, shape, 0.25)
        return _distance(_centres(shape, self.fraction, radius, self.seed), shape, _REACH * radius)


def _centres(shape: Shape, fraction: float, radius: float, seed: int) -> Positions:
    """Return centres (n, 3), one drawn from each cell of a coarse grid, then pushed apart if spheres overlap.

    A sphere stays near its cell of the grid, so its neighbours are those of the grid.
    """
    axes = moved_axes(shape)
    volume = 4 / 3 * pi * radius**3 if len(axes) == 3 else pi * radius**2
    edge = (volume / max(fraction, 0.01)) ** (1 / max(len(axes), 1))
    counts = tuple(max(1, round(n / edge)) if axis in axes else 1 for axis, n in enumerate(shape))
    size = np.array(shape) / counts
    free = np.isin(np.arange(3), axes)
    drawn = random(seed, shape).random((*counts, 3))
    centres = ((np.moveaxis(np.indices(counts), 0, -1) + drawn) * size * free).reshape(-1, 3)
    neighbours, period = _neighbours(counts), np.array(shape, float)
    for _ in range(_ROUNDS):
        centres = centres + _push(centres, neighbours, period, 2 * radius)
    inside: Positions = centres % np.array(shape)
    return inside


def _neighbours(counts: tuple[int, ...]) -> npt.NDArray[np.intp]:
    """Return the numbers of the 26 cells around each cell of a periodic grid, (26, n)."""
    own = np.arange(prod(counts)).reshape(counts)
    shifts = (shift for shift in product((-1, 0, 1), repeat=3) if any(shift))
    return np.stack([np.roll(own, shift, (0, 1, 2)).reshape(-1) for shift in shifts])


def _push(
    centres: Positions, neighbours: npt.NDArray[np.intp], period: npt.NDArray[np.float64], diameter: float
) -> Positions:
    """Return the displacement by half of each overlap with a neighbour, away from it."""
    apart = centres - centres[neighbours]
    apart -= period * np.round(apart / period)
    distance = np.sqrt((apart**2).sum(axis=-1, keepdims=True))
    overlap = np.where(distance > 0, np.maximum(diameter - distance, 0), 0)
    pushed: Positions = (apart * overlap / np.maximum(distance, 1e-9) / 4).sum(axis=0)
    return pushed


def _distance(centres: Positions, shape: Shape, reach: float) -> npt.NDArray[np.float32]:
    """Return the squared distance of each cell to the closest centre; infinite beyond `reach` along an axis."""
    half = [min(int(reach) + 1, n // 2) if n > 1 else 0 for n in shape]
    around = np.full([n + 2 * h for n, h in zip(shape, half, strict=True)], np.inf, np.float32)
    for centre in centres:
        first = [int(c) - h for c, h in zip(centre, half, strict=True)]
        cells = [np.arange(low, low + min(2 * h + 1, n)) for low, h, n in zip(first, half, shape, strict=True)]
        z, y, x = np.ix_(*((a - c).astype(np.float32) ** 2 for a, c in zip(cells, centre, strict=True)))
        window = around[tuple(slice(a[0] + h, a[-1] + h + 1) for a, h in zip(cells, half, strict=True))]
        np.minimum(window, z + y + x, out=window)
    return _folded(around, shape, half)


def _folded(around: npt.NDArray[np.float32], shape: Shape, half: list[int]) -> npt.NDArray[np.float32]:
    """Return for each cell the smallest value of itself and its periodic images in the margins."""
    for axis, (n, h) in enumerate(zip(shape, half, strict=True)):
        moved = np.moveaxis(around, axis, 0)
        if h:
            np.minimum(moved[n : n + h], moved[:h], out=moved[n : n + h])
            np.minimum(moved[h : 2 * h], moved[n + h :], out=moved[h : 2 * h])
        around = np.moveaxis(moved[h : n + h], 0, axis)
    return np.ascontiguousarray(around)


GEOMETRY = Packing
