"""Sectors of 32 bytes that a block of threads touches and does not fill: what misaligned accesses cost.

Memory and L2 cache of a GPU move whole sectors. The cells of a block are laid out by the layout's own function, so all
schemes, layouts, paddings and block shapes are counted in one way: on the set of elements that a block in the middle
of the domain reads and writes. Warps of a block meet in the caches; what two blocks share does not.
Source: CUDA C++ Best Practices Guide, coalesced access to global memory; Wellein et al. 2006 for the accesses.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.layout import index
from lbmtune.catalogue.march import SECTOR_BYTES, block_cells
from lbmtune.catalogue.scheme import Place
from lbmtune.catalogue.storage import Domain, frame
from lbmtune.lattice import Lattice

Array = Any


class Partial(NamedTuple):
    """Sectors per update, the mean over the parities, that a block loads or stores in part.

    in_place: those among both that it loads and stores where it loaded.
    """

    loads: float
    stores: float


def partial_sectors(case: Case, config: CudaConfig) -> Partial:
    """Of a kernel of one step per launch with direct addressing."""
    return _counted(case.stencil.name, case.domain, _shape(config))


def _shape(config: CudaConfig) -> CudaConfig:
    """The configuration with nothing but what decides where its blocks read and write."""
    return CudaConfig(
        scheme=config.scheme,
        layout=config.layout,
        width=config.width,
        padding=config.padding,
        group=config.group,
        layout_tile=config.layout_tile,
        storage=config.storage,
        block=config.block,
        cells_per_thread=config.cells_per_thread,
        wrap=config.wrap,
        march=config.march,
        boundary=config.boundary,
    )


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
    return tuple(min(n, cells) for n, cells in zip(domain, block_cells(stencil, config), strict=True))


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
    """What a block in the middle of the domain touches of one slot."""
    import numpy as np

    placed = frame(stencil, config)
    axes = []
    for axis, (n, cells) in enumerate(zip(domain, _cells(stencil, config, domain), strict=True)):
        first = n // cells // 2 * cells
        axes.append(placed.coordinate(axis, np.arange(first, first + cells)) + place.offset[axis])
    x, y, z = np.meshgrid(*axes, indexing="ij")
    return index(config.memory, placed.extents(Domain(*domain)), x, y, z, place.slot).ravel()
