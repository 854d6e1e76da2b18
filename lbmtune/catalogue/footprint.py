"""Bytes: what a configuration keeps in memory and what one update has to move."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from lbmtune.catalogue.boundaries.cell_flags import WORD_BYTES, tables
from lbmtune.catalogue.boundaries.cut_links import seen_by
from lbmtune.catalogue.config import CpuConfig, CudaConfig, KernelConfig
from lbmtune.catalogue.families.cpu.moments_wavefront import fetched as fetched_by_pipeline
from lbmtune.catalogue.families.cpu.moments_wavefront import thread_values
from lbmtune.catalogue.families.cpu.wavefront import fetched
from lbmtune.catalogue.families.cuda.face_exchange import array_elements
from lbmtune.catalogue.families.cuda.face_exchange import face_values as face_values_of_tiles
from lbmtune.catalogue.families.cuda.persistent import face_elements, face_values
from lbmtune.catalogue.layouts.layout import Extents
from lbmtune.catalogue.pointer_swap import phases_of
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import reach
from lbmtune.catalogue.sparse.index_list import listed_rows, phases, used
from lbmtune.catalogue.storage import frame, stored_extents

MACROSCOPIC_FIELDS = 4
"""Density and the components of velocity, whatever the dimensions."""


def buffer_elements(case: Case, config: KernelConfig, domain: tuple[int, int, int] | None = None) -> int:
    """Elements of one copy of the lattice, ghost cells, padding and what waits at the faces of tiles included."""
    cells = int(config.memory.length(stored_extents(case, config, domain)))
    if isinstance(config, CudaConfig) and config.by_faces:
        return cells + 2 * int(array_elements(case.stencil, config, domain or case.domain))
    return cells


def list_elements(case: Case, config: KernelConfig) -> int:
    """32-bit words of the index list; 0 with direct addressing."""
    from lbmtune.catalogue.sparse.nodes import pitch  # here: it needs arrays, which the command line starts without

    return listed_rows(case, config).rows * pitch(case, config) if config.indirect else 0


def largest_index(case: Case, config: KernelConfig) -> int:
    """What the index of a cell within one component, or the length of a component, may come to."""
    return _largest(stored_extents(case, config), config)


def index_fits(case: Case, config: KernelConfig, bits: int) -> bool:
    """Whether that index has no more than so many bits. Solid cells are counted only where they decide it."""
    if config.indirect:
        from lbmtune.catalogue.sparse.nodes import (
            most_nodes,  # here: it needs arrays, which the command line starts without
        )

        if _largest(Extents(most_nodes(case, config), 1, 1, case.stencil.q), config) < (1 << bits):
            return True
    return largest_index(case, config) < (1 << bits)


def _largest(extents: Extents, config: KernelConfig) -> int:
    memory = config.memory
    cell = memory.along_x(extents.x, extents) + memory.along_y(extents.y, extents) + memory.along_z(extents.z, extents)
    return int(max(cell, memory.component(memory.together or 1, extents)))


def footprint_bytes(case: Case, config: KernelConfig) -> int:
    """Bytes of all buffers: copies of the lattice, words of flags or of the index list, density and velocity."""
    return _footprint(case, config, buffer_elements(case, config), list_elements(case, config))


def footprint_fits(case: Case, config: KernelConfig, memory_bytes: int) -> bool:
    """Whether all buffers have room in so many bytes. Solid cells are counted only where they decide it."""
    if config.indirect:
        from lbmtune.catalogue.sparse.nodes import (
            most_nodes,  # here: it needs arrays, which the command line starts without
        )

        most = most_nodes(case, config)
        elements = int(config.memory.length(Extents(most, 1, 1, case.stencil.q)))
        if _footprint(case, config, elements, listed_rows(case, config).rows * most) <= memory_bytes:
            return True
    return footprint_bytes(case, config) <= memory_bytes


def _footprint(case: Case, config: KernelConfig, elements: int, listed_words: int) -> int:
    """elements: of one copy of the lattice; listed_words: of the index list."""
    populations = config.copies * elements * config.stored.bytes
    every = phases(case.stencil, config.propagation)
    flags = {name for phase in every for name in tables(case, config, phase)}
    words = len(flags) * case.sites + listed_words
    return populations + WORD_BYTES * words + macroscopic_bytes(config) * case.sites + kept_bytes(case, config)


def kept_bytes(case: Case, config: KernelConfig) -> int:
    """Of the rows that each thread of a CPU keeps: until all have read what they replace, or for its next steps.

    On a GPU of what tiles of moments on chip send one another.
    """
    if isinstance(config, CudaConfig) and config.moments_on_chip:
        return int(face_elements(case.stencil, config, case.domain)) * config.computed.bytes
    phase = config.propagation.phase(case.stencil, 0)
    if isinstance(config, CpuConfig) and config.of_moments:
        return config.threads * thread_values(case, config) * config.computed.bytes
    if not isinstance(config, CpuConfig) or not phase.blockwise:
        return 0
    rows, planes = reach(phase)
    kept = rows + planes * config.tile_y + 1
    return config.threads * kept * case.domain[0] * case.stencil.q * config.computed.bytes


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Bytes that the update of one fluid cell must move to and from memory, by what they are."""

    populations: float
    flags: float = 0
    index: float = 0
    macroscopics: float = 0

    @property
    def total(self) -> float:
        """All of them together."""
        return self.populations + self.flags + self.index + self.macroscopics


def traffic(case: Case, config: KernelConfig) -> Traffic:
    """What an update moves, as the mean over the parities; words that only sites at moving walls read are left out."""
    populations = _population_bytes(case, config) * _moved_cells(case, config)
    if not config.indirect:
        flags = _flag_bytes(case, config)
        return Traffic(populations=populations, flags=flags, macroscopics=macroscopic_bytes(config))
    period = config.propagation.period
    seen = seen_by(case, config)
    every = (phase for parity in range(period) for phase in phases_of(config, case.stencil, parity))
    read = [used(seen, config.propagation, phase) for phase in every]
    index, flags = sum(len(u.pointers) for u in read), sum(u.masks + u.types for u in read)
    return Traffic(populations=populations, flags=WORD_BYTES * flags / period, index=WORD_BYTES * index / period)


def _population_bytes(case: Case, config: KernelConfig) -> float:
    """In each pass of a launch, what it moves is read and written once.

    On a CPU an ordinary store to a line that was not read first fetches it: passes from one lattice to another pay
    a third share unless their stores stream (Wellein et al. 2006).
    """
    if isinstance(config, CudaConfig) and config.resident:
        return 2 * face_values(case.stencil, config) * config.stored.bytes
    if isinstance(config, CudaConfig) and config.by_faces:
        return 2 * (config.kept.values(case.stencil) + face_values_of_tiles(case, config)) * config.stored.bytes
    fetches = isinstance(config, CpuConfig) and not config.streaming_stores
    if isinstance(config, CpuConfig) and config.of_moments:
        values = config.kept.values(case.stencil)
        return values * (fetched_by_pipeline(case, config) + 1 + fetches) * config.stored.bytes / config.steps
    shares = 0
    for phase in config.propagation.passes(case.stencil, 0):
        moved = config.kept.moved(len(phase.accesses), case.stencil)
        shares += moved * (3 if fetches and not phase.in_place else 2)
    moved_bytes = shares * config.stored.bytes + _ring_bytes(case, config)
    if config.fused_steps == 1:
        return moved_bytes
    again = fetched(case, config) if isinstance(config, CpuConfig) else 1
    return again * moved_bytes / config.fused_steps


def _moved_cells(case: Case, config: KernelConfig) -> float:
    """Cells that are moved for each that counts.

    Kernels that go over whole rows of moments, or march over tiles, load and store solid ones like all others.
    """
    whole = isinstance(config, CudaConfig) and (config.marches or config.by_faces)
    whole = whole or (isinstance(config, CpuConfig) and config.of_moments)
    return case.sites / case.fluid_sites if whole else 1.0


def macroscopic_bytes(config: KernelConfig) -> int:
    """Bytes per cell of density and three components of velocity where every step writes them."""
    written = isinstance(config, CudaConfig) and config.macroscopics != "never"
    return MACROSCOPIC_FIELDS * config.computed.bytes if written else 0


def _flag_bytes(case: Case, config: KernelConfig) -> float:
    """Words of flags per fluid cell and step: every cell has one, each pass that depends on it reads it.

    One table for all parities does not know that in some of them a cut link changes nothing. Those of moving walls are
    read at the walls alone, and count nothing.
    """
    period = config.propagation.period
    every = (phase for parity in range(period) for phase in phases_of(config, case.stencil, parity))
    read = sum(bool(tables(case, config, phase)) for phase in every)
    launches = period * config.fused_steps
    return WORD_BYTES * read / launches * (case.sites / case.fluid_sites) if read else 0


def bytes_per_update(case: Case, config: KernelConfig) -> float:
    """All of that together."""
    return traffic(case, config).total


def _ring_bytes(case: Case, config: KernelConfig) -> float:
    """Bytes per update that the refresh of the rings around blocks moves: what a full block reads from outside.

    It is read where it is kept and written to the ring, whose lines a CPU fetches first.
    """
    blocks = frame(case.stencil, config).blocks
    if not blocks:
        return 0
    cut = [axis for axis, extent in enumerate(blocks) if extent]
    cells = prod(blocks[axis] for axis in cut)
    inside = [prod(blocks[axis] - abs(c[axis]) for axis in cut) for c in case.stencil.velocities]
    shares = 3 if isinstance(config, CpuConfig) else 2
    return shares * config.stored.bytes * sum(cells - n for n in inside) / cells


def largest_cube(case: Case, config: KernelConfig, memory_bytes: int) -> tuple[int, int, int]:
    """The largest cube (square in two dimensions) of cells, in steps of 16, that fits in memory_bytes."""
    flat = case.stencil.dimensions == 2
    edge = 16
    while footprint_bytes(replace(case, domain=_cube(edge + 16, flat)), config) <= memory_bytes:
        edge += 16
    return _cube(edge, flat)


def _cube(edge: int, flat: bool) -> tuple[int, int, int]:
    return (edge, edge, 1 if flat else edge)
