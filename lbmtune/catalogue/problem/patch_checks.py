"""Checks of patches: their kinds and places, and on the domain of a case their cells."""

import os
from dataclasses import replace
from math import inf
from typing import TypeVar

import numpy as np

from lbmtune.catalogue.problem.cell_types import WORD_BITS, conditions, layout
from lbmtune.catalogue.problem.faces import FACES, LOCAL, OPEN, SIDES, Patch, Problem, check_velocity
from lbmtune.catalogue.problem.geometry import cell_values, check_solid, moved, solid
from lbmtune.catalogue.problem.patches import Cells, Layer, at_face, cells_of, holds, of_value, shape_of
from lbmtune.errors import InputError, unknown

_Case = TypeVar("_Case", bound=Problem)

_MOST = 100


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
    check_velocity("velocity", patch.velocity)
    if patch.kind not in ("velocity", "moving") and speed:
        raise InputError(
            f"velocity {list(patch.velocity)} with kind {patch.kind}: leave it out, or choose another kind."
        )
    if not 0 < patch.density < inf:
        raise InputError(f"density {patch.density} is not positive; give a density near one.")
    if patch.kind != "pressure" and patch.density != 1:
        raise InputError(f"density {patch.density} with kind {patch.kind}: leave it out, or choose kind pressure.")


def _axes(case: Problem, face: int) -> str:
    """Return the axes of a face along which the lattice has velocities."""
    return "".join(a for n, a in enumerate("xyz"[: case.stencil.dimensions]) if n != face // 2)


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


def settled(case: _Case, path: str | os.PathLike[str] | None = None) -> _Case:
    """Return a recorded case whose voxel file, if it has one, lies at a path, by default the recorded one.

    Raises InputError if the file is missing, another one, or does not suit the case.
    """
    if path is not None:
        case = replace(case, geometry=moved(case.geometry, path))
    if case.geometry.startswith("file:"):
        check_cells(case)
    return case


def check_cells(case: Problem) -> None:
    """Check that there are fluid cells, also of each patch, and that their conditions are possible. Raises InputError.

    This holds on the domain for which the patches were given; on another one they may overlap.
    """
    check_solid(case)
    if not case.patches:
        return
    _check_file(case)
    taken: dict[int, Layer] = {}
    for number, patch in enumerate(case.patches, 1):
        if patch.side is None:
            if not of_value(case, patch).any():
                raise InputError(
                    f"patches: number {number}: no cell of the voxel file has {patch.where}; leave it out."
                )
            continue
        cells, before = cells_of(patch, case.geometry, case.domain), taken.get(patch.side)
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
    for condition in (one for one in conditions(case) if one.kind in OPEN):
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
