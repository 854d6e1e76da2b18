"""The bodies of a stage of the march over populations as C text, as `moments` has those of moments.

A cell collides, and each population goes where its direction says: along x to the neighbouring lane, along y through
shared memory, along z by waiting for the next plane. Nothing is computed on the way: spreading, adding up and
gathering give populations other names. In each row (c_y, c_z) of directions one may stay along x and two move.
"""

from __future__ import annotations

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.collision import assignments, population, relaxed
from lbmtune.catalogue.collisions import collision
from lbmtune.catalogue.moments import rows, unit_weight, upright
from lbmtune.codegen.cuda.expressions import text
from lbmtune.codegen.cuda.moments import Row, function
from lbmtune.codegen.cuda.physics import collision_scalars
from lbmtune.lattice import Lattice


def functions(case: Case) -> str:
    """The device functions of a stage."""
    turned = upright(case.stencil)
    return "\n".join((_relax(case), _spread(turned), _sum_up(turned), _gather(turned)))


def constants(lattice: Lattice) -> str:
    """Lengths of the arrays; those of what goes along y are of one element at least."""
    turned = upright(lattice)
    lengths = {
        "MOMENTS": lattice.q,
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


def _movers(lattice: Lattice) -> tuple[Row, ...]:
    """Rows with populations that move along x."""
    return tuple(row for row in rows(lattice) if unit_weight(lattice, (1, *row)))


def _along_y(lattice: Lattice, c_y: int) -> list[int]:
    """Directions that go along y, or stay there."""
    return [i for i, c in enumerate(lattice.velocities) if c[1] == c_y]


def _along_z(lattice: Lattice, c_z: int) -> list[int]:
    return [i for i, c in enumerate(lattice.velocities) if c[2] == c_z]


def _relax(case: Case) -> str:
    steps = assignments(collision(case.collision), case.stencil, case.forced)
    takes = "".join(f", const Real {name}" for name in scalars(case))
    return function(
        f"relax(Real (&m)[MOMENTS]{takes})",
        [
            *(f"const Real {population(i)} = m[{i}];" for i in range(case.stencil.q)),
            *(f"const Real {step.name} = {text(step.value)};" for step in steps),
            *(f"m[{i}] = {relaxed(i)};" for i in range(case.stencil.q)),
        ],
    )


def _spread(lattice: Lattice) -> str:
    """From populations after collision to what stays in each row, and to what goes right and left."""
    lines = [f"{_sent(lattice, i)} = m[{i}];" for i in range(lattice.q)]
    return function(
        "spread(const Real (&m)[MOMENTS], Real (&still)[LINES], Real (&right)[MOVERS], Real (&left)[MOVERS])", lines
    )


def _sent(lattice: Lattice, i: int) -> str:
    x, *row = lattice.velocities[i]
    if x:
        return f"{'right' if x > 0 else 'left'}[{_movers(lattice).index((row[0], row[1]))}]"
    return f"still[{rows(lattice).index((row[0], row[1]))}]"


def _arrived(lattice: Lattice, i: int) -> str:
    c_y = lattice.velocities[i][1]
    return f"{ {1: 'up', -1: 'down', 0: 'level'}[c_y] }[{_along_y(lattice, c_y).index(i)}]"


def _sum_up(lattice: Lattice) -> str:
    lines = [f"{_arrived(lattice, i)} = {_sent(lattice, i)};" for i in range(lattice.q)]
    return function(
        "sum_up(\n    const Real (&still)[LINES], const Real (&right)[MOVERS], const Real (&left)[MOVERS], "
        "Real (&up)[ACROSS],\n    Real (&down)[ACROSS], Real (&level)[LEVEL])",
        lines,
    )


def _gather(lattice: Lattice) -> str:
    """Finishes the plane before with what comes down from this one, and begins this one."""
    falls, stays, rises = (_along_z(lattice, c_z) for c_z in (-1, 0, 1))
    lines = [
        *(f"m[{i}] = {_arrived(lattice, i)};" for i in falls),
        *(f"m[{i}] = current[{k}];" for k, i in enumerate((*stays, *rises))),
        *(f"current[{k}] = {_arrived(lattice, i)};" for k, i in enumerate(stays)),
        *(f"current[{len(stays) + k}] = pending[{k}];" for k in range(len(rises))),
        *(f"pending[{k}] = {_arrived(lattice, i)};" for k, i in enumerate(rises)),
    ]
    return function(
        "gather(\n    const Real (&up)[ACROSS], const Real (&down)[ACROSS], const Real (&level)[LEVEL], "
        "Real (&current)[CURRENT],\n    Real (&pending)[PENDING], Real (&m)[MOMENTS])",
        lines,
    )
