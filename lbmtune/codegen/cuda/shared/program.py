"""The CUDA program of a configuration."""

from __future__ import annotations

from math import prod

from lbmtune.catalogue.boundaries.cell_flags import by_words, tables
from lbmtune.catalogue.cache_hints import load_instruction, store_instruction
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.prefetch_buffers import waiting_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import words_of
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.catalogue.storage import StorageFrame, frame
from lbmtune.codegen.cuda.direct import ghost
from lbmtune.codegen.cuda.shared import access, flags, layout, patches, physics
from lbmtune.codegen.cuda.shared.assemble import excerpt, fill
from lbmtune.codegen.passes import Pass, passes, passes_of
from lbmtune.codegen.program import Launch, Program

SHELL_THREADS = 128
"""Threads per block of the ghost refresh, as in kernels/cuda/ghost.cu."""
RING_THREADS = 128
"""The same of the refresh of rings, as in kernels/cuda/ring.cu."""
_BARRIER = "\n    __syncthreads();  // the whole block has read"
LANE = "    const Lane lane = make_lane(x, nx, n, active);"
"""Where a thread is in its row: the region of that name."""
_RING_LANE = """\
    // the rings of the blocks before lie between coordinates of the domain and of the storage
    const int ORIGIN_X = 2 * blockIdx.x + 1, ORIGIN_Y = 2 * blockIdx.y + 1, ORIGIN_Z = RING_Z * (2 * blockIdx.z + 1);
    Lane lane = make_lane(x, nx, n, active);
    lane.at = along_x(x + ORIGIN_X, n);
    lane.before = along_x(x + ORIGIN_X - 1, n);
    lane.after = along_x(x + ORIGIN_X + 1, n);"""
_REAL = {"fp32": "float", "fp64": "double"}
_EXTENTS = ("nx", "ny", "nz")
_ONE_STEP, _COLUMN, _AHEAD, _FAR = (f"cuda/{name}.cu" for name in ("one_step", "column", "column_ahead", "column_far"))
_SHARED = "cuda/column_shared.cu"
_FLAGS = "cuda/flags.cu"
_LATER = "#ifdef __CUDACC__", "#endif  // elsewhere the host provides these"
"""First and last line of what begins copies, as marches have it."""


def render_cuda(case: Case, config: CudaConfig) -> Program:
    """The program of a legal configuration: one entry per parity of its scheme, and refreshes of a ghost layer."""
    period = tuple(
        tuple(launch for one in passes_of(config, case.stencil, parity) for launch in _launches(case, config, one))
        for parity in range(config.propagation.period)
    )
    return Program("cuda", case, config, _source(case, config), compiler_options(config), period)


def compiler_options(config: CudaConfig) -> tuple[str, ...]:
    """Of the CUDA compiler, in order.

    Reciprocals are approximate to one unit in the last place and denormals flush, in single precision only.
    """
    cap = (f"--maxrregcount={config.max_registers}",) if config.max_registers else ()
    # the lambdas of the ghost refresh have no annotation of their own, which NVRTC 13.0 insists on
    return ("--std=c++17", "--device-as-default-execution-space", "--ftz=true", "--prec-div=false", *cap)


def _source(case: Case, config: CudaConfig) -> str:
    regions = {
        "title": f"// {case.lattice} {case.collision}, {case.flow}\n// {config.brief}\n",
        "constants": _constants(case, config),
        "storage": stored_format(config),
        "layout": layout.functions(case, config) + _block_order(case, config),
        "collide": physics.functions(case),
        "entry": _entries(case, config),
    }
    parts = [fill(_ONE_STEP, regions)]
    refreshes = [text for one in passes(config, case.stencil) for text in _refreshes(case, config, one)]
    if refreshes:
        rings = frame(case.stencil, config).blocks is not None
        parts.append(fill("cuda/ring.cu" if rings else "cuda/ghost.cu", {"entry": "\n".join(refreshes)}))
    return "\n".join(parts) + "\n"


def _constants(case: Case, config: CudaConfig) -> str:
    storage = frame(case.stencil, config)
    wraps = config.wrap == "arithmetic" and not storage.blocks
    block = ", ".join(f"BLOCK_{a} = {n}" for a, n in zip("XYZ", config.block, strict=True))
    return "\n".join(
        (
            f"typedef {_REAL[config.compute]} Real;",
            f"typedef {layout.index_type(case, config)} Index;",
            f"constexpr int Q = {case.stencil.q};",
            f"constexpr int CELLS = {config.cells_per_thread};",
            f"constexpr int {block};",
            *_ghost_constants(storage),
            f"constexpr bool WRAPS = {_bool(wraps)};",
            *(() if wraps or storage.blocks else (f"constexpr bool GHOST_Z = {_bool(storage.ghost[2])};",)),
            f"constexpr Real unit = {config.stored.scale:.0f};",
        )
    )


def _ghost_constants(storage: StorageFrame) -> list[str]:
    """Where rows lie; for blocks with rings the kernel works that out from the block."""
    if storage.blocks:
        return [f"constexpr int RING_Z = {storage.origin[2]};  // ghost cells of a block along z"]
    assert not storage.origin[0], "rows start at their first cell"
    origin = ", ".join(f"ORIGIN_{a} = {n}" for a, n in zip("YZ", storage.origin[1:], strict=True))
    return [f"constexpr int {origin};"]


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _block_order(case: Case, config: CudaConfig) -> str:
    if config.block_order == "row":
        return ""
    flat = _bool(case.stencil.dimensions == 2)
    return "\n" + fill("cuda/z_curve.cu", {"axes": f"constexpr bool FLAT = {flat};"})


def real(precision: str) -> str:
    """The C type of a precision."""
    return _REAL[precision]


def stored_format(config: CudaConfig) -> str:
    """What stored populations are, how they are widened and narrowed, and with which cache hints."""
    return _hinted(config) if config.hinted else _storage(config)


def _hinted(config: CudaConfig) -> str:
    """The storage format behind places in memory that are loaded and stored with cache hints."""
    in_place = config.propagation.in_place
    hints = (
        f'#define LOAD "{load_instruction(config.load_hint, config.l2_prefetch, constant=not in_place)}"',
        f'#define STORE "{store_instruction(config.store_hint)}"',
        f"#define IN_PLACE {int(in_place)}",
    )
    parts = ("namespace plain {", _storage(config), "}", fill("cuda/hints.cu", {"hints": "\n".join(hints)}))
    return "\n".join(parts)


def _storage(config: CudaConfig) -> str:
    cells = config.cells_per_thread
    pairs = f"typedef {_vector('uint', max(cells // 2, 1))} Vector;"
    if config.storage == "fp16s":
        return fill("cuda/storage_half.cu", {"vector": pairs})
    if config.stored.codes:
        conversion = fill(f"cuda/{config.storage}.cu", {})
        return fill("cuda/storage_codes.cu", {"vector": pairs, "conversion": conversion})
    stored = _REAL[config.storage]
    return fill(
        "cuda/storage_plain.cu", {"stored": f"typedef {stored} Stored;\ntypedef {_vector(stored, cells)} Vector;"}
    )


def _vector(element: str, length: int) -> str:
    return f"{element}{length}" if length > 1 else {"uint": "unsigned int"}.get(element, element)


def _entries(case: Case, config: CudaConfig) -> str:
    """All passes of all parities, by threads that update one cell or vector of cells, or a column of them."""
    file = _entry_file(config)
    entries = "\n".join(_entry(case, config, one, file) for one in passes(config, case.stencil))
    if file == _ONE_STEP:
        if _skips(case, config):
            entries = f"{_skipping(case)}\n{entries}"
        if words_of(case, config).walls:
            entries = f"{fill('cuda/walls.cu', {})}\n{entries}"
        if not by_words(case, config):
            return entries
        here = f"{patches.functions(case)}\n" if config.flags == "compiled" else ""
        return fill(_FLAGS, {"entry": f"{here}{entries}"})
    further = {"constants": f"constexpr int AHEAD = {config.prefetch};"} if file in (_FAR, _SHARED) else {}
    further |= {"copies": copies(), "taken": _taken(config)} if file == _SHARED else {}
    inner = entries if file == _COLUMN else fill(file, {**further, "entry": entries})
    return fill(_COLUMN, {"constants": f"constexpr int MARCH = {config.march};", "entry": inner})


def _entry_file(config: CudaConfig) -> str:
    """The skeleton of an entry: of a cell, or of a column, with further sets of registers for what is read ahead."""
    if config.march == 1:
        return _ONE_STEP
    if config.copies_ahead:
        return _SHARED
    return _FAR if config.prefetch > 1 else _AHEAD if config.prefetch else _COLUMN


def copies() -> str:
    """What begins copies to shared memory and waits for them."""
    return fill("cuda/copies.cu", {"later": excerpt("cuda/march.cu", *_LATER)})


def _taken(config: CudaConfig) -> str:
    """What is in shared memory has the storage format, and no hints."""
    format_of, of = ("plain::", ".bits") if config.hinted else ("", "")
    return (
        f"__device__ __forceinline__ void take_cells(Real (&f)[CELLS], const Pack& cells) "
        f"{{ {format_of}unpack(f, cells{of}); }}\n"
        f"__device__ __forceinline__ Real take_cell(const Stored& cell) {{ return {format_of}widen(cell{of}); }}"
    )


def _skips(case: Case, config: CudaConfig) -> bool:
    """Whether threads skip solid cells and take all links as open."""
    return config.implicit and bool(case.geometry)


def _skipping(case: Case) -> str:
    pairs = "\n".join(f"    exchange({i}, {j});" for i, j in case.stencil.pairs)
    return fill("cuda/implicit.cu", {"pairs": pairs})


def _rows(case: Case, config: CudaConfig, phase: Phase, file: str) -> str:
    """Declarations of the rows that a pass touches, and of what it knows of cut links."""
    if _skips(case, config):
        return flags.rows_of_fluid(case, config, phase)
    if by_words(case, config):
        return flags.rows(case, config, phase)
    return access.rows(case, phase) if file == _ONE_STEP else access.rows_of_columns(case, phase)


def _entry(case: Case, config: CudaConfig, one: Pass, file: str) -> str:
    phase = one.phase
    skips = _skips(case, config)
    flagged = by_words(case, config) and not skips
    source, target = ("populations",) * 2 if phase.in_place else ("source", "target")
    taken = ", ".join(("f", "v", *physics.collision_scalars(case.collision, case.lattice, case.forced)))
    read = flags.reads(case, config, phase, source) if flagged else access.reads(case, phase, source)
    collide = f"        {flags.UNLESS_SOLID * skips}collide({taken});"
    return fill(
        file,
        {
            "signature": signature(case, config, one),
            "columns": access.columns(case, phase),
            "lane": _RING_LANE if phase.blockwise else LANE,
            "rows": _rows(case, config, phase, file),
            "fetch": access.fetches(case, phase, source),
            "take": access.takes(case, phase, source),
            "read": read + (_BARRIER if phase.blockwise else ""),
            "call": "\n".join([*physics.complete(case, words_of(case, config), flags.TYPES), collide])
            if phase.collides
            else "",
            "write": flags.writes(case, config, phase, target) if flagged else access.writes(case, phase, target),
        },
        inside="entry",
    )


def signature(case: Case, config: CudaConfig, one: Pass) -> str:
    """The head of the entry of a pass."""
    if one.phase.in_place:
        buffers = "Stored* populations"
    else:
        buffers = "const Stored* __restrict__ source, Stored* __restrict__ target"
    words = flags.parameters(tables(case, config, one.phase))
    scalars = [*words, *(f"const int {n}" for n in _EXTENTS)] + [f"const Real {n}" for n in _scalars(case, one.phase)]
    start = places(buffers, one.phase)
    return f'extern "C" __global__ void {bounds(config)}{one.entry}(\n    {start} {", ".join(scalars)})'


def places(buffers: str, phase: Phase) -> str:
    """The parameters by which an entry finds populations: buffers, and the pointers to slots that it takes."""
    pointers = "".join(f",\n    {line}" for line in access.pointer_parameters(phase))
    return f"{buffers}{pointers},\n   " if pointers else f"{buffers},"


def bounds(config: CudaConfig) -> str:
    """Launch bounds of an entry; they override a register cap given to the compiler, so a capped kernel has none."""
    if config.max_registers:
        return ""
    blocks = f", {config.min_blocks}" if config.min_blocks else ""
    return f"__launch_bounds__({prod(config.block)}{blocks}) "


def _scalars(case: Case, phase: Phase) -> tuple[str, ...]:
    used = access.gain_scalars(case, phase)
    if phase.collides:
        used |= {*physics.cell_scalars(case)}
    return physics.ordered(used)


def _refreshes(case: Case, config: CudaConfig, one: Pass) -> list[str]:
    """Texts of the refresh kernels of one pass; none where no ghost cell is touched."""
    if one.phase.blockwise:
        return [ghost.refresh_rings(case, one.refresh("read"), ghost.reads_over(case, one.phase))]
    if config.wrap != "ghost":
        return []
    reads, writes = ghost.reads_over(case, one.phase), ghost.writes_over(case, one.phase)
    phase, read, write = one.phase, one.refresh("read"), one.refresh("write")
    texts = [ghost.refresh(case, phase, read, reads, to_ghost=True)] if reads else []
    return texts + ([ghost.refresh(case, phase, write, writes, to_ghost=False)] if writes else [])


def _launches(case: Case, config: CudaConfig, one: Pass) -> tuple[Launch, ...]:
    phase = one.phase
    step = Launch(
        one.entry,
        (*one.places, *tables(case, config, phase), *_EXTENTS, *_scalars(case, phase)),
        block=config.block,
        covers=config.block_cells(case.stencil),
        shared_bytes=waiting_bytes(case, config, phase),
    )
    if phase.blockwise:
        rings = Launch(one.refresh("read"), (*one.buffers, *_EXTENTS), block=(RING_THREADS, 1, 1), covers=config.block)
        return (rings, step)
    if config.wrap != "ghost":
        return (step,)
    slots = one.places[len(one.buffers) :]
    before = (_shell(one.refresh("read"), one.buffers[0], *slots),) if ghost.reads_over(case, phase) else ()
    after = (_shell(one.refresh("write"), one.buffers[-1], *slots),) if ghost.writes_over(case, phase) else ()
    return (*before, step, *after)


def _shell(entry: str, *places: str) -> Launch:
    threads = (SHELL_THREADS, 1, 1)
    return Launch(entry, (*places, *_EXTENTS), block=threads, covers=threads, over="shell")
