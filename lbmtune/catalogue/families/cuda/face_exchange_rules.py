"""Rules of face exchange on CUDA."""

from __future__ import annotations

from lbmtune.catalogue.families import common_rules, moment_rules
from lbmtune.catalogue.families.cuda import launch_rules
from lbmtune.catalogue.families.cuda.face_exchange import FaceExchange, tile_bytes
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.units import format_bytes


def _copies(case: Case, config: FaceExchange, limits: Limits) -> str | None:
    """Asynchronous copies, which convert nothing."""
    if config.prefetch_to != "shared":
        return None
    if config.storage != config.compute:
        return (
            f"prefetch_to=shared is not supported for storage={config.storage} with compute={config.compute} "
            "(use registers): a copy does not convert"
        )
    if not limits.asynchronous:
        return "prefetch_to=shared is not supported by this device (use registers): it needs compute capability 8.0"
    return None


def _within(case: Case, config: FaceExchange, limits: Limits) -> str | None:
    """Tiles that are no larger than the domain along y and z, nor twice its row."""
    x, y, z = config.tile
    if case.domain[2] < z or case.domain[1] < y:
        return f"tile {extents(config.tile)} is larger than the domain {extents(case.domain)} along y or z"
    if x >= 2 * case.domain[0] and x > 32:
        return f"tile {extents(config.tile)} covers {x} cells of a row of {case.domain[0]}"
    return None


def _rows(case: Case, config: FaceExchange, limits: Limits) -> str | None:
    """Rows of whole groups."""
    width = getattr(config.memory, "width", 1)
    if config.memory.name == "aosoa" and case.domain[0] % width:
        return f"domain {extents(case.domain)}: nx={case.domain[0]} is not a multiple of the AoSoA width={width}"
    return None


def _on_chip(case: Case, config: FaceExchange, limits: Limits) -> str | None:
    """Shared memory that a block has."""
    needed, allowed = tile_bytes(case.stencil, config), limits.shared_bytes_per_block
    if needed <= allowed:
        return None
    return (
        f"tile {extents(config.tile)} needs {format_bytes(needed)} of shared memory; "
        f"a block here has {format_bytes(allowed)}"
    )


RULES = (
    moment_rules.moments,
    moment_rules.faces,
    moment_rules.patches,
    _on_chip,
    common_rules.flags,
    launch_rules.size,
    _within,
    launch_rules.register_limit,
    _rows,
    _copies,
    launch_rules.shared,
    launch_rules.index_bits,
    launch_rules.dependent,
    launch_rules.grid,
)
