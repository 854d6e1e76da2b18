"""What returns to warps of which a face across x alone cuts links, as C text. See kernels/cuda/march_sides.cu."""

from __future__ import annotations

from collections.abc import Iterator

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.moments import orders
from lbmtune.codegen.cuda import march_links, march_rows
from lbmtune.codegen.cuda.moments import Sums, function

WAYS = ("X_LOW", "X_HIGH")
_COMES_IN = ("right", "left")
"""What comes in over the lower and over the upper face goes to the right and to the left."""
_CELL, _HERE = ("0", "CELLS - 1"), ("first_x == 0", "first_x + CELLS == nx")
"""The cell of a lane that is at the face, and whether the lane is there."""
_EVEN = (0, 2)
"""Powers of c_x and c_y in the sum that waits in `pending`, from which nothing else follows."""


def functions(case: Case) -> str:
    """What returns, comes in and is taken at each of the two faces."""
    return "\n".join(_functions(case, Sums(case.stencil), side) for side in (0, 1))


def over(case: Case, side: int) -> str:
    """Of a row, before anything moves: what returns."""
    v = _CELL[side]
    sent = ", ".join(one.replace("[v]", f"[{v}]") for one in march_links.SENT)
    given = ", ".join((sent, *march_links.scalars(case)))
    rest = f"if (v != {v}) later[v * 32] = 0;  // what a mixed plane may ask for next"
    return "\n".join(
        (
            "Real* const later = owed + (t * ROWS + r) * LANES;",
            f"over[r] = over_x_{march_rows.SIDES[side]}({_HERE[side]}, later[({v}) * 32], {given});",
            f"#pragma unroll\nfor (int v = 0; v < CELLS; ++v) {{\n    {rest}\n}}",
        )
    )


def enter(side: int) -> str:
    """Of a row: what comes in beside what the neighbouring cells send."""
    v = _CELL[side]
    return f"enter_x_{march_rows.SIDES[side]}({_HERE[side]}, over[r], {_COMES_IN[side]}[{v}], pending[t][r][{v}]);"


def take(side: int) -> str:
    """Of all rows: what has waited."""
    v = _CELL[side]
    taken = f"take_x_{march_rows.SIDES[side]}(current[t][r][{v}], m[r][{v}], over[r]);"
    return f"#pragma unroll\nfor (int r = 0; r < ROWS; ++r) {taken}"


def _functions(case: Case, sums: Sums, side: int) -> str:
    name, comes_in = march_rows.SIDES[side], _COMES_IN[side]
    scalars = (f"const Real {one}" for one in march_links.scalars(case))
    left = ", ".join(("const bool here", "Real& owed", *march_links.SENDING, *scalars))
    entering = f"const bool here, const Over& over, Real (&{comes_in})[MOVERS], Real (&pending)[PENDING]"
    taking = "Real (&current)[CURRENT], Real (&m)[MOMENTS], const Over& over"
    return "\n".join(
        (
            function(f"over_x_{name}(\n    {left})", _over(case, sums, side), returns="Over"),
            function(f"enter_x_{name}(\n    {entering})", _enter(sums, side)),
            function(f"take_x_{name}({taking})", _take(case, sums, side)),
        )
    )


def _over(case: Case, sums: Sums, side: int) -> Iterator[str]:
    yield from march_rows.over_face(case, sums, 0, side)
    yield "const Real before = owed;"
    yield "owed = here ? even_z - odd_z : Real(0);"
    straight = f"Real(1.0 / {sums.factor((0, 0))}) * all"
    waits = [f"here ? {name} : Real(0)" for name in ("even", "odd", "odd_z")]
    mixed = "here ? mixed : Real(0)" if (1, 1) in march_rows.powers(case) else "0"
    yield f"return {{{', '.join((straight, *waits, mixed, 'before'))}}};"


def _enter(sums: Sums, side: int) -> Iterator[str]:
    name = _COMES_IN[side]
    for k, row in enumerate(sums.movers):
        yield f"{name}[{k}] = here ? {'over.straight' if row == (0, 0) else 'Real(0)'} : {name}[{k}];"
    yield f"pending[{sums.parts[1].index(_EVEN)}] += over.even_y;"


def _take(case: Case, sums: Sums, side: int) -> Iterator[str]:
    inward = march_rows.inward_of(side)
    names = {(1, 0): "odd_y", (0, 1): "odd_z"} | ({(1, 1): "mixed"} if (1, 1) in march_rows.powers(case) else {})
    for of, name in names.items():
        for n in (n for n in orders(case.stencil) if n[1:] == of):
            yield f"current[{sums.waiting(n)}] {'-' if inward ** n[0] < 0 else '+'}= over.{name};"
    yield "m[TWICE_UP] += over.before;"
