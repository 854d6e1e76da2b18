"""Completion at slip, velocity and pressure faces: the populations that arrive over a face from those of the cell.

It happens in each step between reading and collision and needs no neighbour, so it is the same for every propagation
scheme and backend. Populations are deviations f_i - w_i times the storage scale, as in
`catalogue.collisions.operator`; n is the normal of the face into the domain, and f_i arrives over it if c_i . n > 0.

- slip: f_i is the population whose velocity is mirrored at the face.
- velocity, pressure: mass and momentum of the known populations fix density and normal momentum; the rest is
  bounce-back of the non-equilibrium part, with a correction by weights that gives the tangential momentum:
  f_i = f_opposite(i) + 6 w_i (j_n + 3 sum over tangents t of c_it (j_t - sum of c_kt f_k over c_k . n = 0)).
  The momentum j includes half of the body force (Guo).

Source: Zou, He 1997 (D2Q9); Hecht, Harting 2010 (D3Q19); the same sum over weights serves D3Q27.
"""

from functools import lru_cache
from types import ModuleType
from typing import Any

import sympy
from sympy import Add, Expr, Rational, Symbol

from lbmtune.catalogue.boundaries.arguments import EXCESS, INLET, boundary_values
from lbmtune.catalogue.boundaries.cut_links import Window, layer_at, whole
from lbmtune.catalogue.collisions.operator import Assignment, Parameters, population, weight
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import conditions
from lbmtune.catalogue.problem.faces import Face
from lbmtune.catalogue.problem.patches import holds
from lbmtune.lattice import Lattice, Vector, lattice

FACE_NAMES = ("x_low", "x_high", "y_low", "y_high", "z_low", "z_high")
_INLET = sympy.symbols(INLET)
_KNOWN, _DENSITY, _NORMAL = Symbol("known"), Symbol("density"), Symbol("normal")
_SLIDES = sympy.symbols("slide_x slide_y slide_z")


@lru_cache(maxsize=64)
def face_steps(lattice_name: str, face: int, kind: Face, forced: bool) -> tuple[Assignment, ...]:
    """Return the assignments of a cell at a face: helper values, then each f_i that arrives over the face."""
    found = lattice(lattice_name)
    return _slip(found, face) if kind == "slip" else _open(found, face, kind, forced)


def arriving(found: Lattice, face: int) -> tuple[int, ...]:
    """Return the directions that arrive over a face."""
    return tuple(i for i in range(found.q) if _inward(found, i, face) > 0)


def reconstructed(f: Any, case: Case, xp: ModuleType, window: Window | None = None) -> Any:
    """Return populations with those that arrive over the faces of a case completed.

    f: (q, nz, ny, nx), not shifted, of the domain or of a window.
    """
    within = window or whole(case.domain)
    weights = xp.asarray([float(w) for w in case.stencil.weights]).reshape(-1, 1, 1, 1)
    shifted = f - weights
    values = {**boundary_values(case, 1.0), "unit": 1.0}
    values |= {f"force_{a}": value for a, value in zip("xyz", case.force, strict=True)}
    for condition in conditions(case):
        layer = layer_at(condition.face, case.domain, within)
        if layer is None:
            continue
        at = shifted[(slice(None), *layer)]
        cells = ... if condition.whole else xp.asarray(holds(case, condition, within))
        names: dict[str, Any] = {**values, **{str(population(i)): at[i].copy() for i in range(len(at))}}
        names |= {name: values[f"{name}{condition.values}"] for name in (*INLET, EXCESS)}
        for step in face_steps(case.lattice, condition.face, condition.kind, case.forced):
            symbols = sorted(step.value.free_symbols, key=str)
            names[str(step.name)] = sympy.lambdify(symbols, step.value, "math")(*(names[str(s)] for s in symbols))
        for i in arriving(case.stencil, condition.face):
            at[i][cells] = names[str(population(i))][cells]
    return shifted + weights


def _inward(found: Lattice, i: int, face: int) -> int:
    """Return c_i . n."""
    axis, high = divmod(face, 2)
    return -found.velocities[i][axis] if high else found.velocities[i][axis]


def _slip(found: Lattice, face: int) -> tuple[Assignment, ...]:
    def mirrored(c: Vector) -> Vector:
        x, y, z = (-a if n == face // 2 else a for n, a in enumerate(c))
        return x, y, z

    return tuple(
        Assignment(population(i), population(found.velocities.index(mirrored(found.velocities[i]))))
        for i in arriving(found, face)
    )


def _open(found: Lattice, face: int, kind: Face, forced: bool) -> tuple[Assignment, ...]:
    axis, high = divmod(face, 2)
    sign, tangents = (-1 if high else 1), [a for a in range(found.dimensions) if a != axis]
    half = [Rational(1, 2) * force if forced else sympy.Integer(0) for force in Parameters.force]
    within = [i for i in range(found.q) if not _inward(found, i, face)]
    leaving = [i for i in range(found.q) if _inward(found, i, face) < 0]
    mass = Add(*map(population, within), *(2 * population(i) for i in leaving))
    if kind == "pressure":
        steps = [Assignment(_NORMAL, Symbol(EXCESS) - mass)]
    else:
        steps = [
            Assignment(_KNOWN, Parameters.unit + mass - sign * half[axis]),
            Assignment(_DENSITY, _KNOWN / (1 - sign * _INLET[axis])),
            Assignment(_NORMAL, sign * (_DENSITY * _INLET[axis] - half[axis])),
        ]
    for t in tangents:
        wanted = _DENSITY * _INLET[t] if kind == "velocity" else sympy.Integer(0)
        moving = Add(*(found.velocities[k][t] * population(k) for k in within))
        steps.append(Assignment(_SLIDES[t], wanted - half[t] - moving))
    return (*steps, *(Assignment(population(i), _arrives(found, i, tangents)) for i in arriving(found, face)))


def _arrives(found: Lattice, i: int, tangents: list[int]) -> Expr:
    slide = Add(*(3 * found.velocities[i][t] * _SLIDES[t] for t in tangents))
    return population(found.opposite[i]) + 6 * weight(found, i) * (_NORMAL + slide)
