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
from lbmtune.catalogue.moments import orders, unit_weight
from lbmtune.catalogue.returning import returning, splits
from lbmtune.codegen.cuda.assemble import fill
from lbmtune.codegen.cuda.expressions import text
from lbmtune.codegen.cuda.moments import Sums, function
from lbmtune.codegen.cuda.physics import SCALARS

_FILE = "cuda/march_walls.cu"
_FACES = ("X_LOW", "X_HIGH", "Y_LOW", "Y_HIGH", "Z_LOW", "Z_HIGH")
_GROUPS = {1: "right", 0: "along", -1: "left"}
"""Links by their c_x."""


def scalars(case: Case) -> tuple[str, ...]:
    """Launch arguments that moving walls need."""
    used = {str(symbol) for i in moving_links(case) for symbol in wall_gain(case.stencil, i).free_symbols}
    return tuple(name for name in SCALARS if name in used)


def entry(case: Case, config: CudaConfig, regions: dict[str, str]) -> str:
    """The functions and the entry of a march with cut links; regions: `signature` and `relax` of that."""
    flagged = config.flags == "memory"
    fetch = "        fetch_links(links, words, next_z, next_plane, nx, ny, nz);" if flagged else ""
    inner = {"fetch": fetch, "return": _call(case), **regions}
    return fill(
        _FILE,
        {
            "links": _links(case),
            "reflect": _reflect(case),
            "known": fill("cuda/march_flags.cu" if flagged else "cuda/march_faces.cu", {}),
            "entry": fill(_FILE, inner, inside="entry"),
        },
    )


def _links(case: Case) -> str:
    """Links that each face cuts, and those of them that move, as words."""
    moving = case.moving
    lines = [
        f"constexpr bool WALLED_{axis} = {'false' if case.faces[2 * n] == 'periodic' else 'true'};"
        for n, axis in enumerate("XYZ")
    ]
    for face, name in enumerate(_FACES):
        lines.append(f"constexpr Word CUT_{name} = {_mask(case, face, ('wall', 'moving'))};")
        if moving:
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
    lines, given = [], ["own"]
    if case.moving:
        lines = [f"const Word moving = {_moving(case)};"]
        given.append("moving")
    given += ["still[v]", "right[v]", "left[v]", "back", *scalars(case)]
    lines.append(f"reflect({', '.join(given)});")
    return "\n".join(f"{' ' * 24}{line}" for line in lines)


def _moving(case: Case) -> str:
    """Links of a cell that moving faces cut.

    Without solid cells the link that goes straight on tells whether the cell is at the face.
    """
    if case.geometry:
        faces = (
            f"at_faces({i}, {n}, WALLED_{axis}, MOVING_{axis}_LOW, MOVING_{axis}_HIGH)"
            for axis, i, n in (("X", "first_x + v", "nx"), ("Y", "first_y + r", "ny"), ("Z", "here_z", "nz"))
        )
        return " | ".join(faces)
    moving = [face for face, kind in enumerate(case.faces) if kind == "moving"]
    return " | ".join(f"(own >> {_straight(case, face)} & 1u ? MOVING_{_FACES[face]} : 0u)" for face in moving)


def _straight(case: Case, face: int) -> int:
    """The direction that arrives over a face at right angles."""
    axis, high = divmod(face, 2)
    return case.stencil.velocities.index(tuple((-1 if high else 1) * (n == axis) for n in range(3)))


def _reflect(case: Case) -> str:
    sums = Sums(case.stencil, splits(case))
    takes = ["const Word cut", *(["const Word moving"] if case.moving else [])]
    takes += ["const Real (&still)[LINES]", "const Real (&right)[MOVERS]", "const Real (&left)[MOVERS]"]
    takes += ["Real (&back)[CURRENT]", *(f"const Real {name}" for name in scalars(case))]
    groups = [c_x for c_x in (1, -1, 0) if any(case.stencil.velocities[i][0] == c_x for i in returning(case))]
    lines = [line for c_x in groups for line in _group(case, sums, c_x, first=c_x == groups[0])]
    return function(f"reflect(\n    {', '.join(takes)})", lines)


def _group(case: Case, sums: Sums, c_x: int, *, first: bool) -> Iterator[str]:
    """All links of one c_x: what returns over them, their sums over c_y and c_z, and where those go.

    first: nothing has gone there before; a compiler must not take 0 + x for x.
    """
    velocities = case.stencil.velocities
    links = [i for i in returning(case) if velocities[i][0] == c_x]
    yield f"if (anywhere(cut & {_word(links)})) {{"
    for i in links:
        yield f"    const Real f{i} = {_returned(case, sums, i)};"
    found = dict[tuple[int, int], str]()
    for line in _sums(case, links, found):
        yield f"    {line}"
    for n in orders(case.stencil):
        power, rest = n[0], n[1:]
        if rest in found and (c_x or not power) and (n != (0, 0, 2) or sums.split):
            sign = "-" if c_x**power < 0 else "" if first else "+"
            yield f"    back[{sums.waiting(n)}] {'= ' + sign if first else sign + '= '}{found[rest]};"
    yield "}"


def _returned(case: Case, sums: Sums, i: int) -> str:
    """What arrives by a link where it is cut, in units of its weight: p(-c_i), and what a moving wall adds."""
    x, y, z = case.stencil.velocities[i]
    row = (-y, -z)
    sent = f"still[{sums.rows.index(row)}]" if not x else f"{'left' if x > 0 else 'right'}[{sums.movers.index(row)}]"
    back = f"where_cut(cut, {i}, {sent})"
    if i not in moving_links(case):
        return back
    gain = wall_gain(case.stencil, i) / weight(case.stencil, i)
    return f"{back} + where_cut(moving, {i}, {text(gain)})"


def _sums(case: Case, links: Sequence[int], found: dict[tuple[int, int], str]) -> Iterator[str]:
    """Sums of u_i times the powers of c_y and c_z; `found` says where each is, if it is not always zero."""
    velocities = case.stencil.velocities

    def added(chosen: Sequence[int]) -> str:
        weights = {i: unit_weight(case.stencil, velocities[i]) for i in chosen}
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
        assert len({unit_weight(case.stencil, velocities[i]) for i, _ in mixed}) == 1
        factor = unit_weight(case.stencil, velocities[mixed[0][0]])
        signed = " ".join(f"{'-' if sign < 0 else '+'} f{i}" for i, sign in sorted(mixed, key=lambda one: -one[1]))
        total = signed.removeprefix("+ ")
        yield f"const Real mixed = {total if factor == 1 else f'{factor} * ({total})'};"
        found[1, 1] = "mixed"
