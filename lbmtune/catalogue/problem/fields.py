"""The fields of a case: what its boundaries and its solid cells follow from."""

from __future__ import annotations

from dataclasses import dataclass

from lbmtune.catalogue.problem.faces import Faces, Patch, Real3
from lbmtune.lattice import Lattice, lattice


@dataclass(frozen=True)
class Problem:
    """A flow problem on a box of nx x ny x nz fluid cells, in lattice units.

    faces: what bounds the box at x-, x+, y-, y+, z-, z+. Walls are half-way bounce-back: they lie half a
    cell outside the last fluid cell. 'moving' is a wall with the velocity wall_velocity; a link that
    crosses several walled faces sees the moving one. 'slip', 'velocity' and 'pressure' go through the cells of the
    face, which work out what arrives over it from what else has arrived (`catalogue.boundaries.completion`).
    relaxation_rate: omega of BGK, omega+ of TRT; magic: Lambda of TRT, which fixes omega-.
    force: body force density (Guo forcing).
    geometry: what is solid inside the box, as text (`catalogue.problem.geometry`); '' for nothing.
    inlet_velocity: at 'velocity' faces; outlet_density: at 'pressure' faces.
    patches: parts of faces, and types of cells of a voxel file, with kinds and values of their own.
    """

    flow: str
    lattice: str
    collision: str
    domain: tuple[int, int, int]
    relaxation_rate: float
    faces: Faces = ("periodic",) * 6
    wall_velocity: Real3 = (0.0, 0.0, 0.0)
    force: Real3 = (0.0, 0.0, 0.0)
    magic: float = 3 / 16
    velocity_scale: float = 0.05
    geometry: str = ""
    inlet_velocity: Real3 = (0.0, 0.0, 0.0)
    outlet_density: float = 1.0
    patches: tuple[Patch, ...] = ()

    @property
    def stencil(self) -> Lattice:
        """The lattice itself."""
        return lattice(self.lattice)
