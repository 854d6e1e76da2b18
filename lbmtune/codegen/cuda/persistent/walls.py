"""Cut links of persistent kernels of moments, as C text.

A cut link reflects what the cell itself sends along it, plus the momentum of a moving wall; nothing crosses it. The
moments of what a cell gets back are added to the sums that are buffered for the plane above. Only what c_z^2 has beyond
c_z is kept apart until the cell is complete, because both share one sum.
"""

from __future__ import annotations

from collections.abc import Iterator

from lbmtune.catalogue.boundaries.bounce_back_routes import returning
from lbmtune.catalogue.boundaries.cell_flags import moving_links
from lbmtune.catalogue.families.cuda.persistent import Persistent
from lbmtune.catalogue.moments.basis import orders, unit_weight, upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import moments
from lbmtune.codegen.cuda.shared.expressions import function, reals, word
from lbmtune.codegen.moment_stages import Sums
from lbmtune.lattice import negate

_AT_FACE = ("x == 0", "x == nx - 1", "y == 0", "y == ny - 1", "z == 0", "z == nz - 1")
_WHERE = "const Seat& seat, const int k, const int r, const int v, const int nx, const int ny, const int nz"
_COORDINATES = (
    "const int x = seat.x * WIDE + v, y = FLAT ? seat.bottom + k : seat.line + r, z = FLAT ? 0 : seat.bottom + k;"
)


def functions(case: Case, config: Persistent) -> str:
    """Return the functions that find cut links, reflect, and add what is reflected."""
    by_words = config.flags == "memory"
    own = "words[(z * ny + y) * nx + x]" if by_words else _at_faces(case, ("wall", "moving"))
    given = f"const Word* words, {_WHERE}" if by_words else _WHERE
    texts = [
        "typedef unsigned int Word;  // bit i: the link by which f_i arrives is cut",
        function(f"cut_at({given})", (_COORDINATES, f"return {own};"), returns="Word"),
    ]
    if case.moving:
        moving = _at_faces(case, ("moving",))
        texts.append(function(f"moving_at({_WHERE})", (_COORDINATES, f"return {moving};"), returns="Word"))
    takes = ("const Word cut", *(["const Word moving"] if case.moving else []), "Real (&still)[LINES]")
    takes += ("Real (&right)[MOVERS]", "Real (&left)[MOVERS]", "Real (&back)[MOMENTS]")
    takes += (*reals(moments.wall_scalars(case)),)
    texts.append(function(f"leave(\n    {', '.join(takes)})", _leave(case)))
    waits = "Real (&m)[MOMENTS], Real (&current)[CURRENT], Real& owed, const Real (&back)[MOMENTS]"
    texts.append(function(f"get_back({waits})", _get_back(case)))
    return "\n".join(texts)


def entry_regions(case: Case, config: Persistent) -> dict[str, str]:
    """Return the regions of the entry."""
    where = "seat, k, r, v, nx, ny, nz"
    cut = f"cut_at({'words, ' if config.flags == 'memory' else ''}{where})"
    given = ["cut", *([f"moving_at({where})"] if case.moving else []), "still[v]", "right[v]", "left[v]", "back[r][v]"]
    return {
        "owed": "        Real owed[ROWS][WIDE] = {};",
        "back": "                Real back[ROWS][WIDE][MOMENTS] = {};",
        "leave": f"                        if (const Word cut = {cut}) "
        f"leave({', '.join((*given, *moments.wall_scalars(case)))});",
        "returned": "                        get_back(m[r][v], current[r][v], owed[r][v], back[r][v]);",
        "paid": f"                m[r][v][{_twice(case)}] += owed[r][v];",
    }


def _at_faces(case: Case, kinds: tuple[str, ...]) -> str:
    words = []
    for face, (kind, where) in enumerate(zip(case.faces, _AT_FACE, strict=True)):
        axis, inward = face // 2, -1 if face % 2 else 1
        cut = [i for i, c in enumerate(case.stencil.velocities) if c[axis] == inward]
        if kind in kinds and cut:
            words.append(f"({where} ? {word(cut)} : 0u)")
    return " | ".join(words) or "0u"


def _twice(case: Case) -> int:
    """Return the position of the moment of c_z^2."""
    return orders(upright(case.stencil)).index((0, 0, 2))


def _leave(case: Case) -> Iterator[str]:
    """Yield, link by link, what is sent and thereby missing there, and the moments with which it is reflected."""
    lattice = upright(case.stencil)
    sums = Sums(lattice)
    for i in returning(case):
        c, place = lattice.velocities[i], moments.sent_back(sums, i)
        yield f"if (cut >> {i} & 1u) {{"
        gain = ""
        if i in moving_links(case):
            gain = f" + (moving >> {i} & 1u ? {moments.gained(case, i)} : Real(0))"
        yield f"    const Real f = {unit_weight(lattice, negate(c))} * ({place}{gain});"
        yield f"    {place} = 0;"
        for k, n in enumerate(orders(lattice)):
            if sign := c[0] ** n[0] * c[1] ** n[1] * c[2] ** n[2]:
                yield f"    back[{k}] {'+' if sign > 0 else '-'}= f;"
        yield "}"


def _get_back(case: Case) -> Iterator[str]:
    """Yield the lines after the plane below is complete and this plane has all that arrives but from above."""
    lattice = upright(case.stencil)
    sums, powers = Sums(lattice), orders(lattice)
    once, twice = powers.index((0, 0, 1)), _twice(case)
    yield f"m[{twice}] += owed;"
    for k, n in enumerate(powers):
        if k != twice:
            yield f"current[{sums.waiting(n)}] += back[{k}];"
    yield f"owed = back[{twice}] - back[{once}];"
