"""Inputs of a prediction for a CPU: case, configuration, machine and its calibration.

`CpuInputs` answers for one step of a box; the modules of the other families have subclasses.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.codegen.cpu.shared.collision import relaxation_text, shift_text
from lbmtune.model.machine.description import CpuCalibration, Machine
from lbmtune.model.machine.memory_walks import Kind
from lbmtune.records import Term


@dataclass(frozen=True)
class CpuInputs:
    """A configuration of a case on a calibrated machine. Subclasses of the families override what differs."""

    case: Case
    config: CpuConfig
    machine: Machine
    calibration: CpuCalibration

    @property
    def access_bytes(self) -> int:
        """Return the bytes that a load or store of populations moves."""
        return self.config.lanes * self.config.stored.bytes

    @property
    def waiting_bytes(self) -> int:
        """Return the bytes of a population between two steps of a launch."""
        return self.config.stored.bytes

    @property
    def phases(self) -> list[Phase]:
        """Return the phases of all parities."""
        return self.config.propagation.phases(self.case.stencil)

    @property
    def widths(self) -> tuple[int, ...]:
        """Return the bytes of the accesses that were measured."""
        return tuple(map(int, self.calibration.multiply_add_per_s))

    @property
    def threads(self) -> float:
        """Return the threads at work, as the mean over a launch."""
        return self.config.busy_threads(self.case)

    @property
    def repeated(self) -> float:
        """Return the computed steps per step of a cell: more than 1 with halos."""
        return 1.0

    @property
    def kind(self) -> Kind:
        """Return the kind of walk through memory."""
        if self.config.propagation.in_place:
            return "in place"
        return "streaming" if self.config.streaming_stores else "copy"

    @property
    def grouped(self) -> bool:
        """Return whether streams lie in groups of one access each, as in an AoSoA."""
        return self.config.memory.run > 0

    @property
    def has_streams(self) -> bool:
        """Return whether the streams of a row are accessed side by side: their lines may share a set of a cache."""
        return not self.config.memory.run

    @property
    def prefetched_in_cache(self) -> float:
        """Return the share of the streams that each step prefetches."""
        config, accesses = self.config, [access for phase in self.phases for access in phase.accesses]
        ahead = [config.prefetch_propagated if any(one.read.offset) else config.prefetch_local for one in accesses]
        return sum(map(bool, ahead)) / len(ahead)

    @property
    def prefetched(self) -> float:
        """Return the share of the streams whose lines in memory are prefetched: all, if steps prefetch rows."""
        return 1.0 if self.config.prefetch_rows else self.prefetched_in_cache

    @property
    def text(self) -> str:
        """Return the assignments of an update of a cell."""
        collision = collision_text(self.case, self.config.collision_passes)
        return collision if self.config.stored.shifted else "\n".join((collision, shift_text(self.case)))


@dataclass(frozen=True)
class Family:
    """The model of a family, in its module. inputs: quantities of shared terms; terms: of a calibrated machine.

    arithmetic: its time of operations, for a machine that is not calibrated as well; None: counted on the printed text.
    """

    inputs: type[CpuInputs]
    terms: Callable[[Any, Collection[str]], list[Term]]
    arithmetic: Callable[[Any], Term] | None = None


collision_text = lru_cache(maxsize=64)(relaxation_text)
"""The assignments of the collision of a cell that reads its populations in a number of passes."""


def of_a_node(config: CpuConfig, machine: Machine) -> float:
    """Return the share of the bandwidth that one NUMA node has: that of its processors among all.

    All of them run threads, as many as `threads=all` means there. Of a node of memory alone nothing is known.
    """
    return min(1.0, config.threads / machine.environment.cores)
