"""Loads and stores of a kernel of a box that gets cut links, of faces and solid cells alike, from words of cells.

Words are loaded, or computed from the coordinates of a cell if faces have patches.
"""

from collections.abc import Callable, Iterable, Iterator

from lbmtune.catalogue.boundaries.cell_flags import MOVING_WORDS, WORDS, moving_links, reads_flags
from lbmtune.catalogue.boundaries.completion import FACE_NAMES
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import layout, patched, walls
from lbmtune.catalogue.problem.faces import Patch
from lbmtune.catalogue.problem.patches import Disc, Rectangle, shape_of
from lbmtune.catalogue.schemes.scheme import Access, Phase, Place
from lbmtune.codegen.cuda.shared import entry, physics
from lbmtune.codegen.cuda.shared.access import MOVE, row_line, row_name, slot
from lbmtune.codegen.cuda.shared.access import rows as access_rows
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.codegen.cuda.shared.expressions import function, word
from lbmtune.lattice import negate

_FUNCTIONS = {WORDS: "words_here", MOVING_WORDS: "moving_here"}
"""Device functions that compute the words of a table."""
_ENDS = ("x + v == 0", "x + v + 1 == nx", "y == 0", "y + 1 == ny", "z == 0", "z + 1 == nz")
_ALONG = {0: "yz", 1: "xz", 2: "xy"}
_HERE = {"x": "x + v", "y": "y", "z": "z"}
_AT = {-1: "before", 0: "at", 1: "after"}
_PREDICATED = "predicated"
TYPES = "flags.cut"
"""Words of the fluid cells of a thread; above the bits of the links they say what a cell does at a patch."""
UNLESS_SOLID = "if (flags.of[v] & 1u) reverse(f, v); else "
"""Text before the call of the collision if a vector may hold both fluid and solid cells."""


def rows(case: Case, config: CudaConfig, phase: Phase) -> str:
    """Return the declarations of the rows that a phase accesses and of the flags; threads of solid cells return."""
    touched = sorted({place.offset[1:] for place in phase.places()})
    lines = [row_line((0, y, z)) for y, z in touched]
    if reads_flags(case, phase):
        lines.append(f"    const Flags flags = make_flags({_word(config, WORDS)}, lane);")
    if case.geometry:
        lines.append("    if (nothing_to_do(flags, lane)) return;")
    return "\n".join(lines)


def rows_of_fluid(case: Case, config: CudaConfig, phase: Phase) -> str:
    """Return the same declarations if solid cells are skipped (implicit bounce-back)."""
    words = f"    const Words flags = {_word(config, WORDS)};"
    return "\n".join([access_rows(case, phase), words, "    if (skipped(flags, lane)) return;"])


def reads(case: Case, config: CudaConfig, phase: Phase, buffer: str) -> str:
    """Return the loads of all populations, then those of cut links, and the momentum of moving walls."""
    gains = list(_gains(case, phase, "read"))
    if config.boundary == _PREDICATED:
        places = {a.direction: _either(a.direction, a.read, a.cut_read, buffer) for a in phase.accesses}
        return "\n".join(
            [*(f"    f[{i}][0] = widen(*{at});" for i, at in places.items()), *_unconditional(config, gains)]
        )
    plain = [
        f"    read_{MOVE[a.read.offset[0]]}({_target(a)}, {_place(a.read, buffer)}, lane);" for a in phase.accesses
    ]
    again = [
        f"read_cut({_target(a)}, flags.cut, {a.direction}, {_place(a.cut_read, buffer)}, lane, {a.cut_read.offset[0]});"
        for a in phase.accesses
        if a.cut_read != a.read
    ]
    return "\n".join([*plain, *_where_cut(config, again, gains)])


def writes(case: Case, config: CudaConfig, phase: Phase, buffer: str) -> str:
    """Return the momentum of moving walls, the stores over open links, and the stores of cut links."""
    opposite, gains = case.stencil.opposite, list(_gains(case, phase, "write"))
    if config.boundary == _PREDICATED:
        places = {a.direction: _either(opposite[a.direction], a.write, a.cut_write, buffer) for a in phase.accesses}
        return "\n".join(
            [*_unconditional(config, gains), *(f"    *{at} = narrow(f[{i}][0]);" for i, at in places.items())]
        )
    plain = [_open_write(a, opposite[a.direction], buffer) for a in phase.accesses]
    own = [
        f"write_cut({_target(a)}, flags.cut, {opposite[a.direction]}, {_place(a.cut_write, buffer)}, lane, "
        f"{a.cut_write.offset[0]});"
        for a in phase.accesses
        if a.cut_write != a.write
    ]
    return "\n".join([*_where_cut(config, [], gains), *plain, *_where_cut(config, own, [])])


def _open_write(access: Access, bit: int, buffer: str) -> str:
    """Return a store of open links; of all links, if cut ones have the same place."""
    verb, end = f"write_{MOVE[access.write.offset[0]]}", "lane"
    if access.write != access.cut_write:
        verb, end = f"{verb}_open", f"lane, flags, {bit}"
    return f"    {verb}({_target(access)}, {_place(access.write, buffer)}, {end});"


def _either(bit: int, opened: Place, cut: Place, buffer: str) -> str:
    if opened == cut:
        return f"({_pointer(opened, buffer)})"
    return f"either(flags, {bit}, {_pointer(opened, buffer)}, {_pointer(cut, buffer)})"


def _gains(case: Case, phase: Phase, when: str) -> Iterator[str]:
    """Yield the momentum of moving walls, by the link by which reflected populations arrive."""
    links = moving_links(case) if phase.wall_term == when else ()
    for wall in walls(case):
        for i in links:
            carried = i if when == "read" else case.stencil.opposite[i]
            moving = physics.of_wall(case, wall, "moving", TYPES, everywhere=False)
            yield f"add_cut(f[{carried}], {moving}, {i}, {physics.gain(case.lattice, i, wall)});"


def _unconditional(config: CudaConfig, gains: list[str]) -> list[str]:
    moving = f"    const Words moving = {_word(config, MOVING_WORDS)};"
    return [moving, *(f"    {gain}" for gain in gains)] if gains else []


def _where_cut(config: CudaConfig, actions: list[str], gains: list[str]) -> list[str]:
    """Return one branch that threads with open links only skip."""
    moving = [f"const Words moving = {_word(config, MOVING_WORDS)};"] if gains else []
    lines = [f"        {line}" for line in (*actions, *moving, *gains)]
    return ["    if (flags.any) {", *lines, "    }"] if lines else []


def _word(config: CudaConfig, table: str) -> str:
    if config.flags == "memory":
        return f"read_words({entry.WORD_PARAMETERS[table]}, x, y, z, nx, ny)"
    return f"{_FUNCTIONS[table]}(x, y, z, nx, ny, nz)"


def _target(access: Access) -> str:
    return f"f[{access.direction}]"


def _place(place: Place, buffer: str) -> str:
    return f"{slot(place, buffer)}, {row_name(place.offset)}"


def _pointer(place: Place, buffer: str) -> str:
    return f"{slot(place, buffer)} + ({row_name(place.offset)} + lane.{_AT[place.offset[0]]})"


def computed(case: Case) -> str:
    """Return the device functions of the words, and those that they call."""
    owners = "\n".join(_owner(case, face) for face in range(6) if patched(case, face))
    return fill("direct/patches.cu", {"owners": owners, "here": _body(case, _words), "moving": _body(case, _moving)})


def _faces(case: Case) -> list[int]:
    return [face for face, kind in enumerate(case.faces) if kind != "periodic"]


def _owner(case: Case, face: int) -> str:
    """Return the function of the number of the patch of a cell at a face, 0 for none."""
    axes = _ALONG[face // 2]
    takes = ", ".join(f"const int {prefix}{axis}" for prefix in ("", "n") for axis in axes)
    own = ((number, patch) for number, patch in enumerate(case.patches, 1) if patch.side == face)
    lines = (f"if ({_inside(patch, axes)}) patch = {number};" for number, patch in own)
    return function(f"patch_{FACE_NAMES[face]}({takes})", ["int patch = 0;", *lines, "return patch;"], returns="int")


def _inside(patch: Patch, axes: str) -> str:
    """Return the C condition that a cell of the face lies in a shape."""
    shape = shape_of(patch.where)
    if isinstance(shape, Rectangle):
        return " && ".join(f"between({a}, n{a}, {low!r}, {high!r})" for a in axes for low, high in [shape.bounds(a)])
    assert isinstance(shape, Disc)
    places = ", ".join(f"{a}, n{a}, {getattr(shape, a)!r}" for a in axes)
    return f"in_disc({places}, {shape.radius!r})"


def _body(case: Case, lines: Callable[[Case], Iterable[str]]) -> str:
    """Return the lines of a word, after the patch of the cell at each face: 0 for none, -1 away from the face."""
    patches = (f"const int {_at(face)} = {_ENDS[face]} ? {_number(case, face)} : -1;" for face in _faces(case))
    return "\n".join(f"        {line}" for line in (*patches, *lines(case)))


def _at(face: int) -> str:
    return f"at_{FACE_NAMES[face]}"


def _number(case: Case, face: int) -> str:
    if not patched(case, face):
        return "0"
    axes = _ALONG[face // 2]
    return f"patch_{FACE_NAMES[face]}({', '.join((*(_HERE[a] for a in axes), *(f'n{a}' for a in axes)))})"


def _crossing(case: Case, face: int) -> str:
    """Return the bits of the links by which populations arrive through a face."""
    return word(i for i, c in enumerate(case.stencil.velocities) if face in dict(case.crossed(negate(c))))


def _words(case: Case) -> Iterator[str]:
    """Yield the lines of the links that faces cut, and above them conditions and the wall of the cell."""
    yield from (f"if ({_at(face)} >= 0) word |= {_crossing(case, face)};" for face in _faces(case))
    fields = layout(case, everywhere=False)
    for c, field in fields.conditions:
        yield f"if ({_at(c.face)} == {c.patch}) word |= {field.number}u << {field.shift};"
    if fields.walls:
        yield "Word wall = 0;  // the last one that the cell lies at"
        for patch, field in fields.walls:
            yield from (f"if ({_at(face)} == {patch}) wall = 1u << {field.shift};" for face in _of_wall(case, patch))
        yield "word |= wall;"


def _moving(case: Case) -> Iterator[str]:
    for patch in walls(case):
        yield from (f"if ({_at(f)} == {patch}) word |= {_crossing(case, f)};" for f in _of_wall(case, patch))


def _of_wall(case: Case, patch: int) -> list[int]:
    """Return the faces of which a moving wall is a part. patch: its number, 0 for whole faces."""
    if patch:
        return [face for face in _faces(case) if case.patches[patch - 1].side == face]
    return [face for face in _faces(case) if case.faces[face] == "moving"]
