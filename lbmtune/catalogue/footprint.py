"""Bytes that a configuration allocates and bytes that one update moves."""

from dataclasses import dataclass, replace
from math import prod

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.boundaries.cell_flags import WORD_BYTES, tables
from lbmtune.catalogue.boundaries.second_order import link_count, most_links
from lbmtune.catalogue.domain_conditions import Condition, Place
from lbmtune.catalogue.layouts.layout import Extents, Int
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import KernelConfig

MACROSCOPIC_FIELDS = 4
"""Density and the components of velocity, whatever the dimensions."""
WALL_WORDS, WALL_POPULATIONS = 2, 3
"""Words of the tables of one parity, and populations, that the pass of interpolated walls moves for a link besides its
weight: it reads two populations and writes one."""


def buffer_elements(case: Case, config: KernelConfig, domain: tuple[int, int, int] | None = None) -> int:
    """Return the elements of one copy of the lattice, with ghost cells, padding and buffers at the faces of tiles."""
    cells = int(config.memory.length(config.stored_extents(case, domain)))
    return cells + int(config.extra_elements(case.stencil, domain or case.domain))


def largest_index(case: Case, config: KernelConfig) -> int:
    """Return an upper bound of the index of a cell within one component and of the length of a component."""
    return _largest(config.stored_extents(case), config)


def index_fits(case: Case, config: KernelConfig, bits: int) -> bool:
    """Return whether `largest_index` fits in some bits. Solid cells are counted only if they decide it."""
    most = config.most_extents(case)
    if most and _largest(most, config) < (1 << bits):
        return True
    return largest_index(case, config) < (1 << bits)


def _largest(extents: Extents, config: KernelConfig) -> int:
    return int(max(index_bounds(extents, config)))


def index_bounds(extents: Extents, config: KernelConfig) -> tuple[Int, Int]:
    """Return upper bounds of the index of a cell within one component, and of the length of a component."""
    memory = config.memory
    cell = memory.along_x(extents.x, extents) + memory.along_y(extents.y, extents) + memory.along_z(extents.z, extents)
    return cell, memory.component(memory.together or 1, extents)


def footprint_bytes(case: Case, config: KernelConfig) -> int:
    """Return the bytes of all buffers: copies of the lattice, flags or index list, density and velocity."""
    return _footprint(case, config, buffer_elements(case, config), config.list_words(case), link_count(case))


def footprint_fits(case: Case, config: KernelConfig, memory_bytes: int) -> bool:
    """Return whether all buffers fit in memory_bytes. Solid cells and links are counted only if they decide it."""
    most, links = config.most_extents(case), most_links(case)
    if most:
        elements, words = int(config.memory.length(most)), config.list_words(case, int(most.x))
    else:
        elements, words = buffer_elements(case, config), config.list_words(case)
    if _footprint(case, config, elements, words, links) <= memory_bytes:
        return True
    return bool(most or links) and footprint_bytes(case, config) <= memory_bytes


def _footprint(case: Case, config: KernelConfig, elements: int, listed_words: int, links: int) -> int:
    """Return the bytes of all buffers.

    elements: of one copy of the lattice; listed_words: of the index list; links: that are interpolated.
    """
    populations = config.copies * elements * config.stored.bytes
    every = config.propagation.all_passes(case.stencil)
    flags = {name for phase in every for name in tables(case, config, phase)}
    words = len(flags) * case.sites + listed_words
    walls = (WORD_BYTES * WALL_WORDS * config.propagation.period + config.computed.bytes) * links
    fields = macroscopic_bytes(config) * case.sites
    return populations + WORD_BYTES * words + fields + config.scratch_bytes(case) + walls


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Bytes that the update of one fluid cell must move to and from memory, by content."""

    populations: float
    flags: float = 0
    index: float = 0
    macroscopics: float = 0
    walls: float = 0

    @property
    def total(self) -> float:
        """Return the sum of all contents."""
        return self.populations + self.flags + self.index + self.macroscopics + self.walls


def traffic(case: Case, config: KernelConfig) -> Traffic:
    """Return the traffic of an update, averaged over the parities.

    Words that only sites at moving walls read are neglected.
    """
    moved_cells = case.sites / case.fluid_sites if config.visits_solid_cells else 1.0
    populations = config.population_bytes(case) * moved_cells
    flags, index = config.word_bytes(case)
    walls = wall_bytes(config) * link_count(case) / case.fluid_sites
    return Traffic(
        populations=populations, flags=flags, index=index, macroscopics=macroscopic_bytes(config), walls=walls
    )


def wall_bytes(config: KernelConfig) -> int:
    """Return the bytes that the pass of interpolated walls moves for a link."""
    return WORD_BYTES * WALL_WORDS + config.computed.bytes + WALL_POPULATIONS * config.stored.bytes


def pass_bytes(case: Case, config: KernelConfig, *, allocates: bool = False) -> float:
    """Return the bytes of stored values that one step moves: each pass reads and writes once the values that it moves.

    allocates: an ordinary store to a line that was not read loads it first, so that passes from one lattice to another
    move each value three times (write-allocate; Wellein et al. 2006).
    """
    shares = 0
    for phase in config.propagation.passes(case.stencil, 0):
        moved = config.kept.moved(len(phase.accesses), case.stencil)
        shares += moved * (3 if allocates and not phase.in_place else 2)
    return shares * config.stored.bytes


def macroscopic_bytes(config: KernelConfig) -> int:
    """Return the bytes per cell of density and three components of velocity, if every step writes them."""
    return MACROSCOPIC_FIELDS * config.computed.bytes if config.macroscopics != "never" else 0


def bytes_per_update(case: Case, config: KernelConfig) -> float:
    """Return the total traffic of an update, in bytes."""
    return traffic(case, config).total


def ring_bytes(case: Case, config: KernelConfig) -> float:
    """Return the bytes per update that refreshing the ghost cells of blocks moves; a full block is assumed.

    Each value is read from its block and written to a ghost cell, with write-allocate on CPUs.
    """
    blocks = config.frame(case.stencil).blocks
    if not blocks:
        return 0
    cut = [axis for axis, extent in enumerate(blocks) if extent]
    cells = prod(blocks[axis] for axis in cut)
    inside = [prod(blocks[axis] - abs(c[axis]) for axis in cut) for c in case.stencil.velocities]
    shares = 3 if BACKENDS[config.backend].write_allocates else 2
    return shares * config.stored.bytes * sum(cells - n for n in inside) / cells


def largest_cube(case: Case, config: KernelConfig, memory_bytes: float, step: int = 16) -> tuple[int, int, int]:
    """Return the largest cube (square in two dimensions) of cells, in steps of its edge, that fits in memory_bytes."""
    flat, edge = case.stencil.dimensions == 2, step
    while footprint_bytes(replace(case, domain=_cube(edge + step, flat)), config) <= memory_bytes:
        edge += step
    return _cube(edge, flat)


def _cube(edge: int, flat: bool) -> tuple[int, int, int]:
    return (edge, edge, 1 if flat else edge)


def within_stride(case: Case, stride: int) -> Condition:
    """Return the condition that the domain fits between direction arrays that are a given stride apart."""
    domain = "x".join(map(str, case.domain))
    said = f"stride={stride}: the direction arrays of domain {domain} have {{value}} elements"
    return Condition(value=lambda place: prod(place.stored[:3]), most=stride, because=f"stride={stride}", said=said)


def beyond_stride(case: Case, config: KernelConfig) -> str | None:
    """Return why the domain does not fit between direction arrays that are a given stride apart, or None."""
    stride = getattr(config.layout, "stride", 0)
    place, condition = Place(case.domain, lambda: config.stored_extents(case)), within_stride(case, stride)
    return condition.refusal(place) if stride and not condition.holds(place) else None
