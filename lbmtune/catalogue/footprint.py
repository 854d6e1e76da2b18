"""Bytes: what a configuration keeps in memory and what one update has to move."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CpuConfig, CudaConfig, KernelConfig
from lbmtune.catalogue.flagging import WORD_BYTES, tables
from lbmtune.catalogue.storage import Domain, frame

MACROSCOPIC_FIELDS = 4
"""Density and the components of velocity, whatever the dimensions."""


def buffer_elements(case: Case, config: KernelConfig, domain: tuple[int, int, int] | None = None) -> int:
    """Elements of one copy of the lattice, ghost cells and padding included."""
    extents = frame(case.stencil, config).extents(Domain(*(domain or case.domain)))
    return int(config.memory.length(extents))


def largest_index(case: Case, config: KernelConfig) -> int:
    """What the index of a cell within one component, or the length of a component, may come to."""
    extents = frame(case.stencil, config).extents(Domain(*case.domain))
    memory = config.memory
    cell = memory.along_x(extents.x, extents) + memory.along_y(extents.y, extents) + memory.along_z(extents.z, extents)
    return int(max(cell, memory.component(memory.together or 1, extents)))


def footprint_bytes(case: Case, config: KernelConfig) -> int:
    """Bytes of all buffers: the copies of the lattice, the words of flags, density and velocity where written."""
    populations = config.propagation.lattices * buffer_elements(case, config) * config.stored.bytes
    phases = [
        one for parity in range(config.propagation.period) for one in config.propagation.passes(case.stencil, parity)
    ]
    words = {name for phase in phases for name in tables(case, config, phase)}
    return populations + len(words) * WORD_BYTES * case.sites + macroscopic_bytes(config) * case.sites


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
    """What an update moves: in each pass, what it moves is read and written once.

    On a CPU an ordinary store to a line that was not read first fetches it: passes from one lattice to another pay
    a third share unless their stores stream (Wellein et al. 2006).
    """
    fetches = isinstance(config, CpuConfig) and not config.streaming_stores
    passes = config.propagation.passes(case.stencil, 0)
    shares = sum(len(phase.accesses) * (3 if fetches and not phase.in_place else 2) for phase in passes)
    return Traffic(
        populations=shares * config.stored.bytes + _ring_bytes(case, config),
        flags=_flag_bytes(case, config),
        macroscopics=macroscopic_bytes(config),
    )


def macroscopic_bytes(config: KernelConfig) -> int:
    """Bytes per cell of density and three components of velocity where every step writes them."""
    written = isinstance(config, CudaConfig) and config.macroscopics != "never"
    return MACROSCOPIC_FIELDS * config.computed.bytes if written else 0


def _flag_bytes(case: Case, config: KernelConfig) -> float:
    """Words of flags per fluid cell and step: every cell has one, each pass that depends on it reads it.

    Those of moving walls are read at the walls alone, and count nothing.
    """
    period = config.propagation.period
    phases = (one for parity in range(period) for one in config.propagation.passes(case.stencil, parity))
    read = sum(bool(tables(case, config, phase)) for phase in phases)
    return WORD_BYTES * read / period * (case.sites / case.fluid_sites) if read else 0


def bytes_per_update(case: Case, config: KernelConfig) -> float:
    """All of that together."""
    return traffic(case, config).total


def _ring_bytes(case: Case, config: KernelConfig) -> float:
    """Bytes per update that the refresh of the rings around blocks moves: what a full block reads from outside."""
    blocks = frame(case.stencil, config).blocks
    if not blocks:
        return 0
    cells = prod(blocks)
    inside = [prod(n - abs(c) for n, c in zip(blocks, velocity, strict=True)) for velocity in case.stencil.velocities]
    return 2 * config.stored.bytes * sum(cells - n for n in inside) / cells


def largest_cube(case: Case, config: KernelConfig, memory_bytes: int) -> tuple[int, int, int]:
    """The largest cube (square in two dimensions) of cells, in steps of 16, that fits in memory_bytes."""
    flat = case.stencil.dimensions == 2
    edge = 16
    while footprint_bytes(replace(case, domain=_cube(edge + 16, flat)), config) <= memory_bytes:
        edge += 16
    return _cube(edge, flat)


def _cube(edge: int, flat: bool) -> tuple[int, int, int]:
    return (edge, edge, 1 if flat else edge)
