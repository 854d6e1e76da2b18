"""The case: the problem that is solved, without its implementation."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Literal

from lbmtune.catalogue.collisions import COLLISIONS, NO_COLLISION
from lbmtune.catalogue.domain_conditions import Condition, Place, along, at_least
from lbmtune.catalogue.layouts.layout import Extents
from lbmtune.catalogue.problem.faces import (
    FACES,
    LOCAL,
    OPEN,
    WALL_RULES,
    Face,
    Faces,
    Problem,
    check_velocity,
    streamed,
)
from lbmtune.errors import InputError, unknown
from lbmtune.lattice import Vector, lattice

CutKind = Literal["open", "wall", "moving"]

MOST_CELLS = 2**31 - 1
"""Along an axis: extents are arguments of 32 bits."""
_NAME = re.compile("[A-Za-z0-9_ .-]{0,80}")
"""Of a flow: it stands in comments of programs, whatever file it comes from."""
_LATTICES_OF: Mapping[str, tuple[str, ...]] = {"cumulant": ("d3q27",)}
"""Lattices of collisions whose moments not all lattices have."""


@dataclass(frozen=True)
class Case(Problem):
    """A flow problem with validated fields, which `Problem` describes."""

    def __post_init__(self) -> None:
        """Check that the fields are valid and fit each other. Raises InputError."""
        _check(self)

    @property
    def sites(self) -> int:
        """Return the number of cells."""
        return self.domain[0] * self.domain[1] * self.domain[2]

    @property
    def fluid_sites(self) -> int:
        """Return the number of fluid cells, which speeds count."""
        if not self.geometry:
            return self.sites
        from lbmtune.catalogue.problem.geometry import fluid_cells

        return fluid_cells(self.geometry, self.domain)

    @property
    def speed_unit(self) -> str:
        """Return the unit of speed: MFLUPS if there are solid cells, which are not counted, else MLUPS."""
        return "MFLUPS" if self.geometry else "MLUPS"

    @property
    def walled(self) -> bool:
        """Return whether populations bounce back at a face: at walls, and at faces whose cells then overwrite them."""
        return any(face != "periodic" for face in self.faces)

    def walled_across(self, axis: int) -> bool:
        """Return whether the faces across an axis are not periodic."""
        return self.faces[2 * axis] != "periodic"

    @property
    def moving(self) -> bool:
        """Return whether any wall moves."""
        return "moving" in self.faces or any(patch.kind == "moving" for patch in self.patches)

    @property
    def forced(self) -> bool:
        """Return whether a body force acts."""
        return any(self.force)

    @property
    def interpolates(self) -> bool:
        """Return whether a pass after each step interpolates at curved walls (`catalogue.boundaries.second_order`)."""
        return self.walls == "interpolated"

    @property
    def relaxes(self) -> bool:
        """Return whether there is collision."""
        return self.collision != NO_COLLISION

    def crossed(self, velocity: Vector) -> tuple[tuple[int, Face], ...]:
        """Return the non-periodic faces (0..5) that a link with this velocity can cross, each as 'wall' or 'moving'.

        A face whose cells complete arriving populations counts as a wall during streaming: no population crosses it.
        """
        return _crossed(self.faces, velocity)

    def may_move(self, velocity: Vector) -> bool:
        """Return whether a moving wall can cut a link with this velocity, be it a face, a patch or solid cells."""
        crossed = self.crossed(velocity) if any(velocity) else ()
        met = {face for face, _ in crossed} | ({None} if any(velocity) else set())
        return ("moving" in (kind for _, kind in crossed)) or any(
            patch.kind == "moving" and patch.side in met for patch in self.patches
        )

    def cut(self, cell: Vector, velocity: Vector) -> CutKind:
        """Return by what faces cut the link from `cell` along `velocity`: 'open' (nothing), 'wall' or 'moving'.

        Solid cells are not considered; `catalogue.boundaries.cut_links` considers both, for all cells at once.
        """
        kinds = {kind for face, kind in self.crossed(velocity) if _at_face(cell, face, self.domain)}
        return "moving" if "moving" in kinds else "wall" if kinds else "open"


@lru_cache(maxsize=1024)
def _crossed(faces: Faces, velocity: Vector) -> tuple[tuple[int, Face], ...]:
    """Return `Case.crossed` of some faces; cached, since each printed access to a population uses it."""
    crossed = [2 * axis + (c > 0) for axis, c in enumerate(velocity) if c]
    return tuple((face, streamed(faces[face])) for face in crossed if faces[face] != "periodic")


def collides(collision: str, lattice_name: str) -> bool:
    """Return whether the collision operator is defined on the lattice."""
    return lattice_name in _LATTICES_OF.get(collision, (lattice_name,))


def _at_face(cell: Vector, face: int, domain: tuple[int, int, int]) -> bool:
    axis, high = divmod(face, 2)
    return cell[axis] == (domain[axis] - 1 if high else 0)


def domain_conditions(case: Problem) -> Iterator[Condition]:
    """Yield what the domain of a case obeys, whatever the kernel."""
    domain = "x".join(map(str, case.domain))
    said = f"domain {domain} has an extent below 1; give three positive cell counts."
    yield from at_least((1, 1, 1), "a cell at least", said)
    said = f"domain {domain} has an extent above {MOST_CELLS:,}; give fewer cells along that axis."
    for axis in range(3):
        yield Condition(value=along(axis), most=MOST_CELLS, because="an extent is a 32-bit integer", said=said)
    if case.stencil.dimensions == 2:
        flat = f"{case.lattice} is two-dimensional"
        said = f"{flat} but domain {domain} has nz = {{value}}; set nz = 1."
        yield Condition(value=along(2), least=1, most=1, because=flat, said=said)
    because, two = "cells at both faces complete populations", (2, 2, 2)
    said = f"domain {domain} has one cell between faces {case.faces}; give it two or more."
    yield from at_least(two, because, said, axes=sorted({n // 2 for n, kind in enumerate(case.faces) if kind in LOCAL}))
    for number, patch in enumerate(case.patches, 1):
        if patch.kind in LOCAL and patch.side is not None:
            said = (
                f"patches: number {number}: face {patch.face}: the domain has one cell across it; give it two or more."
            )
            yield from at_least(two, because, said, axes=(patch.side // 2,))


def _check(case: Case) -> None:
    stencil = lattice(case.lattice)
    if not _NAME.fullmatch(case.flow):
        raise InputError(f"flow {case.flow!r} is no name; take letters, digits, spaces, dots, - and _.")
    if case.collision not in (*COLLISIONS, NO_COLLISION):
        raise unknown("collision", case.collision, COLLISIONS)
    if not collides(case.collision, case.lattice):
        raise InputError(
            f"collision={case.collision} is not supported for {case.lattice} (use mrt or d3q27): "
            "it relaxes the 27 moments of d3q27."
        )
    if not 0.0 < case.relaxation_rate < 2.0:
        raise InputError(
            f"relaxation_rate {case.relaxation_rate} is not between 0 and 2; choose omega = 1 / (3 nu + 1/2)."
        )
    if not 0 < case.magic < inf:
        raise InputError(f"magic {case.magic} is not positive; 3/16 places a bounce-back wall half-way between cells.")
    _check_faces(case)
    for name in ("wall_velocity", "inlet_velocity"):
        check_velocity(name, getattr(case, name))
    x, y, z = case.force
    check_velocity("half of force", (x / 2, y / 2, z / 2))  # which is added to the velocity
    check_velocity("velocity_scale", (case.velocity_scale, 0.0, 0.0))
    if case.patches:
        # here, as below: it imports numpy, without which the command line starts
        from lbmtune.catalogue.problem.patch_checks import check_patches

        check_patches(case)
    place = Place(case.domain, lambda: Extents(*case.domain, stencil.q))
    for condition in domain_conditions(case):
        if not condition.holds(place):
            raise InputError(condition.refusal(place))
    if case.geometry:
        from lbmtune.catalogue.problem.geometry import generator

        generator(case.geometry)
    _check_walls(case)


def _check_walls(case: Case) -> None:
    if case.walls not in WALL_RULES:
        raise unknown("walls", case.walls, WALL_RULES)
    if not case.interpolates:
        return
    what = f"walls={case.walls} is not supported for"
    if not case.geometry:
        raise InputError(f"{what} flow {case.flow} (use a geometry packing or sphere): it has no curved walls.")
    from lbmtune.catalogue.problem.geometry import generator  # here: it imports numpy

    if not generator(case.geometry).has_surface:
        raise InputError(f"{what} geometry {case.geometry} (use packing or sphere): where its surface lies is unknown.")
    if case.walled:
        raise InputError(f"{what} faces {', '.join(case.faces)} (use periodic faces): links across faces have no q.")


def _check_faces(case: Case) -> None:
    for axis, name in enumerate("xyz"):
        low, high = case.faces[2 * axis : 2 * axis + 2]
        for face in (low, high):
            if face not in FACES:
                raise unknown("face", face, FACES)
        if (low == "periodic") != (high == "periodic"):
            raise InputError(
                f"face {name}- is {low} and {name}+ is {high}; a direction is periodic on both faces or on none."
            )
    _check_local_faces(case)
    if "moving" in case.faces and not any(case.wall_velocity):
        raise InputError("a face is 'moving' but wall_velocity is zero; give the wall a velocity or make it 'wall'.")


def _check_local_faces(case: Case) -> None:
    local = [face // 2 for face, kind in enumerate(case.faces) if kind in LOCAL]
    if case.stencil.dimensions == 2 and 2 in local:
        raise InputError(f"{case.lattice} has no velocity along z; set its z faces {case.faces[4:]} periodic.")
    opened = sorted({face // 2 for face, kind in enumerate(case.faces) if kind in OPEN})
    if len(opened) > 1:
        names = " and ".join("xyz"[axis] for axis in opened)
        raise InputError(f"faces across {names} have a given velocity or pressure; use one axis only.")
    speed = max(map(abs, case.inlet_velocity))
    if "velocity" in case.faces and not 0 < speed < 0.5:
        raise InputError(f"inlet_velocity {case.inlet_velocity} of a 'velocity' face is not between 0 and 0.5.")
    if not 0 < case.outlet_density < inf:
        raise InputError(f"outlet_density {case.outlet_density} is not positive; give a density near one.")
