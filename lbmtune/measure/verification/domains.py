"""Small domains on which verification exercises the edges of each kernel family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import lcm
from typing import Any

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.cuda.persistent import planes_less
from lbmtune.catalogue.families.cuda.temporal_blocking import ends, piece_cells
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program

Domain = tuple[int, int, int]
Family = Any
"""A configuration of the one family that a function is for."""

_CHUNK = 8
"""Most planes of a chunk on small domains; twice the steps of a launch if those are more."""
_FAR = 2
"""Prefetch distance in cells from which on more than one cell is in flight."""
_SLABS, _THIN = 3, 3
"""Threads that work side by side on a small domain; rows of a domain too thin for all steps at once."""


def awkward_domain(case: Case, config: KernelConfig) -> Domain:
    """Return extents that all differ: x a multiple of the kernel's unit but not of a block, y and z odd."""
    return _AWKWARD[config.backend][config.family](case, config)


def extra_domains(case: Case, config: KernelConfig) -> list[Domain]:
    """Return the domains that take a kernel through other paths than the awkward one."""
    found = (one(case, config) for one in _EXTRA[config.backend].get(config.family, ()))
    return [domain for domain in found if domain]


def short_chunks(program: Program) -> Program:
    """Return the program with a grid of short chunks, if their length is set by the grid alone.

    The oracle's time grows with the planes, and what happens at the ends of chunks does not depend on their length.
    """
    config = program.config
    if config.family != "temporal-blocking":
        return program
    covers = _short_block(program.case, config)
    period = tuple(tuple(replace(launch, covers=covers) for launch in step) for step in program.period)
    return replace(program, period=period)


def _short_block(case: Case, config: Family) -> Domain:
    """Return the cells of a thread block with short chunks along the axis that it goes up."""
    x, y, z = config.block_cells(case.stencil)
    planes = min(config.chunk_planes, max(_CHUNK, 2 * config.steps))
    return (x, planes, z) if _is_flat(case) else (x, y, planes)


def _direct(case: Case, config: Family) -> Domain:
    x, y, z = config.block_cells(case.stencil)
    return _box(case, config, x, _odd(y), _odd(z))


def _column(case: Case, config: Family) -> Domain:
    """End columns with a single cell; if cells are read far ahead, with two or three (see `tail_domain`)."""
    x, y, z = config.block_cells(case.stencil)
    if config.prefetch_cells >= _FAR:
        return _box(case, config, x, _odd(y), _odd(z))
    ny, nz = _odd(y), _one_more(z)
    return _box(case, config, x, ny + 2 * (ny == nz), nz)


def _box(case: Case, config: Family, x: int, ny: int, nz: int) -> Domain:
    if config.block_order != "row":
        # six blocks by four (two by six in two dimensions), so that a curve fills more than one square
        _, y, z = config.block_cells(case.stencil)
        ny, nz = 5 * y + 1, 3 * z + 1
    return _rounded(case, _access_cells(config), x, ny, nz)


def _sparse(case: Case, config: Family) -> Domain:
    x, y, z = config.block_cells(case.stencil)
    return _rounded(case, _access_cells(config), x, _odd(y), _odd(z))


def _temporal_blocking(case: Case, config: Family) -> Domain:
    """Add a tile at each face across x if those differ, and one that touches neither."""
    x, y, z = _short_block(case, config)
    unit = _access_cells(config)
    if config.plane_fetch == "bulk":
        unit = lcm(unit, piece_cells(case.stencil, config))
    rest = ends(case, config)
    return _rounded(case, unit, x + (x + rest if rest else 0), _odd(y), _odd(z))


def _face_exchange(case: Case, config: Family) -> Domain:
    x, y, z = config.tile
    unit = 1 if config.memory.name.startswith("tiled") else max(config.memory.run, 1)
    return _rounded(case, unit, x, _odd(y), _odd(z))


def _persistent(case: Case, config: Family) -> Domain:
    """Return three by five tiles of a whole row, or more if extents would be equal; the highest tiles are shorter."""
    x, y, z = config.block_cells(case.stencil)
    flat = _is_flat(case)
    nx, ny, nz = x, 3 * y, z if flat else 5 * z - planes_less(case.stencil, config)
    ny += y * (ny == nx)
    while not flat and nz in (nx, ny):
        nz += z
    return nx, ny, nz


def _cpu_rows(case: Case, config: Family) -> Domain:
    return _distinct(case, _row_cells(config), _odd(config.tile_y + 2), _odd(config.tile_z))


def _cpu_sparse(case: Case, config: Family) -> Domain:
    return _distinct(case, _row_cells(config), 5, 3)


def _wavefront(case: Case, config: Family) -> Domain:
    """Leave a core to regions that shrink from step to step, side by side for a few threads."""
    gap, slabs = 2 * (config.steps - 1), min(config.threads, _SLABS)
    ny = _odd(config.tile_y + 2) + gap * (slabs if _is_flat(case) else 1)
    return _distinct(case, _row_cells(config), ny, _odd(config.tile_z) + gap * slabs)


def _moments_wavefront(case: Case, config: Family) -> Domain:
    return _distinct(case, config.tile_x + _row_cells(config), _odd(config.tile_y + 2), _odd(config.tile_z))


_AWKWARD: Mapping[str, Mapping[str, Callable[[Case, Family], Domain]]] = {
    "cuda": {
        "direct": _direct,
        "column": _column,
        "sparse": _sparse,
        "temporal-blocking": _temporal_blocking,
        "persistent": _persistent,
        "face-exchange": _face_exchange,
    },
    "cpu": {
        "direct": _cpu_rows,
        "sparse": _cpu_sparse,
        "wavefront": _wavefront,
        "moments-wavefront": _moments_wavefront,
    },
}


def ring_domain(case: Case, config: Family) -> Domain | None:
    """Return a domain whose rows fit into one warp, whose lanes then form a ring.

    The rows take three quarters of the warp, so that the ring closes at the last cell and not at the last lane.
    """
    if config.cells_per_thread == 1:
        return None
    unit = _access_cells(config)
    accesses = min(32, config.block[0]) * config.cells_per_thread // unit
    return (max(1, 3 * accesses // 4) * unit, *awkward_domain(case, config)[1:]) if accesses else None


def tail_domain(case: Case, config: Family) -> Domain | None:
    """Return a domain whose last columns have one cell, if cells are read far ahead.

    Sets of registers take turns there, and a column that ends early ends in another place of the loop.
    """
    if config.prefetch_cells < _FAR or _is_flat(case):
        return None
    nx, ny, nz = awkward_domain(case, config)
    one_more = _one_more(config.block_cells(case.stencil)[2])
    return (nx, ny + 2 * (ny == one_more), one_more) if nz != one_more else None


def thin_domain(case: Case, config: Family) -> Domain | None:
    """Return a domain that is too thin for all steps of a launch at once."""
    if config.steps <= _THIN // 2 + 1:
        return None
    return (awkward_domain(case, config)[0], _THIN, 1 if _is_flat(case) else _THIN + 2)


_EXTRA: Mapping[str, Mapping[str, tuple[Callable[[Case, Family], Domain | None], ...]]] = {
    "cuda": {"direct": (ring_domain,), "column": (ring_domain, tail_domain), "sparse": (ring_domain,)},
    "cpu": {"wavefront": (thin_domain,), "moments-wavefront": (thin_domain,)},
}


def _access_cells(config: Family) -> int:
    """Return the cells that extents along x are multiples of, for vectors and runs of the layout."""
    return lcm(config.cells_per_thread, max(config.memory.run, 1))


def _row_cells(config: Family) -> int:
    return 3 * lcm(config.lanes, max(config.memory.run, 1), 4)


def _rounded(case: Case, unit: int, x: int, ny: int, nz: int) -> Domain:
    """Return extents with x cells of blocks and a unit more, in whole units."""
    return _distinct(case, -(-(x + unit) // unit) * unit, ny, nz)


def _distinct(case: Case, nx: int, ny: int, nz: int) -> Domain:
    return nx, ny, 1 if _is_flat(case) else nz + 2 * (ny == nz)


def _odd(extent: int) -> int:
    return 2 * (extent // 2) + 3


def _one_more(along_z: int) -> int:
    """Return whole blocks and a plane; three planes or more, so that neighbours differ."""
    return along_z + 1 if along_z > 2 else 2 * along_z + 1


def _is_flat(case: Case) -> bool:
    return case.stencil.dimensions == 2
