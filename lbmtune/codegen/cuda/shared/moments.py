"""Stages of the moment representation as C text: relax, spread, sum up rows, gather; and what cut links reflect.

They follow from the lattice (`lbmtune.codegen.moment_stages`).
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from sympy import Integer

from lbmtune.catalogue.boundaries.cell_flags import moving_links
from lbmtune.catalogue.collisions.operator import wall_gain, weight
from lbmtune.catalogue.moments.basis import orders, unit_weight, upright
from lbmtune.catalogue.moments.collision import coefficient, coefficients, moment
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared.expressions import function, reals, text, word
from lbmtune.codegen.cuda.shared.physics import updating, used_scalars
from lbmtune.codegen.moment_stages import Stage, Sums, Syntax, part_name, times
from lbmtune.lattice import Lattice, Vector, negate

SPREAD = "spread(const Real (&m)[MOMENTS], Real (&still)[LINES], Real (&right)[MOVERS], Real (&left)[MOVERS])"
SUM_UP = (
    "sum_up(\n    const Real (&still)[LINES], const Real (&right)[MOVERS], const Real (&left)[MOVERS], "
    "Real (&up)[ACROSS],\n    Real (&down)[ACROSS], Real (&level)[LEVEL])"
)
GATHER = (
    "gather(\n    const Real (&up)[ACROSS], const Real (&down)[ACROSS], const Real (&level)[LEVEL], "
    "Real (&current)[CURRENT],\n    Real (&pending)[PENDING], Real (&m)[MOMENTS])"
)
TOTAL = (
    "total(\n    const Real (&up)[ACROSS], const Real (&down)[ACROSS], const Real (&level)[LEVEL], Real (&m)[MOMENTS])"
)
TAKE_BACK = "take_back(Real (&current)[CURRENT], const Word cut, const Real* const back)"
"""Signatures of the functions of a stage, of moments and of populations."""


SENDING = ("const Real (&still)[LINES]", "const Real (&right)[MOVERS]", "const Real (&left)[MOVERS]")
"""Parameters that hold what a cell sends."""
C_SYNTAX = Syntax(
    number=lambda value: str(value) if isinstance(value, Integer) else text(value),
    element="{}[{}]".format,
    named="const Real {} = {};".format,
    assigned="{} = {};".format,
)
"""Whole numbers stay as they are."""


@lru_cache(maxsize=64)
def functions(lattice: Lattice, forced: bool, split: bool = False, relaxes: bool = True) -> str:
    """Return the device functions of a stage."""
    stage = Stage(Sums(upright(lattice), split), C_SYNTAX)
    # the last one completes the plane below with what moves down, and starts this plane
    gather = function(GATHER, [*stage.planes(), *_finish(stage), *_begin(stage.sums)])
    return "\n".join((*_from_moments(lattice, forced, relaxes, stage), gather))


@lru_cache(maxsize=64)
def functions_at_once(lattice: Lattice, forced: bool, relaxes: bool) -> str:
    """Return the device functions of a step whose cells have all arriving sums at once, without buffers along z."""
    stage = Stage(Sums(upright(lattice)), C_SYNTAX)
    return "\n".join((*_from_moments(lattice, forced, relaxes, stage), function(TOTAL, stage.total())))


@lru_cache(maxsize=64)
def constants(lattice: Lattice, split: bool = False) -> str:
    """Return the lengths of arrays as C constants; sums that move along y have one element at least."""
    sums = Sums(upright(lattice), split)
    across, level = (len(sums.along_y(c_y)) for c_y in (1, 0))
    return lengths(sums, len(orders(lattice)), across, level, len(sums.parts[0]) + len(sums.upward), len(sums.parts[1]))


def lengths(sums: Sums, moments: int, across: int, level: int, current: int, pending: int) -> str:
    """Return the lengths of arrays as C constants: values of a cell, sent along y or not, kept or passed on along z."""
    named = {
        "MOMENTS": moments,
        "LINES": len(sums.rows),
        "MOVERS": len(sums.movers),
        "ACROSS": max(1, across),
        "LEVEL": level,
        "CURRENT": current,
        "PENDING": pending,
    }
    return "\n".join(f"constexpr int {name} = {length};" for name, length in named.items())


@lru_cache(maxsize=64)
def scalars(lattice: Lattice, forced: bool, relaxes: bool = True) -> tuple[str, ...]:
    """Return the launch arguments of the relaxation."""
    return used_scalars(one.value for one in coefficients(lattice, forced, relaxes))


def case_scalars(case: Case) -> tuple[str, ...]:
    """Return the launch arguments of the relaxation of a case."""
    return scalars(case.stencil, case.forced, case.relaxes)


def all_scalars(case: Case) -> tuple[str, ...]:
    """Return the launch arguments of relaxation and walls."""
    return (*case_scalars(case), *wall_scalars(case))


def _from_moments(lattice: Lattice, forced: bool, relaxes: bool, stage: Stage) -> Iterator[str]:
    """Yield the functions from moments to their polynomial in each row (c_x = 0, 1, -1), and on to sums over rows."""
    names = [(moment(n), coefficient(n)) for n in orders(lattice)]
    steps = coefficients(lattice, forced, relaxes)
    yield updating("relax(Real (&m)[MOMENTS]", "m[{}]", names, steps, scalars(lattice, forced, relaxes))
    yield function(SPREAD, stage.spread())
    yield function(SUM_UP, stage.sum_up())


def _finish(stage: Stage) -> Iterator[str]:
    sums = stage.sums
    for n in orders(stage.lattice):
        part, before = n[:2], f"current[{sums.waiting(n)}]"
        falls = part_name(-1, part) if part in sums.parts[-1] else ""
        if n[2] == 0:
            yield f"{stage.moment(n)} = {' + '.join(filter(None, (before, falls)))};"
        else:
            assert falls, "a lattice that goes up goes down"
            sign = "-" if n[2] == 1 else "+"
            yield f"{stage.moment(n)} = {before} {sign} {falls};"


def _begin(sums: Sums) -> Iterator[str]:
    waiting = {part: f"pending[{k}]" for k, part in enumerate(sums.parts[1])}
    for k, part in enumerate(sums.parts[0]):
        yield f"current[{k}] = {' + '.join(filter(None, (part_name(0, part), waiting.get(part, ''))))};"
    for n in sums.upward:
        yield f"current[{sums.waiting(n)}] = {waiting[n[:2]]};"
    for part, place in waiting.items():
        yield f"{place} = {part_name(1, part)};"


def sent(cell: str = "v") -> tuple[str, ...]:
    """Return what a cell of a thread sends. cell: its number."""
    return f"still[{cell}]", f"right[{cell}]", f"left[{cell}]"


def wall_scalars(case: Case) -> tuple[str, ...]:
    """Return the launch arguments of moving walls."""
    return used_scalars(wall_gain(case.stencil, i) for i in moving_links(case))


def moving(sums: Sums, c: Vector) -> str:
    """Return p(c) of a cell."""
    array, k = sums.moving(c)
    return f"{array}[{k}]"


def sent_back(sums: Sums, i: int) -> str:
    """Return p(-c_i) of a cell."""
    return moving(sums, negate(sums.lattice.velocities[i]))


def gained(case: Case, i: int) -> str:
    """Return what a moving wall adds to p(-c_i)."""
    return text(wall_gain(case.stencil, i) / weight(case.stencil, i))


def where_cut(case: Case, sums: Sums, i: int) -> str:
    """Return what arrives by a link if it is cut, in units of its weight: p(-c_i) and the momentum of a moving wall."""
    back = f"where_cut(cut, {i}, {sent_back(sums, i)})"
    return f"{back} + where_cut(moving, {i}, {gained(case, i)})" if i in moving_links(case) else back


def reflecting(case: Case, name: str, lines: Iterable[str], *takes: str, returns: str = "void") -> str:
    """Return a function of what a cell sends and of moving walls. takes: its parameters before these."""
    taken = (*takes, *SENDING, *reals(wall_scalars(case)))
    return function(f"{name}(\n    {', '.join(taken)})", lines, returns)


def cut_words(case: Case, *places: str) -> tuple[str, ...]:
    """Return the parameters of a function that reflects: places of what it returns, and words of cut links."""
    return ("Real* const back", *places, "const Word cut", *(["const Word moving"] if case.moving else []))


def where_any(links: Iterable[int], lines: Iterable[str]) -> list[str]:
    """Return lines for warps with a cell in which one of some links is cut."""
    return [f"if (cut & {word(links)}) {{", *(f"    {line}" for line in lines), "}"]


def weighted(lattice: Lattice, links: Iterable[int]) -> str:
    """Return the sum of what some links carry, in smallest weights."""
    return " + ".join(times(unit_weight(lattice, lattice.velocities[i]), f"f{i}") for i in links)
