"""The oracle: a plain two-lattice step in float64, written from the textbook and sharing no code with codegen.

State: array (q, nz, ny, nx) of pre-collision populations f_i(x, t), not shifted. One step is collision, then
streaming with half-way bounce-back; faces that are no walls first complete what arrived over them
(`measure.verification.textbook_boundaries`). `xp` is numpy, or cupy for large domains.
Source: Krueger et al., The Lattice Boltzmann Method, 2017, chapters 3, 5, 6 and 10.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.catalogue.boundaries.cut_links import MOVING, OPEN, Window, cut_kind, may_cut, solid_in, whole
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.patches import wall_velocity
from lbmtune.lattice import Lattice, negate
from lbmtune.measure.verification import textbook_collisions as textbook
from lbmtune.measure.verification.textbook_boundaries import bounded

Array = Any
"""A numpy or cupy array of float64."""


def density(f: Array) -> Array:
    """rho, shape (nz, ny, nx)."""
    return f.sum(axis=0)


def velocity(f: Array, case: Case, xp: ModuleType = np) -> Array:
    """U = (sum c_i f_i + F/2) / rho, shape (3, nz, ny, nx)."""
    momentum = xp.empty((3, *f.shape[1:]))
    for axis, force in enumerate(case.force):
        momentum[axis] = 0.5 * force
        for i, c in enumerate(case.stencil.velocities):
            if c[axis] > 0:
                momentum[axis] += f[i]
            elif c[axis] < 0:
                momentum[axis] -= f[i]
    momentum /= density(f)
    return momentum


def equilibrium(rho: Array, u: Array, lattice: Lattice, xp: ModuleType = np) -> Array:
    """Second-order equilibrium, shape (q, nz, ny, nx); rho (nz, ny, nx), u (3, nz, ny, nx).

    w_i rho (1 + 3 c.u + 9/2 (c.u)^2 - 3/2 u.u), in few operations on many values, as each takes its time to begin.
    """
    out = xp.zeros((lattice.q, *rho.shape))
    for i, c in enumerate(lattice.velocities):
        for along, v in zip(c, u, strict=True):
            if along > 0:
                out[i] += v
            elif along < 0:
                out[i] -= v
    square = 4.5 * out
    square *= out
    out *= 3
    out += 1
    out += square
    out -= 1.5 * (u * u).sum(axis=0)
    out *= xp.asarray([float(w) for w in lattice.weights]).reshape(-1, 1, 1, 1) * rho
    return out


def guo_source(u: Array, case: Case, xp: ModuleType = np) -> Array:
    """Guo's forcing term without its relaxation prefactor, shape (q, nz, ny, nx), or (q, 1, 1, 1) of zeros."""
    lattice, force = case.stencil, case.force
    if not any(force):
        return xp.zeros((lattice.q, 1, 1, 1))
    out = xp.zeros((lattice.q, *u.shape[1:]))
    for i, (c, w) in enumerate(zip(lattice.velocities, lattice.weights, strict=True)):
        cu = c[0] * u[0] + c[1] * u[1] + c[2] * u[2]
        for axis in range(3):
            out[i] += float(w) * (3 * (c[axis] - u[axis]) + 9 * cu * c[axis]) * force[axis]
    return out


_CELLS_AT_ONCE = 1 << 13
"""So few that what a collision works out in between stays in the caches of a processor."""


def collide(f: Array, case: Case, xp: ModuleType = np, out: Array | None = None) -> Array:
    """Post-collision populations, shape (q, nz, ny, nx). out: where they go, which may be f.

    On a processor some cells are worked out at a time.
    """
    out = xp.empty(f.shape) if out is None else out
    if not case.relaxes:
        out[...] = f
        return out
    parts = -(-f[0].size // _CELLS_AT_ONCE) if xp is np else 1
    each = (xp.array_split(a.reshape(len(f), -1, 1, 1), parts, axis=1) for a in (f, out))
    for before, after in zip(*each, strict=True):
        after[...] = _collided(before, case, xp)
    return out


def _collided(f: Array, case: Case, xp: ModuleType) -> Array:
    rho, u = density(f), velocity(f, case, xp)
    if case.collision == "mrt":
        return textbook.central_moments(f, case, rho, u, xp)
    if case.collision == "cumulant":
        return textbook.cumulants(f, case, rho, u, xp)
    rest, source = equilibrium(rho, u, case.stencil, xp), guo_source(u, case, xp)
    if case.collision == "regularised":
        return textbook.regularised(f, case, rest, source, xp)
    omega, departure = case.relaxation_rate, xp.subtract(f, rest, out=rest)
    if case.collision == "bgk":
        departure *= omega
        after = xp.subtract(f, departure, out=departure)
        after += (1 - omega / 2) * source
        return after
    assert case.collision == "trt"
    omega_minus = 1 / (case.magic / (1 / omega - 0.5) + 0.5)
    opposite = list(case.stencil.opposite)
    even, odd = ((departure + s * departure[opposite]) / 2 for s in (1, -1))
    source_even, source_odd = ((source + s * source[opposite]) / 2 for s in (1, -1))
    return f - omega * even - omega_minus * odd + (1 - omega / 2) * source_even + (1 - omega_minus / 2) * source_odd


def stream(g: Array, case: Case, xp: ModuleType = np, window: Window | None = None, out: Array | None = None) -> Array:
    """Populations after streaming with the case's walls and solid cells. out: where they go, not g.

    window: which cells of the case's domain g holds, where it is not all of them; over its rim it is periodic.
    """
    lattice, out = case.stencil, xp.empty_like(g) if out is None else out
    moved = wall_velocity(case, window, xp)
    for i, c in enumerate(lattice.velocities):
        out[i] = xp.roll(g[i], (c[2], c[1], c[0]), axis=(0, 1, 2))
        if not may_cut(case, negate(c)):
            continue
        kind = cut_kind(case, negate(c), window, xp)
        bounced = g[lattice.opposite[i]]
        gain = 6 * float(lattice.weights[i]) * sum(a * b for a, b in zip(c, moved, strict=True))
        out[i] = xp.where(kind != OPEN, bounced + gain * (kind == MOVING), out[i])
    return out


def step(
    f: Array,
    case: Case,
    xp: ModuleType = np,
    window: Window | None = None,
    *,
    implicit: bool = False,
    out: Array | None = None,
) -> Array:
    """One time step, of the whole domain or of a window of it (`stream`); faces complete what arrived over them.

    out: where the new state goes; f is then used up.
    implicit: solid cells do not cut links; instead of colliding they reverse what has come to them (full-way
    bounce-back), so that it is back at the fluid two steps after it left. Half-way bounce-back takes one step; where
    nothing changes any more, both give the same flow. Source: Geier, Schoenherr 2017.
    """
    if not implicit:
        relaxed = collide(bounded(f, case, xp, window), case, xp, None if out is None else f)
        return stream(relaxed, case, xp, window, out)
    solid = solid_in(case, window or whole(case.domain), xp)
    relaxed = xp.where(solid, f[list(case.stencil.opposite)], collide(f, case, xp))
    return stream(relaxed, replace(case, geometry=""), xp, window, out)


NOISE = 0.05
"""Largest deviation of a random state from its weights, relative to them."""


def random_state(case: Case, seed: int = 1, xp: ModuleType = np) -> Array:
    """A random state far from equilibrium: every population its weight times (1 + noise of 5 %), every cell another."""
    nx, ny, nz = case.domain
    noise = xp.asarray(np.random.default_rng(seed).uniform(-NOISE, NOISE, (case.stencil.q, nz, ny, nx)))
    return _weights(case, xp) * (1 + noise)


def scattered_state(case: Case, x: Array, y: Array, z: Array, xp: ModuleType = np, out: Array | None = None) -> Array:
    """Such a state for any part of a domain: the noise of a population is a hash of its cell and direction.

    x, y, z: coordinates of the part along each axis. Shape (q, len(z), len(y), len(x)). out: where it goes.
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


def _weights(case: Case, xp: ModuleType) -> Array:
    return xp.asarray([float(w) for w in case.stencil.weights]).reshape(-1, 1, 1, 1)
