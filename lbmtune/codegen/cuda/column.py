"""The CUDA program of one time step of a box, with a column of cells along z per thread."""

from lbmtune.catalogue.families.cuda.column import Column
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import words_of
from lbmtune.codegen.cuda.shared import access, box, physics
from lbmtune.codegen.cuda.shared.ablation import WHOLE, Parts, reading, writing
from lbmtune.codegen.cuda.shared.assemble import fill, variants
from lbmtune.codegen.cuda.shared.storage import copy_groups, has_hints
from lbmtune.codegen.passes import Pass, passes
from lbmtune.codegen.program import Program

_COLUMN = "column/column.cu"
ABLATABLE = True
"""Parts of its kernels can be left out."""
TAKES_PLANES = True
"""Launches of its kernels can take the planes that they update."""


def render(case: Case, config: Column, parts: Parts = WHOLE, *, planes: bool = False) -> Program:
    """Return the program of a legal configuration: one entry per parity, and refreshes of a ghost layer."""
    return box.program(case, config, _entries(case, config, parts, planes), planes=planes)


def _prefetch(config: Column) -> str:
    """Return the file of the loop that reads ahead; "" if none does."""
    if config.prefetch_to == "shared":
        return "column/shared_buffers.cu"
    if not config.prefetch_cells:
        return ""
    return "column/register_sets.cu" if config.prefetch_cells > 1 else "column/next_cell.cu"


def _entries(case: Case, config: Column, parts: Parts, planes: bool) -> str:
    file = _prefetch(config)
    regions = {
        "constants": f"constexpr int MARCH = {config.z_cells};",
        "entry": "\n".join(_entry(case, config, one, file, parts, planes) for one in passes(config, case.stencil)),
    }
    if file:
        regions["helpers"] = fill(file, _helpers(config))
    return fill(_COLUMN, regions)


def _helpers(config: Column) -> dict[str, str]:
    return {
        "constants": f"constexpr int AHEAD = {config.prefetch_cells};",
        "copies": copy_groups() if config.prefetch_to == "shared" else "",
        "taken": _taken(config),
        "variants": "",
    }


def _taken(config: Column) -> str:
    """Return how cells are taken from shared memory, which has the storage format and no cache hints."""
    format_of, of = ("plain::", ".bits") if has_hints(config) else ("", "")
    return (
        f"__device__ __forceinline__ void take_cells(Real (&f)[CELLS], const Pack& cells) "
        f"{{ {format_of}unpack(f, cells{of}); }}\n"
        f"__device__ __forceinline__ Real take_cell(const Stored& cell) {{ return {format_of}widen(cell{of}); }}"
    )


def _entry(case: Case, config: Column, one: Pass, file: str, parts: Parts, planes: bool) -> str:
    phase, regions = one.phase, box.entry_regions(case, config, one, planes=planes)
    source, _ = box.buffers_of(phase)
    call = "\n".join([*physics.complete(case, words_of(case, config)), f"        {box.collide_call(case)}"])
    regions |= {
        "columns": access.columns(case, phase),
        "rows": access.rows_of_columns(case, phase),
        "fetch": access.fetches(case, phase, source),
        "take": access.reads(case, phase, source, "take"),
        "read": reading(parts, regions["read"], "x + z"),
        "call": call if phase.collides else "",
        "write": writing(parts, regions["write"]),
    }
    return fill(_COLUMN, regions | (variants(file, regions) if file else {}), inside="entry")
