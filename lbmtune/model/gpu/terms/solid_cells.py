"""Sectors of 32 bytes that go through memory if solid cells leave holes in them.

Memory moves sectors, two at a time. A kernel of the whole box that skips solid cells moves the sectors with solid cells
for the fluid ones alone. A sector that is stored in part is completed from memory, unless the same launch has loaded
it. Both are counted on the geometry itself, by the tables of the scheme and the layout's own function.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from lbmtune.catalogue.config import Block, CudaConfig
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.layouts.layout import index
from lbmtune.catalogue.limits import SECTOR_BYTES
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.geometry import voxels
from lbmtune.catalogue.schemes.scheme import Phase, Place
from lbmtune.catalogue.storage_frame import Domain
from lbmtune.lattice import Lattice, Vector, lattice
from lbmtune.model.gpu.inputs import Inputs
from lbmtune.model.gpu.terms.copies import bandwidth
from lbmtune.model.gpu.terms.sectors import Placement, placement, warp_of
from lbmtune.model.machine.curves import by_number, interpolated
from lbmtune.model.machine.description import WORD_BYTES
from lbmtune.records import Term
from lbmtune.records.terms import SOLID

Array = Any
_OF = 64
"""Sectors in which a copy has a given number of holes or pieces."""
_LANES = SECTOR_BYTES // WORD_BYTES
"""Lanes whose words are a sector of local memory."""
_PARTS, _ROWS = 3, 4
"""Parts of a geometry that are sampled along y and along z, and whole rows of each."""


class Touched(NamedTuple):
    """Sectors per update, as the mean over the parities: loaded, stored, and stored in part.

    completed: stored in part and not loaded by the same pass; paired: loaded or stored, with their neighbours in the 64
    bytes that memory moves at once; rows, planes: completed ones that cells of two rows, or planes, store in pieces.
    """

    loaded: float
    stored: float
    partial: float
    completed: float
    paired: float
    rows: float
    planes: float


class Lanes(NamedTuple):
    """Sectors of local memory that take part in an update, for a word of each lane.

    partial: sectors that some lanes leave out; blocks: share of the blocks that have a fluid cell.
    """

    sectors: float
    partial: float
    blocks: float


def solid_cells(inputs: Inputs) -> Term:
    """Return the time of moving whole sectors and completing those that are stored in part."""
    case, config = inputs.case, inputs.config
    if not inputs.skips_solid_cells:
        return Term(SOLID, 0.0, "none", "")
    found = touched(case, config)
    more_bytes = found.paired * SECTOR_BYTES - traffic(case, config).populations
    in_pieces = found.rows + found.planes if inputs.calibration.pieces_bytes_per_s else 0.0
    sides = {"apart": found.completed - in_pieces, "in place": found.partial - found.completed}
    holes_s = sum(holes_s_of_a_sector(inputs, side, count / found.stored) for side, count in sides.items())
    row_bytes = case.domain[0] * traffic(case, config).total * case.fluid_sites / case.sites
    apart = {row_bytes: found.rows, row_bytes * case.domain[1]: found.planes} if in_pieces else {}
    pieces_s = sum(_pieces_s(inputs, bytes_, count / found.stored) for bytes_, count in apart.items())
    seconds = more_bytes / bandwidth(inputs, by_runs=False) + found.stored * (holes_s + pieces_s)
    sentence = f"{more_bytes:.4g} bytes more, {found.partial:.3g} of {found.stored:.3g} sectors stored in part"
    return Term(SOLID, seconds, sentence, "counted on the geometry; micro-benchmarks `holes`, `pieces`")


def holes_s_of_a_sector(inputs: Inputs, side: str, share: float) -> float:
    """Return the additional seconds of a sector that is loaded and stored if a share of the stored ones has a hole.

    Without a measurement: the time to read what completes them.
    """
    rates = inputs.calibration.holes_bytes_per_s
    if not rates:
        return share * SECTOR_BYTES / bandwidth(inputs, by_runs=False) if side == "apart" else 0.0
    return 2 * SECTOR_BYTES * max(0.0, _longer_s(rates, side, share))


def _pieces_s(inputs: Inputs, bytes_: float, share: float) -> float:
    """Return the additional seconds if a share of the stored ones comes in two pieces, with bytes moved in between."""
    rates = inputs.calibration.pieces_bytes_per_s
    apart = sorted({int(name.split()[0]) for name in rates})
    curve = [(float(known), _longer_s(rates, str(known), share)) for known in apart]
    return 2 * SECTOR_BYTES * max(0.0, interpolated(curve, max(bytes_, apart[0])))


def _longer_s(rates: Mapping[str, float], copy: str, share: float) -> float:
    """Return the additional seconds per byte of a copy if a share of its sectors is left out or cut in pieces."""
    known = by_number(tuple(rates), f"{copy} ")
    return interpolated(sorted((n / _OF, 1 / rates[name] - 1 / rates[known[0]]) for n, name in known.items()), share)


def lanes(case: Case, config: CudaConfig) -> Lanes:
    """Count the lanes of a kernel of one step that visits all cells of a geometry."""
    return _lanes(case.geometry, case.domain, placement(case.stencil, config))


@lru_cache(maxsize=1024)
def _lanes(geometry: str, domain: Block, placed: Placement) -> Lanes:
    parts = [_Part(placed, fluid) for fluid in _fluid(geometry, domain)]
    updates = sum(int(part.fluid.sum()) for part in parts)
    blocks = sum(float(part.together(placed.threads).mean()) for part in parts) / len(parts)
    if placed.cells_per_thread > 1:  # lanes exchange vectors, so all lanes of a warp stay
        return Lanes(
            sum(int(part.moved.sum()) for part in parts) / placed.cells_per_thread / updates / _LANES, 0.0, blocks
        )
    sectors = partial = 0
    for part in parts:
        x = part.fluid.shape[2]
        of_sector = np.add.reduceat(part.fluid, np.arange(0, x, _LANES), axis=2, dtype=int)
        sectors += int((of_sector > 0).sum())
        partial += int(((of_sector > 0) & (of_sector < _LANES)).sum())
    return Lanes(sectors / updates, partial / updates, blocks)


def whole_sectors(case: Case, config: CudaConfig) -> float:
    """Return the bytes per update that memory moves beyond the traffic: rest of sectors, and what completes them."""
    if not case.geometry:
        return 0.0
    found = touched(case, config)
    return (found.loaded + found.stored + found.completed) * SECTOR_BYTES - traffic(case, config).populations


def touched(case: Case, config: CudaConfig) -> Touched:
    """Count the sectors of a kernel of one step that visits all cells of a geometry."""
    return _touched(case.geometry, case.domain, case.stencil.name, placement(case.stencil, config))


@lru_cache(maxsize=1024)
def _touched(geometry: str, domain: Block, name: str, placed: Placement) -> Touched:
    stencil, scheme = lattice(name), placed.scheme
    passes = scheme.all_passes(stencil)
    parts = [_Part(placed, fluid) for fluid in _fluid(geometry, domain)]
    counts = zip(*(part.sectors(stencil, phase) for part in parts for phase in passes), strict=True)
    updates = sum(int(part.fluid.sum()) for part in parts) * scheme.period
    return Touched(*(sum(count) / updates for count in counts))


def _fluid(geometry: str, domain: Block) -> list[Array]:
    """Return the fluid cells of parts that are spread over a domain: bool, (nz, ny, nx) each.

    If no part has a fluid cell: the row with the most fluid cells.
    """
    solid = voxels(geometry, domain)
    parts = [~solid[z, y] for z in _slices(domain[2]) for y in _slices(domain[1])]
    if any(part.any() for part in parts):
        return parts
    z, y = divmod(int((~solid).sum(2).argmax()), domain[1])
    return [~solid[z : z + 1, y : y + 1]]


def _slices(rows: int) -> list[slice]:
    """Return evenly spread parts of an axis; all of a short one."""
    if rows <= _PARTS * _ROWS:
        return [slice(0, rows)]
    starts = [rows * (2 * part + 1) // (2 * _PARTS) - _ROWS // 2 for part in range(_PARTS)]
    return [slice(start, start + _ROWS) for start in starts]


class _Part:
    """A part of a geometry: whole rows and the places of their populations. Rows and planes are rings."""

    def __init__(self, placed: Placement, fluid: Array) -> None:
        """Take fluid cells: bool, (nz, ny, nx)."""
        self.fluid = fluid
        self._placed = placed
        self._extents = placed.frame.extents(Domain(*fluid.shape[::-1]))
        # lanes that exchange vectors all stay if their warp has a fluid cell
        self.moved = fluid if placed.cells_per_thread == 1 else self.together(warp_of(placed.threads))

    def together(self, threads: Block) -> Array:
        """Return the cells of groups of threads with at least one fluid cell."""
        x, y, z = threads
        sizes = (z, y, x * self._placed.cells_per_thread)
        number = np.indices(self.fluid.shape, sparse=True)
        which = sum(at // size * stride for at, size, stride in zip(number, sizes, (1 << 40, 1 << 20, 1), strict=True))
        _, which = np.unique(which, return_inverse=True)
        return (np.bincount(which.ravel(), self.fluid.ravel()) > 0)[which].reshape(self.fluid.shape)

    def sectors(self, stencil: Lattice, phase: Phase) -> Touched:
        """Count the sectors of a pass over all cells of the part."""
        loaded, stored, *returned = (np.zeros(self._placed.memory.length(self._extents), bool) for _ in range(5))
        for access in phase.accesses:
            velocity = stencil.velocities[access.direction]
            arrives, leaves = (self._open(velocity, sign) for sign in (-1, 1))
            self._mark(loaded, access.read, self.moved)
            self._mark(loaded, access.cut_read, self.fluid & ~arrives)
            if access.write == access.cut_write or self._placed.implicit:
                self._mark(stored, access.write, self.moved)
            else:
                self._mark(stored, access.write, self.fluid & leaves)
                self._mark(returned[_axes_apart(velocity)], access.cut_write, self.fluid & ~leaves)
        # other rows store what walls return than what is sent, at other times
        loads, sent, *kept = (self._marked(each) for each in (loaded, stored, *returned))
        stores, whole = np.maximum.reduce([sent, *kept]), self._placed.sector_elements
        partial = (stores > 0) & (stores < whole)
        completed = partial & (loads == 0) if phase.in_place else partial
        paired = sum(2 * np.count_nonzero(each[0::2] | each[1::2]) for each in (loads, stores))
        rows, planes = (completed & (sent > 0) & (each > 0) for each in kept[1:])
        counts = [np.count_nonzero(each) for each in (loads, stores, partial, completed)]
        return Touched(*map(float, (*counts, paired, *map(np.count_nonzero, (rows, planes)))))

    def _open(self, velocity: Vector, sign: int) -> Array:
        """Return the cells whose neighbour along a direction (1) or against it (-1) is fluid; implicit: all cells."""
        if self._placed.implicit:
            return np.ones_like(self.fluid)
        return np.roll(self.fluid, [-sign * c for c in reversed(velocity)], (0, 1, 2))

    def _mark(self, elements: Array, place: Place, cells: Array) -> None:
        extents = self.fluid.shape[::-1]
        axes = [
            self._placed.frame.coordinate(axis, (np.arange(n) + moved) % n)
            for axis, (n, moved) in enumerate(zip(extents, place.offset, strict=True))
        ]
        x, y, z = np.meshgrid(*axes, indexing="ij", sparse=True)
        elements[index(self._placed.memory, self._extents, x, y, z, place.slot).T[cells]] = True

    def _marked(self, elements: Array) -> Array:
        """Count the elements of each sector that are set."""
        per_sector = self._placed.sector_elements
        whole = np.zeros(-(-elements.size // (2 * per_sector)) * 2 * per_sector, np.uint8)
        whole[: elements.size] = elements
        return sum(whole[first::per_sector] for first in range(per_sector))


def _axes_apart(velocity: Vector) -> int:
    """Return whether a direction leads to the same row (0), another one (1), or another plane (2)."""
    _, y, z = velocity
    return 2 if z else 1 if y else 0
