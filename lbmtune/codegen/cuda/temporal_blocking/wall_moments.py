"""Moments that cut links reflect to a cell in three dimensions, as C text.

A cut link reflects w_i p(-c_i), with the momentum of a moving wall. The moments of that over all links, R_abc, are
found by rows of directions as those of what arrives. Then they are added to what arrives:

    from the plane below, as R_xy1 with c_x^x c_y^y;
    from the neighbours along x, as what is left of R_x00 - R_x01;
    later, as what is left of R_010 - R_011, of R_110, and R_002 - R_001, which share one sum (`Sums.waiting`).

See kernels/cuda/temporal_blocking/wall_moments.cu.
"""

from collections.abc import Iterator, Mapping

from lbmtune.catalogue.boundaries.bounce_back_routes import WAITING, returning
from lbmtune.catalogue.moments.basis import orders
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import moments
from lbmtune.codegen.cuda.shared.expressions import function
from lbmtune.codegen.moment_stages import Part, Row, Stage, Sums, part_name

ADDED_TO = ("back", "rises", "from_left[v]", "from_right[v]")
TAKES = ("Real (&pending)[PENDING]", "Real& from_left", "Real& from_right")
"""Arguments to which reflected moments are added, and parameters for them but the first one."""


_Parts = Mapping[Part, str]
"""Expressions by powers of c_x and c_y."""


def functions(case: Case) -> str:
    """Return the functions that reflect any cut links of a cell, and those that take the rest after the barrier."""
    sums = Sums(case.stencil)
    lines = [*_reflected(case, sums), *added(sums, *_all(sums))]
    straight, twice = sums.movers.index((0, 0)), orders(case.stencil).index((0, 0, 2))
    return "\n".join(
        (
            f"constexpr int RETURNED = {WAITING}, APART = LANES, TWICE_UP = {twice}, STRAIGHT = {straight};",
            moments.reflecting(case, "reflect", lines, *moments.cut_words(case, *TAKES)),
            function("take_back(Real (&current)[CURRENT], const Real* const back)", _take(sums), returns="Real"),
        )
    )


def kept_sums(text: str, one: str) -> str:
    """Return the lines that add reflected moments, with sums that may be buffered in shared memory.

    one: the number one of the word with a bit for each cell of a thread.
    """
    shelved = "if (SHELVED) {}<THREADS>({});"
    before = shelved.format("take", "rises, rising.value, thread")
    after = shelved.format("put", "rising.value, rises, thread")
    return "\n".join((before, text, after, f"returns |= {one} << (r * CELLS + v);"))


def _reflected(case: Case, sums: Sums) -> Iterator[str]:
    """Yield what each link reflects, in the rows of `spread`."""
    links = {case.stencil.velocities[i]: i for i in returning(case)}

    def value(c_x: int, row: Row) -> str:
        i = links.get((c_x, *row))
        return "0" if i is None else moments.where_cut(case, sums, i)

    yield "Real back_still[LINES], back_right[MOVERS], back_left[MOVERS];"
    for n, row in enumerate(sums.rows):
        yield f"back_still[{n}] = {value(0, row)};"
    for n, row in enumerate(sums.movers):
        yield f"back_right[{n}] = {value(1, row)};"
        yield f"back_left[{n}] = {value(-1, row)};"
    yield "Real up[ACROSS], down[ACROSS], level[LEVEL];"
    yield "sum_up(back_still, back_right, back_left, up, down, level);"
    yield from Stage(sums, moments.C_SYNTAX).planes()


def _all(sums: Sums) -> tuple[_Parts, _Parts, str, str]:
    """Return the reflected moments from the parts of the three c_z."""

    def part(c_z: int, of: Part) -> str:
        return part_name(c_z, of) if of in sums.parts[c_z] else ""

    def total(of: Part) -> str:
        return " + ".join(filter(None, (part(c_z, of) for c_z in (1, 0, -1))))

    low = [of for of in sums.parts[1] if sum(of) < 2]
    below = {of: f"{part(1, of)} - {part(-1, of)}" if of in low else total(of) for of in sums.parts[1]}
    rest = {of: f"{part(0, of)} + 2 * {part(-1, of)}" for of in low}
    return below, rest, "" if (1, 1) in below else total((1, 1)), f"2 * {part(-1, (0, 0))}"


def added(sums: Sums, below: _Parts, rest: _Parts, mixed: str, owed: str) -> Iterator[str]:
    """Yield the lines that add the moments that are reflected to a cell to what arrives.

    below: as if from the plane below; rest: the remainder of the powers (0, 0), (1, 0) and (0, 1); mixed: R_110 if it
    does not come from below; owed: R_002 - R_001.
    """
    for (x, y), value in rest.items():
        yield f"const Real rest_{x}{y} = {value};"
    for of, value in below.items():
        beside = " - rest_00" if of == (2, 0) else ""
        yield f"pending[{sums.parts[1].index(of)}] += {value}{beside};"
    share = f"Real(1.0 / {2 * sums.factor((0, 0))})"
    yield f"from_left = {share} * (rest_00 + rest_10);"
    yield f"from_right = {share} * (rest_00 - rest_10);"
    yield "back[0] = rest_01;"
    yield f"back[APART] = {owed};"
    if mixed:
        yield f"back[2 * APART] = {mixed};"


def _take(sums: Sums) -> Iterator[str]:
    """Yield the lines that add the rest, and return what the moment of c_z^2 is still due."""
    yield f"current[{sums.waiting((0, 1, 0))}] += back[0];"
    if (1, 1) not in sums.parts[1]:
        yield f"current[{sums.waiting((1, 1, 0))}] += back[2 * APART];"
    yield "return back[APART];"
