"""Sectors of 32 bytes that go through memory where solid cells leave holes in them.

Memory moves sectors, two at a time. A kernel of the whole box that skips solid cells moves those that hold some for the
fluid ones alone; and what is stored of a sector but for a few elements is completed from memory, unless the same launch
has loaded it. Both are counted on the geometry itself, by the tables of the scheme and the layout's own function.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.temporal_blocking import SECTOR_BYTES
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.layouts.layout import index
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Phase, Place
from lbmtune.catalogue.storage import Domain, frame
from lbmtune.lattice import Lattice
from lbmtune.model.gpu.copy_terms import bandwidth
from lbmtune.model.gpu.inputs import SOLID, WORD_BYTES, Subject, between
from lbmtune.model.gpu.sectors import shape, warp_of
from lbmtune.model.machine.figures import numbered
from lbmtune.records import Term

Array = Any
_OF = 64
"""Sectors, of which so many have a hole in a copy."""
_LANES = SECTOR_BYTES // WORD_BYTES
"""Whose words are a sector of local memory."""
_PARTS, _ROWS = 3, 4
"""Of a geometry that are looked at: so many along y and along z, each of so many whole rows both ways."""


class Touched(NamedTuple):
    """Sectors per update, the mean over the parities: loaded, stored, and stored in part.

    completed: those of the last that the pass has not loaded; paired: all that are loaded or stored, with their
    neighbours in the 64 bytes that memory moves at once; rows, planes: of the completed ones those that cells of two
    rows, or of two planes, store in pieces.
    """

    loaded: float
    stored: float
    partial: float
    completed: float
    paired: float
    rows: float
    planes: float


class Lanes(NamedTuple):
    """What takes part, for each update. threads: of warps; sectors: of a word of each lane that something is stored in.

    partial: of these, such as some lanes leave out. blocks: share of the blocks that have a fluid cell.
    """

    threads: float
    sectors: float
    partial: float
    blocks: float


def solid_cells(subject: Subject) -> Term:
    """What it takes more that memory moves whole sectors, and completes those that are stored in part."""
    case, config = subject.case, subject.config
    if config.indirect or not case.geometry:
        return Term(name=SOLID, seconds=0.0, sentence="none", source="")
    found = touched(case, config)
    more_bytes = found.paired * SECTOR_BYTES - traffic(case, config).populations
    in_pieces = found.rows + found.planes if subject.calibration.pieces_bytes_per_s else 0.0
    sides = {"apart": found.completed - in_pieces, "in place": found.partial - found.completed}
    holes_s = sum(holes_s_of_a_sector(subject, side, count / found.stored) for side, count in sides.items())
    row_bytes = case.domain[0] * traffic(case, config).total * case.fluid_sites / case.sites
    apart = {row_bytes: found.rows, row_bytes * case.domain[1]: found.planes} if in_pieces else {}
    pieces_s = sum(_pieces_s(subject, bytes_, count / found.stored) for bytes_, count in apart.items())
    return Term(
        name=SOLID,
        seconds=more_bytes / bandwidth(subject, by_runs=False) + found.stored * (holes_s + pieces_s),
        sentence=f"{more_bytes:.4g} bytes more, {found.partial:.3g} of {found.stored:.3g} sectors stored in part",
        source="counted on the geometry; micro-benchmarks `holes`, `pieces`",
    )


def holes_s_of_a_sector(subject: Subject, side: str, share: float) -> float:
    """What a sector that is loaded and stored takes longer where such a share of those stored has a hole.

    Where nobody has measured it: as long as it takes to read what completes them.
    """
    rates = subject.calibration.holes_bytes_per_s
    if not rates:
        return share * SECTOR_BYTES / bandwidth(subject, by_runs=False) if side == "apart" else 0.0
    known = numbered(tuple(rates), f"{side} ")
    curve = sorted((holes / _OF, 1 / rates[name] - 1 / rates[known[0]]) for holes, name in known.items())
    return 2 * SECTOR_BYTES * max(0.0, between(curve, share))


def _pieces_s(subject: Subject, bytes_: float, share: float) -> float:
    """The same where such a share of those stored comes in two pieces, with so many bytes moved in between."""
    rates = subject.calibration.pieces_bytes_per_s
    apart = sorted({int(name.split()[0]) for name in rates})
    curve = []
    for known in apart:
        found = numbered(tuple(rates), f"{known} ")
        longer = sorted((pieces / _OF, 1 / rates[name] - 1 / rates[found[0]]) for pieces, name in found.items())
        curve.append((float(known), between(longer, share)))
    return 2 * SECTOR_BYTES * max(0.0, between(curve, max(bytes_, apart[0])))


def lanes(case: Case, config: CudaConfig) -> Lanes:
    """Of warps of a kernel of one step per launch that goes over all cells of a geometry."""
    return _lanes(case.geometry, case.domain, case.stencil.name, shape(config))


@lru_cache(maxsize=1024)
def _lanes(geometry: str, domain: tuple[int, int, int], name: str, config: CudaConfig) -> Lanes:
    import numpy as np

    from lbmtune.lattice import lattice

    parts = [_Part(lattice(name), config, fluid) for fluid in _fluid(geometry, domain)]
    updates = sum(int(part.fluid.sum()) for part in parts)
    blocks = sum(part.together(config.block).mean() for part in parts) / len(parts)
    if config.cells_per_thread > 1:  # lanes exchange vectors, so that all of a warp stay
        threads = sum(int(part.moved.sum()) for part in parts) / config.cells_per_thread / updates
        return Lanes(threads, threads / _LANES, 0.0, blocks)
    sectors = partial = 0
    for part in parts:
        x = part.fluid.shape[2]
        of_sector = np.add.reduceat(part.fluid, np.arange(0, x, _LANES), axis=2, dtype=int)
        sectors += int((of_sector > 0).sum())
        partial += int(((of_sector > 0) & (of_sector < _LANES)).sum())
    return Lanes(1.0, sectors / updates, partial / updates, blocks)


def whole_sectors(case: Case, config: CudaConfig) -> float:
    """Bytes per update that memory moves more: it moves whole sectors, and completes those that are stored in part."""
    if config.indirect or not case.geometry:
        return 0.0
    found = touched(case, config)
    return (found.loaded + found.stored + found.completed) * SECTOR_BYTES - traffic(case, config).populations


def touched(case: Case, config: CudaConfig) -> Touched:
    """Of a kernel of one step per launch that goes over all cells of a geometry."""
    return _touched(case.geometry, case.domain, case.stencil.name, shape(config))


@lru_cache(maxsize=1024)
def _touched(geometry: str, domain: tuple[int, int, int], name: str, config: CudaConfig) -> Touched:
    from lbmtune.lattice import lattice

    stencil, scheme = lattice(name), config.propagation
    passes = [phase for parity in range(scheme.period) for phase in scheme.passes(stencil, parity)]
    parts = [_Part(stencil, config, fluid) for fluid in _fluid(geometry, domain)]
    counts = zip(*(part.sectors(phase) for part in parts for phase in passes), strict=True)
    updates = sum(int(part.fluid.sum()) for part in parts) * scheme.period
    return Touched(*(sum(count) / updates for count in counts))


def _fluid(geometry: str, domain: tuple[int, int, int]) -> list[Array]:
    """Parts of a geometry, spread over the domain: which cells are fluid, bool (nz, ny, nx).

    Where none of them has a fluid cell, the row that has the most of all.
    """
    from lbmtune.catalogue.problem.geometry import voxels

    solid = voxels(geometry, domain)
    parts = [~solid[z, y] for z in _slices(domain[2]) for y in _slices(domain[1])]
    if any(part.any() for part in parts):
        return parts
    z, y = divmod(int((~solid).sum(2).argmax()), domain[1])
    return [~solid[z : z + 1, y : y + 1]]


def _slices(rows: int) -> list[slice]:
    """The parts along an axis of so many rows, evenly spread; all of it where there are no more."""
    if rows <= _PARTS * _ROWS:
        return [slice(0, rows)]
    starts = [rows * (2 * part + 1) // (2 * _PARTS) - _ROWS // 2 for part in range(_PARTS)]
    return [slice(start, start + _ROWS) for start in starts]


class _Part:
    """Whole rows of a geometry, and where their populations lie. Rows and planes are rings."""

    def __init__(self, stencil: Lattice, config: CudaConfig, fluid: Array) -> None:
        """fluid: bool, (nz, ny, nx)."""
        self.fluid = fluid
        self._stencil, self._config, self._frame = stencil, config, frame(stencil, config)
        self._extents = self._frame.extents(Domain(*fluid.shape[::-1]))
        # of warps that have a fluid cell where lanes exchange vectors, so that all of them stay
        self.moved = fluid if config.cells_per_thread == 1 else self.together(warp_of(config.block))

    def together(self, threads: tuple[int, int, int]) -> Array:
        """Cells of so many threads side by side of which one has a fluid cell."""
        import numpy as np

        x, y, z = threads
        sizes = (z, y, x * self._config.cells_per_thread)
        number = np.indices(self.fluid.shape, sparse=True)
        which = sum(at // size * stride for at, size, stride in zip(number, sizes, (1 << 40, 1 << 20, 1), strict=True))
        _, which = np.unique(which, return_inverse=True)
        return (np.bincount(which.ravel(), self.fluid.ravel()) > 0)[which].reshape(self.fluid.shape)

    def sectors(self, phase: Phase) -> Touched:
        """Of a pass over all cells of the part."""
        import numpy as np

        loaded, stored, *returned = (np.zeros(self._config.memory.length(self._extents), bool) for _ in range(5))
        for access in phase.accesses:
            arrives, leaves = (self._open(access.direction, sign) for sign in (-1, 1))
            self._mark(loaded, access.read, self.moved)
            self._mark(loaded, access.cut_read, self.fluid & ~arrives)
            if access.write == access.cut_write or self._config.implicit:
                self._mark(stored, access.write, self.moved)
            else:
                self._mark(stored, access.write, self.fluid & leaves)
                self._mark(returned[self._apart(access.direction)], access.cut_write, self.fluid & ~leaves)
        # what walls return is stored by other rows than what is sent, at other times
        loads, sent, *kept = (self._marked(each) for each in (loaded, stored, *returned))
        stores, whole = np.maximum.reduce([sent, *kept]), SECTOR_BYTES // self._config.stored.bytes
        partial = (stores > 0) & (stores < whole)
        completed = partial & (loads == 0) if phase.in_place else partial
        paired = sum(2 * np.count_nonzero(each[0::2] | each[1::2]) for each in (loads, stores))
        rows, planes = (completed & (sent > 0) & (each > 0) for each in kept[1:])
        counts = [np.count_nonzero(each) for each in (loads, stores, partial, completed)]
        return Touched(*map(float, (*counts, paired, *map(np.count_nonzero, (rows, planes)))))

    def _apart(self, direction: int) -> int:
        """Whether what is sent along a direction comes to the same row (0), another one (1), or another plane (2)."""
        _, y, z = self._stencil.velocities[direction]
        return 2 if z else 1 if y else 0

    def _open(self, direction: int, sign: int) -> Array:
        """Whether the neighbour along a direction (1) or against it (-1) is fluid; implicit walls cut no link."""
        import numpy as np

        if self._config.implicit:
            return np.ones_like(self.fluid)
        velocity = self._stencil.velocities[direction]
        return np.roll(self.fluid, [-sign * c for c in reversed(velocity)], (0, 1, 2))

    def _mark(self, elements: Array, place: Place, cells: Array) -> None:
        """Sets what lies at a place of some cells."""
        import numpy as np

        extents = self.fluid.shape[::-1]
        axes = [
            self._frame.coordinate(axis, (np.arange(n) + moved) % n)
            for axis, (n, moved) in enumerate(zip(extents, place.offset, strict=True))
        ]
        x, y, z = np.meshgrid(*axes, indexing="ij", sparse=True)
        elements[index(self._config.memory, self._extents, x, y, z, place.slot).T[cells]] = True

    def _marked(self, elements: Array) -> Array:
        """How many elements of each sector are set."""
        import numpy as np

        per_sector = SECTOR_BYTES // self._config.stored.bytes
        whole = np.zeros(-(-elements.size // (2 * per_sector)) * 2 * per_sector, np.uint8)
        whole[: elements.size] = elements
        return sum(whole[first::per_sector] for first in range(per_sector))
