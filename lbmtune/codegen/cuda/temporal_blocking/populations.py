"""Stages of fused time steps of populations as C text, with the functions that `shared.moments` has for moments.

A cell collides, and each population moves: along x to the neighbouring lane, along y through shared memory, along z
through a buffer until the next plane. Spreading, summing up and gathering only rename populations. In each row
(c_y, c_z) of directions one population may stay along x and two move.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from lbmtune.catalogue.boundaries.bounce_back_routes import returning
from lbmtune.catalogue.boundaries.cell_flags import moving_links
from lbmtune.catalogue.boundaries.completion import FACE_NAMES
from lbmtune.catalogue.collisions import collision
from lbmtune.catalogue.collisions.min_instruction_forms import leanest
from lbmtune.catalogue.collisions.operator import population, relaxed
from lbmtune.catalogue.moments.basis import rows, unit_weight, upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import conditions
from lbmtune.codegen.cuda.shared import physics
from lbmtune.codegen.cuda.shared.expressions import text
from lbmtune.codegen.cuda.shared.moment_links import SENDING
from lbmtune.codegen.cuda.shared.moment_links import scalars as wall_scalars
from lbmtune.codegen.cuda.shared.moments import GATHER, SPREAD, SUM_UP, function
from lbmtune.codegen.cuda.shared.physics import collision_scalars, gain
from lbmtune.codegen.moment_stages import Row
from lbmtune.lattice import Lattice, lattice


def functions(case: Case) -> str:
    """Return the device functions of a stage."""
    turned = upright(case.stencil)
    return "\n".join(
        (
            relaxation(case.collision, case.lattice, case.forced),
            _spread(turned),
            _sum_up(turned),
            _gather(case),
            *_completion(case),
        )
    )


def constants(case: Case) -> str:
    """Return the lengths of arrays as C constants; populations that move along y have one element at least."""
    turned = upright(case.stencil)
    lengths = {
        "MOMENTS": turned.q,
        "LINES": len(rows(turned)),
        "MOVERS": len(_movers(turned)),
        "ACROSS": max(1, len(_along_y(turned, 1))),
        "LEVEL": len(_along_y(turned, 0)),
        "CURRENT": len(_along_z(turned, 0)) + len(_along_z(turned, 1)) + len(_owed(case)),
        "PENDING": len(_along_z(turned, 1)),
    }
    return "\n".join(f"constexpr int {name} = {length};" for name, length in lengths.items())


def scalars(case: Case) -> tuple[str, ...]:
    """Return the launch arguments of the collision."""
    return collision_scalars(case.collision, case.lattice, case.forced)


def face_scalars(case: Case) -> tuple[str, ...]:
    """Return the launch arguments of faces whose cells complete what arrives."""
    used = (physics.face_scalars(case.lattice, c.face, c.kind, case.forced) for c in conditions(case))
    return tuple(dict.fromkeys(name for names in used for name in names))


_AT_FACE = ("x == 0", "x + 1 == nx", "y == 0", "y + 1 == ny", "z == 0", "z + 1 == nz")
_PLACE = ("x", "y", "z", "nx", "ny", "nz")


def _completion(case: Case) -> Iterator[str]:
    """Yield the functions that complete cells at faces that are no walls before their collision."""
    if not conditions(case):
        return
    lines = []
    for c in conditions(case):
        name = f"at_{FACE_NAMES[c.face]}"
        yield physics.face_function(name, "Real (&m)[MOMENTS]", "m[{}]", case.lattice, c.face, c.kind, case.forced)
        given = ", ".join(("m", *physics.face_scalars(case.lattice, c.face, c.kind, case.forced)))
        lines.append(f"if ({_AT_FACE[c.face]}) {name}({given});")
    takes = [*(f"const int {name}" for name in _PLACE), *(f"const Real {name}" for name in face_scalars(case))]
    yield function(f"complete(Real (&m)[MOMENTS], {', '.join(takes)})", lines)


def completed(case: Case, cell: str, place: tuple[str, str, str]) -> str:
    """Return the call that completes a cell at a place of the box; "" if no face needs it."""
    if not conditions(case):
        return ""
    return f"complete({', '.join((cell, *place, 'nx', 'ny', 'nz', *face_scalars(case)))});"


def _movers(stencil: Lattice) -> tuple[Row, ...]:
    """Return the rows with populations that move along x."""
    return tuple(row for row in rows(stencil) if unit_weight(stencil, (1, *row)))


def _along_y(stencil: Lattice, c_y: int) -> list[int]:
    """Return the directions with a component c_y."""
    return [i for i, c in enumerate(stencil.velocities) if c[1] == c_y]


def _along_z(stencil: Lattice, c_z: int) -> list[int]:
    return [i for i, c in enumerate(stencil.velocities) if c[2] == c_z]


@lru_cache(maxsize=64)
def relaxation(name: str, lattice_name: str, forced: bool) -> str:
    """Return the device function that relaxes a cell."""
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
    """Return the function from populations after collision to those that stay in a row and move right and left."""
    lines = [f"{_sent(stencil, i)} = m[{i}];" for i in range(stencil.q)]
    return function(SPREAD, lines)


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
    return function(SUM_UP, lines)


def _owed(case: Case) -> list[int]:
    """Return the downward directions by which links may reflect; these populations wait until the next plane."""
    return [i for i in returning(case) if upright(case.stencil).velocities[i][2] < 0]


def _gather(case: Case) -> str:
    """Return the function that completes the plane below with what moves down, and starts this plane."""
    stencil, owed = upright(case.stencil), _owed(case)
    falls, stays, rises = (_along_z(stencil, c_z) for c_z in (-1, 0, 1))
    later = {i: f"current[{len(stays) + len(rises) + k}]" for k, i in enumerate(owed)}
    lines = [
        *(f"m[{i}] = {' + '.join(filter(None, (_arrived(stencil, i), later.get(i))))};" for i in falls),
        *(f"m[{i}] = current[{k}];" for k, i in enumerate((*stays, *rises))),
        *(f"current[{k}] = {_arrived(stencil, i)};" for k, i in enumerate(stays)),
        *(f"current[{len(stays) + k}] = pending[{k}];" for k in range(len(rises))),
        *(f"pending[{k}] = {_arrived(stencil, i)};" for k, i in enumerate(rises)),
        *(f"{place} = 0;" for place in later.values()),
    ]
    return function(GATHER, lines)


def reflection(case: Case) -> str:
    """Return the functions that compute and take what cut links reflect, by groups of one c_x.

    In most warps few groups are cut. Nothing is sent across a cut link, so reflected values are added to zero.
    """
    links, sides = returning(case), dict.fromkeys(case.stencil.velocities[i][0] for i in returning(case))
    takes = ["Real* const back", "const Word cut", *(["const Word moving"] if case.moving else [])]
    takes += [*SENDING, *(f"const Real {name}" for name in wall_scalars(case))]
    given = "Real (&current)[CURRENT], const Word cut, const Real* const back"
    groups = [[i for i in links if case.stencil.velocities[i][0] == c_x] for c_x in sides]
    apart = "1" if case.stencil.dimensions == 2 else "LANES"
    leave = [line for group in groups for line in _where(group, [_leave(case, i) for i in group])]
    take = [line for group in groups for line in _where(group, [_take(case, i) for i in group])]
    return "\n".join(
        (
            f"constexpr int RETURNED = {len(links)}, APART = {apart}, TWICE_UP = 0;",
            function(f"reflect(\n    {', '.join(takes)})", leave),
            function(f"take_back({given})", [*take, "return 0;"], returns="Real"),
        )
    )


def _where(links: Sequence[int], lines: Sequence[str]) -> list[str]:
    """Return lines for warps with a cell in which one of some links is cut."""
    mask = sum(1 << i for i in links)
    return [f"if (cut & 0x{mask:x}u) {{", *(f"    {line}" for line in lines), "}"]


def _leave(case: Case, i: int) -> str:
    """Return the store of what a cut link reflects, with the momentum of a moving wall."""
    turned = upright(case.stencil)
    value = f"where_cut(cut, {i}, {_sent(turned, case.stencil.opposite[i])})"
    if i in moving_links(case):
        value += f" + where_cut(moving, {i}, {gain(case.lattice, i)})"
    return f"back[{returning(case).index(i)} * APART] = {value};"


def _take(case: Case, i: int) -> str:
    turned = upright(case.stencil)
    stays, rises = _along_z(turned, 0), _along_z(turned, 1)
    return f"current[{[*stays, *rises, *_owed(case)].index(i)}] += back[{returning(case).index(i)} * APART];"
