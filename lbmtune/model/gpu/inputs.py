"""Inputs of a prediction for a GPU: case, configuration, machine and its calibration, compiled resources.

`Inputs` answers for a kernel of one step of a box; the modules of the other families have subclasses.
Source of occupancy: CUDA C++ Programming Guide, technical specifications per compute capability.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.limits import REGISTER_UNIT, REGISTERS, RESERVED_BYTES, SCHEDULERS, WARP, cuda_limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.codegen.passes import passes_of
from lbmtune.model.machine.description import ACCESS_BYTES, Calibration, Machine
from lbmtune.records import Entry, Resources

_ADDRESS_REGISTERS = {"computed": {1: 60, 2: 32}, "shared": {1: 38, 2: 24}}
"""Registers of a thread besides those of its cells, by where it has the starts of the directions from and by copies of
the lattice; as compiled for sm_90."""

WARPS, _BLOCKS = 64, 32
"""Limits of a multiprocessor of data centre cards since compute capability 7.0."""
_SIXTY_FOUR_WARPS = ("sm_70", "sm_80", "sm_90", "sm_100")
"""Architectures of these cards."""
_SHARED_KIB = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
"""Sizes of shared memory that L1 can be configured for, up to the limit of the device."""


@dataclass(frozen=True)
class Inputs:
    """A configuration of a case on a calibrated machine, and the resources of its compiled kernel.

    Subclasses of the families override what differs.
    """

    displaces: ClassVar[bool] = False
    """True if accesses to arrays of structures are displaced to other cells."""

    case: Case
    config: CudaConfig
    machine: Machine
    calibration: Calibration
    resources: Resources

    @staticmethod
    def lane_bytes(config: CudaConfig) -> int:
        """Return the contiguous bytes of a thread."""
        return config.cells_per_thread * config.stored.bytes

    @property
    def walking(self) -> bool:
        """Return whether a thread updates several cells or groups of sites one after another."""
        return False

    def displaced_byte_s(self, elements: int, phase: Phase, entry: Entry, as_many_s: float) -> float:
        """Return the seconds per byte of displaced accesses to structures of some elements. as_many_s: of the copy."""
        return as_many_s

    @property
    def rows(self) -> int:
        """Return the rows along y that a thread loads."""
        return 1

    @property
    def loads_at_once(self) -> float:
        """Return the share of its loads that a thread waits for together."""
        return 1.0

    @property
    def list_factor(self) -> float:
        """Return the bandwidth of accesses by an index list, over that of plain copies."""
        return 1.0

    @property
    def passing_bytes(self) -> float:
        """Return the bytes that pass through the caches of a multiprocessor while its threads keep local memory."""
        return 0.0

    @property
    def block_threads(self) -> int:
        """Return the threads of a block."""
        return prod(self.config.block)

    @property
    def skips_solid_cells(self) -> bool:
        """Return whether the kernel visits all cells of a geometry and skips the solid ones."""
        return bool(self.case.geometry)

    @property
    def launched_blocks(self) -> int:
        """Return the blocks of a launch over all cells."""
        return prod(self.config.blocks(self.case))

    @cached_property
    def access_bytes(self) -> int:
        """Return the bytes of a load or store of a thread."""
        return min(self.lane_bytes(self.config), ACCESS_BYTES)

    @cached_property
    def run_bytes(self) -> int:
        """Return the bytes of one direction that lie together before another one begins; 0: all of them."""
        return self.config.memory.run_in(self.case.domain[0]) * self.config.stored.bytes

    @property
    def row_bytes(self) -> float:
        """Return the bytes of one direction in a row of a block."""
        return self.config.block[0] * self.config.cells_per_thread * self.config.stored.bytes

    @property
    def neighbour_registers(self) -> int:
        """Return the registers for addresses of neighbours, which the entry of a parity without neighbours lacks."""
        by_copies = _ADDRESS_REGISTERS[self.config.addresses]
        return by_copies[1] - by_copies[2]

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Return the resources of the passes of a step, for all parities, in order; empty if they are not recorded."""
        scheme, stencil, compiled = self.config.propagation, self.case.stencil, self.resources.entries
        passes = [one for parity in range(scheme.period) for one in passes_of(self.config, stencil, parity)]
        return tuple(compiled[one.entry] for one in passes) if all(one.entry in compiled for one in passes) else ()

    def threads_with(self, registers: int) -> int:
        """Return the threads that share a multiprocessor with that many registers each, idle lanes included."""
        entry = Entry(registers=registers, shared_bytes=self.shared_bytes)
        return resident_threads(self.block_threads, entry, self.shared_limit_bytes)

    @cached_property
    def threads(self) -> int:
        """Return the threads that share a multiprocessor in all passes."""
        return self.threads_with(max(entry.registers for entry in self.entries or (self.resources,)))

    @property
    def block_warps(self) -> int:
        """Return the warps of a block."""
        return warps_of(self.block_threads)

    @property
    def blocks(self) -> int:
        """Return the blocks that share a multiprocessor."""
        return self.threads // (self.block_warps * WARP)

    @property
    def cache_bytes(self) -> int:
        """Return the bytes of L1 that the shared memory of these blocks leaves."""
        return left_of_l1(self.calibration.l1_bytes, self.blocks, self.shared_bytes, self.shared_limit_bytes)

    @property
    def shared_limit_bytes(self) -> int:
        """Return the shared memory of a multiprocessor."""
        environment = self.machine.environment
        return cuda_limits(environment.architecture, self.machine.multiprocessors, 0).shared_bytes_per_multiprocessor

    @property
    def shared_bytes(self) -> int:
        """Return the shared memory of a block, with what a launch requests and the compiler does not see."""
        return max(self.config.shared_bytes(self.case), self.resources.shared_bytes)


def address_registers(config: CudaConfig) -> int:
    """Return the registers of a thread besides those of its cells."""
    return _ADDRESS_REGISTERS[config.addresses][config.copies]


def displaced_side(phase: Phase) -> str:
    """Return which accesses of a pass go to other cells: "none", "loads", "stores", or "in place" for both."""
    loads = any(any(a.read.offset) for a in phase.accesses)
    stores = any(any(a.write.offset) for a in phase.accesses)
    return ("in place" if loads else "stores") if stores else "loads" if loads else "none"


def displaced_sides(inputs: Inputs, parity: int) -> set[str]:
    """Return the displaced sides of all passes of a step."""
    return {displaced_side(phase) for phase in inputs.config.propagation.passes(inputs.case.stencil, parity)}


def has_local_steps(inputs: Inputs) -> bool:
    """Return whether there are steps in which cells access nothing but their own storage, as in AA."""
    return any(displaced_sides(inputs, parity) == {"none"} for parity in range(inputs.config.propagation.period))


def walking_suffix(inputs: Inputs) -> str:
    """Return the end of the names of copies whose threads take cells one after another, if these do."""
    return " walking" if inputs.walking else ""


def resident_threads(block_threads: int, entry: Entry, shared_bytes: int) -> int:
    """Return the threads that share a multiprocessor, limited by registers, warps and shared memory."""
    warps = warps_of(block_threads)
    allocated = -(-max(entry.registers, 1) // REGISTER_UNIT) * REGISTER_UNIT * WARP
    by_registers = SCHEDULERS * (REGISTERS // SCHEDULERS // allocated) // warps
    by_shared = shared_bytes // taken_of(entry.shared_bytes) if entry.shared_bytes else _BLOCKS
    return max(1, min(_BLOCKS, WARPS // warps, by_registers, by_shared)) * warps * WARP


def occupancy(case: Case, config: CudaConfig, resources: Resources, architecture: str) -> tuple[int, int, int] | None:
    """Return the blocks that share a multiprocessor, their warps, and the most warps; None of other architectures."""
    if architecture.rstrip("af") not in _SIXTY_FOUR_WARPS:
        return None
    limit = cuda_limits(architecture, 0, 0).shared_bytes_per_multiprocessor
    used = Entry(registers=resources.registers, shared_bytes=max(config.shared_bytes(case), resources.shared_bytes))
    block_threads = prod(config.block)
    warps = resident_threads(block_threads, used, limit) // WARP
    return warps // warps_of(block_threads), warps, WARPS


def warps_of(block_threads: int) -> int:
    """Return the warps of a block; lanes of the last one may have no thread."""
    return -(-block_threads // WARP)


def taken_of(shared_bytes: int) -> int:
    """Return the shared memory that a block takes, with the part that the system reserves."""
    return shared_bytes + RESERVED_BYTES if shared_bytes else 0


def left_of_l1(l1_bytes: int, blocks: int, shared_bytes: int, limit_bytes: int) -> int:
    """Return the bytes of L1 that remain beside the shared memory of the blocks of a multiprocessor."""
    return l1_bytes - shared_of(blocks * taken_of(shared_bytes), limit_bytes)


def shared_of(taken_bytes: int, limit_bytes: int) -> int:
    """Return the size of shared memory that is configured for blocks that take that many bytes."""
    return min(limit_bytes, next((kib << 10 for kib in _SHARED_KIB if kib << 10 >= taken_bytes), limit_bytes))
