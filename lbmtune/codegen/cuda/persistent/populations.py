"""Parts of persistent kernels that keep populations on chip, as C text."""

from collections.abc import Iterator

from lbmtune.catalogue.boundaries.cell_flags import moving_links
from lbmtune.catalogue.families.cuda.persistent import Persistent
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import access, box, physics
from lbmtune.lattice import negate

FILE, BUFFERS = "persistent/populations.cu", dict[str, str]()
"""The skeleton, and the parameters of further buffers."""
_AT_FACE = {
    "x_low": "seat.x == 0",
    "x_high": "seat.x == BLOCK_X - 1",
    "y_low": "seat.first && blockIdx.y == 0",
    "y_high": "seat.last && blockIdx.y == gridDim.y - 1",
    "z_low": "k == 0 && blockIdx.z == 0",
    "z_high": "k == COLUMN - 1 && blockIdx.z == gridDim.z - 1",
}


def entry_regions(case: Case, config: Persistent) -> dict[str, str]:
    """Return the regions of the entry."""
    taken = ", ".join(("f[k]", "0", *physics.collision_scalars(case.collision, case.lattice, case.forced)))
    moves = [(i, ", ".join(map(str, c))) for i, c in enumerate(case.stencil.velocities)]
    return {
        "take": "\n".join(f"        take<{c}>(f, {i}, seat);" for i, c in moves),
        "receive": _through_faces(case, "receive", "received"),
        "walls": "\n".join(_walls(case, config)),
        "call": f"            collide({taken});",
        "send": _through_faces(case, "send", "sent"),
    }


def regions(case: Case, _config: Persistent) -> dict[str, str]:
    """Return the regions of the functions that the entry calls."""
    return {"collide": physics.functions(case)}


def scalars(case: Case, config: Persistent) -> tuple[str, ...]:
    """Return the launch arguments of collision and walls."""
    return box.scalars(case, config.propagation.phase(case.stencil, 0))


def constants(case: Case, config: Persistent) -> tuple[str, ...]:
    """Return the constants of tiles of populations."""
    x, y, _ = config.block
    return (
        f"constexpr int Q = {case.stencil.q};",
        "constexpr int CELLS = 1;",
        f"constexpr int BLOCK_X = {x}, BLOCK_Y = {y};",
        f"constexpr int COLUMN = {config.tile_planes};",
        f"constexpr Real unit = {config.stored.scale:.0f};",
    )


def _through_faces(case: Case, verb: str, buffer: str) -> str:
    leaving = ((i, c) for i, c in enumerate(case.stencil.velocities) if any(c[1:]))
    return "\n".join(f"        {verb}<{', '.join(map(str, c))}>(f, {i}, {buffer}, seat, n);" for i, c in leaving)


def _walls(case: Case, config: Persistent) -> list[str]:
    lines = [f"            {line}" for line in (_flagged(case) if config.flags == "memory" else _at_faces(case))]
    return ["#pragma unroll", "        for (int k = 0; k < COLUMN; ++k) {", *lines, "        }"] if lines else []


def _flagged(case: Case) -> Iterator[str]:
    """Yield what flags in memory cut. A solid cell reflects everything; its values are not used."""
    yield "const Word cut = word_of(words, k, seat, ny);"
    yield "if (!cut) continue;"
    for i in range(1, case.stencil.q):
        yield f"if (cut >> {i} & 1u) back(f, {i}, {case.stencil.opposite[i]}, k, seat);"
    if case.moving:
        yield "const Word moving = word_of(moving_words, k, seat, ny);"
    for i in moving_links(case):
        yield f"if (moving >> {i} & 1u) f[k][{i}][0] += {physics.gain(case.lattice, i)};"


def _at_faces(case: Case) -> Iterator[str]:
    """Yield what faces cut, in place of values that were read as if links were open."""
    links = [(i, access.link(case, negate(c))) for i, c in enumerate(case.stencil.velocities)]
    for name, kind in zip(_AT_FACE, case.faces if case.walled else (), strict=False):
        if kind != "periodic":
            yield f"const bool {name} = {_AT_FACE[name]};"
    for i, cut in links:
        if cut:
            yield f"if ({' || '.join(cut.x + cut.row)}) back(f, {i}, {case.stencil.opposite[i]}, k, seat);"
    for i, cut in links:
        if moving := cut.x_moving + cut.row_moving:
            yield f"if ({' || '.join(moving)}) f[k][{i}][0] += {physics.gain(case.lattice, i)};"
