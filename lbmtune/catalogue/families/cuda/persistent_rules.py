"""Rules of persistent kernels on CUDA."""

from __future__ import annotations

from math import prod

from lbmtune.catalogue.families import common_rules, moment_rules
from lbmtune.catalogue.families.cuda import launch_rules
from lbmtune.catalogue.families.cuda.persistent import Persistent, planes_together, shared_bytes
from lbmtune.catalogue.limits import RESERVED_BYTES, WARP, Limits, extents, registers_allowed
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import told
from lbmtune.lattice import Lattice
from lbmtune.units import format_bytes

_MOST_HELD = 8
"""Planes that a thread keeps in registers, each of which has a text of its own."""


def blocks_at_once(lattice: Lattice, config: Persistent, limits: Limits) -> int:
    """Return the blocks that a multiprocessor is sure to hold: by threads, shared memory and launch bounds."""
    threads = config.block[0] * config.block[1]
    by_memory = limits.shared_bytes_per_multiprocessor // (shared_bytes(lattice, config) + RESERVED_BYTES)
    return min(max(1, config.min_blocks), limits.threads_per_multiprocessor // threads, by_memory)


def _faces(case: Case, config: Persistent, limits: Limits) -> str | None:
    """Faces that are periodic or walls."""
    if where := told(case):
        return f"{where} is not supported for family persistent (use direct): its kernels complete no populations"
    return moment_rules.patches(case, config, limits)


def _moments(case: Case, config: Persistent, limits: Limits) -> str | None:
    """Layouts, rows and planes of kernels of moments."""
    if not config.of_moments:
        return None
    name = config.memory.name
    if name not in ("soa", "rows"):
        return f"layout={name} is not supported for representation=moments (use soa or rows)"
    if case.stencil.dimensions == 2 and config.rows > 1:
        return f"rows={config.rows} is not supported for lattice={case.lattice} (use 1): threads go up along y"
    held, planes = config.register_planes, config.tile_planes
    if held and (planes % held or planes < 2 * held):
        return (
            f"register_planes={held} is not supported for tile_planes={planes}: registers keep one plane of each two, "
            "three or more, by which the planes of a tile are divisible"
        )
    return None


def _tile(case: Case, config: Persistent, limits: Limits) -> str | None:
    """Tiles that the domain is divisible into."""
    if config.of_moments:
        return _tile_of_moments(case, config)
    (x, y, z), (nx, ny, nz) = config.block, case.domain
    if (x, z) != (nx, 1):
        return f"block {extents(config.block)} is not supported (use {nx} x n x 1): tiles are whole rows"
    if ny % y or nz % config.tile_planes:
        tile = extents((x, y, config.tile_planes))
        return f"the domain {extents(case.domain)} is not divisible into tiles of {tile}"
    return None


def _tile_of_moments(case: Case, config: Persistent) -> str | None:
    """Rows are rings of lanes within a warp. Only the last layer of tiles may have fewer planes than the others."""
    (x, y, z), (nx, ny, nz), cells = config.block, case.domain, config.cells_per_thread
    block = f"block {extents(config.block)}"
    if z != 1 or WARP % x or x * y % WARP:
        reason = "1, 2, 4, 8, 16 or 32 threads have a row, whole warps the rows"
        return f"{block} is not supported for moments (use for example 32x4x1): {reason}"
    if x * cells != nx:
        what = f"{block} x {cells} cells is not supported for moments (use {nx} cells along x)"
        return f"{what}: tiles are whole rows"
    rows = config.block_cells(case.stencil)[1]
    if ny % rows:
        return f"{ny} rows of the domain {extents(case.domain)} are not divisible into tiles of {rows}"
    together = planes_together(config)
    if case.stencil.dimensions == 3 and config.register_planes and nz % together:
        return (
            f"register_planes={config.register_planes}: nz={nz} of the domain {extents(case.domain)} is not a multiple "
            f"of the {together} planes of a pass"
        )
    return None


def _registers(case: Case, config: Persistent, limits: Limits) -> str | None:
    """What a thread works on at once and keeps from step to step, in registers."""
    if not config.of_moments:
        return None
    if config.register_planes > _MOST_HELD:
        return f"register_planes={config.register_planes} is not supported (use up to {_MOST_HELD}): each has a text"
    cells = config.cells_per_thread * config.rows * (1 + config.register_planes)
    needed = config.kept.values(case.stencil) * cells * config.computed.bytes // 4
    allowed = registers_allowed(prod(config.block) * max(1, config.min_blocks))
    if needed <= allowed:
        return None
    what = f"moments of {cells} cells of a thread at once: {needed} registers; with these blocks it has {allowed}"
    return f"{what} (use fewer cells_per_thread, rows or register_planes, or a smaller block)"


def _on_chip(case: Case, config: Persistent, limits: Limits) -> str | None:
    """A grid whose blocks all run at once."""
    cells = config.block_cells(case.stencil)
    tile = extents(cells)
    needed, allowed = shared_bytes(case.stencil, config), limits.shared_bytes_per_block
    if needed > allowed:
        return (
            f"a tile of {tile} needs {format_bytes(needed)} of shared memory; a block here has {format_bytes(allowed)}"
        )
    if not limits.cooperative:
        return "family persistent is not supported by this device: it has no cooperative launch"
    blocks = prod(-(-n // of) for n, of in zip(case.domain, cells, strict=True))
    each = blocks_at_once(case.stencil, config, limits)
    if blocks > each * limits.multiprocessors:
        many = f"{blocks} blocks of {tile} cells do not run at once"
        return f"{many}: {limits.multiprocessors} multiprocessors hold {each} each"
    return None


RULES = (
    moment_rules.moments,
    _moments,
    _faces,
    _tile,
    launch_rules.size,
    launch_rules.min_blocks,
    _registers,
    _on_chip,
    common_rules.flags,
    launch_rules.index_bits,
    launch_rules.grid,
)
