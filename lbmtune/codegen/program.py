"""The result of code generation: the text of a kernel with everything that is needed to run it."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, prod
from typing import Any, Literal

from lbmtune.catalogue.boundaries.arguments import boundary_values
from lbmtune.catalogue.boundaries.cell_flags import MOVING_WORDS, WORDS
from lbmtune.catalogue.boundaries.second_order import link_count
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.cuda.face_exchange import array_elements
from lbmtune.catalogue.families.cuda.persistent import face_elements
from lbmtune.catalogue.footprint import MACROSCOPIC_FIELDS, buffer_elements
from lbmtune.catalogue.layouts.layout import arrays
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.storage_frame import StorageFrame
from lbmtune.codegen.code_text import code_of
from lbmtune.codegen.passes import BUFFERS, FACE_ARRAYS, SLOT, Pass, passes_of
from lbmtune.lattice import Lattice

Target = Literal["cuda", "cpu"]
Extent = tuple[int, int, int]
Over = Literal["cells", "shell", "sites", "wall_links"]
Mode = Literal["plain", "dependent", "cooperative"]
MACROSCOPICS = "macroscopics"
"""Name of the buffer that density and velocity are written to."""
LIST = "links"
"""Name of the index list."""
PARITY, STEPS = "parity", "steps"
"""Names of the arguments of launches that take any number of time steps: the parity of the first, and how many."""
FIRST_PLANE, LAST_PLANE = "first_plane", "last_plane"
"""Names of the limits of the planes that a launch updates: the first one, and that behind the last."""
BARRIER, COUNTS, APART = "barrier", 2, 32
"""Name of the words of a grid-wide barrier, 0 before the first launch; words of one that all blocks share, and words
from the flag of one block to that of the next."""
SENT_SUMS = "faces"
"""Name of the sums of moments that persistent tiles exchange, in the compute precision."""
RINGS = "rings"
"""Name of the values that the threads of a CPU keep from row to row, in the compute precision."""
WALL_LINKS, WALL_SHARE = "wall_links", "wall_share"
"""Names of the number of links whose walls are interpolated, and of the weight of each."""
WALL_PLACES = tuple((f"wall_at_{parity}", f"wall_from_{parity}") for parity in range(2))
"""Names of tables for states of each parity: elements of the population of each link, and of its other one."""


@dataclass(frozen=True)
class Launch:
    """One launch. arguments: names of buffers ('f0', 'f1', 'links') and scalars, in the order of the parameters.

    block: threads per block; over: what the grid covers: 'cells' of the domain, 'shell' of ghost cells, 'sites' of
    the index list or 'wall_links' (interpolated ones), the last three in one dimension; covers: how many of those a
    block takes per axis; ends: how many more the first and the last block take together.
    mode: 'dependent': the launch may begin before the one before it ends, and waits for it (programmatic dependent
    launch); 'cooperative': all its blocks must be resident at once.
    """

    entry: str
    arguments: tuple[str, ...]
    block: Extent = (1, 1, 1)
    covers: Extent = (1, 1, 1)
    ends: Extent = (0, 0, 0)
    over: Over = "cells"
    shared_bytes: int = 0
    mode: Mode = "plain"

    def grid(self, domain: Extent, storage: StorageFrame, listed: int = 0) -> Extent:
        """Return the blocks along each axis for a domain. listed: entries of the index list, or interpolated links."""
        totals = {"cells": domain, "shell": (_shell_cells(domain, storage), 1, 1)}
        inner = (max(1, n - more) for n, more in zip(totals.get(self.over, (listed, 1, 1)), self.ends, strict=True))
        x, y, z = (ceil(n / c) for n, c in zip(inner, self.covers, strict=True))
        return (x, y, z)


def _shell_cells(domain: Extent, storage: StorageFrame) -> int:
    """Return the cells of the one-cell layer around the domain, along the axes that have ghost cells."""
    nx, ny, nz = (n + 2 * ghost for n, ghost in zip(domain, storage.ghost, strict=True))
    return nx * ny * nz - prod(domain)


Steps = tuple[tuple[Launch, ...], ...]
"""Launches of each parity."""


def period_of(config: KernelConfig, lattice: Lattice, launches: Callable[[Pass], Iterable[Launch]]) -> Steps:
    """Return the launches of each parity of a scheme. launches: those of one pass."""
    parities = range(config.propagation.period)
    return tuple(tuple(one for each in passes_of(config, lattice, p) for one in launches(each)) for p in parities)


@dataclass(frozen=True)
class Program:
    """The text for one target, and the launches of each parity of one period.

    period[p]: the launches that advance a state of parity p by `steps` time steps.
    options: of the compiler, in order.
    prologue: for each parity, the launches that prepare what its steps take besides the state: before the first step,
    and after values of the case have changed.
    with_macroscopics: as period, but density and velocity of the state before the step are written to the buffer
    'macroscopics'; empty if the text has no such entries.
    max_elements: the longest buffer whose elements the indices of the text reach; None: no limit (64-bit indices).
    in_c: the text for a CPU is C, which the compiler of the system translates; otherwise Python.
    """

    target: Target
    case: Case
    config: KernelConfig
    source: str
    options: tuple[str, ...]
    period: Steps
    with_macroscopics: Steps = ()
    steps: int = 1
    prologue: Steps = ()
    max_elements: int | None = None
    in_c: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the names of the arguments that launches of the period take, each once."""
        return tuple(dict.fromkeys(name for step in self.period for launch in step for name in launch.arguments))

    @property
    def any_steps(self) -> bool:
        """Return whether launches take any number of time steps, from any parity on."""
        return all(STEPS in launch.arguments for step in self.period for launch in step)

    @property
    def _launches(self) -> list[Launch]:
        return [launch for step in (*self.period, *self.with_macroscopics, *self.prologue) for launch in step]

    @property
    def entries(self) -> tuple[str, ...]:
        """Return the names of the functions to look up."""
        return tuple(dict.fromkeys(launch.entry for launch in self._launches))

    @property
    def expressions(self) -> tuple[str, ...]:
        """Return the entries whose names in the compiled code are others, as C++ has them; none if they are C."""
        return ()

    @property
    def dynamic_shared_bytes(self) -> dict[str, int]:
        """Return the most dynamic shared memory that launches of each entry request: compilers do not report it."""
        return {
            entry: max(launch.shared_bytes for launch in self._launches if launch.entry == entry)
            for entry in self.entries
        }

    @property
    def persistent(self) -> bool:
        """Return whether blocks stay resident for all time steps of a launch."""
        return BARRIER in self.arguments

    @property
    def has_sync(self) -> bool:
        """Return whether threads of a block, blocks or launches synchronise, so that an error may be a race."""
        return self.persistent or any(one.shared_bytes or one.mode == "dependent" for one in self._launches)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of code and options: equal digests compile to equal instructions under one compiler."""
        code = code_of(self.target, self.source)
        return hashlib.sha256("\0".join((self.target, *self.options, code)).encode()).hexdigest()

    @property
    def frame(self) -> StorageFrame:
        """Return the place of the domain in storage."""
        return self.config.frame(self.case.stencil)

    @property
    def arrays(self) -> int:
        """Return the arrays of all cells that a copy of the lattice consists of."""
        return arrays(self.config.memory, self.case.stencil.q)

    def buffers(self) -> tuple[str, ...]:
        """Return the names of the copies of the lattice."""
        return BUFFERS[: self.config.copies]

    def buffer_elements(self, domain: Extent) -> int:
        """Return the elements of each copy of the lattice for a domain."""
        return buffer_elements(self.case, self.config, domain)

    def array_bytes(self, domain: Extent) -> list[int]:
        """Return the bytes of each copy of the lattice."""
        return [self.buffer_elements(domain) * self.config.stored.bytes for _ in self.buffers()]

    def other_buffers(self, domain: Extent) -> dict[str, int]:
        """Return the elements of each buffer that launches take besides the copies of the lattice, by its name."""
        case, used = replace(self.case, domain=domain), self.arguments
        return {name: elements(self, case) for name, elements in _ELEMENTS.items() if name in used}

    def dtype_of(self, name: str) -> str:
        """Return the element type of one of the other buffers."""
        words = (WORDS, MOVING_WORDS, LIST, BARRIER, *chain(*WALL_PLACES))
        return "uint32" if name in words else self.config.computed.dtype

    def slot_starts(self, domain: Extent) -> dict[str, int]:
        """Return the element of f0 where each slot starts that launches take, or each array of a tile's faces."""
        extents, memory = self.config.stored_extents(self.case, domain), self.config.memory
        slots = [name for name in self.arguments if name.startswith(SLOT)]
        starts = {name: int(memory.component(int(name.removeprefix(SLOT)), extents)) for name in slots}
        return starts | {name: self._faces_start(name, domain) for name in FACE_ARRAYS if name in self.arguments}

    def _faces_start(self, name: str, domain: Extent) -> int:
        """Return the start of an array of faces; they follow the state, one after the other."""
        config: Any = self.config
        array = int(array_elements(self.case.stencil, config, domain))
        return self.buffer_elements(domain) - (len(FACE_ARRAYS) - FACE_ARRAYS.index(name)) * array

    def grid(self, launch: Launch, domain: Extent) -> Extent:
        """Return the blocks of a launch for a domain."""
        listed = _LISTED[launch.over](replace(self.case, domain=domain), self.config) if launch.over in _LISTED else 0
        return launch.grid(domain, self.frame, listed)

    def scalars(self, case: Case) -> dict[str, int | float]:
        """Return the values of all scalar arguments for a case, in storage units.

        Numbers of cells, sites, nodes and steps are 32-bit integers; all others are of the compute precision.
        """
        unit = self.config.unit
        values: dict[str, int | float] = dict(zip(("nx", "ny", "nz"), case.domain, strict=True))
        values |= _counts(case, self.config) if LIST in self.arguments else {}
        values |= {WALL_LINKS: link_count(case)} if WALL_LINKS in self.arguments else {}
        values |= {"omega": case.relaxation_rate, "omega_minus": omega_minus(case)}
        values |= {f"force_{a}": f * unit for a, f in zip("xyz", case.force, strict=True)}
        values |= {FIRST_PLANE: 0, LAST_PLANE: case.domain[2]} if FIRST_PLANE in self.arguments else {}
        return values | boundary_values(case, unit) | {PARITY: 0, STEPS: 1}


def _barrier_words(program: Program, case: Case) -> int:
    config: Any = program.config
    if config.grid_sync == "all":
        return COUNTS
    return APART * max(prod(program.grid(launch, case.domain)) for step in program.period for launch in step)


def _sent_sums(program: Program, case: Case) -> int:
    config: Any = program.config
    return int(face_elements(case.stencil, config, case.domain))


_ELEMENTS: Mapping[str, Callable[[Program, Case], int]] = {
    WORDS: lambda _, case: case.sites,
    MOVING_WORDS: lambda _, case: case.sites,
    LIST: lambda program, case: program.config.list_words(case),
    MACROSCOPICS: lambda _, case: MACROSCOPIC_FIELDS * case.sites,
    BARRIER: _barrier_words,
    SENT_SUMS: _sent_sums,
    RINGS: lambda program, case: program.config.scratch_bytes(case) // program.config.computed.bytes,
    **{name: lambda _, case: link_count(case) for name in (*chain(*WALL_PLACES), WALL_SHARE)},
}
"""Elements of the buffers besides the copies of the lattice."""
_LISTED: Mapping[Over, Callable[[Case, KernelConfig], int]] = {
    "sites": lambda case, config: _counts(case, config)["sites"],
    "wall_links": lambda case, _: link_count(case),
}
"""Sizes that follow from the solid cells, of what grids of one dimension cover."""


def _counts(case: Case, config: KernelConfig) -> dict[str, int]:
    from lbmtune.catalogue.sparse.nodes import counts  # here: NumPy is not needed to start

    _, sites, nodes = counts(case, config)
    return {"sites": sites, "nodes": nodes}


def omega_minus(case: Case) -> float:
    """Return the relaxation rate of the odd parts in TRT: (1/omega - 1/2)(1/omega_minus - 1/2) = magic."""
    return 1.0 / (case.magic / (1.0 / case.relaxation_rate - 0.5) + 0.5)
