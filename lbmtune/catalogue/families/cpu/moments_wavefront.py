"""Wavefront of moments on CPUs: rows go through all steps of a launch, one step behind the other.

A block of planes is read with a halo of as many cells as a launch has steps, tile of rows after tile of rows. Each step
of a row follows a row and a plane behind the step before it; what its cells send stays in a ring of rows until the last
row that needs it has read it: a row or two for what goes down, a plane of the tile for what stays in its plane, two for
what goes up. So a cell takes as many values of a cache for each step as it has directions, however many planes a block
has. What goes to the next tile stays longer, in rows of its own for each plane: tiles overlap nowhere, since each step
of a tile lies a row before the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import ClassVar, Literal

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.families import common_rules, moment_rules
from lbmtune.catalogue.families.cpu import rules
from lbmtune.catalogue.families.cpu.rows import TilesOfRows, prefetch_rows
from lbmtune.catalogue.families.groups import VECTORS, Bounded
from lbmtune.catalogue.families.small_domains import distinct, odd
from lbmtune.catalogue.knobs import knob
from lbmtune.catalogue.layouts.layout import Extents, Int, Layout, index
from lbmtune.catalogue.layouts.soa import SoA
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.moments.basis import upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import Cells
from lbmtune.catalogue.storage_frame import StorageFrame
from lbmtune.lattice import Lattice

MARGIN = 16
"""Cells on each side of a row in a ring: the halo of a tile, in whole vectors."""
MAX_STEPS = 8
EDGE_ROWS = 2
"""Rows of a plane that the next tile takes something of."""
EDGE_LAG = 3
"""Planes that a step is ahead of the last reader of its rows, and the one that it writes."""


@dataclass(frozen=True, kw_only=True)
class MomentsWavefront(TilesOfRows, Bounded):
    """Several steps per launch of moments; the rows of a tile follow one another from step to step."""

    family: ClassVar[str] = "moments-wavefront"
    title: ClassVar[str] = "wavefront of moments"
    layouts: ClassVar[tuple[str, ...]] = ("soa", "rows")
    without: ClassVar[frozenset[str]] = frozenset({"stride"})
    representation = "moments"
    visits_solid_cells: ClassVar[bool] = True
    place_source: ClassVar[Literal["scheme", "list", "fixed"]] = "fixed"
    reads_halo: ClassVar[bool] = True

    layout: Layout = knob(SoA(), "memory layout of a cell's values", search=("soa", "rows"), allowed=("soa", "rows"))
    tile: tuple[int, int, int] = knob(
        (256, 16, 64), "cells of a tile, x by y by z", unit="cells", search=("256x8x32", "256x16x32", "256x16x64")
    )
    steps: int = knob(
        1, "time steps of a launch", unit="steps", search=(1, 2, 3), allowed=tuple(range(1, MAX_STEPS + 1))
    )
    prefetch_rows: int = knob(
        0, "all steps prefetch their share of the rows that the first takes next (1)", allowed=(0, 1), acts=(VECTORS,)
    )
    row_offset: int = knob(16, "cell of a storage row that holds the first cell of the domain", unit="cells")
    row_padding: int = knob(0, "cells added to a storage row", unit="cells")
    streaming_stores: int = knob(0, "non-temporal stores (1) or ordinary ones (0)", allowed=(0, 1))

    @property
    def tile_x(self) -> int:
        """Return the cells of a row of a tile."""
        return self.tile[0]

    def awkward_domain(self, case: Case) -> Cells:
        """Return extents of a tile and several vectors, and of no whole tile of rows."""
        return distinct(case, self.tile_x + self.awkward_row, odd(self.tile_y + 2), odd(self.tile_z))

    def value_index(self, k: Int, x: Int, y: Int, z: Int, extents: Extents, lattice: Lattice) -> Int:
        """Return the element of moment k of a cell."""
        return index(self.memory, extents, x + self.row_offset, y, z, k)

    def single_step(self) -> MomentsWavefront:
        """Return the kernel of one step over the same tiles."""
        return replace(self, steps=1, prefetch_rows=0)

    def frame(self, lattice: Lattice) -> StorageFrame:
        """Return where the cells of a domain lie in storage; ends of rows meet in rings of their own."""
        before, after = (self.row_offset, 0, 0), (self.row_padding, 0, 0)
        return StorageFrame((False,) * 3, before, after, self.memory.tile, self.kept.values(lattice))

    def shares(self, case: Case) -> int:
        """Return the number of tiles."""
        along, tile = _layers(case, self)
        return ceil(case.domain[0] / self.tile_x) * ceil(along / tile)

    def population_bytes(self, case: Case) -> float:
        """Return the bytes of moments per update: read with halos, allocated and written once per launch."""
        values = self.kept.values(case.stencil)
        writes = 2 - self.streaming_stores
        return values * (fetched(case, self) + writes) * self.stored.bytes / self.steps

    def scratch_bytes(self, case: Case) -> int:
        """Return the bytes that all threads keep for their rings and edges."""
        return self.threads * thread_values(case, self) * self.computed.bytes


def reach(lattice: Lattice) -> int:
    """Return the rows of a plane that what a cell sends crosses: none in two dimensions, where rows are planes."""
    return lattice.dimensions - 2


def width(lattice: Lattice, config: MomentsWavefront) -> int:
    """Return the rows of a plane of a tile."""
    return config.tile_y if reach(lattice) else 1


def planes(lattice: Lattice, config: MomentsWavefront) -> int:
    """Return the planes of a tile with its halo."""
    return (config.tile_z if reach(lattice) else config.tile_y) + 2 * config.steps


def ring_rows(case: Case, config: MomentsWavefront, c_z: int) -> int:
    """Return the rows that a ring keeps of what goes to another plane, or stays in its own (c_z = 0).

    Where links may be cut, what goes down is kept until its own cell has looked for what comes back.
    """
    lattice, planes_kept = case.stencil, 1 + (max(c_z, 0) if cuts(case) else c_z)
    return planes_kept * width(lattice, config) + 2 * reach(lattice) + 1


def pitch(config: MomentsWavefront) -> int:
    """Return the values from one row of a ring to the next."""
    return config.tile_x + 2 * MARGIN


def ring_values(case: Case, config: MomentsWavefront) -> int:
    """Return the values of the ring of one step."""
    sent = [c[2] for c in upright(case.stencil).velocities]
    return pitch(config) * sum(ring_rows(case, config, c_z) for c_z in sent)


def edge_planes(lattice: Lattice, config: MomentsWavefront) -> int:
    """Return the planes for which the last rows of a tile are kept: a tile may overwrite those of the one before it."""
    return reach(lattice) * (planes(lattice, config) + EDGE_LAG)


def stage_values(case: Case, config: MomentsWavefront) -> int:
    """Return the values that wait in one step of a launch: the ring, and last rows of planes for the tile beside."""
    edges = edge_planes(case.stencil, config) * EDGE_ROWS * case.stencil.q * pitch(config)
    return ring_values(case, config) + edges


def thread_values(case: Case, config: MomentsWavefront) -> int:
    """Return the values that a thread keeps: those of all steps, with a margin at both ends."""
    return config.steps * stage_values(case, config) + 2 * MARGIN


def fetched(case: Case, config: MomentsWavefront) -> float:
    """Return how often a launch reads a cell: once, and again for halos."""
    return _repeated(case, config, 2 * config.steps)


def computed(case: Case, config: MomentsWavefront) -> float:
    """Return how often a launch takes a step of a cell, as the mean of its steps: each has a halo two cells smaller.

    Cells beyond the ends of a row shorter than the domain take all of them.
    """
    return _repeated(case, config, config.steps + 1)


def _repeated(case: Case, config: MomentsWavefront, halo: int) -> float:
    (nx, ny, _), across, (along, tile) = case.domain, reach(case.stencil), _layers(case, config)
    by_x = 1 + 2 * MARGIN * ceil(nx / config.tile_x) / nx if nx > config.tile_x else 1.0
    return by_x * (1 + across * halo / ny) * (1 + halo * ceil(along / tile) / along)


def _layers(case: Case, config: MomentsWavefront) -> tuple[int, int]:
    """Return the planes of the domain and of a tile; rows in two dimensions."""
    return (case.domain[2], config.tile_z) if reach(case.stencil) else (case.domain[1], config.tile_y)


def _moment_tiles(case: Case, config: MomentsWavefront, limits: Limits) -> str | None:
    if config.tile_x < MARGIN or config.tile_x % MARGIN:
        return f"tile={extents(config.tile)}: rows of a tile have a multiple of {MARGIN} cells"
    if width(case.stencil, config) < EDGE_ROWS * reach(case.stencil):
        return f"tile={extents(config.tile)}: what a cell sends may pass {EDGE_ROWS} rows of a tile"
    return None


def _moment_flags(case: Case, config: MomentsWavefront, limits: Limits) -> str | None:
    if config.flags == "memory" and not case.geometry:
        return "flags=memory is not supported for moments without solid cells (use compiled): faces are compiled in"
    return None


RULES = (
    moment_rules.moments,
    moment_rules.faces,
    moment_rules.patches,
    _moment_flags,
    common_rules.flags,
    _moment_tiles,
    rules.vectors,
    rules.streaming_stores,
    prefetch_rows,
    rules.threads,
    rules.numa,
    rules.pages,
)
