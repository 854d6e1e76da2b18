"""The bodies of a stage of the march over populations as C text, as `moments` has those of moments.

A cell collides, and each population goes where its direction says: along x to the neighbouring lane, along y through
shared memory, along z by waiting for the next plane. Nothing is computed on the way: spreading, adding up and
gathering give populations other names. In each row (c_y, c_z) of directions one may stay along x and two move.
"""

from __future__ import annotations

from functools import lru_cache

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.collision import population, relaxed
from lbmtune.catalogue.collisions import collision
from lbmtune.catalogue.collisions.lean import leanest
from lbmtune.catalogue.moments import rows, unit_weight, upright
from lbmtune.codegen.cuda.expressions import text
from lbmtune.codegen.cuda.moments import Row, function
from lbmtune.codegen.cuda.physics import collision_scalars
from lbmtune.lattice import Lattice, lattice


def functions(case: Case) -> str:
    """The device functions of a stage."""
    turned = upright(case.stencil)
    return "\n".join(
        (relaxation(case.collision, case.lattice, case.forced), _spread(turned), _sum_up(turned), _gather(turned))
    )


def constants(stencil: Lattice) -> str:
    """Lengths of the arrays; those of what goes along y are of one element at least."""
    turned = upright(stencil)
    lengths = {
        "MOMENTS": stencil.q,
        "LINES": len(rows(turned)),
        "MOVERS": len(_movers(turned)),
        "ACROSS": max(1, len(_along_y(turned, 1))),
        "LEVEL": len(_along_y(turned, 0)),
        "CURRENT": len(_along_z(turned, 0)) + len(_along_z(turned, 1)),
        "PENDING": len(_along_z(turned, 1)),
    }
    return "\n".join(f"constexpr int {name} = {length};" for name, length in lengths.items())


def scalars(case: Case) -> tuple[str, ...]:
    """Launch arguments that the collision uses."""
    return collision_scalars(case.collision, case.lattice, case.forced)


def _movers(stencil: Lattice) -> tuple[Row, ...]:
    """Rows with populations that move along x."""
    return tuple(row for row in rows(stencil) if unit_weight(stencil, (1, *row)))


def _along_y(stencil: Lattice, c_y: int) -> list[int]:
    """Directions that go along y, or stay there."""
    return [i for i, c in enumerate(stencil.velocities) if c[1] == c_y]


def _along_z(stencil: Lattice, c_z: int) -> list[int]:
    return [i for i, c in enumerate(stencil.velocities) if c[2] == c_z]


@lru_cache(maxsize=64)
def relaxation(name: str, lattice_name: str, forced: bool) -> str:
    """The device function that relaxes a cell."""
    stencil = lattice(lattice_name)
    steps = leanest(collision(name), stencil, forced)
    takes = "".join(f", const Real {scalar}" for scalar in collision_scalars(name, lattice_name, forced))
    return function(
        f"relax(Real (&m)[MOMENTS]{takes})",
        [
            *(f"const Real {population(i)} = m[{i}];" for i in range(stencil.q)),
            *(f"const Real {step.name} = {text(step.value)};" for step in steps),
            *(f"m[{i}] = {relaxed(i)};" for i in range(stencil.q)),
        ],
    )


def _spread(stencil: Lattice) -> str:
    """From populations after collision to what stays in each row, and to what goes right and left."""
    lines = [f"{_sent(stencil, i)} = m[{i}];" for i in range(stencil.q)]
    return function(
        "spread(const Real (&m)[MOMENTS], Real (&still)[LINES], Real (&right)[MOVERS], Real (&left)[MOVERS])", lines
    )


def _sent(stencil: Lattice, i: int) -> str:
    x, *row = stencil.velocities[i]
    if x:
        return f"{'right' if x > 0 else 'left'}[{_movers(stencil).index((row[0], row[1]))}]"
    return f"still[{rows(stencil).index((row[0], row[1]))}]"


def _arrived(stencil: Lattice, i: int) -> str:
    c_y = stencil.velocities[i][1]
    return f"{ {1: 'up', -1: 'down', 0: 'level'}[c_y] }[{_along_y(stencil, c_y).index(i)}]"


def _sum_up(stencil: Lattice) -> str:
    lines = [f"{_arrived(stencil, i)} = {_sent(stencil, i)};" for i in range(stencil.q)]
    return function(
        "sum_up(\n    const Real (&still)[LINES], const Real (&right)[MOVERS], const Real (&left)[MOVERS], "
        "Real (&up)[ACROSS],\n    Real (&down)[ACROSS], Real (&level)[LEVEL])",
        lines,
    )


def _gather(stencil: Lattice) -> str:
    """Finishes the plane before with what comes down from this one, and begins this one."""
    falls, stays, rises = (_along_z(stencil, c_z) for c_z in (-1, 0, 1))
    lines = [
        *(f"m[{i}] = {_arrived(stencil, i)};" for i in falls),
        *(f"m[{i}] = current[{k}];" for k, i in enumerate((*stays, *rises))),
        *(f"current[{k}] = {_arrived(stencil, i)};" for k, i in enumerate(stays)),
        *(f"current[{len(stays) + k}] = pending[{k}];" for k in range(len(rises))),
        *(f"pending[{k}] = {_arrived(stencil, i)};" for k, i in enumerate(rises)),
    ]
    return function(
        "gather(\n    const Real (&up)[ACROSS], const Real (&down)[ACROSS], const Real (&level)[LEVEL], "
        "Real (&current)[CURRENT],\n    Real (&pending)[PENDING], Real (&m)[MOMENTS])",
        lines,
    )
