"""What walls and solid cells add to the moment march, as C text. See kernels/cuda/march_walls.cu.

What returns to a cell over its cut links is summed up as moments, to which each link adds u_i (p(-c_i) + 6 c_i . u)
with the powers of c_i; u: of a moving wall. Links are taken by their c_x: in most warps only those of one are cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.collision import wall_gain, weight
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.flagging import moving_links
from lbmtune.catalogue.moments import orders, unit_weight, upright
from lbmtune.catalogue.returning import returned_sums, returning
from lbmtune.codegen.cuda.assemble import fill
from lbmtune.codegen.cuda.expressions import text
from lbmtune.codegen.cuda.moments import Sums, function
from lbmtune.codegen.cuda.physics import SCALARS
from lbmtune.lattice import Lattice

_FILE, _FLAT = "cuda/march_walls.cu", "cuda/march_flat.cu"
_AXES = {3: (0, 1, 2), 2: (0, 2, 1)}
"""Axes of a case that stand for x, y and z in the text, by its dimensions: z is marched along."""
_COORDINATES = {3: ("first_x + v", "first_y + r", "here_z"), 2: ("first_x + v", "0", "here_y")}
_EXTENTS = {3: ("nx", "ny", "nz"), 2: ("nx", "1", "ny")}
NONE = dict.fromkeys(("links", "fetch", "next", "silence", "returning", "returned"), "")
"""What stands in the regions of an entry where no link is cut."""


def scalars(case: Case) -> tuple[str, ...]:
    """Launch arguments that moving walls need."""
    used = {str(symbol) for i in moving_links(case) for symbol in wall_gain(case.stencil, i).free_symbols}
    return tuple(name for name in SCALARS if name in used)


def entry(case: Case, config: CudaConfig, regions: dict[str, str]) -> str:
    """The functions and the entry of a march with cut links; regions: `signature` and `relax` of that."""
    file, flagged = _FLAT if case.stencil.dimensions == 2 else _FILE, config.flags == "memory"
    walled = {"return": _call(case), **regions}
    if file == _FLAT:
        walled |= {name: fill(file, walled, inside=name) for name in NONE}
    walled["fetch"] = fill(file, {}, inside="fetch") if flagged else ""
    return fill(
        _FILE,
        {
            "links": _links(case),
            "reflect": _reflect(case),
            "known": fill("cuda/march_flags.cu" if flagged else "cuda/march_faces.cu", {}),
            "entry": fill(file, walled, inside="entry"),
        },
    )


def _faces(case: Case) -> Iterator[tuple[int, str]]:
    """Each face of a case with its name in the text."""
    for axis, name in zip(_AXES[case.stencil.dimensions], "XYZ", strict=True):
        yield from ((2 * axis, f"{name}_LOW"), (2 * axis + 1, f"{name}_HIGH"))


def _links(case: Case) -> str:
    """Links that each face cuts, and those of them that move, as words."""
    lines = [
        f"constexpr bool WALLED_{name} = {'false' if case.faces[2 * axis] == 'periodic' else 'true'};"
        for axis, name in zip(_AXES[case.stencil.dimensions], "XYZ", strict=True)
    ]
    for face, name in _faces(case):
        lines.append(f"constexpr Word CUT_{name} = {_mask(case, face, ('wall', 'moving'))};")
        if case.moving:
            lines.append(f"constexpr Word MOVING_{name} = {_mask(case, face, ('moving',))};")
    return "\n".join(lines)


def _mask(case: Case, face: int, kinds: Sequence[str]) -> str:
    axis, high = divmod(face, 2)
    inward = -1 if high else 1
    cut = [i for i, c in enumerate(case.stencil.velocities) if c[axis] == inward and case.faces[face] in kinds]
    return _word(cut)


def _word(links: Sequence[int]) -> str:
    return f"0x{sum(1 << i for i in links):x}u"


def _call(case: Case) -> str:
    """Of a cell, within the loops over rows and cells."""
    back = "back[v]" if case.stencil.dimensions == 2 else "back"
    given = [back, "own", *(["moving"] if case.moving else []), "still[v]", "right[v]", "left[v]", *scalars(case)]
    lines = [f"const Word moving = {_moving(case)};"] if case.moving else []
    return "\n".join((*lines, f"reflect({', '.join(given)});"))


def _moving(case: Case) -> str:
    """Links of a cell that moving faces cut.

    Without solid cells the link that goes straight on tells whether the cell is at the face.
    """
    if not case.geometry:
        moving = [(face, name) for face, name in _faces(case) if case.faces[face] == "moving"]
        return " | ".join(f"(own >> {_straight(case, face)} & 1u ? MOVING_{name} : 0u)" for face, name in moving)
    flat = case.stencil.dimensions
    along = zip("XYZ", _COORDINATES[flat], _EXTENTS[flat], strict=True)
    return " | ".join(f"at_faces({i}, {n}, WALLED_{a}, MOVING_{a}_LOW, MOVING_{a}_HIGH)" for a, i, n in along)


def _straight(case: Case, face: int) -> int:
    """The direction that arrives over a face at right angles."""
    axis, high = divmod(face, 2)
    return case.stencil.velocities.index(tuple((-1 if high else 1) * (n == axis) for n in range(3)))


def _reflect(case: Case) -> str:
    """What returns to a cell, and its way to what waits for the next plane, by the c_x of the links."""
    sums, places = Sums(upright(case.stencil), split=True), returned_sums(case)
    takes = ["Real* const back", "const Word cut", *(["const Word moving"] if case.moving else [])]
    takes += ["const Real (&still)[LINES]", "const Real (&right)[MOVERS]", "const Real (&left)[MOVERS]"]
    takes += [f"const Real {name}" for name in scalars(case)]
    groups = [c_x for c_x in (1, -1, 0) if any(place[0] == c_x for place in places)]
    apart = "1" if case.stencil.dimensions == 2 else "LANES"
    given = "Real (&current)[CURRENT], const Word cut, const Real* const back"
    return "\n".join(
        (
            f"constexpr int RETURNED = {len(places)}, APART = {apart};",
            function(f"reflect(\n    {', '.join(takes)})", [n for c_x in groups for n in _leave(case, sums, c_x)]),
            function(f"take_back({given})", [n for c_x in groups for n in _take(case, sums, c_x)]),
        )
    )


def _group(case: Case, c_x: int) -> list[int]:
    """Links of one c_x that may be cut."""
    return [i for i in returning(case) if case.stencil.velocities[i][0] == c_x]


def _leave(case: Case, sums: Sums, c_x: int) -> Iterator[str]:
    """What returns over all links of one c_x, its sums over c_y and c_z, and where those wait."""
    links, found = _group(case, c_x), dict[tuple[int, int], str]()
    yield f"if (anywhere(cut & {_word(links)})) {{"
    for i in links:
        yield f"    const Real f{i} = {_returned(case, sums, i)};"
    for line in _sums(sums.lattice, links, found):
        yield f"    {line}"
    for k, place in enumerate(returned_sums(case)):
        if place[0] == c_x:
            yield f"    back[{k} * APART] = {found[place[1:]]};"
    yield "}"


def _take(case: Case, sums: Sums, c_x: int) -> Iterator[str]:
    """Those sums as moments."""
    places = returned_sums(case)
    yield f"if (anywhere(cut & {_word(_group(case, c_x))})) {{"
    for k, (side, y, z) in enumerate(places):
        if side == c_x:
            moments = [n for n in orders(sums.lattice) if n[1:] == (y, z) and (c_x or not n[0])]
            yield f"    const Real sum{k} = back[{k} * APART];"
            for n in moments:
                yield f"    current[{sums.waiting(n)}] {'-' if c_x ** n[0] < 0 else '+'}= sum{k};"
    yield "}"


def _returned(case: Case, sums: Sums, i: int) -> str:
    """What arrives by a link where it is cut, in units of its weight: p(-c_i), and what a moving wall adds."""
    x, y, z = sums.lattice.velocities[i]
    row = (-y, -z)
    sent = f"still[{sums.rows.index(row)}]" if not x else f"{'left' if x > 0 else 'right'}[{sums.movers.index(row)}]"
    back = f"where_cut(cut, {i}, {sent})"
    if i not in moving_links(case):
        return back
    gain = wall_gain(case.stencil, i) / weight(case.stencil, i)
    return f"{back} + where_cut(moving, {i}, {text(gain)})"


def _sums(lattice: Lattice, links: Sequence[int], found: dict[tuple[int, int], str]) -> Iterator[str]:
    """Sums of u_i times the powers of c_y and c_z; `found` says where each is, if it is not always zero."""
    velocities = lattice.velocities

    def added(chosen: Sequence[int]) -> str:
        weights = {i: unit_weight(lattice, velocities[i]) for i in chosen}
        return " + ".join(f"f{i}" if weights[i] == 1 else f"{weights[i]} * f{i}" for i in chosen)

    rest = [i for i in links if not velocities[i][1]]
    terms = added(rest)
    for axis, powers in ((1, ((1, 0), (2, 0))), (2, ((0, 1), (0, 2)))):
        ways = {way: added([i for i in links if velocities[i][axis] == way]) for way in (1, -1)}
        name = "xyz"[axis]
        if not any(ways.values()):
            continue
        plus, minus = ways[1] or "0", ways[-1] or "0"
        yield f"const Real {name}_up = {plus}, {name}_down = {minus};"
        yield f"const Real odd_{name} = {name}_up - {name}_down, even_{name} = {name}_up + {name}_down;"
        found[powers[0]], found[powers[1]] = f"odd_{name}", f"even_{name}"
    if (2, 0) in found:
        terms = f"even_y + {terms}" if terms else "even_y"
    yield f"const Real all = {terms};"
    found[0, 0] = "all"
    mixed = [(i, velocities[i][1] * velocities[i][2]) for i in links if velocities[i][1] * velocities[i][2]]
    if mixed:
        assert len({unit_weight(lattice, velocities[i]) for i, _ in mixed}) == 1
        factor = unit_weight(lattice, velocities[mixed[0][0]])
        signed = " ".join(f"{'-' if sign < 0 else '+'} f{i}" for i, sign in sorted(mixed, key=lambda one: -one[1]))
        total = signed.removeprefix("+ ")
        yield f"const Real mixed = {total if factor == 1 else f'{factor} * ({total})'};"
        found[1, 1] = "mixed"
