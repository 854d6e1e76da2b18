"""Collision and wall terms as C text, printed from their SymPy form."""

from __future__ import annotations

from functools import lru_cache

from lbmtune.catalogue.collision import assignments, population, relaxed, wall_gain
from lbmtune.catalogue.collisions import collision
from lbmtune.codegen.cuda.expressions import text
from lbmtune.lattice import lattice

SCALARS = (
    "omega", "omega_minus", "force_x", "force_y", "force_z", "wall_x", "wall_y", "wall_z",
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


@lru_cache(maxsize=256)
def gain(lattice_name: str, i: int) -> str:
    """C text of what a moving wall adds to a population that it sends back along c_i."""
    return text(wall_gain(lattice(lattice_name), i))
