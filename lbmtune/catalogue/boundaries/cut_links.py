"""Which links are cut, and by what: the one place that knows, from the faces of the box and its solid cells.

A link goes from a cell along c_i. All links of a solid cell count as cut by a wall: nothing leaves or enters it.
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
"""Cells along x, y and z: a part of a domain, which may reach beyond a periodic face."""
OPEN, WALL, MOVING = 0, 1, 2
_SOLID_BYTES = 1 << 28


def whole(domain: tuple[int, int, int]) -> Window:
    """The window that is the domain."""
    nx, ny, nz = domain
    return range(nx), range(ny), range(nz)


@lru_cache(maxsize=4)
def cut_kinds(case: Case) -> npt.NDArray[np.uint8]:
    """What the link from each cell along each c_i meets: uint8, (q, nz, ny, nx), read-only.

    0: another cell; 1: a wall, be it a face or a solid cell; 2: a moving face, which wins at an edge.
    """
    import numpy as np  # here, as below: the command line, which knows rules, starts without it

    kinds = np.stack([cut_kind(case, c) for c in case.stencil.velocities])
    kinds.flags.writeable = False
    return kinds


def seen_by(case: Case, config: KernelConfig) -> Case:
    """The case as a kernel sees its links: with implicit bounce-back all are open."""
    return replace(case, geometry="") if config.implicit else case


def may_cut(case: Case, velocity: Vector) -> bool:
    """Whether any link along a velocity can be cut."""
    return bool(case.geometry and any(velocity)) or bool(case.crossed(velocity))


def cut_kind(case: Case, velocity: Vector, window: Window | None = None, xp: ModuleType | None = None) -> Array:
    """The same for one velocity, in a window: uint8, (nz, ny, nx) of it, in an array module (None: numpy)."""
    xp = xp or _numpy()
    window = window or whole(case.domain)
    kind = xp.zeros(tuple(map(len, reversed(window))), xp.uint8)
    if case.geometry and any(velocity):
        kind |= _solid_at(case, window, velocity, xp)
        if case.patches:
            kind[_moving_solid_at(case, window, velocity, xp)] = MOVING
    for value, name in ((WALL, "wall"), (MOVING, "moving")):
        for face, found in case.crossed(velocity):
            layer = _layer(face, case.domain, window)
            if layer is not None and patched(case, face):
                _set_patched(case, face, window, kind[layer], moving=value == MOVING, xp=xp)
            elif found == name and layer is not None:
                kind[layer] = value
    if case.geometry:
        kind = xp.where(_solid_at(case, window, (0, 0, 0), xp), xp.uint8(WALL), kind)
    return kind


def _set_patched(case: Case, face: int, window: Window, layer: Array, *, moving: bool, xp: ModuleType) -> None:
    """What links meet at a face that has patches: a wall everywhere, or a moving one where it moves."""
    from lbmtune.catalogue.problem.patches import owners

    if not moving:
        layer[...] = WALL
        return
    found = owners(case, face, window)
    for number in walls(case):
        if case.patches[number - 1].side == face if number else case.faces[face] == "moving":
            layer[xp.asarray(found == number)] = MOVING


def _moving_solid_at(case: Case, window: Window, offset: Vector, xp: ModuleType) -> Array:
    """The same as `_solid_at` of solid cells that move."""
    from lbmtune.catalogue.problem.patches import of_value

    moving = xp.zeros(case.domain[::-1], bool)
    for number in walls(case):
        if number and case.patches[number - 1].side is None:
            moving |= xp.asarray(of_value(case, case.patches[number - 1]))
    return _around(moving, case.domain, window, offset, xp)


def solid_in(case: Case, window: Window, xp: ModuleType | None = None) -> Array:
    """Which cells of a window are solid: bool, (nz, ny, nx) of it."""
    return _solid_at(case, window, (0, 0, 0), xp or _numpy())


def _numpy() -> ModuleType:
    import numpy

    return numpy


def _solid_at(case: Case, window: Window, offset: Vector, xp: ModuleType) -> Array:
    """Whether the cell at an offset from each cell of a window is solid; coordinates wrap."""
    return _around(_solid_on(case.geometry, case.domain, xp), case.domain, window, offset, xp)


def _around(cells: Array, domain: tuple[int, int, int], window: Window, offset: Vector, xp: ModuleType) -> Array:
    """A field of cells at an offset from each cell of a window."""
    if window == whole(domain):
        return xp.roll(cells, tuple(-o for o in reversed(offset)), axis=(0, 1, 2)) if any(offset) else cells
    for axis, (part, shift, n) in enumerate(zip(window, offset, domain, strict=True)):
        if shift or part != range(n):
            cells = xp.take(cells, (xp.arange(part.start, part.stop) + shift) % n, axis=2 - axis)
    return cells


@remembered(_SOLID_BYTES)
def _solid_on(geometry: str, domain: tuple[int, int, int], xp: ModuleType) -> Array:
    from lbmtune.catalogue.problem.geometry import voxels

    return xp.asarray(voxels(geometry, domain))


def _layer(face: int, domain: tuple[int, int, int], window: Window) -> tuple[Any, ...] | None:
    """Index of the cells of a window that lie at a face; None where there are none."""
    axis, high = divmod(face, 2)
    last = domain[axis] - 1 if high else 0
    if last not in window[axis]:
        return None
    index: list[Any] = [slice(None)] * 3
    index[2 - axis] = window[axis].index(last)
    return tuple(index)
