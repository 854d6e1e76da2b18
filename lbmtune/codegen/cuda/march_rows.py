"""What returns to rows of which one face alone cuts links, as C text. See kernels/cuda/march_rows.cu."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.moments import orders, unit_weight
from lbmtune.codegen.cuda import march_links
from lbmtune.codegen.cuda.moments import function
from lbmtune.codegen.moments import Sums
from lbmtune.lattice import Vector

_SIDES = ("low", "high")


def functions(case: Case) -> str:
    """What is left and taken at each face across x and y that is a wall."""
    sums = Sums(case.stencil)
    count = len(_powers(case))
    text = (_functions(case, sums, axis, side) for axis, side in _faces(case))
    return "\n".join((f"constexpr int FACE = {count};  // sums of what returns over a face", *text))


def leave(case: Case, mixed: str) -> str:
    """Of a cell: what returns waits. mixed: the same where several faces cut links."""
    given = ", ".join((*march_links.SENT, *march_links.scalars(case)))
    lines = ["const Row kind = kind_of_row(links, r, here_z, ny, nz);"]
    for axis, side in _faces(case):
        name, place = f"{'xy'[axis]}_{_SIDES[side]}", " + FACE * APART" * (side and not axis)
        lines.append(f"if ({_where(axis, side)}) leave_{name}(back{place}, {given});")
    return "\n".join((*lines, f"if (kind == MIXED) {{\n{mixed}\n}}"))


def take(case: Case, mixed: str) -> str:
    """Of a cell: what waits joins what the moments have so far."""
    lines = ["const Row kind = kind_of_row(links, r, here_z, ny, nz);", "Real more = 0;"]
    for axis, side in _faces(case):
        name, place = f"{'xy'[axis]}_{_SIDES[side]}", " + FACE * APART" * (side and not axis)
        at = "" if axis else f" && links.across[v] & CUT_X_{_SIDES[side].upper()}"
        lines.append(f"if ({_where(axis, side)}{at}) more += take_{name}(current[t][r][v], back{place});")
    return "\n".join((*lines, "later = more;", f"if (kind == MIXED) {{\n{mixed}\n}}"))


def _where(axis: int, side: int) -> str:
    if axis:
        return f"kind == {('LOW', 'HIGH')[side]}"
    return f"kind == SIDES && links.{_SIDES[side]} && v == {('0', 'CELLS - 1')[side]}"


def _faces(case: Case) -> Iterator[tuple[int, int]]:
    """Axis and side of the walls across x and y."""
    yield from ((axis, side) for axis, side in product((0, 1), (0, 1)) if case.faces[2 * axis] != "periodic")


def _functions(case: Case, sums: Sums, axis: int, side: int) -> str:
    name = f"{'xy'[axis]}_{_SIDES[side]}"
    takes = ("Real* const back", *march_links.SENDING, *(f"const Real {one}" for one in march_links.scalars(case)))
    given = "Real (&current)[CURRENT], const Real* const back"
    return "\n".join(
        (
            function(f"leave_{name}(\n    {', '.join(takes)})", _leave(case, sums, axis, side)),
            function(f"take_{name}({given})", _take(case, sums, axis, side), returns="Real"),
        )
    )


def _powers(case: Case) -> list[tuple[int, int]]:
    """Powers of the velocities along a face in the sums of what returns over it."""
    mixed = any(all(c) for c in case.stencil.velocities)
    return [(0, 0), (1, 0), (2, 0), (0, 1), (0, 2), *([(1, 1)] if mixed else [])]


def _links(case: Case, axis: int, side: int) -> dict[Vector, int]:
    """Links that bring back what goes out over a face, by their velocities."""
    inward = -1 if side else 1
    return {c: i for i, c in enumerate(case.stencil.velocities) if c[axis] == inward}


def _leave(case: Case, sums: Sums, axis: int, side: int) -> Iterator[str]:
    """Sums over the links with the powers 1 and 2 of the velocities along the face, and over all."""
    links, moves = _links(case, axis, side), case.faces[2 * axis + side] == "moving"
    for i in links.values():
        gain = f" + ({march_links.gained(case, i)})" if moves else ""
        yield f"const Real f{i} = {march_links.sent_back(sums, i)}{gain};"
    first, second = _along(axis)
    for a in (first, second):
        ways = [_sum(case, {c: i for c, i in links.items() if c[a] == way}) for way in (1, -1)]
        name = "xyz"[a]
        yield f"const Real {name}_up = {ways[0]}, {name}_down = {ways[1]};"
        yield f"const Real odd_{name} = {name}_up - {name}_down, even_{name} = {name}_up + {name}_down;"
    rest = _sum(case, {c: i for c, i in links.items() if not c[first]})
    values = [f"even_{'xyz'[first]} + {rest}"]
    values += [f"{parity}_{'xyz'[a]}" for a in (first, second) for parity in ("odd", "even")]
    ways = [_sum(case, {c: i for c, i in links.items() if c[first] * c[second] == way}) for way in (1, -1)]
    values.append(f"{ways[0]} - ({ways[1]})")
    yield from (f"back[{k} * APART] = {value};" for k, value in enumerate(values[: len(_powers(case))]))


def _sum(case: Case, links: dict[Vector, int]) -> str:
    weights = {i: unit_weight(case.stencil, c) for c, i in links.items()}
    return " + ".join(f"f{i}" if u == 1 else f"{u} * f{i}" for i, u in weights.items())


def _take(case: Case, sums: Sums, axis: int, side: int) -> Iterator[str]:
    """Those sums as moments. Returns what the moment of c_z^2 is owed yet, beyond what that of c_z got."""
    inward, (first, second) = -1 if side else 1, _along(axis)
    owed = []
    for k, powers in enumerate(_powers(case)):
        yield f"const Real sum{k} = back[{k} * APART];"
        for n in (n for n in orders(case.stencil) if (n[first], n[second]) == powers):
            if n == (0, 0, 2):
                owed.append(f"sum{k}")
                continue
            yield f"current[{sums.waiting(n)}] {'-' if inward ** n[axis] < 0 else '+'}= sum{k};"
            if n == (0, 0, 1):
                owed.append(f"-sum{k}")
    yield f"return {' + '.join(sorted(owed, key=lambda one: one[0] == '-')).replace('+ -', '- ')};"


def _along(axis: int) -> tuple[int, int]:
    """The axes along a face across another one."""
    first, second = (a for a in range(3) if a != axis)
    return first, second
