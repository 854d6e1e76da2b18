"""What a prediction of a GPU kernel is made of: case, configuration, machine and calibration, compiled resources."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.temporal_blocking import blocks
from lbmtune.catalogue.limits import WARP, cuda_limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.codegen.passes import passes_of
from lbmtune.model.gpu.occupancy import left_of_l1, threads_together, warps_of
from lbmtune.model.machine.description import ACCESS_BYTES, Calibration, Machine
from lbmtune.records import ISSUE_TERM, Entry, Resources

RUNS, SECTORS, IN_PLACE, AHEAD, LOCAL = "runs", "partial sectors", "in place", "words ahead", "local memory"
SOLID = "solid cells"
THREADS, WAVES = "threads in flight", "waves"
LAUNCH, LATENCY, ISSUE, RINGS, STAGES = "launch", "latency", ISSUE_TERM, "rings", "stages"
WALLS, AGAIN, MEETING, OVERTAKEN = "walls", "read again", "meeting", "overtaken loads"
_IN_TILES = {"tiled": 0, "tiled-cells": 1}
"""Tiles of memory that a value has before another one begins; 0: all of them. Blocks that are tiles go through whole
ones, others through rows of them."""
WORD_BYTES = 4
"""Of a register, and what displaced copies move at once."""
_PAIR = 2
"""Multiprocessors that blocks are handed to together (a texture processing cluster).

Source: NVIDIA H100 Tensor Core GPU Architecture, 2022. How a pair shares its blocks follows from marches on small
domains: of 12 to 66 blocks that could have shared a multiprocessor each ran as if it had one, of 84 and 96 as if two
had to share one (`docs/design/gpu.md`)."""
WALKERS = 64
"""Threads of a block that was measured walking."""


@dataclass(frozen=True)
class Subject:
    """What is predicted: a configuration of a case on a machine, and what its compiled kernel uses."""

    case: Case
    config: CudaConfig
    machine: Machine
    calibration: Calibration
    resources: Resources

    @cached_property
    def access_bytes(self) -> int:
        """What a thread loads or stores at once."""
        config = self.config
        return min(config.cells_per_thread * config.pack * config.stored.bytes, ACCESS_BYTES)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Of the passes of a step, of all parities, in order; none where they are not told apart."""
        scheme, stencil, told = self.config.propagation, self.case.stencil, self.resources.entries
        passes = [one for parity in range(scheme.period) for one in passes_of(self.config, stencil, parity)]
        return tuple(told[one.entry] for one in passes) if all(one.entry in told for one in passes) else ()

    def threads_of(self, registers: int) -> int:
        """Those that share a multiprocessor where each has so many: whole warps, lanes without a thread included."""
        found = Entry(registers=registers, shared_bytes=self.shared_bytes)
        return threads_together(self.config, found, self._shared_limit_bytes)

    @cached_property
    def threads(self) -> int:
        """Those that share a multiprocessor in all passes."""
        found = self.threads_of(max(entry.registers for entry in self.entries or (self.resources,)))
        if not self.config.marches:
            return found
        # few blocks lie apart, one on each pair; of two on a pair one multiprocessor has both if it has room
        blocks = -(-launched_blocks(self) * _PAIR // self.machine.multiprocessors)
        return min(found, blocks * warps_of(self.config) * WARP)

    @property
    def blocks(self) -> int:
        """Those that share a multiprocessor."""
        return self.threads // (warps_of(self.config) * WARP)

    @property
    def cache_bytes(self) -> int:
        """Of a multiprocessor, what its blocks leave of L1."""
        return left_of_l1(self.calibration.l1_bytes, self.blocks, self.shared_bytes, self._shared_limit_bytes)

    @property
    def _shared_limit_bytes(self) -> int:
        """Of a multiprocessor."""
        environment = self.machine.environment
        return cuda_limits(environment.architecture, self.machine.multiprocessors, 0).shared_bytes_per_multiprocessor

    @property
    def shared_bytes(self) -> int:
        """Of a block, what it asks for when it is launched included, which the compiler does not know."""
        return max(self.config.shared_bytes(self.case), self.resources.shared_bytes)

    @cached_property
    def run_bytes(self) -> int:
        """Of a direction, what lies together before another one begins; 0: all of it."""
        config = self.config
        if config.by_faces and config.memory.name in _IN_TILES:
            return _IN_TILES[config.memory.name] * prod(config.memory.tile) * config.stored.bytes
        cells = self.case.domain[0] * config.pack if config.memory.name == "rows" else config.memory.run
        return cells * config.stored.bytes


def side_of(phase: Phase) -> str:
    """Which sides of a pass lie in other cells."""
    loads = any(any(a.read.offset) for a in phase.accesses)
    stores = any(any(a.write.offset) for a in phase.accesses)
    return ("in place" if loads else "stores") if stores else "loads" if loads else "none"


def sides(subject: Subject, parity: int) -> set[str]:
    """Of all passes of a step."""
    return {side_of(phase) for phase in subject.config.propagation.passes(subject.case.stencil, parity)}


def stays_at_home(subject: Subject) -> bool:
    """Whether there are steps in which no cell reaches for another one, so that all others reach the further."""
    return any(sides(subject, parity) == {"none"} for parity in range(subject.config.propagation.period))


def walking_name(config: CudaConfig) -> str:
    """What the name of a copy says of threads that take cells one after another."""
    return " walking" if config.march > 1 else ""


def launched_blocks(subject: Subject) -> int:
    """Of a launch over all cells."""
    case, config = subject.case, subject.config
    if config.indirect:
        return -(-case.fluid_sites // (prod(config.block) * config.cells_per_thread * config.march))
    if config.marches:
        return prod(blocks(case, config))
    return prod(-(-n // cells) for n, cells in zip(case.domain, config.block_cells(case.stencil), strict=True))


def between(curve: Sequence[tuple[float, float]], at: float) -> float:
    """Linear between measured points, from nothing to the first, and as the last one beyond."""
    points = [(0, 0.0), *curve]
    after = bisect([x for x, _ in points], at)
    if after == len(points):
        return points[-1][1]
    (x0, y0), (x1, y1) = points[after - 1], points[after]
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)
