"""Cut links of all cells, from the faces of the box and its solid cells.

A link goes from a cell along c_i. All links of a solid cell count as cut by a wall: no population leaves or enters it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lbmtune.catalogue.byte_lru_cache import remembered
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import patched, walls
from lbmtune.catalogue.record import KernelConfig
from lbmtune.lattice import Vector

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Array = Any
"""A numpy or cupy array."""
Window = tuple[range, range, range]
"""Ranges of cells along x, y and z: a part of a domain, which may extend beyond a periodic face."""
OPEN, WALL, MOVING = 0, 1, 2
_SOLID_BYTES = 1 << 28


def whole(domain: tuple[int, int, int]) -> Window:
    """Return the window of the whole domain."""
    nx, ny, nz = domain
    return range(nx), range(ny), range(nz)


@lru_cache(maxsize=4)
def cut_kinds(case: Case) -> npt.NDArray[np.uint8]:
    """Return for each c_i and cell by what the link is cut: uint8, (q, nz, ny, nx), read-only.

    0: open; 1: a wall, either a face or a solid cell; 2: a moving wall, which takes precedence at an edge.
    """
    import numpy as np  # here, as below: the command line starts without it

    kinds = np.stack([cut_kind(case, c) for c in case.stencil.velocities])
    kinds.flags.writeable = False
    return kinds


def seen_by(case: Case, config: KernelConfig) -> Case:
    """Return the case with the links that a kernel treats as cut: with implicit bounce-back, solid cells cut none."""
    return replace(case, geometry="", walls="half-way") if config.implicit else case


def may_cut(case: Case, velocity: Vector) -> bool:
    """Return whether any link along a velocity can be cut."""
    return bool(case.geometry and any(velocity)) or bool(case.crossed(velocity))


def cut_kind(case: Case, velocity: Vector, window: Window | None = None, xp: ModuleType | None = None) -> Array:
    """Return `cut_kinds` of one velocity in a window: uint8, (nz, ny, nx) of it, as an array of `xp` (None: numpy)."""
    xp = xp or _numpy()
    window = window or whole(case.domain)
    kind = xp.zeros(tuple(map(len, reversed(window))), xp.uint8)
    if case.geometry and any(velocity):
        kind |= _solid_at(case, window, velocity, xp)
        if case.patches:
            kind[_moving_solid_at(case, window, velocity, xp)] = MOVING
    for value, name in ((WALL, "wall"), (MOVING, "moving")):
        for face, found in case.crossed(velocity):
            layer = layer_at(face, case.domain, window)
            if layer is not None and patched(case, face):
                _set_patched(case, face, window, kind[layer], moving=value == MOVING, xp=xp)
            elif found == name and layer is not None:
                kind[layer] = value
    if case.geometry:
        solid = _solid_at(case, window, (0, 0, 0), xp)
        kind *= ~solid  # whole vectors, unlike a choice by mask
        kind |= solid
    return kind


def _set_patched(case: Case, face: int, window: Window, layer: Array, *, moving: bool, xp: ModuleType) -> None:
    """Set the links of a layer of cells at a face that has patches: to a wall everywhere, or to moving walls."""
    from lbmtune.catalogue.problem.patches import owners

    if not moving:
        layer[...] = WALL
        return
    found = owners(case, face, window)
    for number in walls(case):
        if case.patches[number - 1].side == face if number else case.faces[face] == "moving":
            layer[xp.asarray(found == number)] = MOVING


def _moving_solid_at(case: Case, window: Window, offset: Vector, xp: ModuleType) -> Array:
    """Return whether the cell at an offset from each cell of a window is a moving wall; coordinates wrap."""
    from lbmtune.catalogue.problem.patches import of_value

    moving = xp.zeros(case.domain[::-1], bool)
    for number in walls(case):
        if number and case.patches[number - 1].side is None:
            moving |= xp.asarray(of_value(case, case.patches[number - 1]))
    return cells_around(moving, case.domain, window, offset, xp)


def solid_in(case: Case, window: Window, xp: ModuleType | None = None) -> Array:
    """Return whether each cell of a window is solid: bool, (nz, ny, nx) of it."""
    return _solid_at(case, window, (0, 0, 0), xp or _numpy())


def _numpy() -> ModuleType:
    import numpy

    return numpy


def _solid_at(case: Case, window: Window, offset: Vector, xp: ModuleType) -> Array:
    """Return whether the cell at an offset from each cell of a window is solid; coordinates wrap."""
    return cells_around(_solid_on(case.geometry, case.domain, xp), case.domain, window, offset, xp)


def cells_around(cells: Array, domain: tuple[int, int, int], window: Window, offset: Vector, xp: ModuleType) -> Array:
    """Return a field of cells, shifted by an offset and restricted to a window; coordinates wrap."""
    if window == whole(domain):
        return xp.roll(cells, tuple(-o for o in reversed(offset)), axis=(0, 1, 2)) if any(offset) else cells
    # axes of which least remains first, so that few cells are copied
    for axis in sorted((2, 1, 0), key=lambda axis: len(window[axis]) / domain[axis]):
        part, n = window[axis], domain[axis]
        if offset[axis] or part != range(n):
            cells = xp.take(cells, (xp.arange(part.start, part.stop) + offset[axis]) % n, axis=2 - axis)
    return cells


@remembered(_SOLID_BYTES)
def _solid_on(geometry: str, domain: tuple[int, int, int], xp: ModuleType) -> Array:
    from lbmtune.catalogue.problem.geometry import voxels

    return xp.asarray(voxels(geometry, domain))


def layer_at(face: int, domain: tuple[int, int, int], window: Window) -> tuple[Any, ...] | None:
    """Return the index of the cells of a window that lie at a face, or None if there are none."""
    axis, high = divmod(face, 2)
    last = domain[axis] - 1 if high else 0
    if last not in window[axis]:
        return None
    index: list[Any] = [slice(None)] * 3
    index[2 - axis] = window[axis].index(last)
    return tuple(index)
