"""Nodes of indirect addressing and the list that connects them, as arrays of numpy or cupy.

Nodes are numbered: first the fluid sites in the configured order; then spare sites, at least one, which fill up vectors
and blocks and point to themselves; then other cells in which a place of a fluid site lies. Neighbours wrap around the
box, also across walls: a place belongs to one link, so no other cell uses it if the link is cut.

Numberings and lists are computed with whole-field operations and cached: they depend only on the links of a case, the
rows of the list and the order, which many configurations share.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import lcm
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from lbmtune.catalogue.boundaries.cell_flags import aligned_words
from lbmtune.catalogue.boundaries.cut_links import cut_kind, solid_in, whole
from lbmtune.catalogue.byte_lru_cache import remembered
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.geometry import fluid_cells
from lbmtune.catalogue.problem.patches import types
from lbmtune.catalogue.record import KernelConfig
from lbmtune.catalogue.schemes.scheme import HERE
from lbmtune.catalogue.sparse.index_list import CUT_BIT, MOVING_BIT, NodeList, Pointer, listed_rows
from lbmtune.catalogue.sparse.site_orders import order
from lbmtune.lattice import Vector

Array = Any
Pointers = tuple[Pointer, ...]
_GRANULE = 128
"""Divisor of the length of rows of the list and of runs of nodes, so that each starts at a line of 128 bytes.

It is a multiple of the groups of nearly every layout, so that configurations of several layouts share a list.
"""
_CELLS_BYTES, _LIST_BYTES = 1 << 30, 4 << 30
"""Cache limits: of orders of cells and of numberings, each, and of lists; several of each for 256^3 cells."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """A numbering of nodes. cells: numbers of the fluid cells (x fastest) in the order of their sites, int64.

    sites: updated sites, the first len(cells) fluid and the rest spare; count: all nodes; at: node of each cell of the
    box, int32, (nz, ny, nx), -1 if it has none.
    """

    cells: Array
    sites: int
    count: int
    at: Array

    @property
    def fluid(self) -> int:
        """Return the number of fluid sites."""
        return len(self.cells)

    @property
    def nbytes(self) -> int:
        """Return the bytes of both arrays."""
        return int(self.cells.nbytes + self.at.nbytes)


class Counts(NamedTuple):
    """Numbers of nodes. fluid: fluid sites; sites: updated sites, including spare ones; nodes: all."""

    fluid: int
    sites: int
    nodes: int


def counts(case: Case, config: KernelConfig) -> Counts:
    """Return the numbers of sites and nodes of a configuration."""
    if not case.geometry:
        return _counts(case.sites, 0, granule(config))
    return _counted(_shape(case), listed_rows(case, config).pointers, granule(config))


def pitch(case: Case, config: KernelConfig) -> int:
    """Return the words of a row of the list: one per site or, if pointers are chased, per node."""
    _, sites, count = counts(case, config)
    return count if config.chases else sites


def most_nodes(case: Case, config: KernelConfig) -> int:
    """Return an upper bound of the number of nodes, which does not need the geometry."""
    return case.sites + 2 * granule(config)


def nodes(case: Case, config: KernelConfig, xp: ModuleType = np) -> Nodes:
    """Return the numbering of a configuration, as arrays of `xp`."""
    rows = listed_rows(case, config)
    return _numbered(_shape(case), rows.pointers, config.order, granule(config), xp)


def index_list(case: Case, config: KernelConfig, xp: ModuleType = np) -> Array:
    """Return the list that a kernel reads: one-dimensional uint32, a row of `pitch` words for each of `listed_rows`.

    Read-only: it is cached.
    """
    return _listed(_shape(case), listed_rows(case, config), config.order, granule(config), xp)


@lru_cache(maxsize=256)
def _shape(case: Case) -> Case:
    """Return the case with fixed values for all that does not affect links, so that cases share cached results."""
    velocity = (0.1, 0.0, 0.0) if case.moving else (0.0, 0.0, 0.0)
    return replace(
        case, collision="bgk", relaxation_rate=1.0, magic=0.25, force=(0.0, 0.0, 0.0), wall_velocity=velocity
    )


def granule(config: KernelConfig) -> int:
    """Return the number of which the counts of sites and of nodes are multiples."""
    return lcm(_GRANULE, config.site_granule)


def _counts(fluid: int, others: int, unit: int) -> Counts:
    sites = (fluid // unit + 1) * unit
    return Counts(fluid, sites, -(-(sites + others) // unit) * unit)


@lru_cache(maxsize=256)
def _counted(case: Case, pointers: Pointers, unit: int) -> Counts:
    fluid = fluid_cells(case.geometry, case.domain)
    return _counts(fluid, len(_others(case, pointers, np)), unit)


@remembered(_CELLS_BYTES)
def _numbered(case: Case, pointers: Pointers, name: str, unit: int, xp: ModuleType) -> Nodes:
    cells = _fluid(case, name, xp)
    others = _sorted(_others(case, pointers, xp), name, case.domain)
    _, sites, count = _counts(len(cells), len(others), unit)
    at = xp.full(case.sites, -1, xp.int32)
    at[cells] = xp.arange(len(cells), dtype=xp.int32)
    at[others] = xp.arange(sites, sites + len(others), dtype=xp.int32)
    return Nodes(cells, sites, count, at.reshape(case.domain[::-1]))


@remembered(_CELLS_BYTES)
def _fluid(case: Case, name: str, xp: ModuleType) -> Array:
    """Return the numbers of the fluid cells in an order."""
    return _sorted(xp.flatnonzero(~solid_in(case, whole(case.domain), xp)), name, case.domain)


def _sorted(cells: Array, name: str, domain: tuple[int, int, int]) -> Array:
    return cells if name == "row" or not cells.size else cells[order(name)(*_coordinates(cells, domain)).argsort()]


def _coordinates(cells: Array, domain: tuple[int, int, int]) -> tuple[Array, Array, Array]:
    nx, ny, _ = domain
    return cells % nx, cells // nx % ny, cells // (nx * ny)


@remembered(_CELLS_BYTES)
def _others(case: Case, pointers: Pointers, xp: ModuleType) -> Array:
    """Return the numbers of the solid cells in which a place of a fluid site lies, by rows."""
    solids = solid_in(case, whole(case.domain), xp)
    touched, fluid = xp.zeros(solids.shape, bool), ~solids
    for found in pointers:
        for leads, offset in _exits(case, found, xp):
            _mark(touched, fluid if leads is None else leads & fluid, offset)
    return xp.flatnonzero(touched & solids)


def _exits(case: Case, found: Pointer, xp: ModuleType) -> list[tuple[Array | None, Vector]]:
    """Return from which cells (None: from all), and by which offset, a pointer may lead out of the fluid."""
    if found.link is None:
        return [(None, found.open)]
    if found == Pointer(found.link, HERE, found.link):
        return []  # along an open link, or to the site itself
    cut = cut_kind(case, found.link, None, xp) > 0
    return [(~cut, found.open), (cut, found.cut)]


def _mark(touched: Array, leading: Array, offset: Vector) -> None:
    """Set the cells at an offset from those that lead there, (nz, ny, nx); coordinates wrap."""
    along = map(_wrapped, offset[::-1], touched.shape)
    for parts in product(*along):
        there, here = zip(*parts, strict=True)
        touched[there] |= leading[here]


def _wrapped(shift: int, extent: int) -> tuple[tuple[slice, slice], ...]:
    """Return where the cells of an axis lie after a shift, and before it: in one run, or in two if some wrap."""
    ahead = shift % extent
    runs = ((slice(ahead, None), slice(None, extent - ahead)), (slice(None, ahead), slice(extent - ahead, None)))
    return runs if ahead else runs[:1]


def _at_offset(field: Array, offset: Vector, xp: ModuleType) -> Array:
    """Return a field of cells, (nz, ny, nx), shifted by an offset; coordinates wrap."""
    x, y, z = offset
    return xp.roll(field, (-z, -y, -x), axis=(0, 1, 2)) if any(offset) else field


@remembered(_LIST_BYTES)
def _listed(case: Case, rows: NodeList, name: str, unit: int, xp: ModuleType) -> Array:
    numbering = _numbered(case, rows.pointers, name, unit, xp)
    length = numbering.count if rows.chased else numbering.sites
    words = aligned_words(rows.rows * length, xp).reshape(rows.rows, length)
    words.fill(0)
    words[: len(rows.kept)] = xp.arange(length, dtype=xp.uint32)
    for row, found in enumerate(rows.kept):
        words[row, : numbering.fluid] = _pointers(case, numbering, found, xp)
        if rows.chased:
            _link_other_nodes(numbering, found.open, words[row], xp)
    if rows.masked:
        _fill_masks(case, numbering, rows, words, xp)
    if rows.typed:
        words[rows.type_row, : numbering.fluid] = _at_sites(types(case, everywhere=True, xp=xp), numbering, xp)
    return words.reshape(-1)


def _pointers(case: Case, numbering: Nodes, found: Pointer, xp: ModuleType) -> Array:
    opened = _neighbours(numbering, found.open, xp)
    if found.link is None:
        return opened
    kinds = _kinds(case, numbering, found.link, xp)
    target = xp.where(kinds > 0, _neighbours(numbering, found.cut, xp), opened)
    return target | _bit(kinds > 0, CUT_BIT, xp) | _bit(kinds > 1, MOVING_BIT, xp)


def _link_other_nodes(numbering: Nodes, offset: Vector, row: Array, xp: ModuleType) -> None:
    """Set the words of nodes that are not sites: to the node at an offset, or to themselves if there is none."""
    own = numbering.at.reshape(-1)
    cells = xp.flatnonzero(own >= numbering.sites)
    start, end = (xp.take(field.reshape(-1), cells) for field in (own, _at_offset(numbering.at, offset, xp)))
    row[start] = xp.where(end < 0, start, end).astype(xp.uint32)


def _neighbours(numbering: Nodes, offset: Vector, xp: ModuleType) -> Array:
    """Return the nodes of the cells at an offset from each fluid site."""
    if offset == HERE:
        return xp.arange(numbering.fluid, dtype=xp.uint32)
    return _at_sites(_at_offset(numbering.at, offset, xp), numbering, xp).astype(xp.uint32)


def _kinds(case: Case, numbering: Nodes, link: Vector, xp: ModuleType) -> Array:
    """Return by what the link of each fluid site is cut: 0 open, 1 a wall, 2 a moving wall."""
    return _at_sites(cut_kind(case, link, None, xp), numbering, xp)


def _at_sites(field: Array, numbering: Nodes, xp: ModuleType) -> Array:
    """Return a field of cells at the fluid sites, in their order."""
    return xp.take(field.reshape(-1), numbering.cells)


def _fill_masks(case: Case, numbering: Nodes, rows: NodeList, words: Array, xp: ModuleType) -> None:
    mask = words[rows.mask_row, : numbering.fluid]
    for bit, link in enumerate(rows.masked):
        kinds = _kinds(case, numbering, link, xp)
        mask |= _bit(kinds > 0, bit, xp)
        if rows.moves:
            mask |= _bit(kinds > 1, MOVING_BIT, xp)
            words[rows.mask_row + 1, : numbering.fluid] |= _bit(kinds > 1, bit, xp)


def _bit(where: Array, bit: int, xp: ModuleType) -> Array:
    return where.astype(xp.uint32) << xp.uint32(bit)
