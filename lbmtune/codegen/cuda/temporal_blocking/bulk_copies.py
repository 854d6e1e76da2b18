"""What a march has where bulk copies bring its planes to shared memory (`prefetch=3`), as C text.

The rest is the text of a march whose lanes copy planes there, each what it takes. See kernels/cuda/march_bulk.cu.
"""

from __future__ import annotations

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.temporal_blocking import before_tile, piece_cells, run_cells, sector_cells
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.codegen.skeleton import skeleton

_FILE, _BULK, _NEIGHBOURS = "cuda/march.cu", "cuda/march_bulk.cu", "cuda/march_neighbours.cu"
_FIRST, _LAST = "constexpr int SLOTS =", "    if (LEFT_OVER) cells.rest = *slots.rest;\n}\n"
"""The text of copies that lanes ask for, from one line to the other."""
_MAKING = "__device__ __forceinline__ void make_flags("
"""What follows in the text of neighbours that wait, behind flags themselves."""
_TAKEN = "slots_of(behind, {row}))"
_THERE, _AT_THE_END = "        if (PREFETCH == 2) copies_end();", "    if (BEYOND && PREFETCH == 2) copies_end();"
_BEGUN = "        if (PREFETCH == 2) copies_begin();"


def functions(case: Case, config: CudaConfig) -> str:
    """What there is before an entry."""
    flags = "" if config.barrier == "neighbours" else fill(_NEIGHBOURS, {}).partition(_MAKING)[0]
    return flags + fill(_BULK, {"runs": _runs(case, config), "asks": ""})


def without_copies_of_lanes(text: str) -> str:
    """A text without the functions of copies that lanes ask for: their names are taken."""
    before, first, rest = text.partition(_FIRST)
    _, last, after = rest.partition(_LAST)
    assert first
    assert last
    line = 1 + skeleton(_FILE).partition(_LAST)[0].count("\n") + _LAST.count("\n")
    return f'{before}#line {line} "kernels/{_FILE}"\n{after}'


def entry(text: str, case: Case, config: CudaConfig) -> str:
    """An entry whose lanes would copy planes, with bulk copies instead; words are copied by lanes."""
    flat, words = case.stencil.dimensions == 2, config.flags == "memory"
    plane, planes, row = ("line", "lines", "0") if flat else ("plane", "planes", "r")
    behind = "ROWS * SLOTS" + (" + EXCHANGES * WARPS * sizeof(Flag)" if config.barrier == "neighbours" else "")
    shift = "SHIFT" if _shift(case, config) >= 0 else "(first_x - lane * CELLS) & (PIECE - 1)"
    fetching = f"    const auto fetch_{plane} = [&]() {{\n"
    made = f"""    const int shift = {shift};
    Flag* const arrived = lowered(static_cast<char*>(behind) + {behind});
"""
    found = {
        fetching: made + fetching,
        _fetched(case): fill(_BULK, {"place": f"begins[r] = of_first({_places(case)});"}, inside="asks"),
        _TAKEN.format(row=row): f"slots_of(behind, {row}, shift))",
        _BEGUN: _BEGUN if words else "",
        _THERE: (f"{_THERE}\n" if words else "") + f"        await(arrived + warp, {plane} & 1);",
        _AT_THE_END: (f"{_AT_THE_END}\n" if words else "") + f"    if (BEYOND) await(arrived + warp, {planes} & 1);",
    }
    for now, then in found.items():
        assert text.count(now) == 1, now
        text = text.replace(now, then)
    return text


def _places(case: Case) -> str:
    """Of the first cell of a lane in row r of the next plane."""
    if case.stencil.dimensions == 2:
        return "along_y(next_y, n) + x * PACK"
    return "from + at[r]" if cuts(case) else "from + row[r]"


def _fetched(case: Case) -> str:
    """What stands where lanes copy planes."""
    if case.stencil.dimensions == 2:
        return f"        fetch_cells(waiting, slots_of(behind, 0), source + ({_places(case)}), pitch, x);"
    return f"""#pragma unroll
        for (int r = 0; r < ROWS; ++r) {{
            fetch_cells(waiting[PREFETCH == 2 ? 0 : r], slots_of(behind, r), source + ({_places(case)}), pitch, x);
        }}"""


def _runs(case: Case, config: CudaConfig) -> str:
    piece, run = piece_cells(case.stencil, config), run_cells(case, config)
    return f"constexpr int PIECE = {piece}, RUN = {run};\nconstexpr int SHIFT = {_shift(case, config)};"


def _shift(case: Case, config: CudaConfig) -> int:
    """Cells of a run before those of the warp; -1 where blocks have other ones."""
    piece = piece_cells(case.stencil, config)
    return -1 if sector_cells(config) % piece else -before_tile(case, config) % piece
