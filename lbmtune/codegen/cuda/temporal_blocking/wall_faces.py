"""Cells at one face across x (a side) or across y (a row) and no other cut links, as C text.

See wall_sides.cu and wall_rows.cu in kernels/cuda/temporal_blocking.
"""

from collections.abc import Iterator
from math import prod

from lbmtune.catalogue.moments.basis import orders
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import moments
from lbmtune.codegen.cuda.shared.expressions import function
from lbmtune.codegen.cuda.temporal_blocking import wall_moments
from lbmtune.codegen.moment_stages import Sums

WAYS = ("X_LOW", "X_HIGH")
_FACES = ("low", "high")
_INWARD = (1, -1)
"""Directions into the box at the lower and the upper face of an axis."""
_COMES_IN = ("right", "left")
"""What enters through the lower and through the upper face moves right and left."""
_CELL, _HERE = ("0", "CELLS - 1"), ("first_x == 0", "first_x + CELLS == nx")
"""The cell of a lane that is at the face, and whether the lane is there."""
_BACK = "returned + r * RETURNED * LANES + ({v}) * 32"


def row_functions(case: Case) -> str:
    """Return the functions that reflect at each of the two faces across y."""
    lines = [(name, _leave(case, Sums(case.stencil), side)) for side, name in enumerate(_FACES)]
    takes = ("Real* const back", *wall_moments.TAKES)
    return "\n".join(moments.reflecting(case, f"leave_y_{name}", found, *takes) for name, found in lines)


def leave_row(case: Case, several: str, one: str) -> str:
    """Return the reflection of a cell by the kind of its row; several: the reflection if several faces cut links."""
    given = ", ".join((*wall_moments.ADDED_TO, *moments.sent(), *moments.wall_scalars(case)))
    kinds = {side.upper(): f"leave_y_{side}({given});" for side in _FACES} | {"SEVERAL": several}
    lines = ["const Row kind = kind_of_row(links, r, here_z, ny, nz);", "if (kind != NONE) {"]
    choice = "\n".join(f"if (kind == {kind}) {{\n{text}\n}}" for kind, text in kinds.items())
    return "\n".join((*lines, wall_moments.kept_sums(choice, one), "}"))


def _has_corners(case: Case) -> bool:
    """Return whether directions have components along all axes, so that a face also reflects mixed powers."""
    return any(all(c) for c in case.stencil.velocities)


def _over_face(case: Case, sums: Sums, axis: int, side: int) -> Iterator[str]:
    """Yield the sums over all links that a face reflects, by powers of velocities along it (y and z, or x and z).

    all: no power; odd and even: of the first axis; odd_z and even_z: of the second; mixed: of both.
    """
    moves = case.faces[2 * axis + side] == "moving"
    links = {i: c for i, c in enumerate(case.stencil.velocities) if c[axis] == _INWARD[side]}
    for i in links:
        gain = f" + ({moments.gained(case, i)})" if moves else ""
        yield f"const Real f{i} = {moments.sent_back(sums, i)}{gain};"

    def total(*axes: int, way: int) -> str:
        return moments.weighted(case.stencil, [i for i, c in links.items() if prod(c[a] for a in axes) == way])

    first, second = (a for a in range(3) if a != axis)
    for a, name in ((first, ""), (second, "_z")):
        yield f"const Real up{name} = {total(a, way=1)}, down{name} = {total(a, way=-1)};"
        yield f"const Real odd{name} = up{name} - down{name}, even{name} = up{name} + down{name};"
    yield f"const Real all = even + {total(first, way=0)};"
    if _has_corners(case):
        yield f"const Real mixed = {total(first, second, way=1)} - ({total(first, second, way=-1)});"


def _leave(case: Case, sums: Sums, side: int) -> Iterator[str]:
    """Yield the sums of what the face reflects, and the lines that add them to what arrives."""
    turned = "-" if _INWARD[side] < 0 else ""
    mixed = "mixed" if _has_corners(case) else ""
    below = {(0, 0): "odd_z", (1, 0): mixed, (0, 1): f"{turned}odd_z", (2, 0): "even", (0, 2): "all"}
    rest = {(0, 0): "all - odd_z", (1, 0): f"odd - {mixed}" if mixed else "odd", (0, 1): f"{turned}rest_00"}
    odd = f"{turned}odd"
    from_below = {of: value for of, value in below.items() if value} | ({(1, 1): odd} if mixed else {})
    yield from _over_face(case, sums, 1, side)
    yield from wall_moments.added(sums, from_below, rest, "" if mixed else odd, "even_z - odd_z")


def over_side(case: Case, side: int) -> str:
    """Return the lines that reflect in a row, before anything moves."""
    v = _CELL[side]
    pending, shelf = f"pending[t][r][{v}]", f"shelves[(t * ROWS + r) * CELLS + {v}].value"
    given = ", ".join((_HERE[side], _BACK.format(v=v), pending, *moments.sent(v), *moments.wall_scalars(case)))
    return "\n".join(
        (
            f"if (SHELVED) take<THREADS>({pending}, {shelf}, thread);",
            f"const Real straight = over_x_{_FACES[side]}({given});",
            f"if (SHELVED) put<THREADS>({shelf}, {pending}, thread);",
        )
    )


def enter_side(side: int) -> str:
    """Return the line that adds what enters a row to what the neighbouring cells send."""
    return f"enter_x_{_FACES[side]}({_HERE[side]}, straight, {_COMES_IN[side]}[{_CELL[side]}]);"


def take_side(side: int) -> str:
    """Return the lines that take the rest in all rows. A general plane may need what is due to any cell next."""
    v, rows = _CELL[side], "#pragma unroll\nfor (int r = 0; r < ROWS; ++r) {"
    lines = (
        "Real* const later = owed + (t * ROWS + r) * LANES;",
        f"m[r][{v}][TWICE_UP] += later[({v}) * 32];",
        "#pragma unroll",
        "for (int v = 0; v < CELLS; ++v) later[v * 32] = 0;",
        f"later[({v}) * 32] = take_x_{_FACES[side]}(current[t][r][{v}], {_BACK.format(v=v)});",
    )
    return "\n".join((rows, *(f"    {line}" for line in lines), "}"))


def side_functions(case: Case) -> str:
    """Return the functions that reflect, enter and take at each of the two faces across x."""
    given, sums = ("const bool here", "Real* const back", "Real (&pending)[PENDING]"), Sums(case.stencil)
    texts = []
    for side, (name, comes_in) in enumerate(zip(_FACES, _COMES_IN, strict=True)):
        entering = f"const bool here, const Real straight, Real (&{comes_in})[MOVERS]"
        taking = "Real (&current)[CURRENT], const Real* const back"
        texts += [
            moments.reflecting(case, f"over_x_{name}", _over(case, sums, side), *given, returns="Real"),
            function(f"enter_x_{name}({entering})", _enter(sums, side)),
            function(f"take_x_{name}({taking})", _take(case, sums, side), returns="Real"),
        ]
    return "\n".join(texts)


def _over(case: Case, sums: Sums, side: int) -> Iterator[str]:
    """Yield the sums over links; what has powers of c_z is added as if from the plane below."""
    waiting = {part: f"pending[{k}]" for k, part in enumerate(sums.parts[1])}
    yield from _over_face(case, sums, 0, side)
    yield from (f"back[{k} * APART] = here ? {value} : Real(0);" for k, value in enumerate(_waits(case).values()))
    yield "const Real from_below = here ? odd_z : Real(0);"
    for x in range(3):
        yield f"{waiting[x, 0]} {'-' if _INWARD[side] ** x < 0 else '+'}= from_below;"
    yield f"{waiting[0, 2]} += here ? even : Real(0);"
    yield f"return Real(1.0 / {sums.factor((0, 0))}) * (all - odd_z);"


def _waits(case: Case) -> dict[tuple[int, int], str]:
    """Return the remaining sums by powers of c_y and c_z; (0, 2): what the moment of c_z^2 is still due."""
    found = {(1, 0): "odd", (0, 2): "even_z - odd_z"}
    return found | ({(1, 1): "mixed"} if _has_corners(case) else {})


def _enter(sums: Sums, side: int) -> Iterator[str]:
    name = _COMES_IN[side]
    for k, row in enumerate(sums.movers):
        yield f"{name}[{k}] = here ? {'straight' if row == (0, 0) else 'Real(0)'} : {name}[{k}];"


def _take(case: Case, sums: Sums, side: int) -> Iterator[str]:
    inward, waits = _INWARD[side], list(_waits(case))
    for k, of in enumerate(waits):
        for n in (n for n in orders(case.stencil) if n[1:] == of != (0, 2)):
            yield f"current[{sums.waiting(n)}] {'-' if inward ** n[0] < 0 else '+'}= back[{k} * APART];"
    yield f"return back[{waits.index((0, 2))} * APART];"
