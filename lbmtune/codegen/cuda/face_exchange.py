"""The CUDA program of face exchange: tiles of moments that store at their faces what crosses them.

See kernels/cuda/face_exchange/tile.cu.
"""

from collections.abc import Iterator
from typing import NamedTuple

from lbmtune.catalogue.families.cuda.face_exchange import FaceExchange, array_elements, crossing, list_starts, through
from lbmtune.catalogue.moments.basis import upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import access, entry, moments
from lbmtune.codegen.cuda.shared.assemble import fill, variants
from lbmtune.codegen.cuda.shared.storage import async_copies, functions, integer, max_elements, stored_format, types
from lbmtune.codegen.moment_stages import Sums
from lbmtune.codegen.passes import FACE_ARRAYS
from lbmtune.codegen.program import Launch, Program
from lbmtune.lattice import Lattice, Vector, negate

_FILE = "face_exchange/tile.cu"
_AT_WALL = {
    f"{a}_{side}": f"cell.along_{a}.{end} && !cell.along_{a}.{side}"
    for a in "xyz"
    for side, end in (("low", "first"), ("high", "last"))
}


_LOAD = "{0.value} = widen(({0.place})[{0.link}]);"
_COPY = "copy_later<sizeof(Real)>({0.waits}, {0.place} + {0.link});"
_LOAD_OF_COPY = "{0.value} = *({0.waits});"
_STORE = "({0.place})[{0.link}] = narrow({0.leaves});"
"""A store of what leaves through a face, in the place of what entered (`_Arrival`)."""


class _Arrival(NamedTuple):
    """A link that enters through a face: the axis of the list of its link, its velocity, and the array of its end."""

    axis: int
    c: Vector
    array: str
    start: int
    value: str
    leaves: str

    @property
    def link(self) -> str:
        return f"link<{self.axis}, {_moves(self.c)}>(cell)"

    @property
    def waits(self) -> str:
        side = ("rising", "falling").index(self.array)
        return f"waiting({side}) + {self.start} + spot<{self.axis}>(cell)"

    @property
    def place(self) -> str:
        return f"{self.array} + {self.start}" if self.start else self.array


def render(case: Case, config: FaceExchange) -> Program:
    """Return the program of a legal configuration: a step of either parity, and a prologue that fills the faces."""
    period = tuple((_launch("step_0", case, config, arrays),) for arrays in (FACE_ARRAYS, FACE_ARRAYS[::-1]))
    prologue = tuple((_launch("fill_faces", case, config, arrays),) for arrays in (FACE_ARRAYS[::-1], FACE_ARRAYS))
    source, longest = _source(case, config), _max_elements(case, config)
    return entry.program(case, config, source, period, longest, prologue=prologue)


def _launch(name: str, case: Case, config: FaceExchange, arrays: tuple[str, ...]) -> Launch:
    steps = name == "step_0"
    words = entry.first_tables(case, config) if steps else ()
    return Launch(
        name,
        ("f0", *arrays, *words, *entry.EXTENTS, *(moments.all_scalars if steps else moments.case_scalars)(case)),
        block=config.tile,
        covers=config.tile,
        shared_bytes=config.shared_bytes(case) if steps else 0,
    )


def _source(case: Case, config: FaceExchange) -> str:
    shared = config.prefetch_to == "shared"
    tables = entry.first_tables(case, config)
    moving = [(i, c, _value(case.stencil, i)) for i, c in enumerate(case.stencil.velocities) if i]
    inner = {
        "opening": _signature("fill_faces", "const Stored* moments", (), moments.case_scalars(case), config),
        "signature": _signature("step_0", "Stored* moments", tables, moments.all_scalars(case), config),
        "relax": f"    relax({', '.join(('m', *moments.case_scalars(case)))});",
        "send": "\n".join(f"        moving({i - 1})[here] = {value};" for i, _, value in moving),
        "arrive": _at_faces(case.stencil, config, _LOAD_OF_COPY if shared else _LOAD),
        "walls": "\n".join(_walls(case, config)),
        "take": "\n".join(f"    {value} = moving({i - 1})[here + BEHIND<{_moves(c)}>];" for i, c, value in moving),
    }
    if shared:
        inner |= variants(_FILE, {"copy": _at_faces(case.stencil, config, _COPY)}, inside="prefetch")
    regions = {
        "constants": _constants(case, config),
        "storage": stored_format(config, 1),
        "layout": functions(case, config),
        "copies": async_copies() if shared else "",
        "stage": moments.functions_at_once(case.stencil, case.forced, case.relaxes),
        "leave": _at_faces(case.stencil, config, _STORE),
        "entry": fill(_FILE, inner, inside="entry"),
        "prefetch": "",
    }
    return entry.source(_FILE, case, config, regions)


def _constants(case: Case, config: FaceExchange) -> str:
    walled = [entry.boolean(kind != "periodic") for kind in case.faces]
    block = ", ".join(f"BLOCK_{a} = {n}" for a, n in zip("XYZ", config.tile, strict=True))
    return "\n".join(
        (
            types(case, config),
            f"constexpr int Q = {case.stencil.q};",
            "constexpr int CELLS = 1;",
            f"constexpr int {block};",
            f"typedef {_place(case, config)} Place;",
            f"constexpr int CROSSING = {crossing(case.stencil, config)};",
            f"constexpr int {_lists(case.stencil, config)};",
            *(
                f"constexpr bool WALL_LOW_{a} = {walled[2 * n]}, WALL_HIGH_{a} = {walled[2 * n + 1]};"
                for n, a in enumerate("XYZ")
            ),
            f"constexpr Real unit = {config.unit:.0f};",
            moments.constants(case.stencil),
        )
    )


def _lists(lattice: Lattice, config: FaceExchange) -> str:
    """Return where the lists of a tile across y and z begin."""
    starts = list_starts(lattice, config)
    first = {axis: min((s for (a, _), s in starts.items() if a == axis), default=0) for axis in (1, 2)}
    first[2] = first[2] or crossing(lattice, config)
    return f"LISTS_Y = {first[1]}, LISTS_Z = {first[2]}"


def _place(case: Case, config: FaceExchange) -> str:
    """Return the type that counts the elements of an array of faces."""
    return integer(int(array_elements(case.stencil, config, case.domain)) < 2**32)


def _max_elements(case: Case, config: FaceExchange) -> int | None:
    """Return the longest buffer that the text for a case may be used with; None: no limit.

    Each array of faces is at most half of it.
    """
    limits = (max_elements(case, config), 2**33 if _place(case, config) == integer(True) else None)
    return min((limit for limit in limits if limit), default=None)


def _moves(c: Vector) -> str:
    return ", ".join(map(str, c))


def _value(lattice: Lattice, i: int) -> str:
    """Return the place of a thread's value that moves along a direction, divided by its weight."""
    turned = upright(lattice)
    return moments.moving(Sums(turned), turned.velocities[i])


def _arrivals(lattice: Lattice, config: FaceExchange, axis: int, side: int) -> Iterator[_Arrival]:
    """Yield what enters through the lower (0) or upper (1) face; what moves down is stored with the upward link."""
    starts, array = list_starts(lattice, config), ("rising", "falling")[side]
    for i in through(lattice, axis):
        there, back = (lattice.opposite[i], i) if side else (i, lattice.opposite[i])
        ends = _value(lattice, there), _value(lattice, back)
        yield _Arrival(axis, lattice.velocities[there], array, starts[axis, i], *ends)


def _at_faces(lattice: Lattice, config: FaceExchange, line: str) -> str:
    """Return lines for each face of a tile. line: format of that of what arrives."""
    lines = []
    for axis in range(lattice.dimensions):
        for side, name in enumerate(("low", "high")):
            inner = (f"    {line.format(one)}" for one in _arrivals(lattice, config, axis, side))
            lines += [f"if (cell.along_{'xyz'[axis]}.{name}) {{", *inner, "}"]
    return "\n".join(f"    {one}" for one in lines)


def _walls(case: Case, config: FaceExchange) -> Iterator[str]:
    """Yield half-way bounce-back: what the cell itself sent, plus the momentum of a moving wall.

    Cut links are known by the faces of the box, or by a word of the cell; all links of solid cells are cut, and their
    values are not used. Moving walls are known by their faces.
    """
    stencil, read = case.stencil, config.flags == "memory"
    links = [(i, access.link(case, negate(c))) for i, c in enumerate(stencil.velocities) if any(c)]
    faces = [
        ((), link.x_moving + link.row_moving) if read else (link.x + link.row, link.x_moving + link.row_moving)
        for _, link in links
    ]
    used = {name for pair in faces for names in pair for name in names}
    yield from (f"    const bool {name} = {at};" for name, at in _AT_WALL.items() if name in used)
    if read:
        yield "    const Word cut = words[(static_cast<Offset>(z) * ny + y) * nx + x];"
    for (i, _), (walls, moving) in zip(links, faces, strict=True):
        back = f"moving({stencil.opposite[i] - 1})[here]"
        if moving:
            back += f" + ({' || '.join(moving)} ? {moments.gained(case, i)} : Real(0))"
        if met := f"cut >> {i} & 1u" if read else " || ".join(walls):
            yield f"    if ({met}) {_value(stencil, i)} = {back};"


def _signature(name: str, state: str, words: tuple[str, ...], scalars: tuple[str, ...], config: FaceExchange) -> str:
    buffers = (state, "Stored* rising", "Stored* falling")
    return entry.head(config, name, *buffers, *entry.parameters(words, entry.EXTENTS, scalars))
