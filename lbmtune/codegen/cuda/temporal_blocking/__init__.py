"""The CUDA program of a kernel whose blocks go up along z over tiles with a halo, one or several steps per launch."""

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.families.cuda.temporal_blocking import (
    TemporalBlocking,
    before_tile,
    ends,
    piece_cells,
    planes_together,
    run_cells,
    sector_cells,
    tile,
)
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import entry, moments
from lbmtune.codegen.cuda.shared.ablation import NEVER_STORED, WHOLE, Parts
from lbmtune.codegen.cuda.shared.assemble import fill, variants
from lbmtune.codegen.cuda.shared.storage import async_copies, functions, integer, real, stored_format
from lbmtune.codegen.cuda.temporal_blocking import populations, walls
from lbmtune.codegen.program import Launch, Program

_BULK = "temporal_blocking/bulk_copies.cu"
_NO_LANE_COPIES = dict.fromkeys(("commit_copies", "wait_copies", "last_copies"), "")
_BUFFERS = "const Stored* __restrict__ source, Stored* __restrict__ target"
_FETCHES = {"none": 0, "registers": 1, "cp_async": 2, "bulk": 2}
"""Buffer of the next plane: none, registers (1) or shared memory (2)."""
ABLATABLE = True
"""Parts of its kernels can be left out."""
TAKES_PLANES = True
"""Launches of its kernels can take the planes that they update."""


def render(case: Case, config: TemporalBlocking, parts: Parts = WHOLE, *, planes: bool = False) -> Program:
    """Return the program of a legal configuration: one launch for `steps` time steps."""
    launch = Launch(
        "step_0",
        ("f0", "f1", *entry.first_tables(case, config), *entry.extents(planes), *_scalars(case, config)),
        block=config.block,
        covers=config.block_cells(case.stencil),
        ends=(ends(case, config), 0, 0),
        shared_bytes=config.shared_bytes(case),
    )
    source = _source(case, config, parts, planes)
    longest = 2**32 if _narrow(case, config) else None
    return entry.program(case, config, source, ((launch,),), longest, steps=config.steps)


def _source(case: Case, config: TemporalBlocking, parts: Parts, planes: bool) -> str:
    walled, deep = cuts(case), case.stencil.dimensions == 3
    if config.of_moments:
        stage = moments.functions(case.stencil, case.forced, _split(case), case.relaxes)
    else:
        stage = populations.functions(case)
    regions = {
        "constants": _constants(case, config),
        "storage": stored_format(config, config.cells_per_thread),
        "layout": functions(case, config, "yz", ("Index", "first")),
        "stage": stage,
        "copies": async_copies(past_l1=walled and deep),
        "walls": walls.functions(case, config) if walled else "",
        "warp_sync": _warp_sync(case, config),
        "entry": ("" if parts.writes else NEVER_STORED) + _entry(case, config, parts, planes),
    }
    if config.plane_fetch == "bulk":
        regions["slots"] = ""  # bulk copies use the names of the copies of single lanes
    return entry.source("temporal_blocking/kernel.cu", case, config, regions)


def _warp_sync(case: Case, config: TemporalBlocking) -> str:
    neighbours, bulk = config.warp_sync == "neighbours", config.plane_fetch == "bulk"
    texts = [fill("temporal_blocking/arrival_flags.cu", {})] * (neighbours or bulk)
    texts += [fill("temporal_blocking/neighbour_sync.cu", {"variants": ""})] * neighbours
    texts += [_bulk_functions(case, config)] * bulk
    return "\n".join(texts)


def _entry(case: Case, config: TemporalBlocking, parts: Parts, planes: bool) -> str:
    """Return the entry: the variants of the configuration replace regions of the skeleton one after the other."""
    flat, walled = case.stencil.dimensions == 2, cuts(case)
    file = "temporal_blocking/entry_2d.cu" if flat else "temporal_blocking/entry_3d.cu"
    taken = ", ".join(("m[v]" if flat else "m[r][v]", *_relaxation(case, config)))
    parameters = entry.parameters(entry.first_tables(case, config), entry.extents(planes), _scalars(case, config))
    regions = {"signature": entry.head(config, "step_0", _BUFFERS, *parameters), "relax": f"relax({taken});"}
    if not flat:
        # the next plane is fetched early if its values are many, after an exchange if they are few
        regions["early" if config.of_moments or walled else "ahead"] = ""
        regions |= walls.entry_variants(config) if walled else {}
        regions |= variants("temporal_blocking/neighbour_sync.cu", {}) if config.warp_sync == "neighbours" else {}
        limits = entry.limits("tiles", planes)
        regions |= limits
        regions |= variants(file, limits, inside="tapered") if config.chunk_schedule == "tapered" else {}
        regions |= walls.stages(case, config, regions) if walled else {}
    elif walled:
        regions |= walls.entry_2d_variants(case, config, regions)
    regions |= _bulk_variants(case, config) if config.plane_fetch == "bulk" else {}
    return fill(file, regions | _without(case, parts), inside="entry")


def _without(case: Case, parts: Parts) -> dict[str, str]:
    """Return the regions of an entry that reads a few rows from the cache only, or stores nothing."""
    flat = case.stencil.dimensions == 2
    where = "flat" if flat else "walls" if cuts(case) else "open"
    found = {} if parts.reads else variants("temporal_blocking/ablation.cu", {}, inside=f"no_reads_{where}")
    return found | ({} if parts.writes else variants("temporal_blocking/ablation.cu", {}, inside=f"no_writes_{where}"))


def _split(case: Case) -> bool:
    """Return whether sums along z, and with the square of c_z, wait in registers of their own."""
    return cuts(case) and case.stencil.dimensions == 2


def _relaxation(case: Case, config: TemporalBlocking) -> tuple[str, ...]:
    return moments.case_scalars(case) if config.of_moments else populations.scalars(case)


def _scalars(case: Case, config: TemporalBlocking) -> tuple[str, ...]:
    faces = () if config.of_moments else populations.face_scalars(case)
    return tuple(dict.fromkeys((*_relaxation(case, config), *moments.wall_scalars(case), *faces)))


def _constants(case: Case, config: TemporalBlocking) -> str:
    return "\n".join(
        (
            f"typedef {real(config.compute)} Real;",
            f"typedef {integer(_narrow(case, config))} Index;",
            f"constexpr int STEPS = {config.steps};",
            f"constexpr int CELLS = {config.cells_per_thread}, ROWS = {config.rows}, WARPS = {config.block[1]};",
            f"constexpr int PACK = {config.pack};",
            f"constexpr int SECTOR = {sector_cells(config)};",
            f"constexpr int PREFETCH = {_FETCHES[config.plane_fetch]};",
            f"constexpr Real unit = {config.unit:.0f};",
            f"constexpr int TOGETHER = {planes_together(case, config)};",
            f"constexpr bool BEYOND = {entry.boolean(bool(config.overread))};",
            f"constexpr bool SHELVED = {entry.boolean(config.z_buffer == 'shared')};",
            f"constexpr bool WALLED_X = {entry.boolean(case.walled_across(0))};",
            f"constexpr int WIDTH = {tile(case.stencil, config)[0]}, BEFORE = {before_tile(case, config)};",
            moments.constants(case.stencil, _split(case)) if config.of_moments else populations.constants(case),
        )
    )


def _narrow(case: Case, config: TemporalBlocking) -> bool:
    """Return whether 32 bits hold the index of every element."""
    return int(config.memory.length(config.stored_extents(case))) < 2**32


def _bulk_functions(case: Case, config: TemporalBlocking) -> str:
    piece, run = piece_cells(case.stencil, config), run_cells(case, config)
    runs = f"constexpr int PIECE = {piece}, RUN = {run};\nconstexpr int SHIFT = {_shift(case, config)};"
    return fill(_BULK, {"runs": runs, "variants": ""})


def _bulk_variants(case: Case, config: TemporalBlocking) -> dict[str, str]:
    """Return the regions of an entry that requests bulk copies (TMA) of the next plane and waits for them.

    One lane of a warp requests the runs of its rows; words of cells are copied by each lane.
    """
    behind = "ROWS * SLOTS" + (" + EXCHANGES * WARPS * sizeof(Flag)" if config.warp_sync == "neighbours" else "")
    shift = "SHIFT" if _shift(case, config) >= 0 else "(first_x - lane * CELLS) & (PIECE - 1)"
    regions = {
        "shift": f"    const int shift = {shift};\n"
        f"    Flag* const arrived = lowered(static_cast<char*>(behind) + {behind});",
        "place": f"begins[r] = of_first({_place(case)});",
    }
    found = variants(_BULK, regions)
    if case.stencil.dimensions == 2:
        found |= variants("temporal_blocking/entry_2d.cu", {}, inside="bulk")
    return found if config.flags == "memory" else found | _NO_LANE_COPIES


def _place(case: Case) -> str:
    """Return the place of the first cell of a lane in row r of the next plane."""
    if case.stencil.dimensions == 2:
        return "along_y(next_y, n) + x * PACK"
    return "from + at[r]" if cuts(case) else "from + row[r]"


def _shift(case: Case, config: TemporalBlocking) -> int:
    """Return the cells of a run before those of the warp; -1 if they differ from block to block."""
    piece = piece_cells(case.stencil, config)
    return -1 if sector_cells(config) % piece else -before_tile(case, config) % piece
