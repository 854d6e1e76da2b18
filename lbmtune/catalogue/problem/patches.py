"""Cells of patches: parts of faces as shapes relative to the face, or values of a voxel file.

Shapes are functions of the domain, like geometries, so that a kernel can be verified on small extents and measured on
large ones; each has at least one cell. If patches overlap on another domain than their own, the later one applies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lbmtune.catalogue.byte_lru_cache import remembered
from lbmtune.catalogue.problem.cell_types import Condition, layout, walls
from lbmtune.catalogue.problem.faces import Patch, Problem
from lbmtune.catalogue.problem.geometry import cell_values, solid
from lbmtune.catalogue.problem.parameter_text import parsed
from lbmtune.errors import InputError

Array = Any
"""A numpy or cupy array."""
Layer = npt.NDArray[Any]
"""An array of the cells of a face: (nz, ny, nx) without the axis normal to the face."""
Window = tuple[range, range, range]
_TYPES_BYTES = 1 << 29


@dataclass(frozen=True)
class Rectangle:
    """A rectangle; ranges along each axis are fractions of the face's edge."""

    x: str = "0..1"
    y: str = "0..1"
    z: str = "0..1"

    def check(self, axes: str) -> None:
        """Check the ranges for a face along `axes`. Raises InputError."""
        for axis in "xyz":
            low, high = self.bounds(axis)
            if not 0 <= low < high <= 1:
                raise InputError(
                    f"{axis}={low:g}..{high:g} of a rectangle exceeds its face; give fractions from 0 to 1, the "
                    "lower one first."
                )
            if axis not in axes and (low, high) != (0, 1):
                raise InputError(f"{axis}={low:g}..{high:g} of a rectangle: give it {' and '.join(axes)} only.")

    def cells(self, axes: str, extents: tuple[int, ...]) -> Layer:
        """Return the cells between the rounded ends of each range."""
        inside = np.ones((), bool)
        for axis, n in zip(axes, extents, strict=True):
            low, high = (round(share * n) for share in self.bounds(axis))
            low = min(low, n - 1)
            along = np.zeros(n, bool)
            along[low : max(high, low + 1)] = True
            inside = np.multiply.outer(along, inside)
        return inside

    def bounds(self, axis: str) -> tuple[float, float]:
        """Return the range along an axis, as fractions. Raises InputError."""
        text: str = getattr(self, axis)
        low, dots, high = text.partition("..")
        try:
            return float(low), float(high if dots else "")
        except ValueError:
            raise InputError(
                f"{axis}={text} of a rectangle is not a range; write for example {axis}=0.25..0.75."
            ) from None


@dataclass(frozen=True)
class Disc:
    """A disc; its centre is in fractions of the face's edges, its radius a fraction of the shorter edge."""

    x: float = 0.5
    y: float = 0.5
    z: float = 0.5
    radius: float = 0.25

    def check(self, axes: str) -> None:
        """Check centre and radius for a face along `axes`. Raises InputError."""
        for axis in "xyz":
            if not 0 <= (at := getattr(self, axis)) <= 1:
                raise InputError(f"{axis}={at:g} of a disc lies outside its face; give a fraction from 0 to 1.")
            if axis not in axes and at != 0.5:
                raise InputError(f"{axis}={at:g} of a disc: give its centre along {' and '.join(axes)} only.")
        if not 0 < self.radius <= 1:
            raise InputError(f"radius={self.radius:g} of a disc is not between 0 and 1; give a fraction of the face.")

    def cells(self, axes: str, extents: tuple[int, ...]) -> Layer:
        """Return the cells whose centres lie within the radius, at least the one at the centre."""
        squared = np.zeros(())
        for axis, n in zip(axes, extents, strict=True):
            along = np.arange(n) + 0.5 - getattr(self, axis) * n
            squared = np.add.outer(along**2, squared)
        inside = np.asarray(squared <= (self.radius * min(extents)) ** 2)
        inside.reshape(-1)[int(squared.argmin())] = True
        return inside


@dataclass(frozen=True)
class Cells:
    """The cells of the case's voxel file with this value."""

    value: int = 0

    def check(self, _: str) -> None:
        """Check the value. Raises InputError."""
        if self.value < 1:
            raise InputError(f"value={self.value} of cells is not positive; give 1 or more; 0 is fluid.")


SHAPES = {"rectangle": Rectangle, "disc": Disc, "cells": Cells}
"""Shapes of patches by name."""
_FORM = "rectangle:y=0.25..0.75:z=0..1"


@lru_cache(maxsize=256)
def shape_of(where: str) -> Rectangle | Disc | Cells:
    """Return the shape of a text. Raises InputError."""
    made: Rectangle | Disc | Cells = parsed(where, SHAPES, "patch", _FORM)
    return made


def fluid_values(patches: Sequence[Patch]) -> tuple[int, ...]:
    """Return the values of a voxel file whose cells are fluid: those with a condition at a face. Raises InputError."""
    shapes = [shape_of(patch.where) for patch in patches if patch.face]
    return tuple(sorted({shape.value for shape in shapes if isinstance(shape, Cells)}))


@remembered(_TYPES_BYTES)
def _owners(patches: tuple[Patch, ...], geometry: str, domain: tuple[int, int, int], face: int) -> Layer:
    axis = face // 2
    shape = tuple(n for n in reversed(range(3)) if n != axis)
    owners = np.zeros([domain[n] for n in shape], np.int8)
    for number, patch in enumerate(patches, 1):
        if patch.side == face:
            owners[cells_of(patch, geometry, domain)] = number
    return owners


def cells_of(patch: Patch, geometry: str, domain: tuple[int, int, int]) -> Layer:
    """Return the cells of a face that belong to a patch."""
    assert patch.side is not None
    axis, high = divmod(patch.side, 2)
    shape, along = shape_of(patch.where), [n for n in range(3) if n != axis]
    if isinstance(shape, Cells):
        layer = np.take(cell_values(geometry, domain), domain[axis] - 1 if high else 0, axis=2 - axis)
        return np.asarray(layer == shape.value)
    moved = [n for n in along if not (n == 2 and domain[2] == 1)] or along[:1]
    found = shape.cells("".join("xyz"[n] for n in moved), tuple(domain[n] for n in moved))
    return np.asarray(found).reshape([domain[n] for n in reversed(along)])


def owners(case: Problem, face: int, window: Window | None = None) -> Layer:
    """Return the number of the patch of each cell of a face, 0 for none: int8. In a window, coordinates wrap."""
    found: Layer = _owners(case.patches, case.geometry, case.domain, face)
    for place, axis in enumerate(n for n in reversed(range(3)) if n != face // 2):
        if window is not None and window[axis] != range(case.domain[axis]):
            part = np.arange(window[axis].start, window[axis].stop) % case.domain[axis]
            found = np.take(found, part, axis=place)
    return found


def holds(case: Problem, condition: Condition, window: Window | None = None) -> Layer:
    """Return whether each cell of its face has a condition: bool."""
    return np.asarray(owners(case, condition.face, window) == condition.patch)


def of_value(case: Problem, patch: Patch) -> Layer:
    """Return the solid cells of a patch without a face: bool, (nz, ny, nx)."""
    shape = shape_of(patch.where)
    assert isinstance(shape, Cells)
    return np.asarray(cell_values(case.geometry, case.domain) == shape.value)


def at_face(face: int, domain: tuple[int, int, int]) -> tuple[Any, ...]:
    """Return the index of the cells of a face in an array (nz, ny, nx)."""
    axis, high = divmod(face, 2)
    index: list[Any] = [slice(None)] * 3
    index[2 - axis] = domain[axis] - 1 if high else 0
    return tuple(index)


@remembered(_TYPES_BYTES)
def types(case: Problem, *, everywhere: bool, xp: ModuleType = np) -> Array:
    """Return the word of every cell (`cell_types.layout`): uint32, (nz, ny, nx), 0 for solid cells; read-only."""
    words = layout(case, everywhere=everywhere)
    made = np.zeros(case.domain[::-1], np.uint32)
    for condition, field in words.conditions:
        part = made[at_face(condition.face, case.domain)]
        part[holds(case, condition)] |= np.uint32(field.number << field.shift)
    numbers = wall_numbers(case) if words.walls else made
    for number, (_, field) in enumerate(words.walls):
        made[numbers == number] |= np.uint32(1 << field.shift)
    if case.geometry:
        made[solid(case)] = 0
    return xp.asarray(made)


@remembered(_TYPES_BYTES)
def wall_numbers(case: Problem) -> Layer:
    """Return for each cell the index in `cell_types.walls` of its moving wall: int8, (nz, ny, nx), -1 for none.

    A cell beside several patches has the last one.
    """
    numbers = np.full(case.domain[::-1], -1, np.int8)
    for number, patch in enumerate(walls(case)):
        side = case.patches[patch - 1].side if patch else None
        faces = [face for face, kind in enumerate(case.faces) if kind == "moving"] if not patch else [side]
        for face in faces:
            if face is None:
                numbers[_beside(case, of_value(case, case.patches[patch - 1]))] = number
            else:
                numbers[at_face(face, case.domain)][owners(case, face) == patch] = number
    return numbers


def wall_velocity(case: Problem, window: Window | None = None, xp: ModuleType = np) -> Sequence[Any]:
    """Return the components of the wall velocity at each cell, (nz, ny, nx); numbers if all walls have the same one.

    Values of cells that are not at a moving wall are undefined.
    """
    velocities = [case.patches[n - 1].velocity if n else case.wall_velocity for n in walls(case)]
    if len(velocities) < 2:
        return velocities[0] if velocities else case.wall_velocity
    numbers = wall_numbers(case)
    for axis, part in enumerate(window or ()):
        numbers = np.take(numbers, np.arange(part.start, part.stop) % case.domain[axis], axis=2 - axis)
    return [xp.asarray(component)[xp.asarray(numbers)] for component in np.transpose(velocities)]


def _beside(case: Problem, cells: Layer) -> Layer:
    """Return the cells with a link to one of the given cells."""
    beside = np.zeros_like(cells)
    for c in case.stencil.velocities[1:]:
        beside |= np.roll(cells, (c[2], c[1], c[0]), axis=(0, 1, 2))
    return beside
