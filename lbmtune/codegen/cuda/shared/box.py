"""The CUDA program of one time step of a box: what the direct and the column family share."""

from collections.abc import Iterator

from lbmtune.catalogue.boundaries.arguments import in_order
from lbmtune.catalogue.boundaries.cell_flags import by_words, tables
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Phase, Place
from lbmtune.catalogue.storage_frame import StorageFrame
from lbmtune.codegen.cuda.shared import access, entry, physics
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.codegen.cuda.shared.storage import functions, hinted_format, max_elements, types
from lbmtune.codegen.passes import Pass, passes
from lbmtune.codegen.program import Launch, Program, period_of
from lbmtune.lattice import Vector, negate

REFRESH_THREADS = 128
"""Threads of a block that refreshes ghost cells, as in kernels/cuda/shared/ghost.cu and ring.cu."""
_AT_FACE = ("x == 0", "x == nx - 1", "y == 0", "y == ny - 1", "z == 0", "z == nz - 1")
_GHOST = "cell_index(ghost.x, ghost.y, ghost.z, n)"
_IMAGE = "cell_index(ghost.x, image(ghost.y, ny), image(ghost.z, nz), n)"

Crossing = tuple[Place, Vector]
"""A place in another row, and the velocity of the link to which it belongs."""


def program(case: Case, config: CudaConfig, entries: str, *, planes: bool) -> Program:
    """Return the program of the entries of all passes, with the refreshes of a ghost layer.

    planes: whether the entries take the planes that they update.
    """
    regions = {
        "constants": _constants(case, config),
        "storage": hinted_format(config),
        "layout": functions(case, config) + _block_order(case, config),
        "collide": physics.functions(case),
        "entry": entries,
    }
    source = entry.source("shared/box.cu", case, config, regions)
    crossed = [(one, _crossings(case, config, one.phase)) for one in passes(config, case.stencil)]
    refreshes = [_refresh(case, config, one, *when) for one, found in crossed for when in found.items()]
    if refreshes:
        rings = config.frame(case.stencil).blocks is not None
        source += fill("shared/ring.cu" if rings else "shared/ghost.cu", {"entry": "\n".join(refreshes)}) + "\n"
    period = period_of(config, case.stencil, lambda one: _launches(case, config, one, planes))
    return entry.program(case, config, source, period, max_elements(case, config))


def _constants(case: Case, config: CudaConfig) -> str:
    storage = config.frame(case.stencil)
    wraps = config.wrap == "arithmetic" and not storage.blocks
    block = ", ".join(f"BLOCK_{a} = {n}" for a, n in zip("XYZ", config.block, strict=True))
    return "\n".join(
        (
            types(case, config),
            f"constexpr int Q = {case.stencil.q};",
            f"constexpr int CELLS = {config.cells_per_thread};",
            f"constexpr int {block};",
            *_ghost_constants(storage),
            f"constexpr bool WRAPS = {entry.boolean(wraps)};",
            *(() if wraps or storage.blocks else (f"constexpr bool GHOST_Z = {entry.boolean(storage.ghost[2])};",)),
            f"constexpr Real unit = {config.stored.scale:.0f};",
        )
    )


def _ghost_constants(storage: StorageFrame) -> list[str]:
    """Return where rows lie in storage; of blocks with rings the kernel derives that from the block."""
    if storage.blocks:
        return [f"constexpr int RING_Z = {storage.origin[2]};  // ghost cells of a block along z"]
    assert not storage.origin[0], "rows start at their first cell"
    origin = ", ".join(f"ORIGIN_{a} = {n}" for a, n in zip("YZ", storage.origin[1:], strict=True))
    return [f"constexpr int {origin};"]


def _block_order(case: Case, config: CudaConfig) -> str:
    if config.block_order == "row":
        return ""
    flat = entry.boolean(case.stencil.dimensions == 2)
    return "\n" + fill("shared/z_curve.cu", {"axes": f"constexpr bool FLAT = {flat};"})


def entry_regions(case: Case, config: CudaConfig, one: Pass, *, planes: bool) -> dict[str, str]:
    """Return the regions that the entries of a pass have in all loops over cells."""
    source, target = buffers_of(one.phase)
    return {
        **entry.limits(config.family, planes),
        "signature": signature(case, config, one, planes=planes),
        "read": access.reads(case, one.phase, source),
        "write": access.writes(case, one.phase, target),
    }


def collide_call(case: Case) -> str:
    """Return the call that relaxes cell v of a thread."""
    return f"collide({', '.join(('f', 'v', *physics.collision_scalars(case.collision, case.lattice, case.forced)))});"


def shifted(config: CudaConfig, lines: list[str]) -> str:
    """Return lines that update cell v; if memory holds no deviations, its populations are such between them."""
    return "\n".join(lines if config.stored.shifted else ["        shift(f, v);", *lines, "        unshift(f, v);"])


def buffers_of(phase: Phase) -> tuple[str, str]:
    """Return the names of the parameters that a pass reads from and writes to."""
    return ("populations", "populations") if phase.in_place else ("source", "target")


def signature(case: Case, config: CudaConfig, one: Pass, name: str = "", *more: str, planes: bool) -> str:
    """Return the head of the entry of a pass, with where the directions start if threads share that.

    more: declarations of parameters before the extents.
    """
    words = entry.parameters(tables(case, config, one.phase), (), ())
    numbers = entry.parameters((), entry.extents(planes), scalars(case, one.phase))
    head = pass_head(config, one, name, *words, *more, *numbers)
    return head if config.addresses == "computed" else "\n".join((head, fill("shared/shared_starts.cu", {})))


def pass_head(config: CudaConfig, one: Pass, name: str, *taken: str) -> str:
    """Return the head of the entry of a pass (or of another name), which takes buffers and pointers to slots first."""
    places = (
        "Stored* populations"
        if one.phase.in_place
        else "const Stored* __restrict__ source, Stored* __restrict__ target"
    )
    if pointers := access.pointer_parameters(one.phase):
        return entry.head(config, name or one.entry, ",\n    ".join((places, *pointers, ", ".join(taken))))
    return entry.head(config, name or one.entry, places, *taken)


def scalars(case: Case, phase: Phase) -> tuple[str, ...]:
    """Return the launch arguments of a pass over a box of the compute precision."""
    return pass_scalars(case, phase, access.gain_scalars(case, phase))


def pass_scalars(case: Case, phase: Phase, gains: set[str]) -> tuple[str, ...]:
    """Return the launch arguments of a pass of the compute precision. gains: those of moving walls."""
    return in_order(gains | (physics.cell_scalars(case) if phase.collides else set()), physics.SCALARS)


def _crossings(case: Case, config: CudaConfig, phase: Phase) -> dict[str, tuple[Crossing, ...]]:
    """Return what is refreshed before a pass reads and after it writes: places, with the links of what arrives there.

    Ghost cells lie in other rows; those of blocks also lie at the ends of a row, and are only read. With words of cells
    no link leads to ghost rows: such kernels need faces that are not periodic.
    """
    layered = config.wrap == "ghost" and not by_words(case, config)
    if not layered and not phase.blockwise:
        return {}
    velocities, first = case.stencil.velocities, 0 if phase.blockwise else 1
    read = tuple((a.read, negate(velocities[a.direction])) for a in phase.accesses if any(a.read.offset[first:]))
    written = tuple((a.write, velocities[a.direction]) for a in phase.accesses if any(a.write.offset[1:]))
    found = {"read": read, "write": () if phase.blockwise else written}
    return {when: crossings for when, crossings in found.items() if crossings}


def _refresh(case: Case, config: CudaConfig, one: Pass, when: str, crossings: tuple[Crossing, ...]) -> str:
    file, threads = ("shared/ring.cu", "RING") if one.phase.blockwise else ("shared/ghost.cu", "SHELL")
    places = ",\n    ".join(("Stored* populations", *access.pointer_parameters(one.phase)))
    taken, bound = entry.parameters((), entry.EXTENTS, ()), f"__launch_bounds__({threads}_THREADS) "
    origin, target = (_IMAGE, _GHOST) if when == "read" else (_GHOST, _IMAGE)
    regions = {
        "signature": entry.head(config, one.refresh(when), places, *taken, bound=bound),
        "places": f"    const Index from = {origin};\n    const Index to = {target};",
        "load": "\n".join(_load(case, *crossing) for crossing in crossings),
        "store": "\n".join(f"    if (used_{p.slot}) {_element(p, 'to')} = value_{p.slot};" for p, _ in crossings),
    }
    return fill(file, regions, inside="entry")


def _load(case: Case, place: Place, velocity: Vector) -> str:
    cut = " || ".join(_AT_FACE[face] for face, _ in case.crossed(velocity)) or "false"
    (x, y, z), name = place.offset, place.slot
    return (
        f"    const bool used_{name} = used({x}, {y}, {z}, [&](int x, int y, int z) {{ return {cut}; }});\n"
        f"    const Stored value_{name} = used_{name} ? {_element(place, 'from')} : Stored(0);"
    )


def _element(place: Place, at: str) -> str:
    if place.pointer:
        return f"{access.slot(place, '')}[{at}]"
    return f"populations[component({place.slot}, n) + {at}]"


def _launches(case: Case, config: CudaConfig, one: Pass, planes: bool) -> Iterator[Launch]:
    extents = entry.extents(planes)
    arguments = (*one.places, *tables(case, config, one.phase), *extents, *scalars(case, one.phase))
    refreshed = {when: _refresh_launch(config, one, when) for when in _crossings(case, config, one.phase)}
    if "read" in refreshed:
        yield refreshed["read"]
    yield Launch(
        one.entry,
        arguments,
        block=config.block,
        covers=config.block_cells(case.stencil),
        shared_bytes=config.shared_bytes(case),
    )
    if "write" in refreshed:
        yield refreshed["write"]


def _refresh_launch(config: CudaConfig, one: Pass, when: str) -> Launch:
    slots, threads = one.places[len(one.buffers) :], (REFRESH_THREADS, 1, 1)
    arguments = (one.buffers[0 if when == "read" else -1], *slots, *entry.EXTENTS)
    if one.phase.blockwise:
        return Launch(one.refresh(when), arguments, block=threads, covers=config.block)
    return Launch(one.refresh(when), arguments, block=threads, covers=threads, over="shell")
