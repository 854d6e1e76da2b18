"""Pipelines: kernels of moments on a CPU, whose rows go through all steps of a launch one behind the other.

A block of planes is read with a halo of as many cells as a launch has steps, tile of rows after tile of rows. Each step
of a row follows a row and a plane behind the step before it; what its cells send waits in a ring of rows until the last
row that needs it has had it: a row or two for what goes down, a plane of the tile for what stays in its plane, two for
what goes up. So a cell takes as many values of a cache for each step as it has directions, however many planes a block
has. What goes to the next tile waits longer, in rows of its own for each plane: tiles overlap nowhere, since each step
of a tile lies a row before the last one.
"""

from __future__ import annotations

from math import ceil

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.layouts.layout import Extents, Int, index
from lbmtune.catalogue.moments.basis import upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.lattice import Lattice

MARGIN = 16
"""Cells on each side of a row in a ring: the halo of a tile, in whole vectors."""
MAX_STEPS = 8
EDGE_ROWS = 2
"""Rows of a plane that the next tile takes something of."""
EDGE_LAG = 3
"""Planes that a step is ahead of the last reader of its rows, and the one that it writes."""


def kept_index(k: Int, x: Int, y: Int, z: Int, extents: Extents, config: CpuConfig) -> Int:
    """The element of moment k of a cell; ints, arrays that go together, or traced values."""
    return index(config.memory, extents, x + config.row_offset, y, z, k)


def reach(lattice: Lattice) -> int:
    """Rows of a plane that what a cell sends crosses: none in two dimensions, where rows are what planes are here."""
    return lattice.dimensions - 2


def width(lattice: Lattice, config: CpuConfig) -> int:
    """Rows of a plane of a tile."""
    return config.tile_y if reach(lattice) else 1


def planes(lattice: Lattice, config: CpuConfig) -> int:
    """Planes of a tile with its halo."""
    return (config.tile_z if reach(lattice) else config.tile_y) + 2 * config.steps


def ring_rows(case: Case, config: CpuConfig, c_z: int) -> int:
    """Rows that a ring keeps of what goes to another plane, or stays in its own (c_z = 0).

    Where links may be cut, what goes down is kept until its own cell has looked for what comes back.
    """
    lattice, planes_kept = case.stencil, 1 + (max(c_z, 0) if cuts(case) else c_z)
    return planes_kept * width(lattice, config) + 2 * reach(lattice) + 1


def pitch(config: CpuConfig) -> int:
    """Values from one row of a ring to the next."""
    return config.tile_x + 2 * MARGIN


def ring_values(case: Case, config: CpuConfig) -> int:
    """Values of the ring of one step."""
    sent = [c[2] for c in upright(case.stencil).velocities]
    return pitch(config) * sum(ring_rows(case, config, c_z) for c_z in sent)


def edge_planes(lattice: Lattice, config: CpuConfig) -> int:
    """Planes for which the last rows of a tile are kept: a tile may overwrite what the one before it left behind it."""
    return reach(lattice) * (planes(lattice, config) + EDGE_LAG)


def stage_values(case: Case, config: CpuConfig) -> int:
    """Values that wait in one step of a launch: the ring, and the last rows of each plane for the tile beside."""
    edges = edge_planes(case.stencil, config) * EDGE_ROWS * case.stencil.q * pitch(config)
    return ring_values(case, config) + edges


def thread_values(case: Case, config: CpuConfig) -> int:
    """Values that a thread keeps: those of all steps, with a margin at both ends."""
    return config.steps * stage_values(case, config) + 2 * MARGIN


def fetched(case: Case, config: CpuConfig) -> float:
    """How often a launch reads a cell: once, and again for halos."""
    nx, ny, nz = case.domain
    halo, across = 2 * config.steps, reach(case.stencil)
    along, tile = (nz, config.tile_z) if across else (ny, config.tile_y)
    by_x = 1 + 2 * MARGIN * ceil(nx / config.tile_x) / nx if nx > config.tile_x else 1.0
    return by_x * (1 + across * halo / ny) * (1 + halo * ceil(along / tile) / along)


def computed(case: Case, config: CpuConfig) -> float:
    """How often a launch takes a step of a cell, as the mean of its steps: each needs a halo that is two cells smaller.

    Cells beyond the ends of a row shorter than the domain take all of them.
    """
    nx, ny, nz = case.domain
    halo, across = config.steps + 1, reach(case.stencil)
    along, tile = (nz, config.tile_z) if across else (ny, config.tile_y)
    by_x = 1 + 2 * MARGIN * ceil(nx / config.tile_x) / nx if nx > config.tile_x else 1.0
    return by_x * (1 + across * halo / ny) * (1 + halo * ceil(along / tile) / along)


def blocks(case: Case, config: CpuConfig) -> int:
    """What threads share out."""
    nx, ny, nz = case.domain
    along, tile = (nz, config.tile_z) if reach(case.stencil) else (ny, config.tile_y)
    return ceil(nx / config.tile_x) * ceil(along / tile)
