"""Rules of CUDA kernels of fluid sites."""

from __future__ import annotations

from math import prod

from lbmtune.catalogue.families import common_rules
from lbmtune.catalogue.families.cuda import launch_rules
from lbmtune.catalogue.families.cuda.sparse import Sparse
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.problem.case import Case


def _scheme(case: Case, config: Sparse, limits: Limits) -> str | None:
    """Schemes that need no box."""
    if config.propagation.phase(case.stencil, 0).blockwise:
        return f"scheme={config.scheme} is not supported for family sparse (use pull): its blocks are cut out of a box"
    return launch_rules.in_order(case, config, limits)


def _block(case: Case, config: Sparse, limits: Limits) -> str | None:
    """Thread blocks of one dimension, and whole warps for vectors."""
    x = config.block[0]
    if prod(config.block[1:]) > 1:
        return f"block {extents(config.block)} is not supported for family sparse (use {x}x1x1): sites have one index"
    if config.cells_per_thread > 1 and x % 32 and 32 % x:
        return (
            f"block {extents(config.block)}: with cells_per_thread={config.cells_per_thread} "
            "its x must divide or be a multiple of 32"
        )
    return None


def _turns(case: Case, config: Sparse, limits: Limits) -> str | None:
    """Sites that the domain has, and turns that are read ahead."""
    turns = config.sites_per_thread
    taken = config.block[0] * config.cells_per_thread * turns
    if turns > 1 and taken > case.sites:
        return f"sites_per_thread={turns}: a block takes {taken:,} sites of a domain of {case.sites:,} cells"
    if config.prefetch_sites and config.prefetch_sites >= turns:
        return f"prefetch_sites={config.prefetch_sites}: a thread has {turns - 1} turns after its first"
    return None


def _copies(case: Case, config: Sparse, limits: Limits) -> str | None:
    """Asynchronous copies that the device has."""
    if config.prefetch_to != "shared":
        return None
    if not limits.asynchronous:
        return "prefetch_to=shared is not supported by this device (use registers): it needs compute capability 8.0"
    return launch_rules.prefetch_buffer(case, config, limits)


RULES = (
    _scheme,
    launch_rules.size,
    launch_rules.vectors,
    _block,
    launch_rules.register_limit,
    common_rules.implicit,
    _turns,
    _copies,
    launch_rules.shared,
    launch_rules.index_bits,
    launch_rules.dependent,
    launch_rules.grid,
    common_rules.nodes,
)
