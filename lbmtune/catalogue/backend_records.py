"""The records that all families of a backend extend."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import lcm
from typing import ClassVar, Literal, Self

from lbmtune.catalogue.knobs import Acts, Scalar, knob
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import Cells, KernelConfig
from lbmtune.catalogue.storage_frame import StorageFrame, aligned
from lbmtune.lattice import Lattice

Block = Cells
ALL_PROCESSORS, PHYSICAL_CORES = "all", "cores"
"""Words of the knob `threads`: one thread on every processor, or on one of each physical core (without SMT)."""
ANY_NODE, _NODE = "any", "node-"


@dataclass(frozen=True, kw_only=True)
class CudaConfig(KernelConfig):
    """Hold the knobs and the usual answers that all CUDA families share."""

    backend: ClassVar[Literal["cuda", "cpu"]] = "cuda"
    without: ClassVar[frozenset[str]] = frozenset({"stride"})
    searched: ClassVar[Mapping[str, tuple[Scalar, ...]]] = {"padding": (0, 64)}

    cells_per_thread = 1
    register_limit = "none"
    wrap = "arithmetic"
    load_hint = store_hint = "default"
    l2_prefetch = 0
    index_bits = 0
    block_order = "row"
    addresses = "computed"
    launch = "call"

    @property
    def block(self) -> Block:
        """Return the threads of a thread block along each axis."""
        raise NotImplementedError

    @property
    def max_registers(self) -> int:
        """Return the registers of a thread that the compiler may use at most (0: no cap)."""
        return _limited(self.register_limit, "registers")

    @property
    def min_blocks(self) -> int:
        """Return the thread blocks of a multiprocessor that launch bounds ask for (0: none)."""
        return _limited(self.register_limit, "blocks")

    @property
    def access_cells(self) -> int:
        """Return the cells along x of one access of a thread."""
        return self.cells_per_thread

    def frame(self, lattice: Lattice) -> StorageFrame:
        """Return where the cells of a domain lie in storage: by default without ghost cells."""
        x, y, z = self.memory.tile
        return aligned((max(self.kept.row_unit(self.cells_per_thread), x), y, z), self.kept.values(lattice))

    def warp_frame(self, lattice: Lattice, threads: Block) -> StorageFrame:
        """Return where the cells of a warp lie in storage, for which the populations that it touches are counted."""
        return self.frame(lattice)

    def shared_bytes(self, case: Case) -> int:
        """Return the shared memory of a thread block, in bytes."""
        return 0

    def block_cells(self, lattice: Lattice) -> Block:
        """Return the cells along each axis that a thread block updates at most."""
        raise NotImplementedError

    def blocks(self, case: Case) -> Block:
        """Return the thread blocks of a launch along each axis."""
        cells = self.block_cells(case.stencil)
        x, y, z = (-(-max(1, n - e) // c) for n, c, e in zip(case.domain, cells, self.ends(case), strict=True))
        return x, y, z

    def ends(self, case: Case) -> Block:
        """Return the cells along each axis that the first and the last block update besides, together."""
        return 0, 0, 0


@dataclass(frozen=True, kw_only=True)
class CpuConfig(KernelConfig):
    """Hold the knobs and the usual answers that all CPU families share."""

    backend: ClassVar[Literal["cuda", "cpu"]] = "cpu"
    by_device: ClassVar[Mapping[str, str]] = {"threads": "one per processor", "vector_bits": "as wide as it has"}
    # 1040 keeps the direction arrays of power-of-two domains out of one cache set
    searched: ClassVar[Mapping[str, tuple[Scalar, ...]]] = {"padding": (0, 64, 1040)}

    threads: int = knob(
        1,
        "threads of the parallel loop; 'all': one per processor, 'cores': one per physical core",
        unit="threads",
        search=(ALL_PROCESSORS,),
        words=(ALL_PROCESSORS, PHYSICAL_CORES),
    )
    vector_bits: int = knob(
        512,
        "bits of a SIMD access, of one register or two; 0: scalar loop",
        search=(0, 256, 512),
        allowed=(0, 256, 512),
    )
    pinning: str = knob(
        "none",
        "binding of threads: none, to cores, or to those of a NUMA node, which holds the arrays as well (node-N)",
        search=("none",),
    )
    pages: str = knob("default", "pages of memory; default: as NumPy allocates", allowed=("default", "normal", "huge"))
    first_touch: str = knob(
        "serial",
        "threads that touch pages first",
        allowed=("serial", "parallel"),
        acts=(Acts(on="threads", values=(1,), unless=True, because="one thread works on all rows"),),
    )

    wrap = "ghost"
    streaming_stores = 0
    collision_passes = "one"
    row_tail = "in_loop"
    prefetch_propagated = prefetch_local = prefetch_rows = 0

    @property
    def loop(self) -> str:
        """Return what the parallel loop runs over: z, zy or tile."""
        return "z"

    @property
    def tile_y(self) -> int:
        """Return the rows of a tile along y; 0 without tiles."""
        return 0

    @property
    def tile_z(self) -> int:
        """Return the rows of a tile along z; 0 without tiles."""
        return 0

    @property
    def lanes(self) -> int:
        """Return the cells of one SIMD access."""
        return self.vector_bits // (8 * self.computed.bytes) or 1

    @property
    def access_cells(self) -> int:
        """Return the cells of one SIMD access."""
        return self.lanes

    @property
    def awkward_row(self) -> int:
        """Return the cells of a row of a small domain: several vectors and runs of the layout."""
        return 3 * lcm(self.row_cells(1), 4)

    def shares(self, case: Case) -> int:
        """Return the parts of a launch that threads share: iterations of the parallel loop."""
        raise NotImplementedError

    def busy_threads(self, case: Case) -> int:
        """Return how many threads have work: at most one for each part of a launch."""
        return min(self.threads, max(1, self.shares(case)))

    @property
    def numa(self) -> str:
        """Return the NUMA node that holds the arrays, or 'any'."""
        return numa_of(self.pinning)

    @property
    def placed(self) -> bool:
        """Return whether memory is placed otherwise than NumPy does."""
        return (self.pages, self.first_touch, self.numa) != ("default", "serial", ANY_NODE)

    @property
    def printed(self) -> Self:
        """Return the configuration without knobs that change no text: binding of threads and placement of memory."""
        return replace(self, pinning="none", pages="default", first_touch="serial")


def numa_of(pinning: str) -> str:
    """Return the NUMA node that a value of the knob `pinning` names, or 'any'."""
    return pinning if pinning.startswith(_NODE) else ANY_NODE


def node_number(numa: str) -> int:
    """Return the number of a NUMA node."""
    return int(numa.removeprefix(_NODE))


def _limited(limit: str, what: str) -> int:
    count, _, unit = limit.partition("-")
    return int(count) if unit == what and count.isdecimal() else 0
