"""Random cubes of solid cells, 0 to 99 %: the solid fractions of Robertsen 2018, figure 3.3."""

from dataclasses import dataclass

import numpy as np

from lbmtune.catalogue.problem.geometries.shape import Sample, Shape, Voxels, lowest, random


@dataclass(frozen=True)
class Blocks(Sample):
    """Random cubes. fraction: of solid; size: edge of a cube in cells, 1 for uncorrelated cells."""

    name = "blocks"
    length = "size"
    fraction: float = 0.5
    size: int = 1
    seed: int = 1

    def solid(self, shape: Shape) -> Voxels:
        """Return the cubes with the lowest random numbers; the last one in part."""
        drawn = random(self.seed, shape).random([-(-n // self.size) for n in shape], np.float32)
        owner = np.ix_(*(np.arange(n) // self.size for n in shape))
        return lowest(drawn[owner], self.fraction)


GEOMETRY = Blocks
