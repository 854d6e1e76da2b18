"""Stages of fused time steps of populations as C text, with the functions that `shared.moments` has for moments.

A cell collides, and each population moves: along x to the neighbouring lane, along y through shared memory, along z
through a buffer until the next plane. Spreading, summing up and gathering only rename populations. In each row
(c_y, c_z) of directions one population may stay along x and two move.
"""

from collections.abc import Iterator
from functools import lru_cache

from lbmtune.catalogue.boundaries.bounce_back_routes import returning
from lbmtune.catalogue.boundaries.cell_flags import moving_links
from lbmtune.catalogue.boundaries.completion import FACE_NAMES
from lbmtune.catalogue.collisions import collision
from lbmtune.catalogue.collisions.min_instruction_forms import leanest
from lbmtune.catalogue.collisions.operator import population, relaxed
from lbmtune.catalogue.moments.basis import upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import conditions
from lbmtune.codegen.cuda.shared import moments, physics
from lbmtune.codegen.cuda.shared.expressions import function, reals
from lbmtune.codegen.cuda.shared.moments import GATHER, SPREAD, SUM_UP, TAKE_BACK, where_any
from lbmtune.codegen.moment_stages import Sums
from lbmtune.lattice import Lattice, lattice


def functions(case: Case) -> str:
    """Return the device functions of a stage."""
    turned = upright(case.stencil)
    every, sums = range(turned.q), Sums(turned)
    return "\n".join(
        (
            relaxation(case.collision, case.lattice, case.forced),
            function(SPREAD, [f"{_sent(sums, i)} = m[{i}];" for i in every]),
            function(SUM_UP, [f"{_arrived(turned, i)} = {_sent(sums, i)};" for i in every]),
            _gather(case),
            *_completion(case),
        )
    )


def constants(case: Case) -> str:
    """Return the lengths of arrays as C constants; populations that move along y have one element at least."""
    turned, kept = upright(case.stencil), len(_kept(case))
    across, level, pending = (len(_along(turned, axis, way)) for axis, way in ((1, 1), (1, 0), (2, 1)))
    return moments.lengths(Sums(turned), turned.q, across, level, kept, pending)


def scalars(case: Case) -> tuple[str, ...]:
    """Return the launch arguments of the collision."""
    return physics.collision_scalars(case.collision, case.lattice, case.forced)


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
    takes = [*(f"const int {name}" for name in _PLACE), *reals(face_scalars(case))]
    yield function(f"complete(Real (&m)[MOMENTS], {', '.join(takes)})", lines)


def completed(case: Case, cell: str, place: tuple[str, str, str]) -> str:
    """Return the call that completes a cell at a place of the box; "" if no face needs it."""
    if not conditions(case):
        return ""
    return f"complete({', '.join((cell, *place, 'nx', 'ny', 'nz', *face_scalars(case)))});"


def _along(stencil: Lattice, axis: int, way: int) -> list[int]:
    return [i for i, c in enumerate(stencil.velocities) if c[axis] == way]


@lru_cache(maxsize=64)
def relaxation(name: str, lattice_name: str, forced: bool) -> str:
    """Return the device function that relaxes a cell."""
    stencil = lattice(lattice_name)
    names, steps = [(population(i), relaxed(i)) for i in range(stencil.q)], leanest(collision(name), stencil, forced)
    arguments = physics.collision_scalars(name, lattice_name, forced)
    return physics.updating("relax(Real (&m)[MOMENTS]", "m[{}]", names, steps, arguments)


def _sent(sums: Sums, i: int) -> str:
    return moments.moving(sums, sums.lattice.velocities[i])


def _arrived(stencil: Lattice, i: int) -> str:
    c_y = stencil.velocities[i][1]
    return f"{ {1: 'up', -1: 'down', 0: 'level'}[c_y] }[{_along(stencil, 1, c_y).index(i)}]"


def _kept(case: Case) -> list[int]:
    """Return the directions that wait until the next plane: those that links may reflect downwards are the last."""
    turned = upright(case.stencil)
    owed = [i for i in returning(case) if turned.velocities[i][2] < 0]
    return [*_along(turned, 2, 0), *_along(turned, 2, 1), *owed]


def _gather(case: Case) -> str:
    """Return the function that completes the plane below with what moves down, and starts this plane."""
    stencil = upright(case.stencil)
    falls, stays, rises = (_along(stencil, 2, c_z) for c_z in (-1, 0, 1))
    current = {i: f"current[{k}]" for k, i in enumerate(_kept(case))}
    later = {i: current[i] for i in falls if i in current}
    lines = [
        *(f"m[{i}] = {' + '.join(filter(None, (_arrived(stencil, i), later.get(i))))};" for i in falls),
        *(f"m[{i}] = {current[i]};" for i in (*stays, *rises)),
        *(f"{current[i]} = {_arrived(stencil, i)};" for i in stays),
        *(f"{current[i]} = pending[{k}];" for k, i in enumerate(rises)),
        *(f"pending[{k}] = {_arrived(stencil, i)};" for k, i in enumerate(rises)),
        *(f"{current[i]} = 0;" for i in _kept(case)[len(stays) + len(rises) :]),
    ]
    return function(GATHER, lines)


def reflection(case: Case) -> str:
    """Return the functions that compute and take what cut links reflect, by groups of one c_x.

    In most warps few groups are cut. Nothing is sent across a cut link, so reflected values are added to zero.
    """
    stencil, links, sums, kept = case.stencil, returning(case), Sums(upright(case.stencil)), _kept(case)
    sides = dict.fromkeys(stencil.velocities[i][0] for i in links)
    groups = [[i for i in links if stencil.velocities[i][0] == c_x] for c_x in sides]
    apart = "1" if stencil.dimensions == 2 else "LANES"

    def leave(i: int) -> str:
        value = f"where_cut(cut, {i}, {_sent(sums, stencil.opposite[i])})"
        moved = f" + where_cut(moving, {i}, {physics.gain(case.lattice, i)})" if i in moving_links(case) else ""
        return f"back[{links.index(i)} * APART] = {value}{moved};"

    def take(i: int) -> str:
        return f"current[{kept.index(i)}] += back[{links.index(i)} * APART];"

    left, taken = ([line for group in groups for line in where_any(group, map(one, group))] for one in (leave, take))
    return "\n".join(
        (
            f"constexpr int RETURNED = {len(links)}, APART = {apart}, TWICE_UP = 0;",
            moments.reflecting(case, "reflect", left, *moments.cut_words(case)),
            function(TAKE_BACK, [*taken, "return 0;"], returns="Real"),
        )
    )
