"""Warps at one face across x and no other cut links, as C text. See kernels/cuda/temporal_blocking/wall_sides.cu."""

from __future__ import annotations

from collections.abc import Iterator

from lbmtune.catalogue.moments.basis import orders
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import moment_links
from lbmtune.codegen.cuda.shared.moments import function
from lbmtune.codegen.cuda.temporal_blocking import wall_rows
from lbmtune.codegen.moment_stages import Sums

WAYS = ("X_LOW", "X_HIGH")
_COMES_IN = ("right", "left")
"""What enters through the lower and through the upper face moves right and left."""
_CELL, _HERE = ("0", "CELLS - 1"), ("first_x == 0", "first_x + CELLS == nx")
"""The cell of a lane that is at the face, and whether the lane is there."""
_BACK = "returned + r * RETURNED * LANES + ({v}) * 32"


def functions(case: Case) -> str:
    """Return the functions that reflect, enter and take at each of the two faces."""
    return "\n".join(_functions(case, Sums(case.stencil), side) for side in (0, 1))


def over(case: Case, side: int) -> str:
    """Return the lines that reflect in a row, before anything moves."""
    v = _CELL[side]
    pending, shelf = f"pending[t][r][{v}]", f"shelves[(t * ROWS + r) * CELLS + {v}].value"
    given = ", ".join((_HERE[side], _BACK.format(v=v), pending, *moment_links.sent(v), *moment_links.scalars(case)))
    return "\n".join(
        (
            f"if (SHELVED) take<THREADS>({pending}, {shelf}, thread);",
            f"const Real straight = over_x_{wall_rows.SIDES[side]}({given});",
            f"if (SHELVED) put<THREADS>({shelf}, {pending}, thread);",
        )
    )


def enter(side: int) -> str:
    """Return the line that adds what enters a row to what the neighbouring cells send."""
    return f"enter_x_{wall_rows.SIDES[side]}({_HERE[side]}, straight, {_COMES_IN[side]}[{_CELL[side]}]);"


def take(side: int) -> str:
    """Return the lines that take the rest in all rows. A general plane may need what is due to any cell next."""
    v, rows = _CELL[side], "#pragma unroll\nfor (int r = 0; r < ROWS; ++r) {"
    lines = (
        "Real* const later = owed + (t * ROWS + r) * LANES;",
        f"m[r][{v}][TWICE_UP] += later[({v}) * 32];",
        "#pragma unroll",
        "for (int v = 0; v < CELLS; ++v) later[v * 32] = 0;",
        f"later[({v}) * 32] = take_x_{wall_rows.SIDES[side]}(current[t][r][{v}], {_BACK.format(v=v)});",
    )
    return "\n".join((rows, *(f"    {line}" for line in lines), "}"))


def _functions(case: Case, sums: Sums, side: int) -> str:
    name, comes_in = wall_rows.SIDES[side], _COMES_IN[side]
    scalars = (f"const Real {one}" for one in moment_links.scalars(case))
    given = ("const bool here", "Real* const back", "Real (&pending)[PENDING]", *moment_links.SENDING, *scalars)
    entering = f"const bool here, const Real straight, Real (&{comes_in})[MOVERS]"
    taking = "Real (&current)[CURRENT], const Real* const back"
    return "\n".join(
        (
            function(f"over_x_{name}(\n    {', '.join(given)})", _over(case, sums, side), returns="Real"),
            function(f"enter_x_{name}({entering})", _enter(sums, side)),
            function(f"take_x_{name}({taking})", _take(case, sums, side), returns="Real"),
        )
    )


def _over(case: Case, sums: Sums, side: int) -> Iterator[str]:
    """Yield the sums over links; what has powers of c_z is added as if from the plane below."""
    waiting = {part: f"pending[{k}]" for k, part in enumerate(sums.parts[1])}
    yield from wall_rows.over_face(case, sums, 0, side)
    yield from (f"back[{k} * APART] = here ? {value} : Real(0);" for k, value in enumerate(_waits(case).values()))
    yield "const Real from_below = here ? odd_z : Real(0);"
    for x in range(3):
        yield f"{waiting[x, 0]} {'-' if wall_rows.inward_of(side) ** x < 0 else '+'}= from_below;"
    yield f"{waiting[0, 2]} += here ? even : Real(0);"
    yield f"return Real(1.0 / {sums.factor((0, 0))}) * (all - odd_z);"


def _waits(case: Case) -> dict[tuple[int, int], str]:
    """Return the remaining sums by powers of c_y and c_z; (0, 2): what the moment of c_z^2 is still due."""
    found = {(1, 0): "odd", (0, 2): "even_z - odd_z"}
    return found | ({(1, 1): "mixed"} if (1, 1) in wall_rows.powers(case) else {})


def _enter(sums: Sums, side: int) -> Iterator[str]:
    name = _COMES_IN[side]
    for k, row in enumerate(sums.movers):
        yield f"{name}[{k}] = here ? {'straight' if row == (0, 0) else 'Real(0)'} : {name}[{k}];"


def _take(case: Case, sums: Sums, side: int) -> Iterator[str]:
    inward, waits = wall_rows.inward_of(side), list(_waits(case))
    for k, of in enumerate(waits):
        for n in (n for n in orders(case.stencil) if n[1:] == of != (0, 2)):
            yield f"current[{sums.waiting(n)}] {'-' if inward ** n[0] < 0 else '+'}= back[{k} * APART];"
    yield f"return back[{waits.index((0, 2))} * APART];"
