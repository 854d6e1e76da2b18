"""A porous sample like sandstone: smoothed noise with a threshold, periodic.

Robertsen 2018 uses a scanned sandstone with 13 % fluid. Source of the model: Quiblier 1984 (a Gaussian random field
with a threshold).
"""

from dataclasses import dataclass
from math import pi

import numpy as np
import numpy.typing as npt

from lbmtune.catalogue.problem.geometries.shape import Sample, Shape, Voxels, lowest, moved_axes, random, resolved


@dataclass(frozen=True)
class Sandstone(Sample):
    """Smoothed noise. fraction: of solid, 0.8 for a porosity of 20 %; grain: smoothing length in cells."""

    name = "sandstone"
    length = "grain"
    fraction: float = 0.8
    grain: float = 4.0
    seed: int = 1

    def solid(self, shape: Shape) -> Voxels:
        """Return the cells below the threshold of the fraction."""
        noise = random(self.seed, shape).standard_normal(shape, np.float32)
        return lowest(_smoothed(noise, resolved(self.grain, shape, 0.125)), self.fraction)


def _smoothed(noise: npt.NDArray[np.float32], length: float) -> npt.NDArray[np.float32]:
    """Return the noise convolved with a Gaussian of that standard deviation."""
    axes = moved_axes(noise.shape)
    waves = np.fft.rfftn(noise)
    for axis in axes:
        n = noise.shape[axis]
        frequency = np.fft.rfftfreq(n) if axis == 2 else np.fft.fftfreq(n)
        damping = np.exp(-2 * (pi * length * frequency) ** 2).astype(np.float32)
        waves *= damping.reshape([-1 if a == axis else 1 for a in range(3)])
    smoothed: npt.NDArray[np.float32] = np.fft.irfftn(waves, noise.shape, axes=(0, 1, 2)).astype(np.float32)
    return smoothed


GEOMETRY = Sandstone
