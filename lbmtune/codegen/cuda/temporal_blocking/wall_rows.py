"""Rows at one face across y, as C text. See kernels/cuda/temporal_blocking/wall_rows.cu."""

from __future__ import annotations

from collections.abc import Iterator

from lbmtune.catalogue.moments.basis import unit_weight
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import moment_links
from lbmtune.codegen.cuda.temporal_blocking import wall_moments
from lbmtune.codegen.moment_stages import Sums
from lbmtune.lattice import Vector

SIDES = ("low", "high")


def functions(case: Case) -> str:
    """Return the functions that reflect at each of the two faces."""
    return "\n".join(_functions(case, Sums(case.stencil), side) for side in (0, 1))


def leave(case: Case, several: str, one: str) -> str:
    """Return the reflection of a cell by the kind of its row; several: the reflection if several faces cut links."""
    given = ", ".join((*wall_moments.ADDED_TO, *moment_links.sent(), *moment_links.scalars(case)))
    kinds = {side.upper(): f"leave_y_{side}({given});" for side in SIDES} | {"SEVERAL": several}
    lines = ["const Row kind = kind_of_row(links, r, here_z, ny, nz);", "if (kind != NONE) {"]
    choice = "\n".join(f"if (kind == {kind}) {{\n{text}\n}}" for kind, text in kinds.items())
    return "\n".join((*lines, wall_moments.kept_sums(choice, one), "}"))


def _functions(case: Case, sums: Sums, side: int) -> str:
    return wall_moments.reflecting(case, f"leave_y_{SIDES[side]}", _leave(case, sums, side))


def powers(case: Case) -> dict[tuple[int, int], str]:
    """Return the powers of velocities along a face, of y and z or x and z, in the sums that it reflects, by name."""
    mixed = any(all(c) for c in case.stencil.velocities)
    found = {(0, 0): "all", (1, 0): "odd", (2, 0): "even", (0, 1): "odd_z", (0, 2): "even_z"}
    return found | ({(1, 1): "mixed"} if mixed else {})


def over_face(case: Case, sums: Sums, axis: int, side: int) -> Iterator[str]:
    """Yield the sums over all links that a face reflects, by the names of `powers`."""
    inward, moves = inward_of(side), case.faces[2 * axis + side] == "moving"
    links = {c: i for i, c in enumerate(case.stencil.velocities) if c[axis] == inward}
    for i in links.values():
        gain = f" + ({moment_links.gained(case, i)})" if moves else ""
        yield f"const Real f{i} = {moment_links.sent_back(sums, i)}{gain};"
    first, second = along(axis)
    for a, name in ((first, ""), (second, "_z")):
        ways = [_sum(case, {c: i for c, i in links.items() if c[a] == way}) for way in (1, -1)]
        yield f"const Real up{name} = {ways[0]}, down{name} = {ways[1]};"
        yield f"const Real odd{name} = up{name} - down{name}, even{name} = up{name} + down{name};"
    yield f"const Real all = even + {_sum(case, {c: i for c, i in links.items() if not c[first]})};"
    if (1, 1) in powers(case):
        ways = [_sum(case, {c: i for c, i in links.items() if c[first] * c[second] == way}) for way in (1, -1)]
        yield f"const Real mixed = {ways[0]} - ({ways[1]});"


def _sum(case: Case, links: dict[Vector, int]) -> str:
    weights = {i: unit_weight(case.stencil, c) for c, i in links.items()}
    return " + ".join(f"f{i}" if u == 1 else f"{u} * f{i}" for i, u in weights.items())


def _leave(case: Case, sums: Sums, side: int) -> Iterator[str]:
    """Yield the sums of what the face reflects, and the lines that add them to what arrives."""
    turned = "-" if inward_of(side) < 0 else ""
    mixed = "mixed" if (1, 1) in powers(case) else ""
    below = {(0, 0): "odd_z", (1, 0): mixed, (0, 1): f"{turned}odd_z", (2, 0): "even", (0, 2): "all"}
    rest = {(0, 0): "all - odd_z", (1, 0): f"odd - {mixed}" if mixed else "odd", (0, 1): f"{turned}rest_00"}
    odd = f"{turned}odd"
    from_below = {of: value for of, value in below.items() if value} | ({(1, 1): odd} if mixed else {})
    yield from over_face(case, sums, 1, side)
    found = wall_moments.Reflected(from_below, rest, "" if mixed else odd, "even_z - odd_z")
    yield from wall_moments.added(sums, found)


def inward_of(side: int) -> int:
    """Return the direction into the box at the lower or the upper face of an axis."""
    return -1 if side else 1


def along(axis: int) -> tuple[int, int]:
    """Return the axes along a face across another one."""
    first, second = (a for a in range(3) if a != axis)
    return first, second
