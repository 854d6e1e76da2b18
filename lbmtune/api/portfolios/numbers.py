"""Numbers that the time of a kernel follows from, as formulas of the extents: cells, rows, blocks and their waves."""

from __future__ import annotations

from math import prod
from typing import Any

from lbmtune.catalogue.backend_records import CudaConfig
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.footprint import footprint_bytes
from lbmtune.catalogue.limits import SECTOR_BYTES
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.describe import describe_storage
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.render import render
from lbmtune.model.gpu.inputs import occupancy
from lbmtune.model.machine.description import Machine
from lbmtune.records import Resources
from lbmtune.records.best_json.law import CHUNKS, Chunks

_LEAST_CACHED = 4
"""Cells in the last cache, from which on domains may fit into it."""
_CELLS, _ROWS = "nx * ny * nz", "ny * nz"


def chunks_of(case: Case, config: KernelConfig, machine: Machine, resources: Resources | None) -> Chunks | None:
    """Return how many chunks of planes a kernel has, whose text leaves that to the launch; None for others.

    As many as end first: waves of blocks, times the planes of a chunk and those that it reads besides.
    """
    knobs: Any = config
    if not follows(case, config):
        return None
    blocks, again = f"{_columns(_launch(render(case, config)))} * {CHUNKS}", 2 * knobs.steps
    waves = _over(blocks, _places(case, config, machine, resources))
    return Chunks(most=f"nz / {again}", end=f"({waves}) * ((nz + {CHUNKS} - 1) / {CHUNKS} + {again})")


def follows(case: Case, config: KernelConfig) -> bool:
    """Return whether the planes of a chunk are a matter of the launch alone: all chunks have as many."""
    return case.stencil.dimensions == 3 and config.launch_sets_length


def numbers_of(
    case: Case, config: KernelConfig, machine: Machine, resources: Resources | None, chunks: Chunks | None
) -> tuple[str, ...]:
    """Return the formulas of a kernel: of a launch, what it moves, its threads and how they fill the device."""
    program = render(case, config)
    launch, places = _launch(program), _places(case, config, machine, resources)
    if isinstance(config, CudaConfig) and config.reads_halo and case.stencil.dimensions == 3:
        return _of_columns(config, launch, places, CHUNKS if chunks else _blocks(launch, 2))
    blocks, covered = f"{_columns(launch)} * {_blocks(launch, 2)}", prod(launch.covers)
    vector = SECTOR_BYTES // config.stored.bytes
    return (
        *("1", _CELLS, _stored(program), _ROWS, f"(nx % {vector} > 0) * {_ROWS}", f"(nx % {vector} > 0) * {_CELLS}"),
        *(f"{blocks} * {covered}", f"({_over(blocks, places)}) * {places * covered}"),
        *_beyond_cache(case, config, machine),
    )


def _of_columns(config: KernelConfig, launch: Launch, places: int, chunks: str) -> tuple[str, ...]:
    """Return the formulas of blocks that go along z, each through planes of its chunk and those beside it.

    The slowest block ends a launch: the first and last planes of a chunk take longer, and so do blocks at a face if the
    last rows of threads lie wholly within the domain, since a face is then all that they have.
    """
    knobs: Any = config
    each, blocks = f"((nz + {chunks} - 1) / {chunks} + {2 * knobs.steps})", f"{_columns(launch)} * {chunks}"
    waves, along = f"({_over(blocks, places)})", _blocks(launch, 1)
    vector = SECTOR_BYTES // config.stored.bytes
    full = f"((ny - ({along} - 1) * ((ny + {along} - 1) / {along}) + {knobs.steps}) % {knobs.rows} < 1)"
    return (
        *("1", _CELLS, f"{blocks} * {each}", f"{waves} * {each}", each, waves),
        *((f"{full} * {each}", f"{full} * {waves} * {each}") if knobs.rows > 1 else ()),
        *(f"(nx % {vector} > 0) * {each}", f"(nx % {vector} > 0) * {_CELLS}", _ROWS),
    )


def _beyond_cache(case: Case, config: KernelConfig, machine: Machine) -> tuple[str, ...]:
    """Return the cells that the last cache does not hold: beyond half of it, and those up to it, and up to twice it.

    Where it no longer holds all, it soon holds none: then all cells take longer.
    """
    most = int(max(machine.caches_bytes.values(), default=0) * case.sites / footprint_bytes(case, config))
    if most < _LEAST_CACHED:
        return ()
    half, whole, twice = (f"({_CELLS} > {n}) * ({_CELLS} - {n})" for n in (most // 2, most, 2 * most))
    return half, f"{half} - {whole}", f"{whole} - {twice}"


def _places(case: Case, config: KernelConfig, machine: Machine, resources: Resources | None) -> int:
    """Return the blocks that the device holds at once, as far as it is known."""
    known = resources if isinstance(config, CudaConfig) else None
    found = known and occupancy(case, config, known, machine.environment.architecture)  # type: ignore[arg-type]
    return max(1, machine.multiprocessors) * (found[0] if found else 1)


def _launch(program: Program) -> Launch:
    """Return the launch over all cells."""
    launches = [one for step in program.period for one in step]
    return next((one for one in launches if one.over == "cells"), launches[0])


def _columns(launch: Launch) -> str:
    return f"{_blocks(launch, 0)} * {_blocks(launch, 1)}"


def _blocks(launch: Launch, axis: int) -> str:
    covered, more = launch.covers[axis], launch.ends[axis]
    name = f"n{'xyz'[axis]}"
    if not more:
        return name if covered == 1 else f"({_over(name, covered)})"
    return f"({_over(name, covered, more)} + ({name} < {1 + more}))"


def _over(total: str, covered: int, more: int = 0) -> str:
    """Return a quotient that is rounded up, of a total less a few."""
    return f"({total} + {covered - 1 - more}) / {covered}"


def _stored(program: Program) -> str:
    """Return the formula of the cells of the storage, those of padding and of ghosts included."""
    extents = (one.partition("= ")[2] for one in describe_storage(program).extents)
    return " * ".join(f"({one})" for one in extents)
