"""Collision and wall terms as C text, printed from their SymPy form."""

from __future__ import annotations

from functools import lru_cache

from lbmtune.catalogue.boundaries import FACE_NAMES, arriving, face_steps
from lbmtune.catalogue.case import Case, Face
from lbmtune.catalogue.collision import assignments, population, relaxed, wall_gain
from lbmtune.catalogue.collisions import collision
from lbmtune.codegen.cuda.expressions import text
from lbmtune.lattice import lattice

SCALARS = (
    "omega", "omega_minus", "force_x", "force_y", "force_z", "wall_x", "wall_y", "wall_z",
    "inlet_x", "inlet_y", "inlet_z", "excess",
)  # fmt: skip
"""Launch arguments of the compute precision, in the order in which every entry takes them."""


@lru_cache(maxsize=64)
def collide_function(name: str, lattice_name: str, forced: bool) -> str:
    """The device function that relaxes cell v of a thread."""
    stencil, steps = lattice(lattice_name), assignments(collision(name), lattice(lattice_name), forced)
    takes = "".join(f", const Real {scalar}" for scalar in collision_scalars(name, lattice_name, forced))
    lines = [f"__device__ __forceinline__ void collide(Real (&f)[Q][CELLS], const int v{takes}) {{"]
    lines += [f"    const Real {population(i)} = f[{i}][v];" for i in range(stencil.q)]
    lines += [f"    const Real {step.name} = {text(step.value)};" for step in steps]
    lines += [f"    f[{i}][v] = {relaxed(i)};" for i in range(stencil.q)]
    return "\n".join([*lines, "}"])


@lru_cache(maxsize=64)
def collision_scalars(name: str, lattice_name: str, forced: bool) -> tuple[str, ...]:
    """Launch arguments that the collision uses."""
    steps = assignments(collision(name), lattice(lattice_name), forced)
    used = {str(symbol) for step in steps for symbol in step.value.free_symbols}
    return tuple(scalar for scalar in SCALARS if scalar in used)


_AT_FACE = (
    "x == 0 && v == 0", "x + CELLS == nx && v == CELLS - 1", "y == 0", "y + 1 == ny", "z == 0", "z + 1 == nz",
)  # fmt: skip


def functions(case: Case) -> str:
    """The device functions of a case: collision, and what the cells of its faces do before."""
    faces = (_face_function(case.lattice, face, kind, case.forced) for face, kind in case.local_faces)
    return "\n\n".join([collide_function(case.collision, case.lattice, case.forced), *faces])


def cell_scalars(case: Case) -> tuple[str, ...]:
    """Launch arguments that collision and faces use."""
    used = {*collision_scalars(case.collision, case.lattice, case.forced)}
    used |= {name for face in case.local_faces for name in _face_scalars(case.lattice, *face, case.forced)}
    return tuple(scalar for scalar in SCALARS if scalar in used)


def complete(case: Case) -> list[str]:
    """Calls for cell v of a thread, which complete what arrived over the faces that it lies at."""
    return [
        f"        if ({_AT_FACE[face]}) at_{FACE_NAMES[face]}"
        f"({', '.join(['f', 'v', *_face_scalars(case.lattice, face, kind, case.forced)])});"
        for face, kind in case.local_faces
    ]


@lru_cache(maxsize=64)
def _face_scalars(lattice_name: str, face: int, kind: Face, forced: bool) -> tuple[str, ...]:
    steps = face_steps(lattice_name, face, kind, forced)
    used = {str(symbol) for step in steps for symbol in step.value.free_symbols}
    return tuple(scalar for scalar in SCALARS if scalar in used)


def _face_function(lattice_name: str, face: int, kind: Face, forced: bool) -> str:
    """The device function that completes cell v of a thread at a face."""
    stencil, steps = lattice(lattice_name), face_steps(lattice_name, face, kind, forced)
    takes = "".join(f", const Real {scalar}" for scalar in _face_scalars(lattice_name, face, kind, forced))
    known = {symbol for step in steps for symbol in step.value.free_symbols}
    over = {population(i): i for i in arriving(stencil, face)}
    lines = [f"__device__ __forceinline__ void at_{FACE_NAMES[face]}(Real (&f)[Q][CELLS], const int v{takes}) {{"]
    lines += [f"    const Real {population(i)} = f[{i}][v];" for i in range(stencil.q) if population(i) in known]
    for step in steps:
        target = f"f[{over[step.name]}][v]" if step.name in over else f"const Real {step.name}"
        lines.append(f"    {target} = {text(step.value)};")
    return "\n".join([*lines, "}"])


@lru_cache(maxsize=256)
def gain(lattice_name: str, i: int) -> str:
    """C text of what a moving wall adds to a population that it sends back along c_i."""
    return text(wall_gain(lattice(lattice_name), i))
