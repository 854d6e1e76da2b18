"""Loads and stores of populations of a box as C text: one line per direction, and redirections of cut links."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Face
from lbmtune.catalogue.schemes.scheme import Access, Phase, Place
from lbmtune.codegen.cuda.shared import physics
from lbmtune.codegen.passes import pointer_name
from lbmtune.lattice import Vector, negate

MOVE = {-1: "before", 0: "here", 1: "after"}
_SIGN = {-1: "m", 0: "o", 1: "p"}
_ALONG = {-1: "before({0}, n{0}, ORIGIN_{1})", 0: "here({0}, ORIGIN_{1})", 1: "after({0}, n{0}, ORIGIN_{1})"}
_PLANE = {-1: "below", 0: "level", 1: "above"}
_FACE = ("x == 0", "x + CELLS == nx", "y == 0", "y + 1 == ny", "z == 0", "z + 1 == nz")
_FLAG = ("x_low", "x_high", "y_low", "y_high", "z_low", "z_high")

_TO_A_LINE = 4

Action = tuple[str, str]
"""A condition on the flags of walls, and a statement to execute if it holds."""


@dataclass(frozen=True)
class Link:
    """Walls that can cut a link: flags of faces across x (they concern one cell of a thread) and of other faces."""

    x: tuple[str, ...]
    row: tuple[str, ...]
    x_moving: tuple[str, ...]
    row_moving: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.x or self.row)


def link(case: Case, velocity: Vector) -> Link:
    """Return the walls that can cut the link along a velocity."""
    return _link(case.crossed(velocity))


@lru_cache(maxsize=256)
def _link(crossed: tuple[tuple[int, Face], ...]) -> Link:
    def flags(along_x: bool, kinds: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_FLAG[f] for f, kind in crossed if (f < 2) == along_x and kind in kinds)

    both = ("wall", "moving")
    return Link(flags(True, both), flags(False, both), flags(True, ("moving",)), flags(False, ("moving",)))


def row_name(offset: Vector) -> str:
    """Return the name of the row at an offset along y and z, such as row_om for the row below along z."""
    return f"row_{_SIGN[offset[1]]}{_SIGN[offset[2]]}"


def rows(case: Case, phase: Phase) -> str:
    """Return the declarations of the rows that a phase accesses, and of the flags of walls."""
    return "\n".join([row_line((0, y, z)) for y, z in _touched(case, phase)] + _flags(case))


def columns(case: Case, phase: Phase) -> str:
    """Return the declarations of the index parts along y, which all rows of a column share."""
    rows = {y: _ALONG[y].format("y", "Y") for y, _ in _touched(case, phase)}
    return "\n".join(f"    const Index column_{_SIGN[y]} = along_y({row}, n);" for y, row in rows.items())


def rows_of_columns(case: Case, phase: Phase) -> str:
    """Return the declarations of the rows of a cell of a column, and of the flags of walls."""
    lines = [
        f"        const Index {row_name((0, y, z))} = column_{_SIGN[y]} + planes.{_PLANE[z]};"
        for y, z in _touched(case, phase)
    ]
    return "\n".join(lines + _flags(case))


def _touched(case: Case, phase: Phase) -> list[tuple[int, int]]:
    return sorted({place.offset[1:] for access in phase.accesses for place in _places(case, access)})


def _flags(case: Case) -> list[str]:
    return [f"    const bool {_FLAG[n]} = {_FACE[n]};" for n, face in enumerate(case.faces) if face != "periodic"]


def _places(case: Case, access: Access) -> Iterator[Place]:
    c = case.stencil.velocities[access.direction]
    yield from (access.read, access.write)
    if link(case, negate(c)):
        yield access.cut_read
    if link(case, c):
        yield access.cut_write


def row_line(offset: Vector) -> str:
    """Return the declaration of the row at an offset."""
    y, z = _ALONG[offset[1]].format("y", "Y"), _ALONG[offset[2]].format("z", "Z")
    return f"    const Index {row_name(offset)} = along_y({y}, n) + along_z({z}, n);"


def reads(case: Case, phase: Phase, buffer: str, verb: str = "read") -> str:
    """Return the loads of all populations, and what walls change in them: reflected values and momentum.

    verb: "take": loads from shared memory of what `fetches` copied.
    """
    redirected = [action for access in phase.accesses for action in _redirected(case, access, buffer, "read")]
    return "\n".join([*_plain_reads(case, phase, buffer, verb), *_at_wall(redirected, _gains(case, phase, "read"))])


def fetches(case: Case, phase: Phase, buffer: str) -> str:
    """Return the copies to shared memory of what is read over open links, or at a wall at the end of a row."""
    return "\n".join(_plain_reads(case, phase, buffer, "fetch"))


def writes(case: Case, phase: Phase, buffer: str) -> str:
    """Return what walls change, the stores over open links, and the stores of cut links."""
    plain = [f"    {_open_write(case, access, buffer)};" for access in phase.accesses]
    redirected = [action for access in phase.accesses for action in _redirected(case, access, buffer, "write")]
    return "\n".join(_at_wall(_gains(case, phase, "write")) + plain + _at_wall(redirected))


def _plain_reads(case: Case, phase: Phase, buffer: str, verb: str) -> Iterator[str]:
    """Yield the loads of all cells of a thread; at a wall at the end of a row they load the reflected value."""
    for access in phase.accesses:
        cut = link(case, negate(case.stencil.velocities[access.direction]))
        text = _access(verb, access.direction, access.read, buffer)
        if cut.x and access.read.offset[0] and access.read != access.cut_read:
            text += f",\n        {_over_the_end(buffer, access.read, access.cut_read, cut)}"
        yield f"    {text});"


def _over_the_end(buffer: str, place: Place, bounced: Place, cut: Link) -> str:
    """Return the arguments for the cell whose link crosses the x face: flag of the wall, place of the cut link."""
    (flag,) = cut.x
    assert (flag == "x_high") == (place.offset[0] > 0), "a move along x follows the link"
    return f"{flag}, {_pointer(flag, bounced, buffer)}"


def _redirected(case: Case, access: Access, buffer: str, verb: str) -> Iterator[Action]:
    """Yield the loads or stores of cut links that the plain ones leave out."""
    i, c = access.direction, case.stencil.velocities[access.direction]
    opened, place = (access.read, access.cut_read) if verb == "read" else (access.write, access.cut_write)
    cut = link(case, negate(c) if verb == "read" else c)
    if place == opened:
        return
    if cut.row:
        yield _any(cut.row), f"{_whole(verb, i, place, buffer)};"
    for flag in cut.x if not opened.offset[0] else ():
        value, at = f"f[{i}][{_cell(flag)}]", f"*({_pointer(flag, place, buffer)})"
        yield flag, f"{value} = widen({at});" if verb == "read" else f"{at} = narrow({value});"


def _open_write(case: Case, access: Access, buffer: str) -> str:
    """Return a store that leaves out cut links."""
    i, dx = access.direction, access.write.offset[0]
    cut = link(case, case.stencil.velocities[i])
    text = _access("write", i, access.write, buffer)
    if not cut or access.write == access.cut_write:
        return f"{text})"
    if dx and not cut.x:
        return f"{text}, {_none(cut.row)})"
    if dx:
        arrives = _none(tuple(_FLAG[1 - _FLAG.index(flag)] for flag in cut.x))
        end = _over_the_end(buffer, access.write, access.cut_write, cut)
        return f"{text}, {_none(cut.row)}, {arrives},\n        {end})"
    guard = f"if ({_none(cut.row)}) " if cut.row else ""
    if not cut.x:
        return f"{guard}{text})"
    first, last = (_none(tuple(f for f in cut.x if f == flag)) for flag in _FLAG[:2])
    return f"{guard}{_access('write', i, access.write, buffer, '_open')}, {first}, {last})"


def _gains(case: Case, phase: Phase, when: str) -> list[Action]:
    """Return the momentum of moving walls, once for a link that crosses several moving faces."""
    actions: list[Action] = []
    for i, c in enumerate(case.stencil.velocities if phase.wall_term == when else ()):
        cut = link(case, negate(c) if when == "read" else c)
        text = physics.gain(case.lattice, i if when == "read" else case.stencil.opposite[i])
        if cut.row_moving:
            actions.append((_any(cut.row_moving), f"add(f[{i}], {text});"))
        for flag in cut.x_moving:
            condition = " && ".join((flag, *(f"!{row}" for row in cut.row_moving)))
            actions.append((condition, f"f[{i}][{_cell(flag)}] += {text};"))
    return actions


def gain_scalars(case: Case, phase: Phase) -> set[str]:
    """Return the launch arguments that the wall terms of a phase use."""
    velocities = case.stencil.velocities if phase.wall_term != "none" else ()
    reads = phase.wall_term == "read"
    return physics.wall_scalars(case, [c for c in velocities if case.may_move(negate(c) if reads else c)])


def _at_wall(*stages: list[Action]) -> list[str]:
    """Return one branch that threads away from walls skip; in it, the actions of each stage grouped by condition."""
    lines: list[str] = []
    for stage in stages:
        for condition in dict.fromkeys(condition for condition, _ in stage):
            statements = [statement for other, statement in stage if other == condition]
            lines += [f"        if ({condition}) {{", *(f"            {text}" for text in statements), "        }"]
    text = "".join(lines)
    near = _any(tuple(flag for flag in _FLAG if flag in text))
    return [f"    if ({near}) {{", *lines, "    }"] if lines else []


_BETWEEN = {"fetch": "waiting({0})", "take": "f[{0}], waiting({0})"}
"""What a population is moved between, besides its slot; otherwise the values of a thread."""


def _access(verb: str, i: int, place: Place, buffer: str, form: str = "") -> str:
    ends = _BETWEEN.get(verb, "f[{0}]").format(i)
    return f"{verb}_{MOVE[place.offset[0]]}{form}({ends}, {slot(place, buffer)}, {row_name(place.offset)}, lane"


def _whole(verb: str, i: int, place: Place, buffer: str) -> str:
    """Return an access of all cells of a thread without shuffles; some rows of a warp only may lie at the wall."""
    dx = place.offset[0]
    form, shift = ("each", f", {dx}") if dx else ("here", "")
    return f"{verb}_{form}(f[{i}], {slot(place, buffer)}, {row_name(place.offset)}, lane{shift})"


def _pointer(flag: str, place: Place, buffer: str) -> str:
    """Return the place of the cell of a thread that lies at the x face."""
    dx = place.offset[0]
    number = str(dx) if flag == "x_low" else f"CELLS - {1 - dx}" if dx < 1 else "CELLS"
    return f"{slot(place, buffer)} + ({row_name(place.offset)} + element(lane, {number}))"


def slot(place: Place, buffer: str) -> str:
    """Return the start of the slot of a place in a buffer, or the pointer to it."""
    return pointer_name(place.slot) if place.pointer else f"{buffer} + component({place.slot}, n)"


def pointer_parameters(phase: Phase) -> list[str]:
    """Return the declarations of the pointers to slots of an entry, four to a line."""
    names = [f"Stored* const {pointer_name(n)}" for n in phase.pointers]
    return [", ".join(names[first : first + _TO_A_LINE]) for first in range(0, len(names), _TO_A_LINE)]


def _cell(flag: str) -> str:
    return "0" if flag == "x_low" else "CELLS - 1"


def _any(flags: tuple[str, ...]) -> str:
    return " || ".join(flags)


def _none(flags: tuple[str, ...]) -> str:
    return " && ".join(f"!{flag}" for flag in flags) or "true"
