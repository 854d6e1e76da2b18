"""Cells of patches: parts of faces as shapes relative to the face, or values of a voxel file.

Shapes are functions of the domain, like geometries, so that a kernel can be verified on small extents and measured on
large ones; each has at least one cell. If patches overlap on another domain than their own, the later one applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from lbmtune.catalogue.byte_lru_cache import remembered
from lbmtune.catalogue.problem.cell_types import WORD_BITS, Condition, conditions, layout, opens, walls
from lbmtune.catalogue.problem.faces import FACES, LOCAL, SIDES, Patch
from lbmtune.catalogue.problem.fields import Problem
from lbmtune.catalogue.problem.geometry import cell_values, check_solid, solid
from lbmtune.catalogue.problem.parameter_text import parsed
from lbmtune.errors import InputError, unknown

Array = Any
"""A numpy or cupy array."""
Layer = npt.NDArray[Any]
"""An array of the cells of a face: (nz, ny, nx) without the axis normal to the face."""
Window = tuple[range, range, range]
_TYPES_BYTES = 1 << 29
_MOST = 100


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


def _axes(case: Problem, face: int) -> str:
    """Return the axes of a face along which the lattice has velocities."""
    return "".join(a for n, a in enumerate("xyz"[: case.stencil.dimensions]) if n != face // 2)


# cells


@remembered(_TYPES_BYTES)
def _owners(patches: tuple[Patch, ...], geometry: str, domain: tuple[int, int, int], face: int) -> Layer:
    axis = face // 2
    shape = tuple(n for n in reversed(range(3)) if n != axis)
    owners = np.zeros([domain[n] for n in shape], np.int8)
    for number, patch in enumerate(patches, 1):
        if patch.side == face:
            owners[_cells(patch, geometry, domain)] = number
    return owners


def _cells(patch: Patch, geometry: str, domain: tuple[int, int, int]) -> Layer:
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


# words and velocities of cells


def types(case: Problem, *, everywhere: bool, xp: ModuleType = np) -> Array:
    """Return the word of every cell (`cell_types.layout`): uint32, (nz, ny, nx), 0 for solid cells; read-only."""
    return _types(case, everywhere, xp)


@remembered(_TYPES_BYTES)
def _types(case: Problem, everywhere: bool, xp: ModuleType) -> Array:
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


# checks


def check_patches(case: Problem) -> None:
    """Check patches without computing their cells. Raises InputError."""
    if len(case.patches) > _MOST:
        raise InputError(f"patches: {len(case.patches)} are more than {_MOST}; join those that are alike.")
    for number, patch in enumerate(case.patches, 1):
        try:
            _check_kind(patch)
            _check_place(case, patch)
        except InputError as error:
            raise InputError(f"patches: number {number}: {error}") from None
    bits, free = layout(case, everywhere=False).bits, WORD_BITS - case.stencil.q
    if bits > free:
        raise InputError(
            f"patches: their conditions take {bits} bits of a cell's word, which has {free} besides the links of "
            f"{case.lattice}; give fewer kinds and velocities."
        )


def _check_kind(patch: Patch) -> None:
    if patch.kind not in FACES:
        raise unknown("kind", patch.kind, FACES)
    if patch.kind == "periodic":
        raise InputError("kind periodic: a direction is periodic on whole faces; give the kind of a boundary.")
    speed = max(map(abs, patch.velocity))
    if patch.kind in ("velocity", "moving") and not 0 < speed < 0.5:
        raise InputError(f"velocity {list(patch.velocity)} of kind {patch.kind} is not between 0 and 0.5.")
    if patch.kind not in ("velocity", "moving") and speed:
        raise InputError(
            f"velocity {list(patch.velocity)} with kind {patch.kind}: leave it out, or choose another kind."
        )
    if patch.density <= 0:
        raise InputError(f"density {patch.density} is not positive; give a density near one.")
    if patch.kind != "pressure" and patch.density != 1:
        raise InputError(f"density {patch.density} with kind {patch.kind}: leave it out, or choose kind pressure.")


def _check_place(case: Problem, patch: Patch) -> None:
    shape = shape_of(patch.where)
    if isinstance(shape, Cells) and not case.geometry.startswith("file:"):
        raise InputError(f"where {patch.where} needs a voxel file; give the case a geometry file:path=....")
    if not patch.face:
        if patch.kind in LOCAL:
            raise InputError(f"kind {patch.kind} needs a face; give the one of its cells, one of {', '.join(SIDES)}.")
        if not isinstance(shape, Cells):
            raise InputError(f"where {patch.where} needs a face; give one of {', '.join(SIDES)}.")
        shape.check("")
        return
    if patch.face not in SIDES:
        raise unknown("face", patch.face, SIDES)
    face = SIDES.index(patch.face)
    shape.check(_axes(case, face))
    if face // 2 >= case.stencil.dimensions:
        raise InputError(f"face {patch.face}: {case.lattice} has no velocity along {patch.face[0]}; give another face.")
    if case.faces[face] == "periodic":
        raise InputError(f"face {patch.face} is periodic; make both faces across {patch.face[0]} a wall, for example.")
    if patch.kind in LOCAL and case.domain[face // 2] < 2:
        raise InputError(f"face {patch.face}: the domain has one cell across it; give it two or more.")


def check_cells(case: Problem) -> None:
    """Check that there are fluid cells, also of each patch, and that their conditions are possible. Raises InputError.

    This holds on the domain for which the patches were given; on another one they may overlap.
    """
    check_solid(case)
    _check_file(case)
    taken: dict[int, Layer] = {}
    for number, patch in enumerate(case.patches, 1):
        if patch.side is None:
            if not of_value(case, patch).any():
                raise InputError(
                    f"patches: number {number}: no cell of the voxel file has {patch.where}; leave it out."
                )
            continue
        cells, before = _cells(patch, case.geometry, case.domain), taken.get(patch.side)
        if before is not None and (both := before[cells][before[cells] > 0]).size:
            raise InputError(
                f"patches: numbers {int(both[0])} and {number} overlap on face {patch.face}; give each cell one."
            )
        fluid = cells if not case.geometry else cells & ~solid(case)[at_face(patch.side, case.domain)]
        if not fluid.any():
            raise InputError(f"patches: number {number}: {patch.where} holds no fluid cell at {patch.face}; move it.")
        taken[patch.side] = np.where(cells, np.int8(number), 0 if before is None else before)
    _check_edges(case)


def _check_file(case: Problem) -> None:
    """Check that cells of the voxel file with a condition lie at the face of that condition."""
    for number, patch in enumerate(case.patches, 1):
        shape = shape_of(patch.where)
        if patch.side is None or not isinstance(shape, Cells):
            continue
        inner = np.array(cell_values(case.geometry, case.domain) == shape.value)
        inner[at_face(patch.side, case.domain)] = False
        if inner.any():
            z, y, x = (int(n) for n in np.argwhere(inner)[0])
            raise InputError(
                f"patches: number {number}: cell ({x}, {y}, {z}) has {patch.where} and is not at face "
                f"{patch.face}; give the value to cells of that face only."
            )


def _check_edges(case: Problem) -> None:
    """Check that no edge cell has a given velocity or pressure at both faces: too few populations are known there."""
    given = np.full(case.domain[::-1], -1, np.int8)
    for condition in filter(opens, conditions(case)):
        index = at_face(condition.face, case.domain)
        layer, cells = given[index], holds(case, condition)
        clash = cells & (layer >= 0) & (layer // 2 != condition.face // 2)
        if clash.any():
            other = SIDES[int(layer[clash][0])]
            raise InputError(
                f"patches: cells at both face {other} and face {SIDES[condition.face]} have a given velocity or "
                "pressure; only one of the two faces of an edge can, so leave its cells out of a patch."
            )
        layer[cells] = condition.face
