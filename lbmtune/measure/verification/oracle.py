"""The oracle: a plain two-lattice step in float64, written from the textbook, without code of codegen.

State: array (q, nz, ny, nx) of pre-collision populations f_i(x, t), not shifted. One step is collision, then
streaming with half-way bounce-back; open faces first complete the populations that arrived over them
(`measure.verification.textbook_boundaries`). `xp` is numpy, or cupy for large domains.
Source: Krueger et al., The Lattice Boltzmann Method, 2017, chapters 3, 5, 6 and 10.
"""

from dataclasses import replace
from functools import lru_cache
from itertools import product
from types import ModuleType

import numpy as np

from lbmtune.catalogue.boundaries.cut_links import MOVING, OPEN, Window, cut_kind, may_cut, solid_in, whole
from lbmtune.catalogue.boundaries.second_order import HALF, Walls, interpolated, wall_parts
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.patches import wall_velocity
from lbmtune.lattice import Vector, negate
from lbmtune.measure.verification.textbook_boundaries import bounded
from lbmtune.measure.verification.textbook_collisions import COLLISIONS, Array, density, equilibrium, velocity

__all__ = [
    "NOISE",
    "collide",
    "density",
    "equilibrium",
    "interpolate",
    "random_state",
    "scattered_state",
    "slices_in",
    "step",
    "stream",
    "velocity",
]
Cells = tuple[slice, slice, slice]
_CELLS_AT_ONCE = 1 << 13
"""Cells of which the intermediate values of a collision fit in the caches of a processor."""


def collide(f: Array, case: Case, xp: ModuleType = np, out: Array | None = None) -> Array:
    """Return post-collision populations, shape (q, nz, ny, nx). out: the array for them, which may be f.

    On a host only some cells are processed at a time, so that intermediate values stay in caches.
    """
    parts = -(-f[0].size // _CELLS_AT_ONCE) if xp is np else 1
    if parts == 1 and out is None and case.relaxes:
        return COLLISIONS[case.collision](f, case, xp)
    out = xp.empty(f.shape) if out is None else out
    if not case.relaxes:
        out[...] = f
        return out
    each = [xp.array_split(a.reshape(len(f), -1, 1, 1), parts, axis=1) for a in (f, out)] if parts > 1 else [[f], [out]]
    for before, after in zip(*each, strict=True):
        after[...] = COLLISIONS[case.collision](before, case, xp)
    return out


def stream(
    g: Array,
    case: Case,
    xp: ModuleType = np,
    window: Window | None = None,
    out: Array | None = None,
    part: Window | None = None,
) -> Array:
    """Return the populations after streaming with the case's walls and solid cells. out: the array for them, not g.

    window: the cells of the domain that g holds; None: all. A window is periodic over its rim.
    part: the cells of the window whose populations are returned; None: all.
    """
    lattice, window = case.stencil, window or whole(case.domain)
    inside = slices_in(part or window, window)
    bounds = tuple((one.start, one.stop) for one in inside)
    out = xp.empty((lattice.q, *(stop - start for start, stop in bounds))) if out is None else out
    moved, cuts = wall_velocity(case, part or window, xp), case.walled or case.geometry
    for i, c in enumerate(lattice.velocities):
        for there, here in _moves(c, g.shape[1:], bounds):
            out[i][there] = g[i][here]
        if not (cuts and may_cut(case, negate(c))):
            continue
        kind = cut_kind(case, negate(c), part or window, xp)
        bounced = g[lattice.opposite[i]][inside]
        gain = 6 * float(lattice.weights[i]) * sum(a * b for a, b in zip(c, moved, strict=True))
        out[i] = xp.where(kind != OPEN, bounced + gain * (kind == MOVING), out[i])
    return out


def slices_in(part: Window, window: Window) -> Cells:
    """Return the slices of a part of a window in it, along z, y and x."""
    x, y, z = (slice(p.start - r.start, p.stop - r.start) for p, r in zip(part, window, strict=True))
    return z, y, x


@lru_cache(maxsize=1 << 12)
def _moves(c: Vector, shape: tuple[int, ...], part: tuple[tuple[int, int], ...]) -> tuple[tuple[Cells, Cells], ...]:
    """Return where cells of a periodic box come to lie in a part of it, and where they are: of each piece.

    part: the first cell and that behind the last one along each axis.
    """
    z, y, x = (_shifts(move, n, *ends) for move, n, ends in zip(reversed(c), shape, part, strict=True))
    return tuple(((k[0], j[0], i[0]), (k[1], j[1], i[1])) for k, j, i in product(z, y, x))


def _shifts(move: int, n: int, start: int, stop: int) -> list[tuple[slice, slice]]:
    """Return where cells of a ring of n come to lie in a part of it, and where they are: of each piece."""
    first, length = (start - move) % n, stop - start
    here = min(length, n - first)
    pieces = (slice(0, here), slice(first, first + here)), (slice(here, length), slice(0, length - here))
    return [(there, of) for there, of in pieces if there.start < there.stop]


def step(
    f: Array,
    case: Case,
    xp: ModuleType = np,
    window: Window | None = None,
    *,
    walls: Walls = Walls.HALF_WAY,
    out: Array | None = None,
    part: Window | None = None,
) -> Array:
    """Return the state after one time step of the whole domain, of a window or of a part of that (`stream`).

    out: the array for the new state; f is then overwritten.
    walls: if implicit, solid cells do not cut links but reverse the populations that reach them instead of colliding
    (full-way bounce-back), so that these return to the fluid after two steps; half-way bounce-back takes one. Both have
    the same steady state. Source: Geier, Schoenherr 2017. If interpolated, walls are of second order.
    """
    if walls is not Walls.IMPLICIT:
        relaxed = collide(bounded(f, case, xp, window), case, xp, None if out is None else f)
        if walls is Walls.INTERPOLATED:
            streamed = stream(relaxed, case, xp, window, out)
            interpolate(relaxed, streamed, case, xp, window)
            return streamed if part is None else streamed[:, *slices_in(part, window or whole(case.domain))]
        return stream(relaxed, case, xp, window, out, part)
    solid = solid_in(case, window or whole(case.domain), xp)
    relaxed = xp.where(solid, f[list(case.stencil.opposite)], collide(f, case, xp))
    return stream(relaxed, replace(case, geometry=""), xp, window, out, part)


def interpolate(g: Array, f: Array, case: Case, xp: ModuleType = np, window: Window | None = None) -> None:
    """Replace what half-way walls sent back by linear interpolation, in f. g: populations after the collision.

    Source: Bouzidi, Firdaouss, Lallemand 2001, equations 5.
    """
    lattice, window = case.stencil, window or whole(case.domain)
    for i, c in enumerate(lattice.velocities):
        if not any(c):
            continue
        j, q = lattice.opposite[i], wall_parts(case, c, window, xp)
        behind = xp.roll(g[i], (c[2], c[1], c[0]), axis=(0, 1, 2))
        close = 2 * q * g[i] + (1 - 2 * q) * behind
        far = (g[i] + (2 * q - 1) * g[j]) / xp.maximum(2 * q, 1)
        f[j] = xp.where(interpolated(case, c, window, xp), xp.where(q < HALF, close, far), f[j])


NOISE = 0.05
"""Largest relative deviation of a random state from the weights."""


def random_state(case: Case, seed: int = 1, xp: ModuleType = np) -> Array:
    """Return a random state far from equilibrium: weights times (1 + noise of 5 %), different in every cell."""
    nx, ny, nz = case.domain
    noise = xp.asarray(np.random.default_rng(seed).uniform(-NOISE, NOISE, (case.stencil.q, nz, ny, nx)))
    return xp.asarray([float(w) for w in case.stencil.weights]).reshape(-1, 1, 1, 1) * (1 + noise)


def scattered_state(case: Case, x: Array, y: Array, z: Array, xp: ModuleType = np, out: Array | None = None) -> Array:
    """Return a random state of any part of a domain: the noise of a population is a hash of its cell and direction.

    x, y, z: coordinates of the part along each axis. Shape (q, len(z), len(y), len(x)). out: the array for it.
    Source of the hash: Wellons, hash-prospector, 'lowbias32'.
    """
    parts = (a.astype(xp.uint32) for a in (x, y.reshape(-1, 1), z.reshape(-1, 1, 1)))
    primes = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
    cells = sum(part * xp.uint32(prime) for part, prime in zip(parts, primes, strict=True))
    out = xp.empty((case.stencil.q, *cells.shape)) if out is None else out
    for i, w in enumerate(case.stencil.weights):
        hashed = cells + xp.uint32(i * 0x27D4EB2F % 2**32)
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            hashed ^= hashed >> xp.uint32(shift)
            hashed *= xp.uint32(factor)
        hashed ^= hashed >> xp.uint32(16)
        out[i] = float(w) * (1 - NOISE + hashed * (2 * NOISE / 2**32))
    return out
