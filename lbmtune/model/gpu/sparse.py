"""Fluid sites and an index list: one step per launch, with partial sectors and copies of accesses by a list."""

from collections.abc import Collection
from functools import cached_property, lru_cache
from math import prod
from operator import attrgetter
from typing import Any

import numpy as np

from lbmtune.catalogue.families.cuda.sparse import Sparse
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.layouts.layout import Extents, Layout, index
from lbmtune.catalogue.limits import SECTOR_BYTES, WARP
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.geometry import voxels
from lbmtune.catalogue.schemes.scheme import Place, Scheme
from lbmtune.catalogue.sparse.index_list import listed_rows
from lbmtune.catalogue.sparse.nodes import granule
from lbmtune.catalogue.sparse.site_orders import order
from lbmtune.lattice import lattice
from lbmtune.model.gpu.direct import FIXED, one_step_terms
from lbmtune.model.gpu.families import Family, traffic_alone
from lbmtune.model.gpu.inputs import Inputs, displaced_sides, has_local_steps
from lbmtune.model.gpu.terms.copies import elements, longer_s, runs, sectors_term, usual
from lbmtune.model.gpu.terms.sectors import Partial, warp_of
from lbmtune.model.gpu.terms.spills import local_memory
from lbmtune.model.machine.description import WORD_BYTES
from lbmtune.records import Term
from lbmtune.records.terms import INDEX_PREFETCH, LOCAL, RUNS, SECTORS

Array = Any
Numbered = tuple[str, tuple[int, int, int], str]
"""Geometry, domain and order of sites."""
_THREADS = 64
"""Threads of a block that was measured with a list."""
_OF_POINTER = 3
"""Registers of a word of a list and the address that it leads to."""
_PIECES, _MOST_SECTORS = 2, 1 << 40
"""Pieces of a shared sector in displaced copies, whose cost it takes."""
_ROWS, _EDGE = 12, 32
"""Sampled part of a geometry: whole rows, as many along y and z; or a cube, for orders in cubes."""


class SparseInputs(Inputs):
    """A kernel of fluid sites."""

    config: Sparse

    displaces = True
    skips_solid_cells = False
    row_bytes = float("inf")

    @property
    def walking(self) -> bool:
        """Return whether a thread updates several groups of sites one after another."""
        return bool(self.config.sites_per_thread > 1)

    @property
    def launched_blocks(self) -> int:
        """Return the blocks of a launch over all fluid sites."""
        turns: int = self.config.sites_per_thread
        return -(-self.case.fluid_sites // (self.block_threads * self.config.cells_per_thread * turns))

    @cached_property
    def list_factor(self) -> float:
        """Return the bandwidth of accesses by a list, over that of plain copies."""
        return _listed(self) / self.calibration.runs_bytes_per_s[str(self.config.stored.bytes)]

    @property
    def passing_bytes(self) -> float:
        """Return the bytes that the threads of a multiprocessor update, which pass through its caches."""
        return self.threads * self.config.cells_per_thread * traffic(self.case, self.config).populations

    @property
    def neighbour_registers(self) -> int:
        """Return the registers for the pointers of the sites of a thread."""
        return _OF_POINTER * len(listed_rows(self.case, self.config).pointers) * self.config.cells_per_thread


def terms(inputs: SparseInputs, without: Collection[str]) -> list[Term]:
    """Return the terms of a kernel of one step of fluid sites."""
    moved = {RUNS: runs, SECTORS: partial, INDEX_PREFETCH: index_prefetch, LOCAL: local_memory}
    return one_step_terms(inputs, without, moved, FIXED)


def _listed(inputs: SparseInputs, variant: str = "") -> float:
    """Return bytes per second of the copy by a list that is like the scheme: in place, or by its stores or loads."""
    rates, scheme = inputs.calibration.listed_bytes_per_s, inputs.config.propagation
    side = "in place" if scheme.in_place else "stores" if "stores" in displaced_sides(inputs, 0) else "loads"
    return rates[f"{inputs.config.stored.bytes} {side}{variant}"]


def _longer_s(inputs: SparseInputs, variant: str) -> float:
    """Return the additional seconds of an access, with its word, in a variant of the copy by a list."""
    return (2 * inputs.config.stored.bytes + WORD_BYTES) * (1 / _listed(inputs, variant) - 1 / _listed(inputs))


def index_prefetch(inputs: SparseInputs) -> Term:
    """Return the time of prefetching words of the list."""
    words = traffic(inputs.case, inputs.config).index / WORD_BYTES if inputs.config.prefetch_index else 0.0
    seconds = words * max(0.0, _longer_s(inputs, " ahead")) if words else 0.0
    return Term(INDEX_PREFETCH, seconds, f"{words:g} words of the list are prefetched", "micro-benchmark `listed`")


def partial(inputs: SparseInputs) -> Term:
    """Return the time of sectors that a warp touches and does not fill."""
    alone = 0 < inputs.run_bytes < SECTOR_BYTES  # the copy of single elements has them already
    found = Partial(0.0, 0.0) if alone else partial_sectors(inputs.case, inputs.config)
    return sectors_term(inputs, found, lambda side: _per_sector_s(inputs, side))


def _per_sector_s(inputs: SparseInputs, side: str) -> float:
    """Return seconds of a sector that two warps share, which are anywhere in a block; counted as those of words.

    Loads are those of the copy by a list, and so are schemes in which one step of two takes all populations from
    neighbours and leaves them there.
    """
    if side == "loads" or has_local_steps(inputs):
        return max(0.0, WARP * _longer_s(inputs, " displaced")) / 2
    return longer_s(inputs, elements(inputs, WORD_BYTES), side, usual(side), _THREADS) / 2


def partial_sectors(case: Case, config: Sparse) -> Partial:
    """Count the sectors per update that a warp of sites loads and stores in part."""
    at = case.geometry, case.domain, config.order
    warp_sites = prod(warp_of(config.block)) * config.cells_per_thread
    placed = config.propagation, config.memory, config.stored.bytes
    return _counted(case.stencil.name, at, warp_sites, granule(config), placed)


@lru_cache(maxsize=1024)
def _counted(name: str, at: Numbered, warp_sites: int, unit: int, placed: tuple[Scheme, Layout, int]) -> Partial:
    """Count them for the fluid sites of a part of the domain.

    unit: streams begin at multiples of it, in elements; placed: scheme, layout, and bytes of an element.
    A solid neighbour leaves the population at the cell itself (`Access.cut_read`, `Access.cut_write`).
    """
    (scheme, memory, element_bytes), stencil, numbers = placed, lattice(name), _numbers(*at)
    block = np.arange(numbers.max() + 1) // warp_sites
    extents = Extents(-(-len(block) // unit) * unit, 1, 1, stencil.q)
    per_sector = SECTOR_BYTES // element_bytes
    counts = []
    for places in (attrgetter("read", "cut_read"), attrgetter("write", "cut_write")):
        partial = 0
        for phase in scheme.all_passes(stencil):
            found = [_sites_touched(numbers, *places(access), memory, extents) for access in phase.accesses]
            sectors = np.concatenate([block * _MOST_SECTORS + elements // per_sector for elements in found])
            # Every place has one writer and one reader. A sector that several warps share comes from memory once.
            touched, filled = np.unique(sectors, return_counts=True)
            partial += _PIECES * len(np.unique(touched[filled < per_sector] % _MOST_SECTORS))
        counts.append(partial / len(block) / scheme.period)
    return Partial(*counts)


def _sites_touched(at: Array, open_place: Place, cut: Place, memory: Layout, extents: Extents) -> Array:
    """Return the element that each site reads or writes, in the order of the sites."""
    site = at[at >= 0]
    there, here = (np.roll(at, [-o for o in reversed(p.offset)], (0, 1, 2))[at >= 0] for p in (open_place, cut))
    node = np.where(there >= 0, there, np.where(here >= 0, here, site))
    slot = np.where(there >= 0, open_place.slot, cut.slot)
    elements = np.empty_like(site)
    elements[site] = index(memory, extents, node, 0, 0, slot)
    return elements


@lru_cache(maxsize=16)
def _numbers(geometry: str, domain: tuple[int, int, int], order_name: str) -> Array:
    """Return the numbers of the sites of a part in the middle of the domain: int64 (nz, ny, nx), -1 if solid."""
    part = (domain[0], *(min(n, _ROWS) for n in domain[1:])) if order_name == "row" else [min(n, _EDGE) for n in domain]
    window = tuple(slice((n - size) // 2, (n - size) // 2 + size) for n, size in zip(domain, part, strict=True))
    solid = voxels(geometry, domain)[window[::-1]] if geometry else np.zeros(part[::-1], bool)
    z, y, x = np.nonzero(~solid)
    ranked = np.argsort(order(order_name)(x, y, z))
    at = np.full(solid.shape, -1)
    at[z[ranked], y[ranked], x[ranked]] = np.arange(len(ranked))
    return at


MODEL = Family(SparseInputs, terms, memory_bytes=traffic_alone)
