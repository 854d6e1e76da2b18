"""What a kernel that keeps its state on chip cannot be, and why."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from lbmtune.catalogue.config import CudaConfig, defaults
from lbmtune.catalogue.families.cuda.persistent import planes_together, shared_bytes
from lbmtune.catalogue.families.cuda.temporal_blocking import WARP, block_cells
from lbmtune.catalogue.families.cuda.temporal_blocking_rules import MAX_ROWS
from lbmtune.catalogue.families.moment_rules import why_no_moments
from lbmtune.catalogue.limits import RESERVED_BYTES, Limits, extents, registers_allowed
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import told
from lbmtune.lattice import Lattice
from lbmtune.units import format_bytes

_OWN = "its tiles have loads, stores and neighbours of their own"
_FIXED = {
    "scheme": "populations wait on chip at the cell that they left, as in pull",
    "addressing": "tiles are cut out of a box",
    "boundary": "a cell reads again what it left itself",
    "halo": "tiles on chip send one another what leaves them in each step",
    "steps": "a launch does as many steps as it is asked for",
    "pack": _OWN,
    "barrier": "its blocks meet by what `meeting` says",
    "pending": _OWN,
    "beyond": "nothing is read ahead that is on chip",
    "chunks": _OWN,
    "group": "a tile has its populations in the order of the directions",
    "max_registers": "launch bounds see to it that all blocks run at once",
    "prefetch": "nothing has to be fetched that is on chip",
    "fetch": "nothing has to be fetched that is on chip",
    "wrap": _OWN,
    "load_hint": _OWN,
    "store_hint": _OWN,
    "l2_prefetch": _OWN,
    "block_order": "all blocks run at once",
    "macroscopics": "what is on chip is seen when the launch is over",
}
"""Axes that have no say, and why."""
_FIXED_OF_POPULATIONS = {
    "rows": _OWN,
    "cells_per_thread": "a thread has one column of its tile",
    "held": "only moments are kept in registers",
}
_MOST_CELLS, _MOST_HELD = 8, 8
"""Of a row that a thread has, for want of registers; and planes that it holds, each of which has a text of its own."""


def why_not(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """The first reason, or None."""
    return next((reason for rule in _RULES if (reason := rule(case, config, limits))), None)


def blocks_at_once(lattice: Lattice, config: CudaConfig, limits: Limits) -> int:
    """Blocks that a multiprocessor is sure to hold: by its threads, its shared memory and the launch bounds."""
    threads = config.block[0] * config.block[1]
    by_memory = limits.shared_bytes_per_multiprocessor // (shared_bytes(lattice, config) + RESERVED_BYTES)
    return min(max(1, config.min_blocks), limits.threads_per_multiprocessor // threads, by_memory)


def _other_axes(_case: Case, config: CudaConfig, _: Limits) -> str | None:
    usual = defaults("cuda")
    for name, reason in (_FIXED | ({} if config.of_moments else _FIXED_OF_POPULATIONS)).items():
        if getattr(config, name) != usual[name]:
            return f"{name} {getattr(config, name)} with launch resident: {reason}"
    return None


def _faces(case: Case, _config: CudaConfig, _: Limits) -> str | None:
    if where := told(case):
        return (
            f"{where} with launch resident: its cells complete what arrives, which these kernels do not; "
            "take launch graph, or several steps per launch"
        )
    if case.patches:
        return f"{case.patches[0].kind} patch with launch resident: these kernels know whole faces alone"
    return None


def _moments(case: Case, config: CudaConfig, _: Limits) -> str | None:
    if not config.of_moments:
        return None
    if reason := why_no_moments(case, config):
        return reason
    if config.layout not in ("soa", "rows"):
        return f"layout {config.layout} with moments on chip: soa and rows exist"
    if case.stencil.dimensions == 2 and config.rows > 1:
        return f"rows {config.rows} with lattice {case.lattice}: threads go up along y, row by row"
    if not 1 <= config.rows <= MAX_ROWS or not 1 <= config.cells_per_thread <= _MOST_CELLS:
        cells = f"cells_per_thread {config.cells_per_thread} and rows {config.rows} with moments on chip"
        return f"{cells}: 1 to {_MOST_CELLS} and 1 to {MAX_ROWS}"
    if config.held and (config.held < 0 or config.march % config.held or config.march < 2 * config.held):
        return (
            f"held {config.held} with march {config.march}: registers keep one plane of each two, three or more, "
            "by which the planes of a tile have to be divisible"
        )
    return None


def _tile(case: Case, config: CudaConfig, _: Limits) -> str | None:
    if config.of_moments:
        return _tile_of_moments(case, config)
    (x, y, z), (nx, ny, nz) = config.block, case.domain
    if (x, z) != (nx, 1):
        return f"block {extents(config.block)} with launch resident: tiles are whole rows, here {nx} x n x 1"
    if ny % y or nz % config.march:
        tile = extents((x, y, config.march))
        return f"launch resident: the domain {extents(case.domain)} is not divisible into tiles of {tile}"
    return None


def _tile_of_moments(case: Case, config: CudaConfig) -> str | None:
    """Rows are rings of lanes within a warp. Only the last layer of tiles may have fewer planes than the others."""
    (x, y, z), (nx, ny, nz), cells = config.block, case.domain, config.cells_per_thread
    block = f"block {extents(config.block)}"
    if z != 1 or WARP % x or x * y % WARP:
        return f"{block} with moments on chip: 1, 2, 4, 8, 16 or 32 threads have a row, whole warps the rows of a block"
    if x * cells != nx:
        return f"{block} x {cells} cells with moments on chip: tiles are whole rows, here of {nx} cells"
    rows = block_cells(case.stencil, config)[1]
    if ny % rows:
        return f"launch resident: {ny} rows of the domain {extents(case.domain)} are not divisible into tiles of {rows}"
    together = planes_together(config)
    if case.stencil.dimensions == 3 and config.held and nz % together:
        return f"held {config.held}: {nz} planes of the domain {extents(case.domain)} are no passes of {together}"
    return None


def _registers(case: Case, config: CudaConfig, _: Limits) -> str | None:
    """What a thread works on at once, and what it holds from step to step, in registers; passes are written out."""
    if not config.of_moments:
        return None
    if config.held > _MOST_HELD:
        return f"held {config.held}: the text has a pass for each, and {_MOST_HELD} of them at most"
    cells = config.cells_per_thread * config.rows * (1 + config.held)
    needed = config.kept.values(case.stencil) * cells * config.computed.bytes // 4
    allowed = registers_allowed(prod(config.block) * max(1, config.min_blocks))
    if needed <= allowed:
        return None
    return f"moments of {cells} cells of a thread at once: {needed} registers; with these blocks it has {allowed}"


def _on_chip(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    cells = block_cells(case.stencil, config)
    tile = extents(cells)
    needed, allowed = shared_bytes(case.stencil, config), limits.shared_bytes_per_block
    if needed > allowed:
        return (
            f"a tile of {tile} needs {format_bytes(needed)} of shared memory; a block here has {format_bytes(allowed)}"
        )
    if not limits.cooperative:
        return "launch resident: this device cannot promise that all blocks run at once (no cooperative launch)"
    blocks = prod(-(-n // of) for n, of in zip(case.domain, cells, strict=True))
    each = blocks_at_once(case.stencil, config, limits)
    if blocks > each * limits.multiprocessors:
        many = f"launch resident: {blocks} blocks of {tile} cells"
        return f"{many}; {limits.multiprocessors} multiprocessors hold {each} each"
    return None


_RULES: tuple[Callable[[Case, CudaConfig, Limits], str | None], ...] = (
    _other_axes,
    _moments,
    _faces,
    _tile,
    _registers,
    _on_chip,
)
