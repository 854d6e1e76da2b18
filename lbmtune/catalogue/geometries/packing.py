"""Random packing of equal spheres, periodic; of discs in two dimensions.

Geier, Schonherr 2017 (section 5.4) run a random packing of beads with 46 to 52 % fluid.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import pi

import numpy as np
import numpy.typing as npt

from lbmtune.catalogue.geometries.shape import (
    Shape,
    check_fraction,
    check_positive,
    lowest,
    moved_axes,
    random,
    resolved,
)

Positions = npt.NDArray[np.float64]
_ROUNDS = 60
_REACH = 1.6


@dataclass(frozen=True)
class Packing:
    """fraction: of solid; radius: of the spheres in cells, a quarter of the shortest extent at most."""

    fraction: float = 0.5
    radius: float = 8.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Raises InputError; random close packing ends at 64 %."""
        check_fraction("packing", self.fraction, 0.64)
        check_positive("packing", "radius", self.radius)

    def solid(self, shape: Shape) -> npt.NDArray[np.bool_]:
        """The cells nearest to the centres, as many as the fraction says: spheres of one radius."""
        radius = resolved(self.radius, shape, 0.25)
        return lowest(
            _distance(_centres(shape, self.fraction, radius, self.seed), shape, _REACH * radius), self.fraction
        )


def _centres(shape: Shape, fraction: float, radius: float, seed: int) -> Positions:
    """Centres (n, 3), one drawn from each cell of a coarse grid, then pushed apart where spheres overlap.

    A sphere stays about the cell that it was drawn from, so its neighbours are those of the grid.
    """
    axes = moved_axes(shape)
    volume = 4 / 3 * pi * radius**3 if len(axes) == 3 else pi * radius**2
    edge = (volume / max(fraction, 0.01)) ** (1 / max(len(axes), 1))
    counts = tuple(max(1, round(n / edge)) if axis in axes else 1 for axis, n in enumerate(shape))
    size = np.array(shape) / counts
    free = np.isin(np.arange(3), axes)
    drawn = random(seed, shape).random((*counts, 3))
    centres = (np.moveaxis(np.indices(counts), 0, -1) + drawn) * size * free
    for _ in range(_ROUNDS):
        centres = centres + _push(centres, np.array(shape, float), 2 * radius)
    inside: Positions = (centres % np.array(shape)).reshape(-1, 3)
    return inside


def _push(centres: Positions, period: npt.NDArray[np.float64], diameter: float) -> Positions:
    """Half of every overlap with a neighbour, away from it."""
    pushed = np.zeros_like(centres)
    for shift in product((-1, 0, 1), repeat=3):
        if not any(shift):
            continue
        apart = centres - np.roll(centres, shift, (0, 1, 2))
        apart -= period * np.round(apart / period)
        distance = np.sqrt((apart**2).sum(axis=-1, keepdims=True))
        overlap = np.where(distance > 0, np.maximum(diameter - distance, 0), 0)
        pushed += apart * overlap / np.maximum(distance, 1e-9) / 4
    return pushed


def _distance(centres: Positions, shape: Shape, reach: float) -> npt.NDArray[np.float32]:
    """Squared distance of every cell to the nearest centre, as far as it is within reach of one."""
    nearest = np.full(shape, np.inf, np.float32)
    half = [min(int(reach) + 1, n // 2) if n > 1 else 0 for n in shape]
    for centre in centres:
        cells = [
            np.arange(int(c) - h, int(c) - h + min(2 * h + 1, n)) for c, h, n in zip(centre, half, shape, strict=True)
        ]
        z, y, x = np.ix_(*((a - c).astype(np.float32) ** 2 for a, c in zip(cells, centre, strict=True)))
        window = np.ix_(*(a % n for a, n in zip(cells, shape, strict=True)))
        nearest[window] = np.minimum(nearest[window], z + y + x)
    return nearest
