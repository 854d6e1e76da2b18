"""Density, velocity, equilibrium and Guo's source term of the oracle, in float64.

Source: Krueger et al., The Lattice Boltzmann Method, 2017, chapters 3 and 6.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.catalogue.problem.case import Case
from lbmtune.lattice import Lattice

Array = Any
"""A numpy or cupy array of float64."""


def density(f: Array) -> Array:
    """Return rho, shape (nz, ny, nx)."""
    return f.sum(axis=0)


def velocity(f: Array, case: Case, xp: ModuleType = np) -> Array:
    """Return u = (sum c_i f_i + F/2) / rho, shape (3, nz, ny, nx)."""
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
    """Return the second-order equilibrium, shape (q, nz, ny, nx), of rho (nz, ny, nx) and u (3, nz, ny, nx).

    w_i rho (1 + 3 c.u + 9/2 (c.u)^2 - 3/2 u.u), in few operations on large arrays, because each has an overhead.
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
    """Return Guo's source term without its relaxation prefactor, (q, nz, ny, nx); without a force (q, 1, 1, 1)."""
    lattice, force = case.stencil, case.force
    if not any(force):
        return xp.zeros((lattice.q, 1, 1, 1))
    out = xp.zeros((lattice.q, *u.shape[1:]))
    for i, (c, w) in enumerate(zip(lattice.velocities, lattice.weights, strict=True)):
        cu = c[0] * u[0] + c[1] * u[1] + c[2] * u[2]
        for axis in range(3):
            out[i] += float(w) * (3 * (c[axis] - u[axis]) + 9 * cu * c[axis]) * force[axis]
    return out
