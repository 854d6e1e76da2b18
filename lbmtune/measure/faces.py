"""Free slip and Zou-He faces for the oracle, from their definitions in float64; nothing is shared with codegen.

The cells of a face know what arrived from inside; what arrives over the face is worked out before they collide.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.links import Window, whole

Array = Any


def bounded(f: Array, case: Case, xp: ModuleType = np, window: Window | None = None) -> Array:
    """Populations (q, nz, ny, nx), with those that arrive over the faces of the case; of a window, where given."""
    window = window or whole(case.domain)
    for kinds in (("slip",), ("velocity", "pressure")):
        for face, kind in enumerate(case.faces):
            axis, high = divmod(face, 2)
            at, sign = (case.domain[axis] - 1, -1) if high else (0, 1)
            if kind in kinds and at in window[axis]:
                layer: list[Any] = [slice(None)] * 4
                layer[3 - axis] = window[axis].index(at)
                f, cells = f.copy(), f[tuple(layer)]
                done = _mirrored(cells, case, axis, sign) if kind == "slip" else _zou_he(cells, case, axis, sign, xp)
                f[tuple(layer)] = done
    return f


def _mirrored(f: Array, case: Case, axis: int, sign: int) -> Array:
    """f(c) = f(c mirrored) for all c that point inwards; f: (q, ...) of the cells of the face."""
    velocities, out = list(case.stencil.velocities), f.copy()
    for i, c in enumerate(velocities):
        if c[axis] == sign:
            mirrored = list(c)
            mirrored[axis] = -sign
            out[i] = f[velocities.index((mirrored[0], mirrored[1], mirrored[2]))]
    return out


def _zou_he(f: Array, case: Case, axis: int, sign: int, xp: ModuleType) -> Array:
    """Density or velocity given; the bounce-back of the non-equilibrium part, then the momentum along the face.

    rho u = sum c f + F / 2. Of populations over the face, those along it carry what is missing, by their weights.
    Source: Zou, He 1997, equations 9 to 20; Hecht, Harting 2010, equations 12 to 18.
    """
    velocities, weights = case.stencil.velocities, [float(w) for w in case.stencil.weights]
    inside = sum(f[i] * (2.0 if c[axis] else 1.0) for i, c in enumerate(velocities) if c[axis] != sign)
    force_normal = sign * case.force[axis]
    if case.faces[2 * axis + (sign < 0)] == "velocity":
        normal = sign * case.inlet_velocity[axis]
        rho = (inside - force_normal / 2) / (1 - normal)
        momentum = [rho * u - force / 2 for u, force in zip(case.inlet_velocity, case.force, strict=True)]
    else:
        rho = case.outlet_density
        momentum = [xp.zeros(f[0].shape) - force / 2 for force in case.force]
        momentum[axis] = sign * (rho - inside)
    out = f.copy()
    for i, c in enumerate(velocities):
        if c[axis] == sign:
            out[i] = f[case.stencil.opposite[i]] + 6 * weights[i] * sum(a * j for a, j in zip(c, momentum, strict=True))
    for t in range(3):
        carriers = [i for i, c in enumerate(velocities) if c[axis] == sign and c[t]] if t != axis else []
        missing = momentum[t] - sum(c[t] * out[i] for i, c in enumerate(velocities))
        total = sum(weights[i] for i in carriers)
        for i in carriers:
            out[i] = out[i] + velocities[i][t] * weights[i] / total * missing
    return out
