"""Bulk copies (TMA) of the next plane to shared memory (`plane_fetch=bulk`), as C text.

One lane of a warp requests the runs of its rows; words of cells are copied by each lane. See
kernels/cuda/temporal_blocking/bulk_copies.cu.
"""

from __future__ import annotations

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.families.cuda.temporal_blocking import (
    TemporalBlocking,
    before_tile,
    piece_cells,
    run_cells,
    sector_cells,
)
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared.assemble import fill, variants

_FILE = "temporal_blocking/bulk_copies.cu"


def functions(case: Case, config: TemporalBlocking) -> str:
    """Return the functions of bulk copies, and where a row lies in shared memory."""
    piece, run = piece_cells(case.stencil, config), run_cells(case, config)
    runs = f"constexpr int PIECE = {piece}, RUN = {run};\nconstexpr int SHIFT = {_shift(case, config)};"
    return fill(_FILE, {"runs": runs, "variants": ""})


def entry_variants(case: Case, config: TemporalBlocking) -> dict[str, str]:
    """Return the regions of an entry that requests bulk copies and waits for them."""
    behind = "ROWS * SLOTS" + (" + EXCHANGES * WARPS * sizeof(Flag)" if config.warp_sync == "neighbours" else "")
    shift = "SHIFT" if _shift(case, config) >= 0 else "(first_x - lane * CELLS) & (PIECE - 1)"
    regions = {
        "shift": f"    const int shift = {shift};\n"
        f"    Flag* const arrived = lowered(static_cast<char*>(behind) + {behind});",
        "place": f"begins[r] = of_first({_place(case)});",
    }
    found = variants(_FILE, regions)
    if case.stencil.dimensions == 2:
        found |= variants("temporal_blocking/entry_2d.cu", {}, inside="bulk")
    return found if config.flags == "memory" else found | _NO_LANE_COPIES


_NO_LANE_COPIES = dict.fromkeys(("commit_copies", "wait_copies", "last_copies"), "")


def _place(case: Case) -> str:
    """Return the place of the first cell of a lane in row r of the next plane."""
    if case.stencil.dimensions == 2:
        return "along_y(next_y, n) + x * PACK"
    return "from + at[r]" if cuts(case) else "from + row[r]"


def _shift(case: Case, config: TemporalBlocking) -> int:
    """Return the cells of a run before those of the warp; -1 if they differ from block to block."""
    piece = piece_cells(case.stencil, config)
    return -1 if sector_cells(config) % piece else -before_tile(case, config) % piece
