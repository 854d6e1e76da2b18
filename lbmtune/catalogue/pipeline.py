"""Pipelines: kernels of moments on a CPU, whose rows go through all steps of a launch one behind the other.

A tile of rows is read with a halo of as many cells as a launch has steps. Each step of a row follows a row and a plane
behind the step before it; what its cells send waits in a ring of rows until the last row that needs it has had it: a
row or two for what goes down, a plane for what stays in its plane, two for what goes up. So a cell takes as many
values of a cache for each step as it has directions, however many planes a tile has.
"""

from __future__ import annotations

from math import ceil

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.layout import Extents, Int, index
from lbmtune.catalogue.moments import upright
from lbmtune.lattice import Lattice

MARGIN = 16
"""Cells on each side of a row in a ring: the halo of a tile, in whole vectors."""
MAX_STEPS = 8


def kept_index(k: Int, x: Int, y: Int, z: Int, extents: Extents, config: CpuConfig) -> Int:
    """The element of moment k of a cell; ints, arrays that go together, or traced values."""
    return index(config.memory, extents, x + config.row_offset, y, z, k)


def across(lattice: Lattice, config: CpuConfig) -> tuple[int, int]:
    """Rows of a plane of a tile, and how far what a cell sends reaches across them: one and none in two dimensions."""
    return (1, 0) if lattice.dimensions == 2 else (config.tile_y, 1)


def along(lattice: Lattice, config: CpuConfig) -> int:
    """Planes of a tile; in two dimensions rows are what planes are."""
    return config.tile_y if lattice.dimensions == 2 else config.tile_z


def width(lattice: Lattice, config: CpuConfig) -> int:
    """Rows of a plane of a tile with its halo."""
    rows, reach = across(lattice, config)
    return rows + 2 * reach * config.steps


def ring_rows(lattice: Lattice, config: CpuConfig, c_z: int) -> int:
    """Rows that a ring keeps of what goes to another plane, or stays in its own (c_z = 0)."""
    _, reach = across(lattice, config)
    return (1 + c_z) * width(lattice, config) + 2 * reach + 1


def pitch(config: CpuConfig) -> int:
    """Values from one row of a ring to the next."""
    return config.tile_x + 2 * MARGIN


def ring_values(lattice: Lattice, config: CpuConfig) -> int:
    """Values of the ring of one step."""
    planes = [c[2] for c in upright(lattice).velocities]
    return pitch(config) * sum(ring_rows(lattice, config, c_z) for c_z in planes)


def fetched(case: Case, config: CpuConfig) -> float:
    """How often a launch reads a cell: once, and again for halos."""
    rows, reach = across(case.stencil, config)
    nx, ny, nz = case.domain
    n_across, n_along = (nz, ny) if case.stencil.dimensions == 2 else (ny, nz)
    planes = along(case.stencil, config)
    by_x = 1 + 2 * MARGIN * ceil(nx / config.tile_x) / nx if nx > config.tile_x else 1.0
    by_rows = 1 + 2 * reach * config.steps * ceil(n_across / rows) / n_across
    return by_x * by_rows * (1 + 2 * config.steps * ceil(n_along / planes) / n_along)


# rules

_FIXED = {
    "wrap": "ghost",
    "reads": "once",
    "prefetch_propagated": 0,
    "prefetch_local": 0,
    "prefetch_rows": 0,
    "flags": "compiled",
}


def why_no_pipeline(case: Case, config: CpuConfig) -> str | None:
    """The first reason against a kernel of moments on a CPU, or None."""
    return _physics(case) or _form(config) or _extents(config)


def _physics(case: Case) -> str | None:
    if case.collision != "regularised":
        return f"representation moments with collision {case.collision}: only regularised depends on nothing else"
    if case.geometry:
        return f"representation moments with geometry {case.geometry}: on the CPU no cell of it is solid"
    walls = [n for n, kind in enumerate(case.faces) if kind != "periodic"]
    if walls:
        where = f"{case.faces[walls[0]]} face {'xyz'[walls[0] // 2]}{'+' if walls[0] % 2 else '-'}"
        return f"{where} with representation moments: on the CPU all faces are periodic"
    return None


def _form(config: CpuConfig) -> str | None:
    if config.indirect:
        return f"representation moments with {config.addressing} addressing: rows of a box wait for each other"
    if config.scheme != "pull":
        return (
            f"scheme {config.scheme} with representation moments: "
            "its neighbours' moments are read from one copy and written to the other"
        )
    if config.layout not in ("soa", "rows"):
        return f"layout {config.layout} with representation moments: soa and rows exist"
    if config.storage == "fp16c":
        return "storage fp16c with representation moments: it holds numbers below 2, and moments are larger"
    if config.loop != "tile":
        return f"loop {config.loop} with representation moments: tiles go through the steps of a launch"
    for name, value in _FIXED.items():
        if getattr(config, name) != value:
            return f"{name} {getattr(config, name)} with representation moments: its rows have ways of their own"
    return None


def _extents(config: CpuConfig) -> str | None:
    if not 1 <= config.steps <= MAX_STEPS:
        return f"steps {config.steps} with representation moments: 1 to {MAX_STEPS}"
    if config.tile_x < MARGIN or config.tile_x % MARGIN:
        return f"tile_x {config.tile_x}: rows of a tile have a multiple of {MARGIN} cells"
    return None
