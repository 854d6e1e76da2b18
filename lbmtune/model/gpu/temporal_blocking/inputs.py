"""Inputs of a prediction for temporal blocking: blocks that go up along z over tiles with a halo."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.families.cuda.temporal_blocking import TemporalBlocking
from lbmtune.catalogue.limits import WARP
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.gpu.inputs import Inputs

_CLUSTER = 2
"""Multiprocessors that blocks are distributed to together (a texture processing cluster).

Source: NVIDIA H100 Tensor Core GPU Architecture, 2022. How a pair shares its blocks follows from temporal blocking on
small domains: of 12 to 66 blocks that could have shared a multiprocessor each ran as if it had one, of 84 and 96 as if
two had to share one (`docs/design/gpu.md`)."""


def chunk_planes(height: int, count: int, config: TemporalBlocking) -> tuple[int, ...]:
    """Return the planes that the blocks of a column update, in the order in which they begin."""
    depth = -(-height // count)
    even = config.chunk_schedule == "uniform"
    ends = [min(height, depth * k if even else depth * k * (2 * count - k) // count) for k in range(count + 1)]
    return tuple(end - begin for begin, end in pairwise(ends))


def passed_planes(case: Case, config: TemporalBlocking) -> tuple[int, ...]:
    """Return the planes that the blocks of a column pass, in the order in which they begin: chunks and those around."""
    _, y, z = config.blocks(case)
    height, chunks = (case.domain[1], y) if case.stencil.dimensions == 2 else (case.domain[2], z)
    return tuple(planes + 2 * config.steps for planes in chunk_planes(height, chunks, config))


def spared(case: Case, config: TemporalBlocking) -> int:
    """Return the planes that a stage does not take at the beginning of a chunk, on average.

    Stage t has no use of the first 2 t, and leaves them out where links can be cut: chunks are short there.
    """
    return config.steps - 1 if cuts(case) and case.stencil.dimensions == 3 else 0


def even(case: Case, config: TemporalBlocking) -> bool:
    """Return whether all blocks take equally long."""
    return config.chunk_schedule == "uniform" and not (cuts(case) and case.stencil.dimensions == 3)


def column(case: Case, config: TemporalBlocking, passed: Sequence[int]) -> tuple[int, int]:
    """Return the cells of a column along the axis that blocks go, and the planes that all its blocks go through.

    passed: planes of each of them.
    """
    axis = case.stencil.dimensions - 1
    chunks = config.blocks(case)[axis]
    return case.domain[axis], chunks * passed[0] if config.chunk_schedule == "uniform" else sum(passed)


def useful_planes(case: Case, config: TemporalBlocking) -> list[int]:
    """Return the planes that each block of a column goes through, less those that stages leave out, on average."""
    return [planes - spared(case, config) for planes in passed_planes(case, config)]


@dataclass(frozen=True)
class TemporalInputs(Inputs):
    """A kernel of temporal blocking, or a part of its launch. part: blocks of that; 0: all."""

    config: TemporalBlocking
    part: int = 0

    skips_solid_cells = False  # they are loaded and computed like others

    @staticmethod
    def lane_bytes(config: Any) -> int:
        """Return the contiguous bytes of a thread: groups of values of its cells."""
        return int(config.cells_per_thread * config.pack * config.stored.bytes)

    @property
    def rows(self) -> int:
        """Return the rows along y that a thread loads."""
        return self.config.rows

    @property
    def launched_blocks(self) -> int:
        """Return the blocks of the launch, or of the part of it."""
        return self.part or super().launched_blocks

    @property
    def share(self) -> float:
        """Return the share of the blocks of the launch in the part of it."""
        return self.launched_blocks / super().launched_blocks

    @property
    def updates(self) -> float:
        """Return the updates of these blocks in a time step."""
        return self.share * self.case.fluid_sites

    @property
    def parts(self) -> tuple[Self, ...]:
        """Return the full waves of a launch and its last one, in which fewer blocks share a multiprocessor.

        The whole if its waves are all alike, and if blocks take unequally long.
        """
        last = self.launched_blocks % (self.machine.multiprocessors * self.blocks)
        if last in (0, self.launched_blocks) or not even(self.case, self.config):
            return (self,)
        return replace(self, part=self.launched_blocks - last), replace(self, part=last)

    @cached_property
    def threads(self) -> int:
        """Return the threads that share a multiprocessor. Few blocks go one to each pair of multiprocessors.

        If a pair has two blocks, one multiprocessor has both if they fit.
        """
        blocks_there = -(-self.launched_blocks * _CLUSTER // self.machine.multiprocessors)
        return min(super().threads, blocks_there * self.block_warps * WARP)

    @cached_property
    def run_bytes(self) -> int:
        """Return the bytes of a group of values that lie together before another one begins; 0: all of them."""
        return self.config.memory.run_in(self.case.domain[0] * self.config.pack) * self.config.stored.bytes

    @property
    def planes(self) -> float:
        """Return the planes that a block goes through, as the mean over a column."""
        passed = passed_planes(self.case, self.config)
        return sum(passed) / len(passed)

    @property
    def waves(self) -> int:
        """Return the blocks that each slot of a multiprocessor takes one after the other."""
        return -(-self.launched_blocks // (self.machine.multiprocessors * self.blocks))

    @property
    def turns(self) -> float:
        """Return the planes that a multiprocessor takes one after the other, while its blocks run at the same time."""
        return self.waves * (self.planes - spared(self.case, self.config))
