"""Free slip and Zou-He faces of the oracle, from their definitions in float64, without code of codegen.

The populations that arrive over a face follow from those that arrived from inside, before the cells collide.
"""

from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.catalogue.boundaries.cut_links import Window, whole
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Real3
from lbmtune.catalogue.problem.patches import owners

Array = Any
_COMPLETED = ("slip", "velocity", "pressure")


def bounded(f: Array, case: Case, xp: ModuleType = np, window: Window | None = None) -> Array:
    """Complete populations (q, nz, ny, nx) by those that arrive over faces. window: the cells that f holds."""
    if not (case.patches or any(face in _COMPLETED for face in case.faces)):
        return f
    window = window or whole(case.domain)
    for kind in _COMPLETED:
        for face, own in enumerate(case.faces):
            axis, high = divmod(face, 2)
            at = case.domain[axis] - 1 if high else 0
            parts = [(0, own, case.inlet_velocity, case.outlet_density)]
            parts += [(n, p.kind, p.velocity, p.density) for n, p in enumerate(case.patches, 1) if p.side == face]
            for number, found, velocity, density in parts:
                if found != kind or at not in window[axis]:
                    continue
                layer: list[Any] = [slice(None)] * 4
                layer[3 - axis] = window[axis].index(at)
                f, cells = f.copy(), f[tuple(layer)]
                given = {"velocity": velocity} if kind == "velocity" else {"density": density}
                done = _mirrored(cells, case, face) if kind == "slip" else _zou_he(cells, case, face, xp, **given)
                if len(parts) > 1:
                    done = xp.where(xp.asarray(owners(case, face, window) == number), done, cells)
                f[tuple(layer)] = done
    return f


def _inwards(face: int) -> tuple[int, int]:
    """Return the axis across a face, and the sign of the direction into the box."""
    return face // 2, -1 if face % 2 else 1


def _mirrored(f: Array, case: Case, face: int) -> Array:
    """Set f(c) = f(c mirrored) for all c that point inwards; f: (q, ...) of the cells of the face."""
    axis, sign = _inwards(face)
    velocities, out = list(case.stencil.velocities), f.copy()
    for i, c in enumerate(velocities):
        if c[axis] == sign:
            mirrored = list(c)
            mirrored[axis] = -sign
            out[i] = f[velocities.index((mirrored[0], mirrored[1], mirrored[2]))]
    return out


def _zou_he(
    f: Array, case: Case, face: int, xp: ModuleType, velocity: Real3 | None = None, density: float = 1.0
) -> Array:
    """Bounce back the non-equilibrium part for a given density or velocity, then correct the momentum along the face.

    rho u = sum c f + F / 2. The populations over the face share the missing momentum along it by their weights.
    Source: Zou, He 1997, equations 9 to 20; Hecht, Harting 2010, equations 12 to 18.
    """
    axis, sign = _inwards(face)
    velocities, weights = case.stencil.velocities, [float(w) for w in case.stencil.weights]
    inside = sum(f[i] * (2.0 if c[axis] else 1.0) for i, c in enumerate(velocities) if c[axis] != sign)
    force_normal = sign * case.force[axis]
    if velocity is not None:
        normal = sign * velocity[axis]
        rho = (inside - force_normal / 2) / (1 - normal)
        momentum = [rho * u - force / 2 for u, force in zip(velocity, case.force, strict=True)]
    else:
        rho = density
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
