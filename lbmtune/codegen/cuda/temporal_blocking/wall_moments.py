"""What returns to a cell over its cut links in a march of moments, as C text. See kernels/cuda/wall_moments.cu.

What a link brings back is w_i p(-c_i) with what a moving wall adds. The moments of that over all links, R_abc, are
found as those of what arrives are: by rows of directions. Then they join what arrives:

    from the plane below, where it has a = R_xy1 with c_x^x c_y^y;
    from the cells beside along x, where b = R_x00 - R_x01 is left;
    later what is left of R_010 - R_011, of R_110, and R_002 - R_001, which wait in one sum (`Sums.waiting`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from lbmtune.catalogue.boundaries.bounce_back_routes import WAITING, returning
from lbmtune.catalogue.boundaries.cell_flags import moving_links
from lbmtune.catalogue.moments.basis import orders
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import moment_links
from lbmtune.codegen.cuda.shared.moments import InC, function
from lbmtune.codegen.moment_stages import Part, Row, Stage, Sums, part_name

JOINING = ("back", "rises", "from_left[v]", "from_right[v]")
"""Where what returns goes."""
_TAKES = ("Real* const back", "Real (&pending)[PENDING]", "Real& from_left", "Real& from_right")


class Returned(NamedTuple):
    """Expressions of what returns to a cell.

    below: by powers of c_x and c_y, as if from the plane below; rest: what of the powers (0, 0), (1, 0) and (0, 1) is
    left; mixed: R_110 where it does not come from below; owed: R_002 - R_001.
    """

    below: Mapping[Part, str]
    rest: Mapping[Part, str]
    mixed: str
    owed: str


def functions(case: Case) -> str:
    """What leaves a cell whose links are cut anyhow, and what it takes after the exchange."""
    sums = Sums(case.stencil)
    straight, twice = sums.movers.index((0, 0)), orders(case.stencil).index((0, 0, 2))
    return "\n".join(
        (
            f"constexpr int RETURNED = {WAITING}, APART = LANES, TWICE_UP = {twice}, STRAIGHT = {straight};",
            leaving(
                case, "reflect", [*_reflected(case, sums), *join(sums, _all(sums))], ("const Word cut", *_moving(case))
            ),
            function("take_back(Real (&current)[CURRENT], const Real* const back)", _take(sums), returns="Real"),
        )
    )


def leaving(case: Case, name: str, lines: Iterable[str], takes: tuple[str, ...] = ()) -> str:
    """A function of what a cell sends; takes: what else it is given."""
    scalars = (f"const Real {one}" for one in moment_links.scalars(case))
    return function(f"{name}(\n    {', '.join((*_TAKES, *takes, *moment_links.SENDING, *scalars))})", lines)


def left(text: str, one: str) -> str:
    """Return what a cell leaves for itself; one: the number one of the word with a bit for each cell."""
    shelved = "if (SHELVED) {}<THREADS>({});"
    before = shelved.format("take", "rises, rising.value, thread")
    after = shelved.format("put", "rising.value, rises, thread")
    return "\n".join((before, text, after, f"returns |= {one} << (r * CELLS + v);"))


def _moving(case: Case) -> tuple[str, ...]:
    return ("const Word moving",) if case.moving else ()


def _reflected(case: Case, sums: Sums) -> Iterator[str]:
    """What returns by each link, as `spread` leaves what is sent."""
    links = {case.stencil.velocities[i]: i for i in returning(case)}

    def value(c_x: int, row: Row) -> str:
        i = links.get((c_x, *row))
        return "0" if i is None else _by_link(case, sums, i)

    yield "Real back_still[LINES], back_right[MOVERS], back_left[MOVERS];"
    for n, row in enumerate(sums.rows):
        yield f"back_still[{n}] = {value(0, row)};"
    for n, row in enumerate(sums.movers):
        yield f"back_right[{n}] = {value(1, row)};"
        yield f"back_left[{n}] = {value(-1, row)};"
    yield "Real up[ACROSS], down[ACROSS], level[LEVEL];"
    yield "sum_up(back_still, back_right, back_left, up, down, level);"
    for c_z in (-1, 0, 1):
        yield from Stage(sums, InC()).plane(c_z)


def _by_link(case: Case, sums: Sums, i: int) -> str:
    """P(-c_i) where the link is cut, and what a moving wall adds."""
    back = f"where_cut(cut, {i}, {moment_links.sent_back(sums, i)})"
    if i not in moving_links(case):
        return back
    return f"{back} + where_cut(moving, {i}, {moment_links.gained(case, i)})"


def _all(sums: Sums) -> Returned:
    """Of the parts of the three c_z."""

    def part(c_z: int, of: Part) -> str:
        return part_name(c_z, of) if of in sums.parts[c_z] else ""

    def total(of: Part) -> str:
        return " + ".join(filter(None, (part(c_z, of) for c_z in (1, 0, -1))))

    low = [of for of in sums.parts[1] if sum(of) < 2]
    below = {of: f"{part(1, of)} - {part(-1, of)}" if of in low else total(of) for of in sums.parts[1]}
    rest = {of: f"{part(0, of)} + 2 * {part(-1, of)}" for of in low}
    return Returned(below, rest, "" if (1, 1) in below else total((1, 1)), f"2 * {part(-1, (0, 0))}")


def join(sums: Sums, found: Returned) -> Iterator[str]:
    """Lines by which it joins what arrives."""
    for (x, y), value in found.rest.items():
        yield f"const Real rest_{x}{y} = {value};"
    for of, value in found.below.items():
        beside = " - rest_00" if of == (2, 0) else ""
        yield f"pending[{sums.parts[1].index(of)}] += {value}{beside};"
    share = f"Real(1.0 / {2 * sums.factor((0, 0))})"
    yield f"from_left = {share} * (rest_00 + rest_10);"
    yield f"from_right = {share} * (rest_00 - rest_10);"
    yield "back[0] = rest_01;"
    yield f"back[APART] = {found.owed};"
    if found.mixed:
        yield f"back[2 * APART] = {found.mixed};"


def _take(sums: Sums) -> Iterator[str]:
    """Returns what the moment of c_z^2 is owed yet."""
    yield f"current[{sums.waiting((0, 1, 0))}] += back[0];"
    if (1, 1) not in sums.parts[1]:
        yield f"current[{sums.waiting((1, 1, 0))}] += back[2 * APART];"
    yield "return back[APART];"
