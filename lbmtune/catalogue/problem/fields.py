"""The fields of a case that determine its boundaries and its solid cells."""

from __future__ import annotations

from dataclasses import dataclass

from lbmtune.catalogue.problem.faces import Faces, Patch, Real3
from lbmtune.lattice import Lattice, lattice


@dataclass(frozen=True)
class Problem:
    """A flow problem on a box of nx x ny x nz cells, in lattice units.

    faces: kinds of boundary at x-, x+, y-, y+, z-, z+. Walls are half-way bounce-back: they lie half a cell outside the
    last fluid cell. 'moving' is a wall with the velocity wall_velocity; it takes precedence if a link crosses several
    walls. 'slip', 'velocity' and 'pressure' go through the cells of the face, which complete the populations that
    arrive over it (`catalogue.boundaries.completion`). relaxation_rate: omega of BGK, omega+ of TRT; magic: Lambda of
    TRT, which fixes omega-. force: body force density (Guo forcing). geometry: solid cells inside the box, as text
    (`catalogue.problem.geometry`); '' for none. inlet_velocity: at 'velocity' faces; outlet_density: at 'pressure'
    faces. patches: parts of faces, and cells of a voxel file, with their own kinds and values.
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
        """The velocity set."""
        return lattice(self.lattice)
