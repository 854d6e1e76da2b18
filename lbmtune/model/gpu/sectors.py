"""Sectors of 32 bytes that a warp touches and does not fill: what misaligned accesses cost.

Memory and caches of a GPU move whole sectors. The cells of a warp are laid out by the layout's own function, so all
schemes, layouts, paddings and block shapes are counted in one way: on the set of elements that a warp in the middle
of the domain reads and writes. What two warps share is moved twice, as far as no cache puts it together: the
micro-benchmarks say what it takes, by the number of warps that are side by side in a block.
Source: CUDA C++ Best Practices Guide, coalesced access to global memory; Wellein et al. 2006 for the accesses.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from lbmtune.catalogue.boundaries.cell_flags import by_words, reads_flags
from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.families.cuda.temporal_blocking import SECTOR_BYTES
from lbmtune.catalogue.layouts.layout import Extents, index
from lbmtune.catalogue.limits import WARP
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Access, Place
from lbmtune.catalogue.sparse.site_orders import order
from lbmtune.catalogue.storage import Domain, frame
from lbmtune.lattice import Lattice

Array = Any
_ENDS = 2
"""Of a warp in a row."""
_PIECES, _MOST_SECTORS = 2, 1 << 40
"""Of a sector that is shared: displaced copies, which say what it takes, have it in two."""
_ROWS, _EDGE = 12, 32
"""Of the part of a geometry that is looked at: whole rows, so many along y and z; or a cube, for orders in cubes."""


class Partial(NamedTuple):
    """Sectors per update, the mean over the parities, that a warp loads or stores in part."""

    loads: float
    stores: float


def partial_sectors(case: Case, config: CudaConfig) -> Partial:
    """Of a kernel of one step per launch."""
    if config.indirect:
        return _listed(case.geometry, case.domain, case.stencil.name, shape(config))
    return _counted(case.stencil.name, case.domain, shape(config))


class Own(NamedTuple):
    """What a warp takes of the values of its own cells.

    piece_bytes: of a value, what lies together; unfilled_bytes: per update, what comes along in the same sectors and is
    not of the warp.
    """

    piece_bytes: float
    unfilled_bytes: float


def own_cells(case: Case, config: CudaConfig) -> Own:
    """Of a kernel that takes each value of a cell to the thread of that cell, and back to the same place."""
    found = _own(case.stencil.name, case.domain, shape(config))
    return found._replace(unfilled_bytes=found.unfilled_bytes * config.kept.values(case.stencil))


@lru_cache(maxsize=4096)
def _own(name: str, domain: tuple[int, int, int], config: CudaConfig) -> Own:
    """The same of one value."""
    import numpy as np

    from lbmtune.lattice import lattice

    stencil, element = lattice(name), config.stored.bytes
    elements = np.sort(_elements(stencil, config, domain, Place(0, (0, 0, 0))))
    pieces = 1 + int((np.diff(elements) > 1).sum())
    moved = SECTOR_BYTES * len(np.unique(elements * element // SECTOR_BYTES))
    return Own(len(elements) * element / pieces, moved / len(elements) - element)


def stored_apart(case: Case, config: CudaConfig) -> float:
    """Sectors per update that are stored in two parts, where vectors are stored by flags that a kernel reads.

    The first and the last lane of a warp do not know the flags of the cells beside theirs. So they store apart from the
    others (kernels/cuda/flags.cu) what may go to a wall, and share a sector with a lane that does not.
    """
    cells, lanes = config.cells_per_thread, min(config.block[0], WARP)
    lane_bytes = cells * config.stored.bytes
    if cells == 1 or not by_words(case, config) or lanes * cells >= case.domain[0] or lane_bytes % SECTOR_BYTES == 0:
        return 0.0
    period = config.propagation.period
    passes = [one for parity in range(period) for one in config.propagation.passes(case.stencil, parity)]
    found = sum(a.write != a.cut_write for one in passes if reads_flags(case, one) for a in one.accesses) / period
    return 2 * _ENDS * found / (lanes * cells)


def shape(config: CudaConfig) -> CudaConfig:
    """The configuration with nothing but what decides where its blocks read and write.

    Where tiles of the layout are rows, planes share no sector: one of a column is as good as all of them.
    """
    in_rows = config.memory.tile[1:] == (1, 1)
    common: dict[str, Any] = {
        "scheme": config.scheme,
        "layout": config.layout,
        "storage": config.storage,
        "block": warp_of(config.block),
        "cells_per_thread": config.cells_per_thread,
    }
    if isinstance(config, cuda.Sparse):
        sites = 1 if in_rows else config.sites_per_thread
        return cuda.Sparse(**common, boundary=config.boundary, order=config.order, sites_per_thread=sites)
    wrap = "arithmetic" if in_rows else config.wrap
    if isinstance(config, cuda.Column) and not in_rows:
        return cuda.Column(**common, wrap=wrap, z_cells=config.z_cells)
    return cuda.Direct(**common, wrap=wrap, boundary=config.boundary)


def warp_of(block: tuple[int, int, int]) -> tuple[int, int, int]:
    """The threads of a block that are its first warp, along each axis."""
    x = min(block[0], WARP)
    y = min(block[1], WARP // x)
    return x, y, min(block[2], WARP // (x * y))


@lru_cache(maxsize=4096)
def _counted(name: str, domain: tuple[int, int, int], config: CudaConfig) -> Partial:
    from lbmtune.lattice import lattice

    stencil, scheme = lattice(name), config.propagation
    loads = stores = 0
    for parity in range(scheme.period):
        for phase in scheme.passes(stencil, parity):
            moved = [a for a in phase.accesses if phase.collides or a.read != a.write]
            loads += _partial(stencil, config, domain, [a.read for a in moved], aligned=config.cells_per_thread > 1)
            stores += _partial(stencil, config, domain, [a.write for a in moved], aligned=False)
    updates = prod(_cells(stencil, config, domain)) * scheme.period
    return Partial(loads / updates, stores / updates)


def _cells(stencil: Lattice, config: CudaConfig, domain: tuple[int, int, int]) -> tuple[int, ...]:
    return tuple(min(n, cells) for n, cells in zip(domain, config.block_cells(stencil), strict=True))


def _partial(
    stencil: Lattice, config: CudaConfig, domain: tuple[int, int, int], places: list[Place], *, aligned: bool
) -> int:
    """Sectors that a block touches and does not fill. aligned: vectors of its own cells are loaded in any case."""
    import numpy as np

    found = []
    for place in places:
        found.append(_elements(stencil, config, domain, place))
        if aligned and place.offset[0]:
            found.append(_elements(stencil, config, domain, Place(place.slot, (0, *place.offset[1:]))))
    touched = np.unique(np.concatenate(found))
    per_sector = SECTOR_BYTES // config.stored.bytes
    _, filled = np.unique(touched // per_sector, return_counts=True)
    return int((filled < per_sector).sum())


def _elements(stencil: Lattice, config: CudaConfig, domain: tuple[int, int, int], place: Place) -> Array:
    """What a block in the middle of the domain touches of one slot. Rows are rings: blocks of whole rows are closed."""
    import numpy as np

    placed = frame(stencil, config)
    axes = []
    for axis, (n, cells) in enumerate(zip(domain, _cells(stencil, config, domain), strict=True)):
        first = n // cells // 2 * cells
        axes.append(placed.coordinate(axis, np.arange(first, first + cells)) + place.offset[axis])
    if not placed.blocks:
        axes[0] %= domain[0]
    x, y, z = np.meshgrid(*axes, indexing="ij", sparse=True)
    return index(config.memory, placed.extents(Domain(*domain)), x, y, z, place.slot).ravel()


@lru_cache(maxsize=1024)
def _listed(geometry: str, domain: tuple[int, int, int], name: str, config: CudaConfig) -> Partial:
    """The same where neighbours are found by a list: of the fluid sites of a part of the domain, numbered in order.

    A neighbour that is solid leaves the population at the cell itself (`Access.cut_read`, `Access.cut_write`).
    """
    import numpy as np

    from lbmtune.catalogue.sparse.nodes import granule  # here: it needs arrays, which the command line starts without
    from lbmtune.lattice import lattice

    stencil, scheme = lattice(name), config.propagation
    at = _numbers(geometry, domain, config.order)
    block = np.arange(at.max() + 1) // (prod(config.block) * config.cells_per_thread)
    unit = granule(config)  # streams begin at whole lines, as those of all nodes do
    extents = Extents(-(-len(block) // unit) * unit, 1, 1, stencil.q)
    per_sector = SECTOR_BYTES // config.stored.bytes
    counts = []
    for choose in (_read, _written):
        partial = 0
        for parity in range(scheme.period):
            for phase in scheme.passes(stencil, parity):
                found = [_sites_touched(at, *choose(access), config, extents) for access in phase.accesses]
                sectors = np.concatenate([block * _MOST_SECTORS + elements // per_sector for elements in found])
                # Every place has one writer and one reader. A sector that several warps share comes from memory once.
                touched, filled = np.unique(sectors, return_counts=True)
                partial += _PIECES * len(np.unique(touched[filled < per_sector] % _MOST_SECTORS))
        counts.append(partial / len(block) / scheme.period)
    return Partial(*counts)


def _read(access: Access) -> tuple[Place, Place]:
    return access.read, access.cut_read


def _written(access: Access) -> tuple[Place, Place]:
    return access.write, access.cut_write


def _sites_touched(at: Array, open_place: Place, cut: Place, config: CudaConfig, extents: Extents) -> Array:
    """The element that each site reads or writes, in the order of the sites."""
    import numpy as np

    site = at[at >= 0]
    there, here = (np.roll(at, [-o for o in reversed(p.offset)], (0, 1, 2))[at >= 0] for p in (open_place, cut))
    node = np.where(there >= 0, there, np.where(here >= 0, here, site))
    slot = np.where(there >= 0, open_place.slot, cut.slot)
    elements = np.empty_like(site)
    elements[site] = index(config.memory, extents, node, 0, 0, slot)
    return elements


@lru_cache(maxsize=16)
def _numbers(geometry: str, domain: tuple[int, int, int], order_name: str) -> Array:
    """Numbers of the sites of a part in the middle of the domain, int64 (nz, ny, nx), -1 where it is solid."""
    import numpy as np

    from lbmtune.catalogue.problem.geometry import voxels

    part = (domain[0], *(min(n, _ROWS) for n in domain[1:])) if order_name == "row" else [min(n, _EDGE) for n in domain]
    window = tuple(slice((n - size) // 2, (n - size) // 2 + size) for n, size in zip(domain, part, strict=True))
    solid = voxels(geometry, domain)[window[::-1]] if geometry else np.zeros(part[::-1], bool)
    z, y, x = np.nonzero(~solid)
    ranked = np.argsort(order(order_name)(x, y, z))
    at = np.full(solid.shape, -1)
    at[z[ranked], y[ranked], x[ranked]] = np.arange(len(ranked))
    return at
