"""Numbers that the time of a kernel follows from, as formulas of the extents: cells, rows, blocks and their waves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

from lbmtune.catalogue.backends import BACKENDS
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

_HALF, _SECTOR, _LINE = SECTOR_BYTES // 2, SECTOR_BYTES, 4 * SECTOR_BYTES
_LEAST_CACHED = 4
"""Cells in the last cache, from which on domains may fit into it."""
_CACHED = (60, 80, 100, 120)
"""Shares of the last cache, in percent, between which it gets full: of one H100 and one H200."""
_CELLS, _ROWS = "nx * ny * nz", "ny * nz"
_DEPTH = f"((nz + {CHUNKS} - 1) / {CHUNKS})"
"""Planes of a chunk, the mean of tapered ones."""
_EMPTY = f"({_DEPTH} * ({CHUNKS} * {CHUNKS} - 1) / {CHUNKS} > nz - 1)"
_UNFIT = f"1048576 * (((nz + {_DEPTH} - 1) / {_DEPTH} < {CHUNKS}) + {_EMPTY})"
"""Planes that count for a number of tapered chunks if no whole number of planes stands for it, or one is empty."""


def chunks_of(case: Case, config: KernelConfig, machine: Machine, resources: Resources | None) -> Chunks | None:
    """Return how many chunks of planes a kernel has, whose text leaves that to the launch; None for others.

    As many as end first: waves of blocks, times the planes of a chunk and those that it reads besides. Of tapered
    chunks it is the end of blocks that take places as these become free.
    """
    knobs: Any = config
    if not follows(case, config):
        return None
    columns, places = _columns(_launch(render(case, config))), _places(case, config, machine, resources)
    most = f"nz / {2 * knobs.steps}"
    if knobs.chunk_schedule == "tapered":
        return Chunks(most=most, end=f"{_tapered(config, columns, places).twice_end} + {_UNFIT}")
    return Chunks(most=most, end=f"({_over(f'{columns} * {CHUNKS}', places)}) * ({_DEPTH} + {2 * knobs.steps})")


def follows(case: Case, config: KernelConfig) -> bool:
    """Return whether the planes of a chunk are a matter of the launch alone."""
    return case.stencil.dimensions == 3 and config.launch_sets_length


class _Tapered(NamedTuple):
    """Formulas of tapered chunks, in planes. twice_end: of the last block; first: of those that begin first."""

    twice_end: str
    first: str


def _tapered(config: KernelConfig, columns: str, places: int) -> _Tapered:
    """Return the planes of tapered chunks: the last block ends half of it after the mean of all, or with the first."""
    knobs: Any = config
    longest = f"{_DEPTH} * (2 * {CHUNKS} - 1) / {CHUNKS}"
    again = 2 * knobs.steps
    first = f"({longest} - ({longest} > nz) * ({longest} - nz) + {again})"
    passed = f"{columns} * (nz + {CHUNKS} * {again})"
    mean = f"(2 * {passed} / {places} + {_DEPTH} / {CHUNKS} + {again})"
    return _Tapered(f"({mean} + (2 * {first} > {mean}) * (2 * {first} - {mean}))", first)


def numbers_of(
    case: Case, config: KernelConfig, machine: Machine, resources: Resources | None, chunks: Chunks | None
) -> tuple[str, ...]:
    """Return the formulas of a kernel: of a launch, what it moves, its threads and how they fill the device."""
    program = render(case, config)
    launch, places = _launch(program), _places(case, config, machine, resources)
    knobs: Any = config
    if chunks and knobs.chunk_schedule == "tapered":
        return _of_tapered(config, launch, places)
    if BACKENDS[config.backend].thread_blocks and config.reads_halo and case.stencil.dimensions == 3:
        return _of_columns(config, launch, places, CHUNKS if chunks else _blocks(launch, 2))
    blocks, covered = f"{_columns(launch)} * {_blocks(launch, 2)}", prod(launch.covers)
    return (
        *("1", _CELLS, _stored(program), _ROWS, *_misaligned(config, _ROWS, _SECTOR), *_misaligned(config, _CELLS)),
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
    waves = f"({_over(blocks, places)})"
    return (
        *("1", _CELLS, f"{blocks} * {each}", f"{waves} * {each}", each, waves),
        *_at_face(config, launch, each, f"{waves} * {each}"),
        *(*_misaligned(config, each, _SECTOR), *_misaligned(config, _CELLS, _HALF, _SECTOR), _ROWS),
    )


def _at_face(config: KernelConfig, launch: Launch, *counts: str) -> Iterator[str]:
    """Yield counts where the last rows of threads of the last blocks lie wholly within the domain."""
    knobs: Any = config
    along = _blocks(launch, 1)
    full = f"((ny - ({along} - 1) * ((ny + {along} - 1) / {along}) + {knobs.steps}) % {knobs.rows} < 1)"
    yield from (f"{full} * {one}" for one in counts if knobs.rows > 1)


def _of_tapered(config: KernelConfig, launch: Launch, places: int) -> tuple[str, ...]:
    """Return the formulas of blocks that go along z, of which later ones have fewer planes.

    Where columns are fewer than the places, blocks of one column run at once from the start on, and take longer.
    """
    columns = _columns(launch)
    twice_end, first = _tapered(config, columns, places)
    return (
        *("1", _CELLS, twice_end, first, f"({columns} < {places}) * ({places} - {columns}) * {first}"),
        *(_over(f"{columns} * {CHUNKS}", places), *_at_face(config, launch, first, twice_end)),
        *(*_misaligned(config, first, _SECTOR), *_misaligned(config, _CELLS, _HALF, _SECTOR), _ROWS),
    )


def _misaligned(config: KernelConfig, count: str, *of: int) -> Iterator[str]:
    """Yield a number if rows begin within half a sector, a sector, or a line of the cache. of: bytes of these."""
    for size in of or (_HALF, _SECTOR, _LINE):
        yield f"(nx % {size // config.stored.bytes} > 0) * {count}"


def _beyond_cache(case: Case, config: KernelConfig, machine: Machine) -> tuple[str, ...]:
    """Return the cells that the last cache does not hold: beyond a share of it, and those between shares.

    Where it no longer holds all, it soon holds none: then all cells take longer.
    """
    most = int(max(machine.caches_bytes.values(), default=0) * case.sites / footprint_bytes(case, config))
    if most < _LEAST_CACHED:
        return ()
    beyond = [f"({_CELLS} > {n}) * ({_CELLS} - {n})" for n in (most * share // 100 for share in _CACHED)]
    return beyond[0], *(f"{less} - {more}" for less, more in pairwise(beyond))


def _places(case: Case, config: KernelConfig, machine: Machine, resources: Resources | None) -> int:
    """Return the blocks that the device holds at once, as far as it is known."""
    known = resources if BACKENDS[config.backend].thread_blocks else None
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
