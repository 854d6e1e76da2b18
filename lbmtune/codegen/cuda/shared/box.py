"""The CUDA program of one time step of a box: what the direct and the column family share."""

from __future__ import annotations

from lbmtune.catalogue.boundaries.cell_flags import tables
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.catalogue.storage_frame import StorageFrame
from lbmtune.codegen.cuda.shared import access, entry, ghost, layout, physics
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.codegen.cuda.shared.storage import hinted_format
from lbmtune.codegen.passes import Pass, passes, passes_of
from lbmtune.codegen.program import Launch, Program

SHELL_THREADS = 128
"""Threads of a block that refreshes ghost rows, as in kernels/cuda/shared/ghost.cu."""
RING_THREADS = 128
"""Threads of a block that refreshes rings of ghost cells, as in kernels/cuda/shared/ring.cu."""


def program(case: Case, config: CudaConfig, entries: str) -> Program:
    """Return the program of the entries of all passes, with the refreshes of a ghost layer."""
    regions = {
        "title": entry.title(case, config),
        "constants": _constants(case, config),
        "storage": hinted_format(config),
        "layout": layout.functions(case, config) + _block_order(case, config),
        "collide": physics.functions(case),
        "entry": entries,
    }
    parts = [fill("shared/box.cu", regions)]
    refreshes = [text for one in passes(config, case.stencil) for text in _refreshes(case, config, one)]
    if refreshes:
        rings = config.frame(case.stencil).blocks is not None
        parts.append(fill("shared/ring.cu" if rings else "shared/ghost.cu", {"entry": "\n".join(refreshes)}))
    source = "\n".join(parts) + "\n"
    return entry.program(case, config, source, _period(case, config), layout.max_elements(case, config))


def _constants(case: Case, config: CudaConfig) -> str:
    storage = config.frame(case.stencil)
    wraps = config.wrap == "arithmetic" and not storage.blocks
    block = ", ".join(f"BLOCK_{a} = {n}" for a, n in zip("XYZ", config.block, strict=True))
    return "\n".join(
        (
            f"typedef {entry.real(config.compute)} Real;",
            f"typedef {layout.index_type(case, config)} Index;",
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


def entry_regions(case: Case, config: CudaConfig, one: Pass) -> dict[str, str]:
    """Return the regions that the entries of a pass have in all loops over cells."""
    source, target = buffers_of(one.phase)
    return {
        "signature": signature(case, config, one),
        "read": access.reads(case, one.phase, source),
        "write": access.writes(case, one.phase, target),
    }


def collide_call(case: Case) -> str:
    """Return the call that relaxes cell v of a thread."""
    return f"collide({', '.join(('f', 'v', *physics.collision_scalars(case.collision, case.lattice, case.forced)))});"


def buffers_of(phase: Phase) -> tuple[str, str]:
    """Return the names of the parameters that a pass reads from and writes to."""
    return ("populations", "populations") if phase.in_place else ("source", "target")


def signature(case: Case, config: CudaConfig, one: Pass, name: str = "", *more: str) -> str:
    """Return the head of the entry of a pass. more: declarations of parameters before the extents."""
    words = entry.parameters(tables(case, config, one.phase), (), ())
    taken = ", ".join((*words, *more, *entry.parameters((), entry.EXTENTS, _scalars(case, one.phase))))
    dependent = config.launch == "dependent"
    return entry.head(entry.bounds(config), name or one.entry, f"{places(one.phase)} {taken}", dependent=dependent)


def places(phase: Phase) -> str:
    """Return the parameters by which an entry finds populations: buffers, and pointers to slots."""
    buffers = (
        "Stored* populations" if phase.in_place else "const Stored* __restrict__ source, Stored* __restrict__ target"
    )
    pointers = "".join(f",\n    {line}" for line in access.pointer_parameters(phase))
    return f"{buffers}{pointers},\n   " if pointers else f"{buffers},"


def _scalars(case: Case, phase: Phase) -> tuple[str, ...]:
    used = access.gain_scalars(case, phase)
    if phase.collides:
        used |= {*physics.cell_scalars(case)}
    return physics.ordered(used)


def _refreshes(case: Case, config: CudaConfig, one: Pass) -> list[str]:
    """Return the texts of the refresh kernels of a pass; none if it touches no ghost cell."""
    phase, dependent = one.phase, config.launch == "dependent"
    if phase.blockwise:
        return [ghost.refresh_rings(case, one.refresh("read"), ghost.reads_over(case, phase), dependent=dependent)]
    if config.wrap != "ghost":
        return []
    found = {"read": ghost.reads_over(case, phase), "write": ghost.writes_over(case, phase)}
    return [
        ghost.refresh(case, phase, one.refresh(when), over, to_ghost=when == "read", dependent=dependent)
        for when, over in found.items()
        if over
    ]


def _period(case: Case, config: CudaConfig) -> tuple[tuple[Launch, ...], ...]:
    """Return the launches of each parity."""
    return tuple(
        tuple(launch for one in passes_of(config, case.stencil, parity) for launch in _launches(case, config, one))
        for parity in range(config.propagation.period)
    )


def _launches(case: Case, config: CudaConfig, one: Pass) -> tuple[Launch, ...]:
    phase, covers = one.phase, config.block_cells(case.stencil)
    arguments = (*one.places, *tables(case, config, phase), *entry.EXTENTS, *_scalars(case, phase))
    step = Launch(one.entry, arguments, block=config.block, covers=covers, shared_bytes=config.shared_bytes(case))
    if phase.blockwise:
        threads, arguments = (RING_THREADS, 1, 1), (*one.buffers, *entry.EXTENTS)
        return (Launch(one.refresh("read"), arguments, block=threads, covers=config.block), step)
    if config.wrap != "ghost":
        return (step,)
    slots = one.places[len(one.buffers) :]
    before = (_shell(one.refresh("read"), one.buffers[0], *slots),) if ghost.reads_over(case, phase) else ()
    after = (_shell(one.refresh("write"), one.buffers[-1], *slots),) if ghost.writes_over(case, phase) else ()
    return (*before, step, *after)


def _shell(name: str, *places: str) -> Launch:
    threads = (SHELL_THREADS, 1, 1)
    return Launch(name, (*places, *entry.EXTENTS), block=threads, covers=threads, over="shell")
