"""Sectors of 32 bytes that a warp touches and does not fill: what misaligned accesses cost.

Memory and caches of a GPU move whole sectors. The layout's own function places the cells of a warp, so all schemes,
layouts, paddings and block shapes are counted in one way: on the set of elements that a warp in the middle of the
domain reads and writes. A sector that two warps share is moved twice unless a cache merges it; micro-benchmarks tell
how long that takes, by the number of warps side by side in a block.
Source: CUDA C++ Best Practices Guide, coalesced access to global memory; Wellein et al. 2006 for the accesses.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from lbmtune.catalogue.boundaries.cell_flags import by_words, reads_flags
from lbmtune.catalogue.config import Block, CudaConfig
from lbmtune.catalogue.layouts.layout import Layout, index
from lbmtune.catalogue.limits import SECTOR_BYTES, WARP
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Place, Scheme
from lbmtune.catalogue.storage_frame import Domain, StorageFrame
from lbmtune.lattice import Lattice, lattice

Array = Any
_ENDS = 2
"""Ends of a warp in a row."""


class Partial(NamedTuple):
    """Sectors per update that a warp loads or stores in part, as the mean over the parities."""

    loads: float
    stores: float


class Own(NamedTuple):
    """Accesses of a warp to the values of its own cells.

    piece_bytes: contiguous bytes of one value; unfilled_bytes: bytes per update of the same sectors that are not of the
    warp.
    """

    piece_bytes: float
    unfilled_bytes: float


@dataclass(frozen=True)
class Placement:
    """Parameters of the accesses of the first warp of a block. threads, cells: of that warp, along each axis."""

    scheme: Scheme
    memory: Layout
    frame: StorageFrame
    element_bytes: int
    threads: Block
    cells: Block
    cells_per_thread: int = 1
    implicit: bool = False

    @property
    def sector_elements(self) -> int:
        """Return the elements of a sector."""
        return SECTOR_BYTES // self.element_bytes

    def cells_in(self, domain: Block) -> Block:
        """Return the cells of the warp along each axis in a domain."""
        x, y, z = (min(n, cells) for n, cells in zip(domain, self.cells, strict=True))
        return x, y, z


def warp_of(block: Block) -> Block:
    """Return the threads of the first warp of a block along each axis."""
    x = min(block[0], WARP)
    y = min(block[1], WARP // x)
    return x, y, min(block[2], WARP // (x * y))


def placement(stencil: Lattice, config: CudaConfig) -> Placement:
    """Return the placement of the first warp of a kernel of one step.

    Planes of rows share no sector, so that one plane without ghost rows stands for all.
    """
    threads, in_rows = warp_of(config.block), config.memory.tile[1:] == (1, 1)
    x, y, z = threads
    planes = 1 if in_rows else config.block_cells(stencil)[2] // config.block[2]
    return Placement(
        scheme=config.propagation,
        memory=config.memory,
        frame=config.warp_frame(stencil, threads),
        element_bytes=config.stored.bytes,
        threads=threads,
        cells=(x * config.cells_per_thread, y, z * planes),
        cells_per_thread=config.cells_per_thread,
        implicit=config.implicit,
    )


def partial_sectors(case: Case, config: CudaConfig) -> Partial:
    """Count the sectors that a warp of a box loads and stores in part."""
    return _counted(case.stencil.name, case.domain, placement(case.stencil, config))


def own_cells(case: Case, config: CudaConfig) -> Own:
    """Count the sectors of a kernel in which each thread loads and stores the values of its own cell alone."""
    found = _own(case.domain, placement(case.stencil, config))
    return found._replace(unfilled_bytes=found.unfilled_bytes * config.kept.values(case.stencil))


@lru_cache(maxsize=4096)
def _own(domain: Block, placed: Placement) -> Own:
    elements = np.sort(_elements(placed, domain, Place(0, (0, 0, 0))))
    pieces = 1 + int((np.diff(elements) > 1).sum())
    moved = SECTOR_BYTES * len(np.unique(elements * placed.element_bytes // SECTOR_BYTES))
    return Own(len(elements) * placed.element_bytes / pieces, moved / len(elements) - placed.element_bytes)


def stored_apart(case: Case, config: CudaConfig) -> float:
    """Return the sectors per update that are stored in two parts by vectors of a kernel with flags.

    The first and the last lane of a warp do not have the flags of the cells beside theirs. They store apart from the
    others (kernels/cuda/direct/flags.cu) what may go to a wall, and share a sector with a lane that does not.
    """
    cells, lanes = config.cells_per_thread, min(config.block[0], WARP)
    lane_bytes = cells * config.stored.bytes
    if cells == 1 or not by_words(case, config) or lanes * cells >= case.domain[0] or lane_bytes % SECTOR_BYTES == 0:
        return 0.0
    passes = [one for one in config.propagation.all_passes(case.stencil) if reads_flags(case, one)]
    found = sum(a.write != a.cut_write for one in passes for a in one.accesses) / config.propagation.period
    return 2 * _ENDS * found / (lanes * cells)


@lru_cache(maxsize=4096)
def _counted(name: str, domain: Block, placed: Placement) -> Partial:
    stencil, vectors = lattice(name), placed.cells_per_thread > 1
    loads = stores = 0
    for phase in placed.scheme.all_passes(stencil):
        moved = [a for a in phase.accesses if phase.collides or a.read != a.write]
        loads += _partial(placed, domain, [a.read for a in moved], aligned=vectors)
        stores += _partial(placed, domain, [a.write for a in moved], aligned=False)
    updates = prod(placed.cells_in(domain)) * placed.scheme.period
    return Partial(loads / updates, stores / updates)


def _partial(placed: Placement, domain: Block, places: list[Place], *, aligned: bool) -> int:
    """Count the sectors that a warp touches and does not fill. aligned: vectors of its own cells are loaded as well."""
    found = []
    for place in places:
        found.append(_elements(placed, domain, place))
        if aligned and place.offset[0]:
            found.append(_elements(placed, domain, Place(place.slot, (0, *place.offset[1:]))))
    touched = np.unique(np.concatenate(found))
    _, filled = np.unique(touched // placed.sector_elements, return_counts=True)
    return int((filled < placed.sector_elements).sum())


def _elements(placed: Placement, domain: Block, place: Place) -> Array:
    """Return the elements of one slot that a warp in the middle of the domain touches; whole rows are closed rings."""
    axes = []
    for axis, (n, cells) in enumerate(zip(domain, placed.cells_in(domain), strict=True)):
        first = n // cells // 2 * cells
        axes.append(placed.frame.coordinate(axis, np.arange(first, first + cells)) + place.offset[axis])
    if not placed.frame.blocks:
        axes[0] %= domain[0]
    x, y, z = np.meshgrid(*axes, indexing="ij", sparse=True)
    return index(placed.memory, placed.frame.extents(Domain(*domain)), x, y, z, place.slot).ravel()
