"""The axes of a configuration: what each means, what a study searches unless told otherwise, and when it acts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lbmtune.catalogue.cache_hints import LOAD_HINTS, STORE_HINTS
from lbmtune.catalogue.config import (
    ADDRESSINGS,
    CHUNKS,
    CPU_BOUNDARIES,
    CUDA_BOUNDARIES,
    FETCHES,
    HALOS,
    LAUNCHES,
    MEETINGS,
    NEIGHBOURS,
    Scalar,
    defaults,
)
from lbmtune.catalogue.families.rules import FAR_ENDS, FIRST_TOUCHES, PAGES, PINNINGS, READS, Limits
from lbmtune.catalogue.layouts import LAYOUTS
from lbmtune.catalogue.moments.representation import REPRESENTATIONS
from lbmtune.catalogue.pointer_swap import PARITIES, exchanges_slots
from lbmtune.catalogue.precision import COMPUTES, STORAGES
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.catalogue.schemes.scheme import reads_along_x
from lbmtune.catalogue.sparse.site_orders import ORDERS
from lbmtune.lattice import LATTICES

ALL_CORES = "all"
"""Value of the axis `threads` that stands for every core of the device."""


@dataclass(frozen=True)
class Axis:
    """One knob. values: what a study searches unless its file says otherwise; names: known values of a text axis."""

    name: str
    title: str
    values: tuple[Scalar, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dependence:
    """An axis acts only where another has one of some values; elsewhere it takes its neutral value.

    unless: it acts where the other has any value but those; neutral: None for the default of the axis; or_else: an
    axis and a value with which it acts, too.
    """

    on: str
    values: tuple[Scalar, ...]
    neutral: Scalar | None = None
    unless: bool = False
    or_else: tuple[str, Scalar] | None = None

    def holds(self, others: Mapping[str, Scalar]) -> bool:
        """Whether it lets the axis act."""
        if self.on not in others or (others[self.on] in self.values) != self.unless:
            return True
        return self.or_else is not None and others.get(self.or_else[0]) == self.or_else[1]


_PREFETCH_INDEX = Axis("prefetch_index", "sites ahead of which words of the index list are asked for; 0: not", (0,))
_COMMON = (
    # those with several passes move more: baselines, for a study that asks for them
    Axis("scheme", "propagation scheme", ("pull", "push", "aa", "esoteric-twist", "esoteric-pull"), tuple(SCHEMES)),
    Axis("parity", "steps that differ: a kernel for each, or one that gets other pointers", ("kernels",), PARITIES),
    Axis("addressing", "a box of cells, or fluid sites with an index list", ("direct",), ADDRESSINGS),
    Axis("order", "in which fluid sites are numbered", ("row",), tuple(ORDERS)),
    _PREFETCH_INDEX,
    Axis("storage", "format of stored populations", ("fp32",), tuple(STORAGES)),
    Axis("compute", "arithmetic precision", ("fp32",), tuple(COMPUTES)),
    Axis("layout", "memory layout of the populations", ("soa", "aosoa"), tuple(LAYOUTS)),
    Axis(
        "flags",
        "cut links: faces compiled in, or flags of every cell in memory",
        ("compiled",),
        ("compiled", "memory"),
    ),
    Axis("width", "cells per group of an AoSoA or a vectorised bundle", (16, 32, 64, 128)),
    Axis("group", "directions per bundle", (3, 5, 9)),
    Axis("layout_tile", "cells of a tile of the tiled layouts, x by y by z", ("16x4x1", "32x2x2", "32x4x4", "64x2x1")),
)
_KEPT = Axis("representation", "what a cell keeps", ("populations",), REPRESENTATIONS)
_NEIGHBOURS = Axis(
    "neighbours",
    "a pointer to each node that a site touches, or three, by which the others are chased",
    ("all",),
    NEIGHBOURS,
)
_PADDING = "elements between the direction arrays of SoA"
_CUDA = (
    Axis("padding", _PADDING, (0, 64)),
    Axis(
        "block",
        "threads per block, x by y by z",
        ("32x2x1", "64x1x1", "64x2x1", "128x1x1", "256x1x1", "64x4x1", "32x4x2"),
    ),
    Axis("cells_per_thread", "consecutive cells along x of a thread, moved as one vector", (1, 2, 4, 8)),
    Axis("max_registers", "register cap given to the compiler; 0: none", (0, 64, 96, 128)),
    Axis("min_blocks", "blocks per multiprocessor asked for by launch bounds; 0: none", (0, 2, 3, 4)),
    Axis(
        "wrap",
        "periodic neighbours: by index arithmetic or a ghost layer",
        ("arithmetic", "ghost"),
        ("arithmetic", "ghost"),
    ),
    Axis("march", "cells of a column along z, or listed sites, that a thread updates one after another", (1,)),
    Axis("prefetch", "cells ahead whose populations, or words of the list, a marching thread has read", (0,)),
    Axis(
        "boundary",
        "cut links by flags: a branch, or the selection of a place; or solid cells skipped, without flags of links",
        ("branch",),
        CUDA_BOUNDARIES,
    ),
    Axis("load_hint", "what loads of populations say about caches", ("default",), tuple(LOAD_HINTS)),
    Axis("store_hint", "what stores of populations say about caches", ("default",), tuple(STORE_HINTS)),
    Axis("l2_prefetch", "bytes that a load may fetch into the L2 cache; 0: left to the device", (0,)),
    Axis("index_bits", "bits of a cell's index within one component; 0: 32 where that is enough", (0,)),
    Axis("block_order", "order of the blocks over the grid", ("row",), ("row", "z-curve")),
    _KEPT,
    Axis("steps", "time steps of one launch, of kernels of moments and of populations with scheme push", (1,)),
    Axis("rows", "rows along y of a thread of a kernel of moments or of several steps", (1, 2, 3)),
    Axis(
        "barrier",
        "what a warp of such a block waits for: the whole block, or the two warps beside it",
        ("block",),
        ("block", "neighbours"),
    ),
    Axis(
        "pending",
        "where what goes up waits for the next plane in such a kernel: in registers, or in shared memory",
        ("registers",),
        ("registers", "shared"),
    ),
    Axis("beyond", "whether such a kernel reads ahead after its last plane, too, for want of a branch", (0,)),
    Axis(
        "chunks",
        "planes of the chunks of such a kernel: as many for all, or fewer for those that begin later",
        ("even",),
        CHUNKS,
    ),
    Axis("pack", "values of a cell that lie together in such a kernel", (1, 2, 4)),
    Axis(
        "halo",
        "what a tile of moments needs of those beside it: computed again, or left by them at its faces",
        ("computed",),
        HALOS,
    ),
    Axis(
        "fetch",
        "where waits what a marching thread has read ahead, or what comes in through the face of a tile: in registers, "
        "or copied to shared memory meanwhile",
        ("registers",),
        FETCHES,
    ),
    Axis(
        "launch",
        "kernels by a call each, or those of many steps as one graph, whose kernels may begin early, or one kernel",
        ("call",),
        LAUNCHES,
    ),
    Axis("meeting", "the blocks that one on chip waits for in each step", ("all",), MEETINGS),
    Axis("held", "planes of a tile on chip whose moments stay in registers, the others in shared memory", (0,)),
    _NEIGHBOURS,
    Axis("macroscopics", "when density and velocity are written", ("never",), ("never", "every-step")),
)
_CPU = (
    # 1040 keeps the direction arrays of power-of-two domains out of one cache set
    Axis("padding", _PADDING, (0, 64, 1040)),
    Axis(
        "wrap",
        "periodic neighbours along x: ghost columns or selected indices",
        ("ghost", "select"),
        ("ghost", "select"),
    ),
    Axis("threads", f"threads of the parallel loop; {ALL_CORES!r}: every core", (ALL_CORES,), (ALL_CORES,)),
    Axis("vector_bits", "cells per access times their width, in one register or two; 0: scalar loop", (0, 256, 512)),
    _PREFETCH_INDEX,
    _KEPT,
    Axis("loop", "what the parallel loop runs over", ("z", "zy", "tile"), ("z", "zy", "tile")),
    Axis("tile_x", "cells of a row of a tile, of kernels of moments", (256,)),
    Axis("tile_y", "rows along y of a tile", (8, 16)),
    Axis("tile_z", "rows along z of a tile", (4,)),
    Axis("steps", "time steps of one launch, which tiles go through some rows behind one another", (1,)),
    Axis("prefetch_rows", "whether all steps of a tile ask for rows that the first of them takes next", (0,)),
    Axis("row_offset", "position of the first cell in a row", (1, 16)),
    Axis("row_padding", "cells added to a row", (0, 15)),
    Axis("stride", "elements from one direction array of SoA to the next, as a number in the text; 0: not", (0,)),
    Axis(
        "reads",
        "populations are read once, again by pairs, so with sums of the next cells ahead, or in fewest instructions",
        ("once",),
        READS,
    ),
    Axis(
        "far_ends",
        "what the last cells of a row read is made ready inside its loop, or between two parts of it",
        ("inside",),
        FAR_ENDS,
    ),
    _NEIGHBOURS,
    Axis(
        "boundary",
        "cut links by the list of indirect addressing, or solid cells skipped, without flags of links",
        ("branch",),
        CPU_BOUNDARIES,
    ),
    Axis("gather", "access to listed nodes by one instruction or lane by lane", ("vector",), ("vector", "lanes")),
    Axis("streaming_stores", "non-temporal stores (1) or ordinary ones (0)", (0, 1)),
    Axis("prefetch_propagated", "cells ahead of which populations of neighbours are prefetched; 0: not", (0,)),
    Axis("prefetch_local", "cells ahead of which populations of the cell itself are prefetched; 0: not", (0,)),
    Axis("pinning", "threads left to the system, or each bound to a processor", ("none",), PINNINGS),
    Axis("pages", "pages of memory: as NumPy asks for them, normal or huge", ("default",), PAGES),
    Axis("first_touch", "pages touched first by one thread, or by those that use them", ("serial",), FIRST_TOUCHES),
)
AXES: Mapping[str, tuple[Axis, ...]] = {
    "cuda": _COMMON + _CUDA,
    "cpu": tuple(axis for axis in _COMMON if axis is not _PREFETCH_INDEX) + _CPU,
}
"""The axes of each backend, each after those that it depends on."""

_BLOCKWISE = tuple(name for name, found in SCHEMES.items() if found.phase(LATTICES["d2q9"], 0).blockwise)
_ORDERED = tuple(name for name, found in SCHEMES.items() if found.phase(LATTICES["d2q9"], 0).ordered)
_EXCHANGING = tuple(name for name, found in SCHEMES.items() if exchanges_slots(found, LATTICES["d2q9"]))
_TILES: Mapping[str, Scalar] = {"loop": "tile", "tile_y": 8, "tile_z": 4}

_PIPELINE: Mapping[str, Scalar] = {"loop": "tile", "tile_x": 256, "tile_y": 16, "tile_z": 64}

_IN_A_BOX, _IN_A_LIST = Dependence("addressing", ("direct",)), Dependence("addressing", ("indirect",))
_BY_VECTORS = Dependence("vector_bits", (0,), unless=True)
_FILLING = Dependence("scheme", tuple(n for n, found in SCHEMES.items() if reads_along_x(found, LATTICES["d2q9"])))
_MOMENTS, _BY_FACES = ("representation", "moments"), ("halo", "faces")
_OF_POPULATIONS = Dependence("representation", ("populations",))
_OF_TILES = Dependence("steps", (1,), 1, unless=True, or_else=_MOMENTS)
_COMMON_DEPENDENCES: Mapping[str, tuple[Dependence, ...]] = {
    "parity": (Dependence("scheme", _EXCHANGING),),
    "width": (Dependence("layout", ("aosoa", "bundle-aosoa"), 1),),
    "group": (Dependence("layout", ("bundle", "bundle-aosoa"), 1),),
    "layout_tile": (Dependence("layout", ("tiled", "tiled-cells"), "1x1x1"),),
    "padding": (Dependence("layout", ("soa",), 0),),
    "order": (_IN_A_LIST,),
    "neighbours": (_IN_A_LIST, Dependence("scheme", ("esoteric-twist",))),
    "flags": (_IN_A_BOX,),
    "wrap": (_IN_A_BOX,),
}
DEPENDENCES: Mapping[str, Mapping[str, tuple[Dependence, ...]]] = {
    "cuda": {
        **_COMMON_DEPENDENCES,
        "prefetch_index": (_IN_A_LIST,),
        "steps": (_IN_A_BOX, Dependence("representation", ("moments",), 1, or_else=("scheme", "push"))),
        "rows": (_OF_TILES,),
        "pack": (_OF_TILES,),
        "barrier": (Dependence("steps", (1,), unless=True, or_else=_MOMENTS),),
        "pending": (Dependence("steps", (1,), unless=True, or_else=_MOMENTS),),
        "chunks": (Dependence("steps", (1,), unless=True, or_else=_MOMENTS),),
        "beyond": (
            Dependence("steps", (1,), 0, unless=True, or_else=_MOMENTS),
            Dependence("prefetch", (0,), 0, unless=True),
        ),
        "boundary": (Dependence("flags", ("memory",), "branch", or_else=("addressing", "indirect")),),
        "prefetch": (Dependence("march", (1,), 0, unless=True),),
        "halo": (Dependence("representation", ("moments",)), Dependence("steps", (1,))),
        "fetch": (
            Dependence("prefetch", (0,), unless=True, or_else=_BY_FACES),
            Dependence("representation", ("populations",), or_else=_BY_FACES),
            Dependence("steps", (1,)),
        ),
        "block_order": (_IN_A_BOX,),
        "macroscopics": (_IN_A_BOX,),
        "meeting": (Dependence("launch", ("resident",)),),
        "held": (Dependence("launch", ("resident",)), Dependence("representation", ("moments",))),
    },
    "cpu": {
        **_COMMON_DEPENDENCES,
        "prefetch_index": (_IN_A_LIST, _BY_VECTORS),
        "gather": (_IN_A_LIST, _BY_VECTORS),
        "boundary": (_IN_A_LIST,),
        "loop": (
            _IN_A_BOX,
            Dependence("scheme", _ORDERED, unless=True),
            Dependence("scheme", _BLOCKWISE, "tile", unless=True),
            Dependence("representation", ("moments",), "tile", unless=True),
        ),
        "tile_x": (Dependence("representation", ("moments",), 0),),
        "tile_y": (Dependence("loop", ("tile",), 0),),
        "tile_z": (Dependence("loop", ("tile",), 0),),
        "stride": (_IN_A_BOX, Dependence("layout", ("soa",)), Dependence("padding", (0,)), _OF_POPULATIONS),
        "row_offset": (_IN_A_BOX, Dependence("wrap", ("ghost",), 0)),
        "row_padding": (_IN_A_BOX,),
        "steps": (_IN_A_BOX, Dependence("loop", ("tile",), 1)),
        "streaming_stores": (_IN_A_BOX, Dependence("scheme", ("pull",), 0)),
        "prefetch_propagated": (_IN_A_BOX, Dependence("vector_bits", (0,), 0, unless=True)),
        "prefetch_local": (_IN_A_BOX, Dependence("vector_bits", (0,), 0, unless=True)),
        "prefetch_rows": (Dependence("steps", (1,), 0, unless=True), Dependence("vector_bits", (0,), 0, unless=True)),
        "reads": (_IN_A_BOX, _BY_VECTORS, Dependence("flags", ("compiled",))),
        "far_ends": (_IN_A_BOX, _BY_VECTORS, Dependence("flags", ("compiled",)), _FILLING, _OF_POPULATIONS),
        "first_touch": (Dependence("threads", (1,), unless=True),),
    },
}
"""When the axes of each backend act."""


def neutral(name: str, others: Mapping[str, Scalar]) -> Scalar | None:
    """The value that an axis must take because the others keep it from acting, or None where it acts."""
    for dependence in DEPENDENCES[str(others.get("backend", "cuda"))].get(name, ()):
        if not dependence.holds(others):
            return default(name, others) if dependence.neutral is None else dependence.neutral
    return None


def depends_on(backend: str, name: str) -> tuple[str, ...]:
    """Names of the axes that decide whether an axis acts."""
    found = DEPENDENCES[backend].get(name, ())
    return tuple(dict.fromkeys(other for one in found for other in (one.on, *(one.or_else or ())[:1])))


def default(name: str, others: Mapping[str, Scalar]) -> Scalar:
    """The default of an axis of the backend that the others name."""
    return defaults(str(others.get("backend", "cuda")))[name]


def completed(values: Mapping[str, Scalar], limits: Limits) -> dict[str, Scalar]:
    """The same configuration with what the device or another axis decides filled in, where it was not said.

    compute follows storage (fp64 for fp64); threads are all cores; vectors are as wide as the CPU has them; schemes of
    blocks with rings and kernels of moments have tiles.
    """
    full = dict(values)
    full.setdefault("compute", "fp64" if full.get("storage") == "fp64" else "fp32")
    if full.get("backend") == "cpu":
        if full.setdefault("threads", ALL_CORES) == ALL_CORES:
            full["threads"] = limits.cores
        full.setdefault("vector_bits", 0 if full.get("wrap") == "select" else limits.vector_bits)
        if full.get("wrap") == "select":
            full.setdefault("row_offset", 0)
        if str(full.get("scheme")) in _BLOCKWISE:
            full = {**_TILES, **full}
        if full.get("representation") == "moments":
            full = {**_PIPELINE, **full}
    return full
