"""The CUDA program of a persistent kernel that keeps populations on chip."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lbmtune.catalogue.boundaries.cell_flags import moving_links
from lbmtune.catalogue.families.cuda.persistent import Persistent, shared_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import access, entry, layout, physics
from lbmtune.codegen.cuda.shared.assemble import fill, variants
from lbmtune.codegen.cuda.shared.storage import stored_format
from lbmtune.codegen.program import BARRIER, STEPS, Launch, Program
from lbmtune.lattice import Vector, negate

_FILE, _SYNC = "persistent/populations.cu", "persistent/grid_barrier.cu"


def render(case: Case, config: Persistent) -> Program:
    """Return the program of a legal configuration: one launch for any number of time steps."""
    launch = Launch(
        "step_0",
        ("f0", "f1", BARRIER, *entry.first_tables(case, config), STEPS, *entry.EXTENTS, *_scalars(case)),
        block=config.block,
        covers=config.block_cells(case.stencil),
        shared_bytes=shared_bytes(case.stencil, config),
        mode="cooperative",
    )
    source, longest = _source(case, config), layout.max_elements(case, config)
    return entry.program(case, config, source, ((launch,),), longest)


def _source(case: Case, config: Persistent) -> str:
    taken = ", ".join(("f[k]", "0", *physics.collision_scalars(case.collision, case.lattice, case.forced)))
    inner = {
        "signature": _signature(case, config),
        "take": "\n".join(f"        take<{_moves(c)}>(f, {i}, seat);" for i, c in enumerate(case.stencil.velocities)),
        "receive": _through_faces(case, "receive", "received"),
        "walls": "\n".join(_flagged(case) if config.flags == "memory" else _walls(case)),
        "call": f"            collide({taken});",
        "send": _through_faces(case, "send", "sent"),
        **variants(_SYNC, {}, inside=config.grid_sync),
    }
    regions = {
        "title": entry.title(case, config),
        "constants": _constants(case, config),
        "storage": stored_format(config, 1),
        "layout": layout.functions(case, config),
        "collide": physics.functions(case),
        "barrier": fill(_SYNC, {"all": "", "neighbours": ""}),
        "entry": fill(_FILE, inner, inside="entry"),
    }
    return fill(_FILE, regions) + "\n"


def _constants(case: Case, config: Persistent) -> str:
    x, y, _ = config.block
    return "\n".join(
        (
            f"typedef {entry.real(config.compute)} Real;",
            f"typedef {layout.index_type(case, config)} Index;",
            f"constexpr int Q = {case.stencil.q};",
            "constexpr int CELLS = 1;",
            f"constexpr int BLOCK_X = {x}, BLOCK_Y = {y};",
            f"constexpr int COLUMN = {config.tile_planes};",
            f"constexpr Real unit = {config.stored.scale:.0f};",
        )
    )


def _moves(c: Vector) -> str:
    return ", ".join(map(str, c))


def _through_faces(case: Case, verb: str, buffer: str) -> str:
    """Return the lines for the directions that leave a tile."""
    leaving = ((i, c) for i, c in enumerate(case.stencil.velocities) if c[1] or c[2])
    return "\n".join(f"        {verb}<{_moves(c)}>(f, {i}, {buffer}, seat, n);" for i, c in leaving)


def _flagged(case: Case) -> Iterator[str]:
    """Yield half-way bounce-back by flags in memory. A solid cell reflects everything; its values are not used."""
    yield "#pragma unroll"
    yield "        for (int k = 0; k < COLUMN; ++k) {"
    yield "            const Word cut = word_of(words, k, seat, ny);"
    yield "            if (!cut) continue;"
    for i in range(1, case.stencil.q):
        yield f"            if (cut >> {i} & 1u) back(f, {i}, {case.stencil.opposite[i]}, k, seat);"
    if case.moving:
        yield "            const Word moving = word_of(moving_words, k, seat, ny);"
    for i in moving_links(case):
        yield f"            if (moving >> {i} & 1u) f[k][{i}][0] += {physics.gain(case.lattice, i)};"
    yield "        }"


def _walls(case: Case) -> Iterator[str]:
    """Yield half-way bounce-back at faces, in place of values that were read as if links were open."""
    if not case.walled:
        return
    velocities, opposite = case.stencil.velocities, case.stencil.opposite
    cut = [(i, access.link(case, negate(c))) for i, c in enumerate(velocities) if access.link(case, negate(c))]
    yield "#pragma unroll"
    yield "        for (int k = 0; k < COLUMN; ++k) {"
    yield from (f"            const bool {name} = {_AT_FACE[name]};" for name in _faces(case))
    yield from _where(cut, lambda link: link.x + link.row, lambda i: f"back(f, {i}, {opposite[i]}, k, seat);")
    yield from _where(
        cut,
        lambda link: link.x_moving + link.row_moving,
        lambda i: f"f[k][{i}][0] += {physics.gain(case.lattice, i)};",
    )
    yield "        }"


def _where(
    cut: list[tuple[int, access.Link]], faces: Callable[[access.Link], tuple[str, ...]], does: Callable[[int], str]
) -> Iterator[str]:
    """Yield the statement of each direction whose link crosses one of some faces."""
    for i, link in cut:
        if faces(link):
            yield f"            if ({' || '.join(faces(link))}) {does(i)}"


_AT_FACE = {
    "x_low": "seat.x == 0",
    "x_high": "seat.x == BLOCK_X - 1",
    "y_low": "seat.first && blockIdx.y == 0",
    "y_high": "seat.last && blockIdx.y == gridDim.y - 1",
    "z_low": "k == 0 && blockIdx.z == 0",
    "z_high": "k == COLUMN - 1 && blockIdx.z == gridDim.z - 1",
}


def _faces(case: Case) -> list[str]:
    return [name for name, kind in zip(_AT_FACE, case.faces, strict=True) if kind != "periodic"]


def _scalars(case: Case) -> tuple[str, ...]:
    used = {*physics.cell_scalars(case)}
    if case.moving:
        moving = [c for c in case.stencil.velocities if any(kind == "moving" for _, kind in case.crossed(negate(c)))]
        used |= {f"wall_{name}" for axis, name in enumerate("xyz") if any(c[axis] for c in moving)}
    return tuple(name for name in physics.SCALARS if name in used)


def _signature(case: Case, config: Persistent) -> str:
    buffers = f"Stored* source, Stored* target, unsigned* {BARRIER}"
    words, integers = entry.first_tables(case, config), (STEPS, *entry.EXTENTS)
    taken = ", ".join((buffers, *entry.parameters(words, integers, _scalars(case))))
    return entry.head(entry.bounds(config), "step_0", taken)
