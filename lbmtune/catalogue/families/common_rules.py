"""Rules of both backends."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod

from lbmtune.catalogue.boundaries.cut_links import seen_by
from lbmtune.catalogue.config import ADDRESSINGS, NEIGHBOURS, CudaConfig, KernelConfig, defaults
from lbmtune.catalogue.footprint import footprint_bytes, footprint_fits, largest_cube
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.pointer_swap import PARITIES, elsewhere
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import not_reversed
from lbmtune.catalogue.sparse.index_list import MAX_NODES, beyond_chase
from lbmtune.catalogue.sparse.site_orders import order
from lbmtune.errors import unknown
from lbmtune.units import format_bytes

Rule = Callable[[Case, KernelConfig, Limits], str | None]


def _known_names(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    # the properties raise InputError with a suggestion: an unknown name is bad input, not an illegal point
    _ = config.propagation, config.memory, config.stored, config.computed, order(config.order)
    if config.addressing not in ADDRESSINGS:
        raise unknown("addressing", config.addressing, ADDRESSINGS)
    return None


def _counts(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """Numbers that the other rules may divide by and multiply with."""
    for name, least in _least(config.backend):
        value = getattr(config, name)
        if value < least:
            return f"{name} {value} is negative" if value < 0 else f"{name} {value}: at least {least}"
    return None


@cache
def _least(backend: str) -> tuple[tuple[str, int], ...]:
    """The least value of each axis that is a number: an axis whose default is 1 has at least one of what it counts."""
    return tuple((n, int(usual == 1)) for n, usual in defaults(backend).items() if isinstance(usual, int))


def _addressing(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    if not config.indirect:
        if config.chased:
            return "neighbours chase with direct addressing: there is no list"
        if config.prefetch_index:
            return f"prefetch_index {config.prefetch_index} with direct addressing: there is no list"
        return None if config.order == "row" else f"order {config.order} with direct addressing: a box has its rows"
    usual = defaults(config.backend)
    for name, meaning in _BOX_AXES.items():
        if name in usual and getattr(config, name) != usual[name]:
            return f"{name} {getattr(config, name)} with {config.addressing} addressing: {meaning}"
    if config.propagation.phase(case.stencil, 0).blockwise:
        return f"scheme {config.scheme} with {config.addressing} addressing: its blocks are cut out of a box"
    if config.propagation.phase(case.stencil, 0).ordered:
        return f"scheme {config.scheme} with {config.addressing} addressing: its order is that of the rows of a box"
    if config.layout.startswith("tiled"):
        return f"layout {config.layout} with {config.addressing} addressing: there is no box to be cut into tiles"
    if isinstance(config, CudaConfig) and prod(config.block[1:]) > 1:
        return f"block {extents(config.block)} with {config.addressing} addressing: sites are counted in one dimension"
    return None


def _parity(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    if config.parity not in PARITIES:
        return f"parity {config.parity!r}: {' and '.join(PARITIES)} exist"
    if not config.exchanged:
        return None
    if config.propagation.period == 1:
        return f"parity pointers with scheme {config.scheme}: all its steps are alike"
    if config.propagation.moves:
        return f"parity pointers with scheme {config.scheme}: a step of it has passes that take no pointers"
    moved = elsewhere(config.propagation, case.stencil)
    if moved:
        return (
            f"parity pointers with scheme {config.scheme}: f_{moved.direction} is {moved.verb} at {moved.offset} in "
            f"one step and at {moved.other} in the next, so steps differ in more than slots"
        )
    if config.fused_steps > 1 or (isinstance(config, CudaConfig) and config.resident):
        return "parity pointers with several steps in a launch: pointers are exchanged between launches"
    return None


def _nodes(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    from lbmtune.catalogue.sparse.nodes import counts  # here: it needs arrays, which the command line starts without

    if not config.indirect or 2 * case.sites <= MAX_NODES:
        return None
    nodes = counts(case, config).nodes
    if nodes > MAX_NODES:
        return f"{nodes:,} nodes with {config.addressing} addressing: a word of the list reaches {MAX_NODES:,}"
    return None


_NO_ROWS = "there are no rows, and so no ends of them"
_BOX_AXES = {
    "wrap": _NO_ROWS,
    "row_offset": _NO_ROWS,
    "row_padding": _NO_ROWS,
    "far_ends": _NO_ROWS,
    "stride": "arrays are as long as there are nodes",
    "loop": "blocks of sites are what the loop runs over",
    "tile_y": "blocks of sites are what the loop runs over",
    "tile_z": "blocks of sites are what the loop runs over",
    "flags": "flags stand in the list",
    "prefetch_propagated": "only direct addressing is prepared for it",
    "reads": "a second read would be gathered, too",
    "prefetch_local": "only direct addressing is prepared for it",
    "macroscopics": "only direct addressing is prepared for them",
    "block_order": "blocks follow the order of the sites",
    "streaming_stores": "only direct addressing is prepared for them",
}
"""Axes that act on a box only, and why."""


def _width_belongs_to_aosoa(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    if config.layout in ("aosoa", "bundle-aosoa"):
        return None if config.width > 1 else f"width {config.width}: groups of an AoSoA have at least 2 cells"
    only = f"width {config.width} with layout {config.layout}: only aosoa and bundle-aosoa have groups"
    return None if config.width == 1 else only


def _padding_belongs_to_soa(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    if config.padding and config.layout != "soa":
        return f"padding {config.padding} with layout {config.layout}: only soa has separate direction arrays"
    return None


def _group_belongs_to_bundles(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    group, q = config.group, case.stencil.q
    if config.layout not in ("bundle", "bundle-aosoa"):
        only = f"group {group} with layout {config.layout}: only bundle and bundle-aosoa have groups of directions"
        return None if group == 1 else only
    if not 1 < group < q:
        return f"group {group}: a bundle of {case.lattice} has 2 to {q - 1} of its {q} directions"
    return None


def _tile_belongs_to_tiled(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    tile = config.layout_tile
    if min(tile) < 1:
        return f"layout_tile {extents(tile)} has an extent below 1"
    if config.layout not in ("tiled", "tiled-cells"):
        only = f"layout_tile {extents(tile)} with layout {config.layout}: only tiled and tiled-cells have tiles"
        return None if tile == (1, 1, 1) else only
    if any(edge > cells for edge, cells in zip(tile, case.domain, strict=True)):
        return f"layout_tile {extents(tile)} reaches beyond the domain {extents(case.domain)}"
    return None


def _compute_holds_storage(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    if config.computed.bytes < config.stored.bytes:
        return f"compute {config.compute} is narrower than storage {config.storage}"
    return None


def _flags(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    if config.flags not in ("compiled", "memory"):
        return f"flags {config.flags!r}: compiled and memory exist"
    if config.flags == "compiled":
        if config.indirect:
            return None
        if case.geometry:
            return f"flags compiled with geometry {case.geometry}: solid cells are known by flags"
        return _compiled_patches(case, config)
    if not case.geometry and not case.walled:
        return f"flags memory: the case {case.flow} has neither walls nor solid cells"
    if isinstance(config, CudaConfig) and config.propagation.phase(case.stencil, 0).blockwise:
        return f"flags memory with scheme {config.scheme}: the rings of its blocks know the faces alone"
    return None


def _compiled_patches(case: Case, config: KernelConfig) -> str | None:
    """Why a kernel cannot work out which cells of a face patches hold."""
    if not case.patches:
        return None
    where = f"flags compiled with a patch on face {case.patches[0].face}"
    if not isinstance(config, CudaConfig):
        return f"{where}: rows of a CPU ask the words of their cells which of them to take one by one"
    if config.propagation.phase(case.stencil, 0).blockwise:
        return f"{where}: the rings of the blocks of scheme {config.scheme} know whole faces alone"
    return None


def _fits_in_memory(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    if footprint_fits(case, config, limits.memory_bytes):
        return None
    needed = format_bytes(footprint_bytes(case, config))
    need = f"domain {extents(case.domain)} needs {needed} in {config.storage} {config.scheme}"
    free = f"the device has {format_bytes(limits.memory_bytes)} free"
    if config.indirect:
        return f"{need} with {config.addressing} addressing; {free}"
    return f"{need}; {free}, enough for {extents(largest_cube(case, config, limits.memory_bytes))}"


def neighbours(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """Pointers that can be chased."""
    if config.neighbours not in NEIGHBOURS:
        return f"neighbours {config.neighbours!r}: all and chase exist"
    if not config.chased:
        return None
    astray = beyond_chase(seen_by(case, config), config.propagation)
    if astray is None:
        return None
    why = "is at a wall somewhere else" if astray.link else "does not lead forward along the axes"
    return (
        f"neighbours chase with scheme {config.scheme}: its pointer to {astray.open} {why}, "
        "so nodes on the way there may be missing"
    )


def implicit(case: Case, config: KernelConfig) -> str | None:
    """Why a skipped cell would be no wall."""
    if not case.geometry:
        return f"boundary implicit: the case {case.flow} has no solid cells to skip"
    if case.walled:
        return f"boundary implicit with faces {', '.join(case.faces)}: behind a wall at a face is no cell to skip"
    scheme = config.propagation
    if scheme.lattices > 1:
        return (
            f"boundary implicit with scheme {config.scheme}: what is skipped is missing in the lattice of the next step"
        )
    lost = not_reversed(scheme, case.stencil)
    if lost is not None:
        return f"boundary implicit with scheme {config.scheme}: a skipped cell does not reverse f_{lost}"
    return None


FIRST: tuple[Rule, ...] = (_known_names, _counts, _addressing)
LAYOUTS: tuple[Rule, ...] = (
    _width_belongs_to_aosoa,
    _padding_belongs_to_soa,
    _group_belongs_to_bundles,
    _tile_belongs_to_tiled,
    _compute_holds_storage,
    _parity,
    _flags,
)
LAST: tuple[Rule, ...] = (_nodes, _fits_in_memory)
"""Those that take longest."""
