"""Random cubes of solid cells, 0 to 99 %: the solid fractions of Robertsen 2018, figure 3.3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lbmtune.catalogue.problem.geometries.shape import Shape, check_fraction, check_positive, lowest, random


@dataclass(frozen=True)
class Blocks:
    """Random cubes. fraction: of solid; size: edge of a cube in cells, 1 for uncorrelated cells."""

    fraction: float = 0.5
    size: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        """Check the parameters. Raises InputError."""
        check_fraction("blocks", self.fraction)
        check_positive("blocks", "size", self.size)

    def solid(self, shape: Shape) -> npt.NDArray[np.bool_]:
        """Return the cubes with the lowest random numbers; the last one in part."""
        drawn = random(self.seed, shape).random([-(-n // self.size) for n in shape], np.float32)
        owner = np.ix_(*(np.arange(n) // self.size for n in shape))
        return lowest(drawn[owner], self.fraction)
