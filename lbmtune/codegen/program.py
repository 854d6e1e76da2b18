"""What codegen returns: the text of a kernel with everything that is needed to run it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from math import ceil, prod
from typing import Literal

from lbmtune.catalogue.boundaries.arguments import boundary_values
from lbmtune.catalogue.boundaries.cell_flags import MOVING_WORDS, WORDS
from lbmtune.catalogue.config import CudaConfig, KernelConfig
from lbmtune.catalogue.families.cuda.face_exchange import array_elements
from lbmtune.catalogue.families.cuda.persistent import face_elements
from lbmtune.catalogue.footprint import buffer_elements, list_elements
from lbmtune.catalogue.layouts.layout import arrays
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.storage import StorageFrame, frame, stored_extents
from lbmtune.codegen.code_text import code_of
from lbmtune.codegen.passes import BUFFERS, FACE_ARRAYS, SLOT

Target = Literal["cuda", "cpu"]
MACROSCOPICS = "macroscopics"
"""Name of the buffer in which density and velocity are left."""
Over = Literal["cells", "shell", "sites"]
Mode = Literal["plain", "dependent", "cooperative"]
LIST = "links"
"""Name of the index list among the arguments of a launch."""
PARITY, STEPS = "parity", "steps"
"""Names of the arguments of launches that take any number of time steps: the parity of the first, and how many."""
BARRIER, COUNTS, APART = "barrier", 2, 32
"""Name of the words by which blocks of a launch meet, 0 before the first one: counts of all, or a flag of each block,
so many words from the next."""

SENT_SUMS = "faces"
"""Name of the sums of moments that tiles on chip send one another, in the compute precision."""
RINGS = "rings"
"""Name of the values that the threads of a CPU keep from row to row, in the compute precision."""


@dataclass(frozen=True)
class Launch:
    """One launch. arguments: names of buffers ('f0', 'f1', 'links') and scalars, in the order of the parameters.

    block: threads; over: what the grid covers; covers: how many of those one block takes per axis; ends: how many
    more the first and the last one take together.
    'cells': the fluid domain; 'shell': the ghost cells, counted in one dimension (see codegen.ghost);
    'sites': those of indirect addressing, in one dimension.
    mode: 'dependent': it waits by itself for the launch before it, and may begin before that has ended;
    'cooperative': all its blocks must run at once.
    """

    entry: str
    arguments: tuple[str, ...]
    block: tuple[int, int, int] = (1, 1, 1)
    covers: tuple[int, int, int] = (1, 1, 1)
    ends: tuple[int, int, int] = (0, 0, 0)
    over: Over = "cells"
    shared_bytes: int = 0
    mode: Mode = "plain"

    def grid(self, domain: tuple[int, int, int], storage: StorageFrame, sites: int = 0) -> tuple[int, int, int]:
        """Blocks along each axis for a domain; sites: how many indirect addressing has there."""
        totals = {"cells": domain, "shell": (shell_cells(domain, storage), 1, 1), "sites": (sites, 1, 1)}
        inner = (max(1, n - more) for n, more in zip(totals[self.over], self.ends, strict=True))
        x, y, z = (ceil(n / c) for n, c in zip(inner, self.covers, strict=True))
        return (x, y, z)


def shell_cells(domain: tuple[int, int, int], storage: StorageFrame) -> int:
    """Cells of the one-cell layer around the domain, along the axes that have ghost cells."""
    nx, ny, nz = (n + 2 * ghost for n, ghost in zip(domain, storage.ghost, strict=True))
    return nx * ny * nz - domain[0] * domain[1] * domain[2]


@dataclass(frozen=True)
class Program:
    """The text for one target, and the launches of each parity of one period.

    period[p]: the launches that advance a state of parity p by one time step.
    options: for the compiler, in order; steps: time steps that each of them advances instead of one.
    prologue: for each parity, the launches that make ready what its steps take besides the state: before the first one,
    and after values of the case have changed.
    with_macroscopics: the same as period, and density and velocity of the state before the step are left in the buffer
    'macroscopics'; empty where the text has no such entries.
    max_elements: the longest buffer whose elements the indices of the text reach; None: no limit (64-bit indices).
    """

    target: Target
    case: Case
    config: KernelConfig
    source: str
    options: tuple[str, ...]
    period: tuple[tuple[Launch, ...], ...]
    with_macroscopics: tuple[tuple[Launch, ...], ...] = ()
    steps: int = 1
    prologue: tuple[tuple[Launch, ...], ...] = ()
    max_elements: int | None = None

    @property
    def any_steps(self) -> bool:
        """Whether its launches take fewer time steps, too, from any parity on."""
        return all(STEPS in launch.arguments for step in self.period for launch in step)

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the functions to look up."""
        return tuple(dict.fromkeys(launch.entry for step in self._every for launch in step))

    @property
    def _every(self) -> tuple[tuple[Launch, ...], ...]:
        return (*self.period, *self.with_macroscopics, *self.prologue)

    @property
    def asked_shared_bytes(self) -> dict[str, int]:
        """Shared memory that launches of each entry ask for, the most of them: the compiler knows nothing of it."""
        launches = [launch for step in self._every for launch in step]
        return {
            entry: max(launch.shared_bytes for launch in launches if launch.entry == entry) for entry in self.entries
        }

    @property
    def persistent(self) -> bool:
        """Whether a launch goes on for as many time steps as it is asked for."""
        return any(BARRIER in launch.arguments for step in self.period for launch in step)

    @property
    def has_sync(self) -> bool:
        """Whether threads wait for each other, or launches for the one before: a fault of theirs may be a race."""
        launches = [launch for step in self._every for launch in step]
        return self.persistent or any(launch.shared_bytes or launch.mode == "dependent" for launch in launches)

    @property
    def digest(self) -> str:
        """SHA-256 of code and options: equal digests compile to equal instructions under one compiler."""
        code = code_of(self.target, self.source)
        return hashlib.sha256("\0".join((self.target, *self.options, code)).encode()).hexdigest()

    @property
    def frame(self) -> StorageFrame:
        """Where cells lie in storage."""
        return frame(self.case.stencil, self.config)

    @property
    def arrays(self) -> int:
        """Arrays of all cells that a lattice copy consists of."""
        return arrays(self.config.memory, self.case.stencil.q)

    def buffers(self) -> tuple[str, ...]:
        """Names of the lattice copies."""
        return BUFFERS[: self.config.copies]

    def tables(self) -> tuple[str, ...]:
        """Names of the constant arrays that launches take beside the lattice copies: words of flags."""
        used = dict.fromkeys(name for step in self.period for launch in step for name in launch.arguments)
        return tuple(name for name in used if name in (WORDS, MOVING_WORDS))

    def slot_starts(self, domain: tuple[int, int, int]) -> dict[str, int]:
        """The element of f0 at which each slot, or array of what crosses between tiles, starts that launches take."""
        used = dict.fromkeys(name for step in self.period for launch in step for name in launch.arguments)
        extents, memory = stored_extents(self.case, self.config, domain), self.config.memory
        names = (name for name in used if name.startswith(SLOT))
        starts = {name: int(memory.component(int(name.removeprefix(SLOT)), extents)) for name in names}
        return starts | {name: self._faces_start(name, domain) for name in FACE_ARRAYS if name in used}

    def _faces_start(self, name: str, domain: tuple[int, int, int]) -> int:
        """The arrays come after the state, one after the other."""
        assert isinstance(self.config, CudaConfig)
        array = int(array_elements(self.case.stencil, self.config, domain))
        return self.buffer_elements(domain) - (len(FACE_ARRAYS) - FACE_ARRAYS.index(name)) * array

    def barrier_words(self, domain: tuple[int, int, int]) -> int:
        """Length of the buffer by which blocks meet; 0 where none do."""
        if not isinstance(self.config, CudaConfig) or not self.persistent:
            return 0
        if self.config.meeting == "all":
            return COUNTS
        return APART * max(prod(self.grid(launch, domain)) for step in self.period for launch in step)

    @property
    def ring_values(self) -> int:
        """Length of the buffer of what threads keep from row to row; 0 where they keep nothing."""
        if not any(RINGS in launch.arguments for step in self.period for launch in step):
            return 0
        return self.config.scratch_bytes(self.case) // self.config.computed.bytes

    def face_values(self, domain: tuple[int, int, int]) -> int:
        """Length of the buffer of what tiles on chip send one another; 0 where they send none of their own."""
        if not any(SENT_SUMS in launch.arguments for step in self.period for launch in step):
            return 0
        assert isinstance(self.config, CudaConfig)
        return int(face_elements(self.case.stencil, self.config, domain))

    def grid(self, launch: Launch, domain: tuple[int, int, int]) -> tuple[int, int, int]:
        """Blocks of a launch for a domain."""
        return launch.grid(domain, self.frame, self._sites(domain))

    def array_bytes(self, domain: tuple[int, int, int]) -> list[int]:
        """Bytes of each lattice copy."""
        return [self.buffer_elements(domain) * self.config.stored.bytes for _ in self.buffers()]

    def list_elements(self, domain: tuple[int, int, int]) -> int:
        """Words of the index list for a domain; 0 with direct addressing."""
        return list_elements(replace(self.case, domain=domain), self.config)

    def _sites(self, domain: tuple[int, int, int]) -> int:
        from lbmtune.catalogue.sparse.nodes import counts  # here: arrays are not needed to start

        return counts(replace(self.case, domain=domain), self.config).sites if self.config.indirect else 0

    def buffer_elements(self, domain: tuple[int, int, int]) -> int:
        """Length of each buffer for a domain."""
        return buffer_elements(self.case, self.config, domain)


def scalars(case: Case, config: KernelConfig, domain: tuple[int, int, int]) -> dict[str, int | float]:
    """Values of all scalar arguments a launch may name, in storage units.

    nx, ny, nz, those of time steps, and with indirect addressing sites and nodes, are 32-bit integers; all others are
    of the compute precision.
    """
    from lbmtune.catalogue.sparse.nodes import counts  # here: arrays are not needed to start

    unit = config.unit
    values: dict[str, int | float] = dict(zip(("nx", "ny", "nz"), domain, strict=True))
    values |= {PARITY: 0, STEPS: config.fused_steps}
    if config.indirect:
        _, sites, nodes = counts(replace(case, domain=domain), config)
        values |= {"sites": sites, "nodes": nodes}
    values |= {"omega": case.relaxation_rate, "omega_minus": omega_minus(case)}
    values |= {f"force_{a}": f * unit for a, f in zip("xyz", case.force, strict=True)}
    values |= boundary_values(case, unit)
    return values | {STEPS: 1}


def omega_minus(case: Case) -> float:
    """Relaxation rate of the odd parts in TRT: (1/omega - 1/2)(1/omega_minus - 1/2) = magic."""
    return 1.0 / (case.magic / (1.0 / case.relaxation_rate - 0.5) + 0.5)
