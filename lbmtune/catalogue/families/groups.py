"""Groups of knobs that several families share."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from lbmtune.catalogue.backend_records import Block, CpuConfig, CudaConfig
from lbmtune.catalogue.boundaries.cell_flags import WORD_BYTES, tables
from lbmtune.catalogue.boundaries.cut_links import seen_by
from lbmtune.catalogue.families.cache_hints import L2_PREFETCHES, LOAD_HINTS, STORE_HINTS
from lbmtune.catalogue.knobs import Acts, knob
from lbmtune.catalogue.layouts.layout import Extents
from lbmtune.catalogue.limits import WARP
from lbmtune.catalogue.moments.representation import REPRESENTATIONS
from lbmtune.catalogue.pointer_swap import exchanges_slots, period_phases
from lbmtune.catalogue.precision import STORAGES, UNSHIFTED
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import STORAGE, Cells, KernelConfig
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.catalogue.schemes.scheme import reads_along_x
from lbmtune.catalogue.sparse.index_list import CHAINS, listed_rows, used
from lbmtune.catalogue.sparse.site_orders import ORDERS
from lbmtune.lattice import LATTICES

_D2Q9 = LATTICES["d2q9"]
SWAPPING = tuple(name for name, found in SCHEMES.items() if exchanges_slots(found, _D2Q9))
BLOCKWISE = tuple(name for name, found in SCHEMES.items() if found.phase(_D2Q9, 0).blockwise)
ORDERED = tuple(name for name, found in SCHEMES.items() if found.phase(_D2Q9, 0).ordered)
READING_ALONG_X = tuple(name for name, found in SCHEMES.items() if reads_along_x(found, _D2Q9))
USUAL_SCHEMES = ("pull", "push", "aa", "esoteric-twist", "esoteric-pull")
"""Schemes of one pass; those of several move more: baselines, for a study that asks for them."""
VECTORS = Acts(on="vector_bits", values=(0,), unless=True, because="a scalar loop is vectorised by the compiler")

WHOLE_LINES = Acts(
    on="scheme",
    values=("pull", "aa"),
    because="only pull, and every other step of AA, write nothing but whole lines of the cells themselves",
)


@dataclass(frozen=True, kw_only=True)
class Propagated(KernelConfig):
    """The knobs of propagation: the scheme, and whether one kernel serves all parities."""

    scheme: str = knob("pull", "propagation scheme", search=USUAL_SCHEMES, allowed=tuple(SCHEMES))
    pointer_swap: int = knob(
        0,
        "one kernel for both parities, whose pointers to slots are swapped (1), or one each (0)",
        allowed=(0, 1),
        acts=(Acts(on="scheme", values=SWAPPING, because="its steps differ in more than slots, or not at all"),),
    )


@dataclass(frozen=True, kw_only=True)
class AnyStorage(KernelConfig):
    """All storage formats, those of populations as they are included."""

    storage: str = knob("fp32", STORAGE, allowed=(*STORAGES, *UNSHIFTED))


@dataclass(frozen=True, kw_only=True)
class Bounded(KernelConfig):
    """The knob of kernels of a box that says where cut links come from."""

    flags: str = knob(
        "compiled", "cut links: faces compiled in, or one word of flags per cell", allowed=("compiled", "memory")
    )

    def word_bytes(self, case: Case) -> tuple[float, float]:
        """Return the bytes of flags per update: each pass that needs flags reads one word of every cell; no list.

        With pointer swap, passes read flags also at parities at which cut links change nothing. Words of moving walls
        are read at walls only and are neglected.
        """
        read = sum(bool(tables(case, self, phase)) for phase in period_phases(self, case.stencil))
        launches = self.propagation.period * self.fused_steps
        return WORD_BYTES * read / launches * (case.sites / case.fluid_sites) if read else 0, 0


@dataclass(frozen=True, kw_only=True)
class Listed(KernelConfig):
    """An index list of fluid sites."""

    indirect: ClassVar[bool] = True
    place_source: ClassVar[Literal["scheme", "list", "fixed"]] = "list"

    order: str = knob("row", "numbering of fluid sites", allowed=tuple(ORDERS))
    prefetch_index: int = knob(0, "sites ahead whose words of the index list are prefetched; 0: none", unit="sites")
    links: str = knob(
        "all",
        "pointers per site in the index list: to every node it accesses, or along the axes, to chase others from",
        allowed=("all", *CHAINS.values()),
        acts=(Acts(on="scheme", values=tuple(CHAINS), because="only pointers of esoteric-twist and aa are chased"),),
    )
    boundary: str = knob(
        "branch", "cut links: a branch, or solid cells skipped (implicit bounce-back)", allowed=("branch", "implicit")
    )

    @property
    def link_source(self) -> str:
        """Return "list": the index list tells cut links."""
        return "list"

    def stored_extents(self, case: Case, domain: Cells | None = None) -> Extents:
        """Return the storage extents of the case's domain or of another one: one row of nodes."""
        from lbmtune.catalogue.sparse.nodes import (
            counts,  # here: it needs arrays, which the command line starts without
        )

        return Extents(counts(replace(case, domain=domain) if domain else case, self).nodes, 1, 1, case.stencil.q)

    def most_extents(self, case: Case) -> Extents:
        """Return the storage extents if no cell were solid."""
        from lbmtune.catalogue.sparse.nodes import most_nodes  # here: it needs arrays

        return Extents(most_nodes(case, self), 1, 1, case.stencil.q)

    def list_words(self, case: Case, nodes: int | None = None) -> int:
        """Return the 32-bit words of the index list."""
        from lbmtune.catalogue.sparse.nodes import pitch  # here: it needs arrays

        return listed_rows(case, self).rows * (nodes or pitch(case, self))

    def word_bytes(self, case: Case) -> tuple[float, float]:
        """Return the bytes of flags and of pointers of the index list per update; the list says where links are cut."""
        seen, period = seen_by(case, self), self.propagation.period
        read = [used(seen, self.propagation, phase) for phase in period_phases(self, case.stencil)]
        flags, index = sum(u.masks + u.types for u in read), sum(len(u.pointers) for u in read)
        return WORD_BYTES * flags / period, WORD_BYTES * index / period


@dataclass(frozen=True, kw_only=True)
class Represented(KernelConfig):
    """The knob of families that keep populations or moments of a cell."""

    representation: str = knob("populations", "values that a cell keeps", allowed=REPRESENTATIONS)


@dataclass(frozen=True, kw_only=True)
class Launched(CudaConfig):
    """The knobs by which a kernel is compiled and launched."""

    register_limit: str = knob(
        "none",
        "register limit: N-registers (compiler's cap) or N-blocks (per multiprocessor, by launch bounds)",
        search=("none", "64-registers", "96-registers", "128-registers", "2-blocks", "3-blocks", "4-blocks"),
    )
    launch: str = knob(
        "call",
        "kernels launched one by one, as a CUDA graph, or as one with programmatic dependent launches",
        allowed=("call", "graph", "dependent"),
    )


@dataclass(frozen=True, kw_only=True)
class Indexed(CudaConfig):
    """Width of indices."""

    index_bits: int = knob(0, "bits of a cell's index; 0: 32 if enough", unit="bits", allowed=(0, 64))


@dataclass(frozen=True, kw_only=True)
class ThreadBlocks(CudaConfig):
    """Threads of a thread block."""

    block: Block = knob(
        (256, 1, 1),
        "threads per block, x by y by z",
        unit="threads",
        search=("32x2x1", "64x1x1", "64x2x1", "128x1x1", "256x1x1", "64x4x1", "32x4x2"),
    )


@dataclass(frozen=True, kw_only=True)
class Vectorised(CudaConfig):
    """Cells along x that a thread loads and stores with one instruction."""

    cells_per_thread: int = knob(
        1,
        "consecutive cells along x of a thread, one vector access",
        unit="cells",
        search=(1, 2, 4, 8),
        allowed=(1, 2, 4, 8),
    )

    def extra_domains(self, case: Case) -> tuple[Cells, ...]:
        """Return a domain whose rows fit into one warp, whose lanes then form a ring, if threads have vectors.

        The rows take three quarters of the warp, so that the ring closes at the last cell and not at the last lane.
        """
        unit = self.row_cells(1)
        accesses = min(WARP, self.block[0]) * self.cells_per_thread // unit
        if self.cells_per_thread == 1 or not accesses:
            return ()
        return ((max(1, 3 * accesses // 4) * unit, *self.awkward_domain(case)[1:]),)


@dataclass(frozen=True, kw_only=True)
class CacheHints(CudaConfig):
    """Cache hints of loads and stores."""

    load_hint: str = knob("default", "cache hint of loads", allowed=tuple(LOAD_HINTS))
    store_hint: str = knob("default", "cache hint of stores", allowed=tuple(STORE_HINTS))
    l2_prefetch: int = knob(0, "L2 prefetch size of loads; 0: the device's", unit="bytes", allowed=L2_PREFETCHES)


@dataclass(frozen=True, kw_only=True)
class RowsOfCells(CpuConfig):
    """Rows of a box on a CPU: their ends, their place in memory, and the prefetches of their loops."""

    wrap: str = knob(
        "ghost",
        "periodic neighbours along x: ghost columns, or selected indices",
        search=("ghost", "select"),
        allowed=("ghost", "select"),
    )
    row_offset: int = knob(
        16,
        "cell of a storage row that holds the first cell of the domain",
        unit="cells",
        search=(1, 16),
        acts=(Acts(on="wrap", values=("ghost",), neutral=0, because="rows start at 0"),),
    )
    row_padding: int = knob(0, "cells added to a storage row", unit="cells", search=(0, 15))
    prefetch_propagated: int = knob(
        0, "cells ahead whose populations from neighbours are prefetched; 0: none", unit="cells", acts=(VECTORS,)
    )
    prefetch_local: int = knob(
        0, "cells ahead whose populations of the cell itself are prefetched; 0: none", unit="cells", acts=(VECTORS,)
    )
    collision_passes: str = knob(
        "one",
        "reads of a cell's populations: one, two (again pair by pair), pipelined (sums of the next cells first), "
        "minimal (two, fewest instructions)",
        allowed=("one", "two", "pipelined", "minimal"),
        acts=(
            VECTORS,
            Acts(on="flags", values=("compiled",), because="cells with cut links would read their flags twice"),
        ),
    )
    row_tail: str = knob(
        "in_loop",
        "cells beyond a row's end are filled in its loop, or the last cells have a loop of their own",
        allowed=("in_loop", "peeled"),
        acts=(
            VECTORS,
            Acts(on="flags", values=("compiled",), because="flags of the last cells decide what is filled"),
            Acts(on="scheme", values=READING_ALONG_X, because="its loop fills no cells beyond a row's end"),
        ),
    )
