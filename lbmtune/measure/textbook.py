"""Collision operators other than BGK and TRT for the oracle, written from their definitions in float64.

Arrays have the shapes of measure.oracle: populations (q, nz, ny, nx), not shifted. Every sum over directions or
moments is a loop, and nothing is shared with the symbolic derivations.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from lbmtune.catalogue.case import Case

Array = Any


def regularised(f: Array, case: Case, equilibrium: Array, source: Array, xp: ModuleType) -> Array:
    """Second-order departures only: f_eq + (1 - omega) w (3 c.n + 9/2 (c c - I/3) : N) + (1 - omega/2) S.

    n, N: first and second moments of f - f_eq; n is not zero but -F/2 where a force acts.
    Source: Latt, Chopard 2006, equation 11; Krueger et al. 2017, section 10.3.
    """
    lattice, omega = case.stencil, case.relaxation_rate
    departure, out = f - equilibrium, xp.empty_like(f)
    velocities = list(enumerate(lattice.velocities))
    first = [sum(c[a] * departure[i] for i, c in velocities) for a in range(3)]
    second = [[sum(c[a] * c[b] * departure[i] for i, c in velocities) for b in range(3)] for a in range(3)]
    for i, c in velocities:
        kept = sum(3 * c[a] * first[a] for a in range(3))
        for a in range(3):
            for b in range(3):
                kept = kept + 4.5 * (c[a] * c[b] - (a == b) / 3) * second[a][b]
        out[i] = equilibrium[i] + (1 - omega) * float(lattice.weights[i]) * kept + (1 - omega / 2) * source[i]
    return out
