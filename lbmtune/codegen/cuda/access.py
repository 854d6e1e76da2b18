"""Where populations are read and written: one line per direction, and redirections of links that walls cut."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.scheme import Access, Phase, Place
from lbmtune.codegen.cuda import physics
from lbmtune.lattice import Vector, negate

_MOVE = {-1: "before", 0: "here", 1: "after"}
_SIGN = {-1: "m", 0: "o", 1: "p"}
_FACE = ("x == 0", "x + CELLS == nx", "y == 0", "y + 1 == ny", "z == 0", "z + 1 == nz")
_FLAG = ("x_low", "x_high", "y_low", "y_high", "z_low", "z_high")


@dataclass(frozen=True)
class Link:
    """Walls that a link can meet: flags of faces along x, which concern one cell of a thread, and of the others."""

    x: tuple[str, ...]
    row: tuple[str, ...]
    x_moving: tuple[str, ...]
    row_moving: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.x or self.row)


def link(case: Case, velocity: Vector) -> Link:
    """The walls that the link along a velocity can meet."""

    def flags(along_x: bool, kinds: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(_FLAG[f] for f, kind in case.crossed(velocity) if (f < 2) == along_x and kind in kinds)

    both = ("wall", "moving")
    return Link(flags(True, both), flags(False, both), flags(True, ("moving",)), flags(False, ("moving",)))


def row_name(offset: Vector) -> str:
    """Name of the row at an offset along y and z: row_om is the one below along z."""
    return f"row_{_SIGN[offset[1]]}{_SIGN[offset[2]]}"


def rows(case: Case, phase: Phase) -> str:
    """Declarations of the rows that a phase touches, and of the flags for walls."""
    touched = {place.offset[1:] for access in phase.accesses for place in _places(case, access)}
    lines = [_row((0, y, z)) for y, z in sorted(touched)]
    walls = [n for n, face in enumerate(case.faces) if face != "periodic"]
    lines += [f"    const bool {_FLAG[n]} = {_FACE[n]};" for n in walls]
    if walls:
        lines.append(f"    const bool at_wall = {' || '.join(_FLAG[n] for n in walls)};")
    return "\n".join(lines)


def _places(case: Case, access: Access) -> Iterator[Place]:
    c = case.stencil.velocities[access.direction]
    yield from (access.read, access.write)
    if link(case, negate(c)):
        yield access.cut_read
    if link(case, c):
        yield access.cut_write


def _row(offset: Vector) -> str:
    y = {-1: "before(y, ny, ORIGIN_Y)", 0: "here(y, ORIGIN_Y)", 1: "after(y, 1, ny, ORIGIN_Y)"}[offset[1]]
    z = {-1: "before(z, nz, ORIGIN_Z)", 0: "here(z, ORIGIN_Z)", 1: "after(z, 1, nz, ORIGIN_Z)"}[offset[2]]
    return f"    const Index {row_name(offset)} = along_y({y}, n) + along_z({z}, n);"


def reads(case: Case, phase: Phase, buffer: str) -> str:
    """Loads of all populations, then what walls change in them."""
    plain = [f"    {_access('read', access.direction, access.read, buffer)});" for access in phase.accesses]
    return "\n".join(plain + _at_wall([line for access in phase.accesses for line in _cut_read(case, phase, access, buffer)]))


def _cut_read(case: Case, phase: Phase, access: Access, buffer: str) -> Iterator[str]:
    i = access.direction
    cut = link(case, negate(case.stencil.velocities[i]))
    if access.cut_read != access.read:
        if cut.row:
            yield f"if ({_any(cut.row)}) {_whole('read', i, access.cut_read, buffer)};"
        for flag in cut.x:
            yield f"if ({flag}) f[{i}][{_cell(flag)}] = widen({_one(flag, access.cut_read, buffer)});"
    if phase.wall_term == "read":
        yield from _gains(case, cut, i, i)


def writes(case: Case, phase: Phase, buffer: str) -> str:
    """What walls change in the populations, stores of all whose link is open, then those of the cut ones."""
    velocities, opposite = case.stencil.velocities, case.stencil.opposite
    before: list[str] = []
    if phase.wall_term == "write":
        for i, c in enumerate(velocities):
            before += _gains(case, link(case, c), i, opposite[i])
    plain = [f"    {_open_write(case, access, buffer)};" for access in phase.accesses]
    after = [line for access in phase.accesses for line in _cut_write(case, access, buffer)]
    return "\n".join(_at_wall(before) + plain + _at_wall(after))


def _open_write(case: Case, access: Access, buffer: str) -> str:
    i, dx = access.direction, access.write.offset[0]
    cut = link(case, case.stencil.velocities[i])
    if not cut or access.write == access.cut_write:
        return _access("write", i, access.write, buffer) + ")"
    row_open, end_open = _none(cut.row), _none(cut.x)
    if dx:
        return _access("write", i, access.write, buffer) + f", {row_open}, {end_open})"
    guard = f"if ({row_open}) " if cut.row else ""
    if not cut.x:
        return guard + _access("write", i, access.write, buffer) + ")"
    first, last = (_none(tuple(f for f in cut.x if f == flag)) for flag in _FLAG[:2])
    text = _access("write", i, access.write, buffer).replace("write_here", "write_here_open")
    return f"{guard}{text}, {first}, {last})"


def _cut_write(case: Case, access: Access, buffer: str) -> Iterator[str]:
    i = access.direction
    cut = link(case, case.stencil.velocities[i])
    if access.cut_write == access.write:
        return
    if cut.row:
        yield f"if ({_any(cut.row)}) {_whole('write', i, access.cut_write, buffer)};"
    for flag in cut.x:
        yield f"if ({flag}) {_one(flag, access.cut_write, buffer)} = narrow(f[{i}][{_cell(flag)}]);"


def _gains(case: Case, cut: Link, i: int, along: int) -> Iterator[str]:
    """Momentum of a moving wall, once for a link that crosses several moving faces."""
    text = physics.gain(case.lattice, along)
    if cut.row_moving:
        yield f"if ({_any(cut.row_moving)}) add(f[{i}], {text});"
    for flag in cut.x_moving:
        condition = " && ".join((flag, *(f"!{row}" for row in cut.row_moving)))
        yield f"if ({condition}) f[{i}][{_cell(flag)}] += {text};"


def gain_scalars(case: Case, phase: Phase) -> set[str]:
    """Launch arguments that the wall terms of a phase use."""
    velocities, towards = case.stencil.velocities, -1 if phase.wall_term == "read" else 1
    moving = {c for c in velocities for face, kind in case.crossed(_times(towards, c)) if kind == "moving"}
    return {f"wall_{name}" for axis, name in enumerate("xyz") if any(c[axis] for c in moving)}


def _times(factor: int, c: Vector) -> Vector:
    return (factor * c[0], factor * c[1], factor * c[2])


def _at_wall(lines: list[str]) -> list[str]:
    return ["    if (at_wall) {", *(f"        {line}" for line in lines), "    }"] if lines else []


def _access(verb: str, i: int, place: Place, buffer: str) -> str:
    return f"{verb}_{_MOVE[place.offset[0]]}(f[{i}], {_slot(place, buffer)}, {row_name(place.offset)}, lane"


def _whole(verb: str, i: int, place: Place, buffer: str) -> str:
    """All cells of a thread, without shuffles: only some rows of a warp may lie at the wall."""
    dx = place.offset[0]
    form, shift = ("each", f", {dx}") if dx else ("here", "")
    return f"{verb}_{form}(f[{i}], {_slot(place, buffer)}, {row_name(place.offset)}, lane{shift})"


def _one(flag: str, place: Place, buffer: str) -> str:
    """The place of the cell of a thread that lies at the x face."""
    dx = place.offset[0]
    number = str(dx) if flag == "x_low" else f"CELLS - {1 - dx}" if dx < 1 else "CELLS"
    return f"({_slot(place, buffer)})[{row_name(place.offset)} + element(lane, {number})]"


def _slot(place: Place, buffer: str) -> str:
    return f"{buffer} + component({place.slot}, n)"


def _cell(flag: str) -> str:
    return "0" if flag == "x_low" else "CELLS - 1"


def _any(flags: tuple[str, ...]) -> str:
    return " || ".join(flags)


def _none(flags: tuple[str, ...]) -> str:
    return " && ".join(f"!{flag}" for flag in flags) or "true"
