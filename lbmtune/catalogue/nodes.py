"""The nodes of indirect addressing and the list that connects them, as NumPy arrays.

Nodes are numbered: first the fluid sites in the order asked for; then spare ones, at least one, that fill up vectors
and blocks and lead to themselves; then those other cells that some place of a fluid site lies in. Neighbours wrap
around the box, walls or not: a place belongs to one link, so what a wall cuts off keeps it for itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CpuConfig, CudaConfig, KernelConfig
from lbmtune.catalogue.geometry import solid
from lbmtune.catalogue.indirect import CUT_BIT, MOVING_BIT, NodeList, Pointer, node_list, phases, pointer, ways
from lbmtune.catalogue.links import cut_kind
from lbmtune.catalogue.orders import order
from lbmtune.catalogue.schemes import scheme as by_name
from lbmtune.lattice import Vector

Array = Any
_GRANULE = 32
"""Rows of the list and runs of nodes are a multiple of it, so that each starts at a line of 128 bytes."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """A numbering. cells: numbers of the fluid cells (x fastest) in the order of their sites, int64.

    sites: updated ones, the first len(cells) fluid and the rest spare; count: all nodes; at: number of the node of
    each cell of the box, int32, (nz, ny, nx), -1 where there is none.
    """

    cells: Array
    sites: int
    count: int
    at: Array

    @property
    def fluid(self) -> int:
        """Fluid sites."""
        return len(self.cells)


class Counts(NamedTuple):
    """fluid: fluid sites; sites: updated ones, spare ones among them; nodes: all."""

    fluid: int
    sites: int
    nodes: int


def counts(case: Case, config: KernelConfig) -> Counts:
    """How many sites and nodes a configuration has."""
    if not case.geometry:
        return _counts(case.sites, 0, granule(config))
    return _counted(_shape(case), config.scheme, granule(config))


@lru_cache(maxsize=64)
def _counted(case: Case, scheme: str, unit: int) -> Counts:
    fluid, others = _members(case, scheme)
    return _counts(len(fluid), len(others), unit)


def nodes(case: Case, config: KernelConfig) -> Nodes:
    """The numbering of a configuration."""
    return _numbered(_shape(case), config.scheme, config.order, granule(config))


def _shape(case: Case) -> Case:
    """The case with all that does not concern its links at fixed values, so that what is remembered is found again."""
    velocity = (1.0, 0.0, 0.0) if case.moving else (0.0, 0.0, 0.0)
    return replace(
        case, collision="bgk", relaxation_rate=1.0, magic=0.25, force=(0.0, 0.0, 0.0), wall_velocity=velocity
    )


def granule(config: KernelConfig) -> int:
    """What the numbers of sites and of nodes are multiples of."""
    if isinstance(config, CudaConfig):
        return lcm(_GRANULE, config.cells_per_thread, max(config.memory.run, 1))
    assert isinstance(config, CpuConfig)
    return lcm(_GRANULE, max(config.memory.run, 1))


def _counts(fluid: int, others: int, unit: int) -> Counts:
    sites = (fluid // unit + 1) * unit
    return Counts(fluid, sites, -(-(sites + others) // unit) * unit)


@lru_cache(maxsize=4)
def _numbered(case: Case, scheme: str, name: str, unit: int) -> Nodes:
    fluid, others = _members(case, scheme)
    _, sites, count = _counts(len(fluid), len(others), unit)
    cells = _sorted(fluid, name, case.domain)
    at = np.full(case.sites, -1, np.int32)
    at[cells] = np.arange(len(cells), dtype=np.int32)
    at[_sorted(others, name, case.domain)] = np.arange(sites, sites + len(others), dtype=np.int32)
    return Nodes(cells, sites, count, at.reshape(case.domain[::-1]))


def _sorted(cells: Array, name: str, domain: tuple[int, int, int]) -> Array:
    return cells if name == "row" else cells[np.argsort(order(name)(*_coordinates(cells, domain)), kind="stable")]


@lru_cache(maxsize=4)
def _members(case: Case, scheme: str) -> tuple[Array, Array]:
    """Fluid cells, and other cells that a place of a fluid site lies in; each by rows."""
    solids = solid(case)
    fluid = np.flatnonzero(~solids)
    touched = np.zeros(case.sites, bool)
    table = phases(case.stencil, by_name(scheme))
    for found in dict.fromkeys(p for phase in table for way in ways(case.stencil, phase) if (p := pointer(case, way))):
        touched[_led_to(case, fluid, found)] = True
    return fluid, np.flatnonzero(touched & solids.reshape(-1))


def _led_to(case: Case, cells: Array, found: Pointer) -> Array:
    """Cells that a pointer leads to from each of some cells."""
    opened = _moved(cells, found.open, case.domain)
    if found.link is None:
        return opened
    return np.where(_kinds(case, cells, found.link) > 0, _moved(cells, found.cut, case.domain), opened)


def _kinds(case: Case, cells: Array, link: Vector) -> Array:
    """What the link of each cell meets: 0 open, 1 a wall, 2 a moving wall."""
    return cut_kind(case, link).reshape(-1)[cells]


def _coordinates(cells: Array, domain: tuple[int, int, int]) -> tuple[Array, Array, Array]:
    nx, ny, _ = domain
    return cells % nx, cells // nx % ny, cells // (nx * ny)


def _moved(cells: Array, offset: Vector, domain: tuple[int, int, int]) -> Array:
    """Numbers of the cells at an offset, around the box."""
    x, y, z = ((a + o) % n for a, o, n in zip(_coordinates(cells, domain), offset, domain, strict=True))
    return (z * domain[1] + y) * domain[0] + x


def index_list(case: Case, config: KernelConfig) -> Array:
    """The list that a kernel reads: uint32, one row of `sites` words for each row of `node_list`, in one dimension."""
    return _listed(_shape(case), config.scheme, config.order, granule(config))


@lru_cache(maxsize=2)
def _listed(case: Case, scheme: str, name: str, unit: int) -> Array:
    numbering, rows = _numbered(case, scheme, name, unit), node_list(case, by_name(scheme))
    words = np.zeros((rows.rows, numbering.sites), np.uint32)
    words[: len(rows.pointers)] = np.arange(numbering.sites, dtype=np.uint32)
    for row, found in enumerate(rows.pointers):
        words[row, : numbering.fluid] = _pointers(case, numbering, found)
    if rows.masked:
        _fill_masks(case, numbering, rows, words)
    words.flags.writeable = False
    return words.reshape(-1)


def _pointers(case: Case, numbering: Nodes, found: Pointer) -> Array:
    opened = _neighbours(numbering, found.open)
    if found.link is None:
        return opened
    kinds = _kinds(case, numbering.cells, found.link)
    target = np.where(kinds > 0, _neighbours(numbering, found.cut), opened)
    return target | _bit(kinds > 0, CUT_BIT) | _bit(kinds > 1, MOVING_BIT)


def _neighbours(numbering: Nodes, offset: Vector) -> Array:
    """Nodes of the cells at an offset from each fluid site."""
    x, y, z = offset
    moved = np.roll(numbering.at, (-z, -y, -x), axis=(0, 1, 2))
    return moved.reshape(-1)[numbering.cells].astype(np.uint32)


def _fill_masks(case: Case, numbering: Nodes, rows: NodeList, words: Array) -> None:
    mask = words[rows.mask_row, : numbering.fluid]
    for bit, link in enumerate(rows.masked):
        kinds = _kinds(case, numbering.cells, link)
        mask |= _bit(kinds > 0, bit)
        if rows.moves:
            mask |= _bit(kinds > 1, MOVING_BIT)
            words[rows.mask_row + 1, : numbering.fluid] |= _bit(kinds > 1, bit)


def _bit(where: Array, bit: int) -> Array:
    return where.astype(np.uint32) << np.uint32(bit)
