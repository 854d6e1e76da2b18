"""Kinds of boundaries, patches with their own kind and values, and the fields of a problem that they belong to."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot
from typing import Literal

from lbmtune.errors import InputError
from lbmtune.lattice import Lattice, lattice

Face = Literal["periodic", "wall", "moving", "slip", "velocity", "pressure"]
Faces = tuple[Face, Face, Face, Face, Face, Face]
WallRule = Literal["half-way", "interpolated"]
Real3 = tuple[float, float, float]
SPEED_OF_SOUND = 3**-0.5
"""In lattice units."""

FACES: Mapping[Face, str] = {
    "periodic": "the opposite face is adjacent",
    "wall": "resting wall, half-way bounce-back",
    "moving": "wall with a velocity, half-way bounce-back",
    "slip": "free slip: a plane of symmetry through the cells of the face",
    "velocity": "velocity given at the cells of the face (Zou, He 1997; Hecht, Harting 2010)",
    "pressure": "density given at the cells of the face, flow normal to it (sources as for velocity)",
}
"""Kinds of faces with their descriptions."""
WALL_RULES: Mapping[WallRule, str] = {
    "half-way": "a wall lies in the middle of each link that it cuts (half-way bounce-back)",
    "interpolated": "curved walls lie where they are, by a pass after each step (Bouzidi, Firdaouss, Lallemand 2001)",
}
"""Rules of the solid cells of a geometry with their descriptions."""
OPEN: tuple[Face, ...] = ("velocity", "pressure")
LOCAL: tuple[Face, ...] = ("slip", *OPEN)
"""Kinds whose cells complete the populations that arrive over the face; slip comes first at edges."""
SIDES = ("x-", "x+", "y-", "y+", "z-", "z+")
"""The faces of a box by name, in the order of their numbers."""


@dataclass(frozen=True)
class Patch:
    """Cells with their own kind of boundary.

    where: the cells as text (`catalogue.problem.patches`): 'rectangle:y=0.25..0.75:z=0..1',
    'disc:y=0.5:z=0.5:radius=0.25', or 'cells:value=2' for those of a voxel file.
    face: 'x-' to 'z+', not a periodic one; '' for solid cells of a voxel file, which are a resting or a moving wall.
    velocity: of a 'moving' wall or at a 'velocity' patch; density: at a 'pressure' patch; both in lattice units.
    """

    kind: Face
    where: str
    face: str = ""
    velocity: Real3 = (0.0, 0.0, 0.0)
    density: float = 1.0

    @property
    def side(self) -> int | None:
        """Return the number of the face; None for solid cells."""
        return SIDES.index(self.face) if self.face else None


def check_velocity(name: str, velocity: Real3) -> None:
    """Refuse a velocity at which a flow cannot be computed, and what is no number. Raises InputError."""
    if not hypot(*velocity) < SPEED_OF_SOUND:
        raise InputError(
            f"{name} {list(velocity)} is not below the speed of sound, {SPEED_OF_SOUND:.3f}; give a small one in "
            "lattice units, such as 0.1."
        )


def streamed(face: Face) -> Face:
    """Return the kind of a face during streaming: 'wall' if its cells complete arriving populations."""
    return "wall" if face in LOCAL else face


@dataclass(frozen=True)
class Problem:
    """A flow problem on a box of nx x ny x nz cells, in lattice units.

    faces: kinds of boundary at x-, x+, y-, y+, z-, z+. Walls are half-way bounce-back: they lie half a cell outside the
    last fluid cell. 'moving' is a wall with the velocity wall_velocity; it takes precedence if a link crosses several
    walls. 'slip', 'velocity' and 'pressure' go through the cells of the face, which complete the populations that
    arrive over it (`catalogue.boundaries.completion`). relaxation_rate: omega of BGK, omega+ of TRT; magic: Lambda of
    TRT, which fixes omega-. force: body force density (Guo forcing). geometry: solid cells inside the box, as text
    (`catalogue.problem.geometry`); '' for none. inlet_velocity: at 'velocity' faces; outlet_density: at 'pressure'
    faces. patches: parts of faces, and cells of a voxel file, with their own kinds and values. walls: rule of solid
    cells (`WALL_RULES`).
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
    walls: WallRule = "half-way"

    @property
    def stencil(self) -> Lattice:
        """Return the velocity set."""
        return lattice(self.lattice)
