"""Legality, said once: a rule is a pure function of case, configuration and limits that returns a reason or None.

A reason is a sentence with the relation and the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import ADDRESSINGS, CpuConfig, CudaConfig, KernelConfig, defaults
from lbmtune.catalogue.footprint import footprint_bytes, index_fits, largest_cube, largest_index
from lbmtune.catalogue.hints import L2_PREFETCHES, LOAD_HINTS, STORE_HINTS
from lbmtune.catalogue.indirect import MAX_NODES, beyond_chase
from lbmtune.catalogue.links import seen_by
from lbmtune.catalogue.march_rules import why_no_march, why_no_moments
from lbmtune.catalogue.orders import order
from lbmtune.catalogue.scheme import not_reversed, shared_slot
from lbmtune.errors import unknown
from lbmtune.units import format_bytes


@dataclass(frozen=True)
class Limits:
    """What a device allows; the defaults are those of every CUDA device since compute capability 3.5."""

    threads_per_block: int = 1024
    block: tuple[int, int, int] = (1024, 1024, 64)
    grid: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    threads_per_multiprocessor: int = 2048
    cores: int = 1
    vector_bits: int = 512
    memory_bytes: int = 2**63
    huge_pages: bool = True
    shared_bytes_per_block: int = 48 << 10


Rule = Callable[[Case, KernelConfig, Limits], str | None]


def broken(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    """The reason why the configuration is illegal for the case on a device with these limits, or None."""
    return next((reason for rule in RULES if (reason := rule(case, config, limits))), None)


def _known_names(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    # the properties raise InputError with a suggestion: an unknown name is bad input, not an illegal point
    _ = config.propagation, config.memory, config.stored, config.computed, order(config.order)
    if config.addressing not in ADDRESSINGS:
        raise unknown("addressing", config.addressing, ADDRESSINGS)
    return None


def _addressing(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    if not config.indirect:
        if config.chased:
            return "neighbours chase with direct addressing: there is no list"
        if config.prefetch_index:
            return f"prefetch_index {config.prefetch_index} with direct addressing: there is no list"
        return None if config.order == "row" else f"order {config.order} with direct addressing: a box has its rows"
    if config.prefetch_index < 0:
        return f"prefetch_index {config.prefetch_index} is negative"
    flat, usual = config.flat(), defaults(config.backend)
    for name, meaning in _BOX_AXES.items():
        if name in flat and flat[name] != usual[name]:
            return f"{name} {flat[name]} with {config.addressing} addressing: {meaning}"
    if config.propagation.phase(case.stencil, 0).blockwise:
        return f"scheme {config.scheme} with {config.addressing} addressing: its blocks are cut out of a box"
    if config.propagation.phase(case.stencil, 0).ordered:
        return f"scheme {config.scheme} with {config.addressing} addressing: its order is that of the rows of a box"
    if config.layout.startswith("tiled"):
        return f"layout {config.layout} with {config.addressing} addressing: there is no box to be cut into tiles"
    if isinstance(config, CudaConfig) and prod(config.block[1:]) > 1:
        return f"block {_cells(config.block)} with {config.addressing} addressing: sites are counted in one dimension"
    return None


def _local_faces(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    if not case.local_faces:
        return None
    face, kind = case.local_faces[0]
    where = f"{kind} face {'xyz'[face // 2]}{'+' if face % 2 else '-'}"
    if config.indirect:
        return f"{where} with {config.addressing} addressing: a list of sites does not say which lie at a face"
    return None


def _nodes(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    from lbmtune.catalogue.nodes import counts  # here: it needs arrays, which the command line starts without

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
    "loop": "blocks of sites are what the loop runs over",
    "tile_y": "blocks of sites are what the loop runs over",
    "tile_z": "blocks of sites are what the loop runs over",
    "march": "there are no columns",
    "prefetch": "there are no columns",
    "flags": "flags stand in the list",
    "prefetch_propagated": "only direct addressing is prepared for it",
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
    if config.padding < 0:
        return f"padding {config.padding} is negative"
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
        return f"layout_tile {_cells(tile)} has an extent below 1"
    if config.layout not in ("tiled", "tiled-cells"):
        only = f"layout_tile {_cells(tile)} with layout {config.layout}: only tiled and tiled-cells have tiles"
        return None if tile == (1, 1, 1) else only
    if any(edge > cells for edge, cells in zip(tile, case.domain, strict=True)):
        return f"layout_tile {_cells(tile)} reaches beyond the domain {_cells(case.domain)}"
    return None


def _compute_holds_storage(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    if config.computed.bytes < config.stored.bytes:
        return f"compute {config.compute} is narrower than storage {config.storage}"
    return None


def _flags(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    if config.flags not in ("compiled", "memory"):
        return f"flags {config.flags!r}: compiled and memory exist"
    if config.flags == "compiled":
        known = config.indirect or not case.geometry
        return None if known else f"flags compiled with geometry {case.geometry}: solid cells are known by flags"
    if not case.geometry and not case.walled:
        return f"flags memory: the case {case.flow} has neither walls nor solid cells"
    if isinstance(config, CudaConfig) and config.propagation.phase(case.stencil, 0).blockwise:
        return f"flags memory with scheme {config.scheme}: the rings of its blocks know the faces alone"
    return None


def _fits_in_memory(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    needed = footprint_bytes(case, config)
    if needed <= limits.memory_bytes:
        return None
    need = f"domain {_cells(case.domain)} needs {format_bytes(needed)} in {config.storage} {config.scheme}"
    free = f"the device has {format_bytes(limits.memory_bytes)} free"
    if config.indirect:
        return f"{need} with {config.addressing} addressing; {free}"
    return f"{need}; {free}, enough for {_cells(largest_cube(case, config, limits.memory_bytes))}"


def _cells(domain: Sequence[int]) -> str:
    return "x".join(map(str, domain))


def _cuda(rule: Callable[[Case, CudaConfig, Limits], str | None]) -> Rule:
    return lambda case, config, limits: rule(case, config, limits) if isinstance(config, CudaConfig) else None


def _cpu(rule: Callable[[Case, CpuConfig, Limits], str | None]) -> Rule:
    return lambda case, config, limits: rule(case, config, limits) if isinstance(config, CpuConfig) else None


@_cuda
def _representation(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.of_moments:
        return why_no_moments(case, config, limits.shared_bytes_per_block)
    return why_no_march(config)


@_cuda
def _block_size(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if min(config.block) < 1:
        return f"block {_cells(config.block)} has an extent below 1"
    threads = prod(config.block)
    if threads > limits.threads_per_block:
        return f"block {_cells(config.block)} = {threads} threads; this device allows {limits.threads_per_block}"
    for axis, (extent, allowed) in enumerate(zip(config.block, limits.block, strict=True)):
        if extent > allowed:
            return (
                f"block {_cells(config.block)} has {extent} threads along {'xyz'[axis]}; this device allows {allowed}"
            )
    return None


@_cuda
def _block_shape(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    x = config.block[0]
    if config.cells_per_thread > 1 and x % 32 and 32 % x:
        return (
            f"block {_cells(config.block)}: with {config.cells_per_thread} cells per thread "
            "its x must divide or be a multiple of 32"
        )
    if case.domain[2] < config.block[2] or case.domain[1] < config.block[1]:
        return f"block {_cells(config.block)} reaches beyond the domain {_cells(case.domain)} along y or z"
    return None


@_cuda
def _block_covers_row(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.indirect:
        return None
    covered = config.block[0] * config.cells_per_thread
    needed = -(-case.domain[0] // config.cells_per_thread) * config.cells_per_thread
    if covered >= 2 * needed and config.block[0] > 32:
        return (
            f"block {_cells(config.block)} x {config.cells_per_thread} cells covers {covered} cells "
            f"of a row of {case.domain[0]}"
        )
    return None


@_cuda
def _vectors(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    cells = config.cells_per_thread
    if cells not in (1, 2, 4, 8):
        return f"cells_per_thread {cells}: 1, 2, 4 and 8 exist"
    width = cells * config.stored.bytes
    if width > 16:
        return f"cells_per_thread {cells} x {config.stored.bytes} bytes = {width}; one access moves at most 16 bytes"
    if not config.indirect and case.domain[0] % cells:
        return f"domain {_cells(case.domain)}: nx = {case.domain[0]} is not divisible by cells_per_thread {cells}"
    run = config.memory.run
    if cells > 1 and run and run % cells:
        return (
            f"cells_per_thread {cells} with layout {config.layout}: its runs of {run} cells are no multiple of {cells}"
        )
    if config.layout == "soa" and config.padding % cells:
        return f"padding {config.padding} is no multiple of cells_per_thread {cells}"
    return None


@_cuda
def _register_mechanisms(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.max_registers and config.min_blocks:
        return (
            f"max_registers {config.max_registers} with min_blocks {config.min_blocks}: "
            "launch bounds override the compiler's cap"
        )
    if config.max_registers and not 32 <= config.max_registers <= 255:
        return f"max_registers {config.max_registers} is outside 32..255"
    threads = prod(config.block)
    if config.min_blocks < 0 or config.min_blocks * threads > limits.threads_per_multiprocessor:
        return (
            f"min_blocks {config.min_blocks} x {threads} threads; "
            f"a multiprocessor holds {limits.threads_per_multiprocessor}"
        )
    return None


@_cuda
def _cuda_wrap(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.wrap not in ("arithmetic", "ghost"):
        return f"wrap {config.wrap!r}: arithmetic and ghost exist on CUDA"
    if config.indirect:
        return None
    if config.layout == "aosoa" and config.wrap == "arithmetic" and case.domain[0] % config.width:
        return f"domain {_cells(case.domain)}: nx = {case.domain[0]} is not divisible by the AoSoA width {config.width}"
    return None


@_cuda
def _march(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    march = config.march
    if march < 1:
        return f"march {march}: a thread updates at least one cell of its column"
    if march > case.domain[2]:
        return f"march {march}: a column of the domain {_cells(case.domain)} has {case.domain[2]} cells"
    if march > 1 and config.block[2] > 1:
        return f"march {march} with block {_cells(config.block)}: a block that marches is one cell thick along z"
    return None


@_cuda
def _prefetch(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if not config.prefetch or config.of_moments:
        return None
    if config.prefetch != 1:
        return f"prefetch {config.prefetch}: 0 and 1 exist"
    if config.march == 1:
        return "prefetch 1 with march 1: a thread has no next cell to read"
    scheme = config.propagation
    passes = [one for parity in range(scheme.period) for one in scheme.passes(case.stencil, parity)]
    for shared in filter(None, map(shared_slot, passes)):
        slot, one, other = shared
        return (
            f"prefetch 1 with scheme {config.scheme}: slot {slot} is touched at {one.offset} and at {other.offset}, "
            "so another thread may write what is read ahead"
        )
    return None


@_cuda
def _neighbours(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.neighbours not in ("all", "chase"):
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


@_cuda
def _cache_hints(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    for name, hint, known in (
        ("load_hint", config.load_hint, LOAD_HINTS),
        ("store_hint", config.store_hint, STORE_HINTS),
    ):
        if hint not in known:
            return f"{name} {hint!r}: {', '.join(known)} exist"
    if config.l2_prefetch not in L2_PREFETCHES:
        return f"l2_prefetch {config.l2_prefetch}: {', '.join(map(str, L2_PREFETCHES))} exist"
    return None


def _implicit(case: Case, config: CudaConfig) -> str | None:
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


@_cuda
def _cuda_flags(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.boundary not in ("branch", "predicated", "implicit"):
        return f"boundary {config.boundary!r}: branch, predicated and implicit exist"
    if config.indirect and config.boundary == "predicated":
        return f"boundary predicated with {config.addressing} addressing: flags stand in the list"
    if config.implicit and (reason := _implicit(case, config)):
        return reason
    if config.indirect:
        return None
    if config.flags == "compiled":
        return (
            f"boundary {config.boundary} with flags compiled: it acts on flags" if config.boundary != "branch" else None
        )
    if config.boundary == "predicated" and config.cells_per_thread > 1:
        return f"boundary predicated with {config.cells_per_thread} cells per thread: a vector has one place"
    if config.wrap == "ghost":
        return "flags memory with wrap ghost: the refresh of ghost rows knows the faces alone"
    if config.march > 1:
        return f"flags memory with march {config.march}: columns of cells read no flags"
    return None


@_cuda
def _index_bits(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.index_bits not in (0, 64):
        return f"index_bits {config.index_bits}: 0 (32 where that is enough) and 64 exist"
    if config.index_bits and not index_fits(case, config, 32):
        return f"index_bits 64: {largest_index(case, config):,} elements of one component need as many anyway"
    return None


@_cuda
def _launch(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    return None if config.launch in ("call", "graph") else f"launch {config.launch!r}: call and graph exist"


@_cuda
def _macroscopics(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.macroscopics == "never":
        return None
    if config.macroscopics != "every-step":
        return f"macroscopics {config.macroscopics!r}: never and every-step exist"
    if config.march > 1:
        return f"macroscopics every-step with march {config.march}: threads that go up a column write none"
    if config.flags == "memory":
        return "macroscopics every-step with flags memory: kernels that read flags write none"
    return None


@_cuda
def _block_order(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.block_order == "row":
        return None
    if config.block_order != "z-curve":
        return f"block_order {config.block_order!r}: row and z-curve exist"
    grid = _blocks(case, config)
    fast, slow = grid[:2] if case.stencil.dimensions == 2 else grid[1:]
    if fast % 2 or slow % 2:
        axes = "x and y" if case.stencil.dimensions == 2 else "y and z"
        return f"block_order z-curve: the grid {_cells(grid)} is not even along {axes}, so it is the row order"
    return None


def _blocks(case: Case, config: CudaConfig) -> tuple[int, int, int]:
    cells = (config.block[0] * config.cells_per_thread, config.block[1], config.block[2] * config.march)
    x, y, z = (-(-n // c) for n, c in zip(case.domain, cells, strict=True))
    return x, y, z


@_cuda
def _grid(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    grid = _blocks(case, config)
    if any(g > allowed for g, allowed in zip(grid, limits.grid, strict=True)):
        return f"grid {_cells(grid)} for block {_cells(config.block)}; this device allows {_cells(limits.grid)}"
    return None


@_cpu
def _cpu_names(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if config.loop not in ("z", "zy", "tile"):
        return f"loop {config.loop!r}: z, zy and tile exist"
    if config.wrap not in ("ghost", "select"):
        return f"wrap {config.wrap!r}: ghost and select exist on the CPU"
    if config.vector_bits not in (0, 256, 512):
        return f"vector_bits {config.vector_bits}: 0, 256 and 512 exist"
    if config.gather not in ("vector", "lanes"):
        return f"gather {config.gather!r}: vector and lanes exist"
    if config.gather == "lanes" and not config.indirect:
        return "gather lanes with direct addressing: nothing is gathered there"
    tile = config.tile_y, config.tile_z
    if (min(tile) < 1) if config.loop == "tile" else any(tile):
        return f"tile {config.tile_y}x{config.tile_z} with loop {config.loop}: exactly the tile loop has a tile"
    return None


@_cpu
def _cpu_vectors(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if config.vector_bits > 2 * limits.vector_bits:
        return f"vector_bits {config.vector_bits}; this CPU has {limits.vector_bits}, and two registers make a vector"
    if not config.vector_bits:
        return None
    lanes = config.vector_bits // (8 * config.computed.bytes)
    if not config.indirect and case.domain[0] % lanes:
        return (
            f"domain {_cells(case.domain)}: nx = {case.domain[0]} is not divisible by {lanes} lanes of {config.compute}"
        )
    if config.wrap == "select":
        return f"vector_bits {config.vector_bits} with wrap select: vectors need the ghost columns"
    run = config.memory.run
    if run and run % lanes:
        return (
            f"vector_bits {config.vector_bits} with layout {config.layout}: "
            f"its runs of {run} cells are no multiple of {lanes} lanes"
        )
    return None


@_cpu
def _cpu_rows(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if config.row_padding < 0 or config.row_offset < 0:
        return f"row_padding {config.row_padding} and row_offset {config.row_offset} are not negative"
    if config.wrap == "ghost" and config.row_offset < 1:
        return f"row_offset {config.row_offset}: the ghost column before a row needs 1"
    if config.wrap == "select" and config.row_offset:
        return f"row_offset {config.row_offset} with wrap select: rows start at 0"
    run = config.memory.run
    if run > 1 and not config.indirect and config.row_offset % run:
        return f"row_offset {config.row_offset} is no multiple of the runs of {run} cells of layout {config.layout}"
    return None


@_cpu
def _streaming_stores(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if not config.streaming_stores:
        return None
    if config.streaming_stores != 1:
        return f"streaming_stores {config.streaming_stores}: 0 and 1 exist"
    if config.scheme != "pull":
        return (
            f"streaming_stores with scheme {config.scheme}: only pull writes whole aligned lines that it did not read"
        )
    line = 64 // config.stored.bytes
    if config.vector_bits != 512 or config.computed.bytes != config.stored.bytes:
        return (
            f"streaming_stores with {config.vector_bits} bits of {config.storage}: "
            "a store must fill a cache line of 64 bytes"
        )
    if config.layout != "soa":
        return f"streaming_stores with layout {config.layout}: only soa is prepared for them"
    row = config.row_offset + case.domain[0] + 1 + config.row_padding
    if config.row_offset % line or row % line or config.padding % line:
        return (
            f"streaming_stores: row_offset {config.row_offset}, row length {row} and padding {config.padding} "
            f"must be multiples of {line} elements"
        )
    return None


@_cpu
def _cpu_prefetch(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    for name in ("prefetch_propagated", "prefetch_local", "prefetch_index"):
        ahead = getattr(config, name)
        if ahead < 0:
            return f"{name} {ahead} is negative"
        if ahead and not config.vector_bits:
            return f"{name} {ahead} with vector_bits 0: asked for in every cell it keeps the compiler from vectors"
    return None


@_cpu
def _cpu_threads(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    if not 1 <= config.threads <= limits.cores:
        return f"threads {config.threads}; this device has {limits.cores} cores"
    return None


PINNINGS = ("none", "cores")
PAGES = ("default", "normal", "huge")
FIRST_TOUCHES = ("serial", "parallel")


@_cpu
def _cpu_memory(case: Case, config: CpuConfig, limits: Limits) -> str | None:
    for name, known in (("pinning", PINNINGS), ("pages", PAGES), ("first_touch", FIRST_TOUCHES)):
        if getattr(config, name) not in known:
            return f"{name} {getattr(config, name)!r}: {', '.join(known)} exist"
    if config.pages == "huge" and not limits.huge_pages:
        return "pages huge: this system gives no transparent huge pages of 2 MiB"
    if config.first_touch == "parallel" and config.threads == 1:
        return "first_touch parallel with threads 1: one thread works on all rows"
    return None


def _tiles_with_rings(config: KernelConfig) -> str | None:
    loop = config.flat()["loop"]
    return f"loop {loop} with scheme {config.scheme}: its blocks are the tiles of loop tile" if loop != "tile" else None


def _blocks_with_rings(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    if not config.propagation.phase(case.stencil, 0).blockwise:
        return None
    if not isinstance(config, CudaConfig):
        return _tiles_with_rings(config)
    if config.cells_per_thread > 1:
        return f"cells_per_thread {config.cells_per_thread} with scheme {config.scheme}: rows of blocks are not aligned"
    if config.wrap != "arithmetic":
        return f"wrap {config.wrap} with scheme {config.scheme}: the rings of the blocks are its ghost layer"
    if config.march > 1 or config.block_order != "row":
        return (
            f"march {config.march} and block_order {config.block_order} with scheme {config.scheme}: "
            "a thread block updates the block of cells that it owns, at once"
        )
    if config.macroscopics != "never":
        return (
            f"macroscopics {config.macroscopics} with scheme {config.scheme}: kernels of blocks with rings write none"
        )
    return None


def _in_order(case: Case, config: KernelConfig, limits: Limits) -> str | None:
    if not config.propagation.phase(case.stencil, 0).ordered:
        return None
    if not isinstance(config, CpuConfig):
        return f"scheme {config.scheme}: a cell swaps with those updated before it, and blocks of a GPU run in no order"
    if config.loop != "z":
        return f"loop {config.loop} with scheme {config.scheme}: each thread goes through the rows of a slab in order"
    if config.wrap != "ghost":
        return f"wrap {config.wrap} with scheme {config.scheme}: the last cell of a row swaps over ghost columns"
    if config.flags != "compiled":
        return f"flags {config.flags} with scheme {config.scheme}: a row knows which swaps are due by faces alone"
    return None


# in this order: a rule may take for granted what those before it demand
RULES: tuple[Rule, ...] = (
    _known_names,
    _addressing,
    _representation,
    _blocks_with_rings,
    _in_order,
    _width_belongs_to_aosoa,
    _padding_belongs_to_soa,
    _group_belongs_to_bundles,
    _tile_belongs_to_tiled,
    _compute_holds_storage,
    _flags,
    _local_faces,
    _block_size,
    _vectors,
    _block_shape,
    _block_covers_row,
    _register_mechanisms,
    _cuda_wrap,
    _cuda_flags,
    _march,
    _prefetch,
    _neighbours,
    _cache_hints,
    _index_bits,
    _block_order,
    _macroscopics,
    _launch,
    _grid,
    _cpu_names,
    _cpu_vectors,
    _cpu_rows,
    _streaming_stores,
    _cpu_prefetch,
    _cpu_threads,
    _cpu_memory,
    _nodes,
    _fits_in_memory,
)
