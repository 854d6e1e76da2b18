"""The kernel configuration: the knobs. A frozen record whose canonical JSON is its identity."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

from lbmtune.catalogue.layouts import layout
from lbmtune.catalogue.layouts.layout import Layout, LayoutParameters
from lbmtune.catalogue.layouts.rows import Rows
from lbmtune.catalogue.moments.representation import FUSED, POPULATIONS, Representation, representation
from lbmtune.catalogue.precision import Compute, Storage, compute, storage
from lbmtune.catalogue.schemes import scheme
from lbmtune.catalogue.schemes.scheme import Scheme, bundled
from lbmtune.errors import InputError, unknown
from lbmtune.lattice import Lattice

Scalar = int | str
Block = tuple[int, int, int]
ADDRESSINGS = ("direct", "indirect")
NEIGHBOURS = ("all", "chase")
CUDA_BOUNDARIES = ("branch", "predicated", "implicit")
CPU_BOUNDARIES = ("branch", "implicit")
LAUNCHES = ("call", "graph", "dependent", "resident")
MEETINGS = ("all", "neighbours")
CHUNKS = ("even", "falling")
FETCHES = ("registers", "shared")
HALOS = ("computed", "faces")


@dataclass(frozen=True, kw_only=True)
class KernelConfig:
    """The knobs that both backends share.

    flags: where a kernel knows cut links from: the faces of the box, compiled in as comparisons, or one word per cell
    in memory, which knows solid cells as well.
    width: cells per AoSoA group (1 for the other layouts); padding: elements between direction arrays (SoA);
    group: directions per bundle; layout_tile: cells of a tile along x, y and z (tiled layouts);
    addressing: 'direct' (a box of cells) or 'indirect' (fluid sites only, neighbours by a list); order: in which fluid
    sites are numbered; prefetch_index: sites ahead of which words of the list are asked for (0: left to the hardware);
    parity: whether steps that differ have kernels of their own, or share one that gets other pointers;
    boundary: what is done at a cut link by flags or a list: a branch; one of two places is selected; or solid cells are
    skipped and nothing else is done (implicit bounce-back: the same steady state, another transient);
    neighbours: of indirect addressing, whether the list has a pointer to each node that a site touches, or three, by
    which the others are chased.
    """

    backend: ClassVar[Literal["cuda", "cpu"]]
    BY_DEVICE: ClassVar[tuple[str, ...]] = ()
    """Axes that the command line asks the device for where nothing is said of them (`axes.completed`)."""

    scheme: str = "pull"
    layout: str = "soa"
    width: int = 1
    padding: int = 0
    group: int = 1
    layout_tile: Block = (1, 1, 1)
    storage: str = "fp32"
    compute: str = "fp32"
    flags: str = "compiled"
    addressing: str = "direct"
    order: str = "row"
    prefetch_index: int = 0
    parity: str = "kernels"
    boundary: str = "branch"
    neighbours: str = "all"

    @property
    def family(self) -> str:
        """The kernel family, by which every layer finds what it needs of a configuration."""
        raise NotImplementedError

    @property
    def links(self) -> str:
        """Pointers of a site in the index list: "all", or "three_pointers"."""
        return "three_pointers" if self.neighbours == "chase" else "all"

    @property
    def pointer_swap(self) -> int:
        """Whether one kernel serves both parities, with pointers to slots that are swapped in between."""
        return int(self.parity == "pointers")

    @property
    def indirect(self) -> bool:
        """Whether neighbours are found by a list."""
        return self.addressing != "direct"

    @property
    def exchanged(self) -> bool:
        """Whether one kernel serves every step, with pointers to slots that are exchanged in between."""
        return self.parity == "pointers"

    @property
    def chased(self) -> bool:
        """Whether the list keeps pointers of one step, by which the others are found."""
        return self.neighbours == "chase"

    @property
    def implicit(self) -> bool:
        """Whether solid cells are skipped, and so send back what comes to them after two steps."""
        return self.boundary == "implicit"

    @property
    def propagation(self) -> Scheme:
        """The scheme itself; where slots come in bundles, those that go together have neighbouring numbers."""
        found = scheme(self.scheme)
        return bundled(found, self.group) if self.group > 1 else found

    @property
    def memory(self) -> Layout:
        """The layout itself, with its parameters."""
        return layout(self.layout, self.layout_parameters)

    @property
    def layout_parameters(self) -> LayoutParameters:
        """What the layout is tuned by."""
        return LayoutParameters(self.width, self.padding, self.group, self.layout_tile)

    @property
    def stored(self) -> Storage:
        """The storage format itself."""
        return storage(self.storage)

    @property
    def kept(self) -> Representation:
        """What a cell keeps."""
        return POPULATIONS

    @property
    def fused_steps(self) -> int:
        """Time steps of a launch."""
        return 1

    @property
    def copies(self) -> int:
        """How many times memory has room for the state."""
        return self.propagation.lattices

    def exchanges(self, lattice: Lattice) -> bool:
        """Whether two copies exchange their roles after every launch."""
        return self.propagation.exchanges(lattice)

    @property
    def unit(self) -> float:
        """The density one, as stored."""
        return self.kept.scale(self.stored)

    @property
    def computed(self) -> Compute:
        """The arithmetic precision itself."""
        return compute(self.compute)

    def flat(self) -> dict[str, Scalar]:
        """A flat dict of strings and numbers, keys sorted; `from_flat` is its inverse."""
        values = {f.name: _scalar(getattr(self, f.name)) for f in fields(self)}
        return dict(sorted({"backend": self.backend, **values}.items()))

    @property
    def identity(self) -> dict[str, Scalar]:
        """The backend and the axes that do not stand at their default: an axis added later changes no identity.

        A default is for good, therefore.
        """
        usual = defaults(self.backend)
        return {name: value for name, value in self.flat().items() if name == "backend" or usual[name] != value}

    @property
    def key(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of the canonical JSON of the identity."""
        canonical = json.dumps(self.identity, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    @property
    def brief(self) -> str:
        """The identity as text."""
        return _text(self.identity)

    @property
    def said(self) -> str:
        """The text that the command line reads back as this configuration on any device.

        Beside the identity it has what would be filled in by the device that reads it.
        """
        return _text({name: value for name, value in self.flat().items() if name in {*self.identity, *self.BY_DEVICE}})

    def __str__(self) -> str:
        """The text form that the command line reads back."""
        return self.said

    @classmethod
    def _parse(cls, values: Mapping[str, Scalar]) -> Self:
        known = _defaults(cls.backend)
        for name in values:
            if name not in known:
                raise unknown(f"axis of a {cls.backend} configuration", name, known)
        converted: dict[str, Any] = {
            name: value if type(value) is type(known[name]) else _convert(name, known[name], value)
            for name, value in values.items()
        }
        return cls(**converted)


@dataclass(frozen=True, kw_only=True)
class CudaConfig(KernelConfig):
    """Knobs of a CUDA kernel.

    block: threads per block; cells_per_thread: consecutive cells along x of one thread, moved as one vector;
    max_registers: cap given to the compiler (0: none); min_blocks: blocks per SM asked for by launch bounds
    (0: none). The two exclude each other, because launch bounds override the compiler's cap.
    wrap: periodic neighbours along y and z by index arithmetic, or by a layer of ghost rows that a second kernel
    refreshes; along x always by arithmetic.
    march: cells of a column along z, or with a list groups of sites a block apart, that a thread updates one after
    another; prefetch: how many of the next ones it has read, into registers, before it collides the present one (with a
    list: of whose words).
    load_hint, store_hint: what is said about caches when a population is loaded or stored; l2_prefetch: bytes that
    a load may fetch into the L2 cache around what it asks for (0: left to the device).
    index_bits: of the index of a cell within one component (0: 32 where that is enough, else 64); block_order: the
    order of the blocks over the grid, row by row or along a z-curve.
    macroscopics: whether the kernel of a step also writes density and velocity of the state before it.
    launch: each kernel by a call of its own, or those of many steps as one CUDA graph, or such a graph in which a
    kernel begins before the one before it has ended, or one kernel that keeps the populations on chip through many
    steps (march: planes of the tile of a block).
    meeting: whether a block on chip waits in each step for all others, or for its neighbours.
    representation: what a cell keeps, its populations or their moments; steps: time steps of a launch; with moments or
    several steps, rows: rows along y of a thread, march: planes of a chunk, pack: values of a cell that lie together,
    prefetch: where the next plane waits (0: it is not read ahead, 1: in registers, 2: in shared memory, to which each
    lane copies what it will take, 3: there, too, by bulk copies that one lane of a warp asks for).
    barrier: what a warp of such a block waits for when it has sent, the whole block or the two warps beside it.
    pending: where what goes up waits for the next plane, in registers or in shared memory.
    beyond: whether it reads ahead after the last plane of a chunk, too, so that there is no branch to read behind.
    chunks: whether all of them have as many planes, or those that begin later fewer, so that the last end together.
    halo: what a tile of moments needs of those beside it: their rim, which it computes again, or what they have left at
    its faces in the launch before, which needs no second copy of the state (block: cells of the tile).
    fetch: where what a thread of a column, or of a list, has read ahead waits, or what comes in through the face of a
    tile: in registers, or in shared memory, where it is copied while the thread goes on.
    held: planes of the tile of a block on chip whose moments stay in registers, not in shared memory.
    """

    backend: ClassVar[Literal["cuda", "cpu"]] = "cuda"

    block: Block = (256, 1, 1)
    cells_per_thread: int = 1
    max_registers: int = 0
    min_blocks: int = 0
    wrap: str = "arithmetic"
    march: int = 1
    prefetch: int = 0
    load_hint: str = "default"
    store_hint: str = "default"
    l2_prefetch: int = 0
    index_bits: int = 0
    block_order: str = "row"
    macroscopics: str = "never"
    launch: str = "call"
    meeting: str = "all"
    representation: str = "populations"
    steps: int = 1
    rows: int = 1
    pack: int = 1
    barrier: str = "block"
    pending: str = "registers"
    beyond: int = 0
    chunks: str = "even"
    fetch: str = "registers"
    halo: str = "computed"
    held: int = 0

    @property
    def family(self) -> str:
        """The kernel family."""
        if self.resident:
            return "persistent"
        if self.by_faces:
            return "face-exchange"
        if self.marches:
            return "temporal-blocking"
        if self.indirect:
            return "sparse"
        return "column" if self.march > 1 else "direct"

    z_cells = property(lambda self: self.march)
    sites_per_thread = property(lambda self: self.march)
    chunk_planes = property(lambda self: self.march)
    tile_planes = property(lambda self: self.march)
    prefetch_cells = property(lambda self: self.prefetch)
    prefetch_sites = property(lambda self: self.prefetch)
    plane_fetch = property(lambda self: ("none", "registers", "cp_async", "bulk")[self.prefetch])
    prefetch_to = property(lambda self: self.fetch)
    grid_sync = property(lambda self: self.meeting)
    register_planes = property(lambda self: self.held)
    warp_sync = property(lambda self: self.barrier)
    z_buffer = property(lambda self: self.pending)
    overread = property(lambda self: self.beyond)
    chunk_schedule = property(lambda self: {"even": "uniform", "falling": "tapered"}[self.chunks])
    tile = property(lambda self: self.block)

    @property
    def of_moments(self) -> bool:
        """Whether a cell keeps moments."""
        return self.kept.name == "moments"

    @property
    def resident(self) -> bool:
        """Whether the state stays on chip through the steps of a launch."""
        return self.launch == "resident"

    @property
    def moments_on_chip(self) -> bool:
        """Whether that state are moments."""
        return self.resident and self.of_moments

    @property
    def kept(self) -> Representation:
        """What a cell keeps."""
        found = representation(self.representation)
        return FUSED if found is POPULATIONS and self.steps > 1 else found

    @property
    def marches(self) -> bool:
        """Whether its blocks march over tiles with a halo: those of moments, and of several steps per launch.

        Tiles that stay on chip have none, nor those that leave at their faces what crosses them.
        """
        return (self.of_moments or self.steps > 1) and not (self.resident or self.by_faces)

    @property
    def by_faces(self) -> bool:
        """Whether tiles leave at their faces what crosses them."""
        return self.halo == "faces"

    @property
    def copies(self) -> int:
        """How many times memory has room for the state: once where tiles only leave what crosses their faces."""
        return 1 if self.by_faces else super().copies

    def exchanges(self, lattice: Lattice) -> bool:
        """Whether two copies exchange their roles after every launch."""
        return not self.by_faces and super().exchanges(lattice)

    @property
    def fused_steps(self) -> int:
        """Time steps of a launch."""
        return self.steps

    @property
    def memory(self) -> Layout:
        """The layout itself; values in rows may lie in groups."""
        return Rows(self.pack) if self.layout == "rows" else super().memory

    @property
    def planes_on_chip(self) -> bool:
        """Whether the next plane of a march waits in shared memory."""
        return self.marches and self.prefetch in (2, 3)

    @property
    def in_bulk(self) -> bool:
        """Whether it comes there by bulk copies."""
        return self.marches and self.prefetch == 3

    @property
    def copies_ahead(self) -> bool:
        """Whether what a thread of a column or of a list reads ahead is copied to shared memory meanwhile."""
        return self.fetch == "shared"

    @property
    def hinted(self) -> bool:
        """Whether any access says something about caches."""
        return (self.load_hint, self.store_hint, self.l2_prefetch) != ("default", "default", 0)


class OneStep(CudaConfig):
    """One time step of a kernel that does several: it marches as that does, so that it works on the same state."""

    @property
    def marches(self) -> bool:
        """Whatever it keeps."""
        return True

    @property
    def kept(self) -> Representation:
        """What several steps keep."""
        found = representation(self.representation)
        return FUSED if found is POPULATIONS else found


@dataclass(frozen=True, kw_only=True)
class CpuConfig(KernelConfig):
    """Knobs of a CPU kernel.

    threads: of the parallel loop; vector_bits: explicit SIMD width, of one register or two (0: scalar loop left
    to the compiler); loop: what the parallel loop runs over ('z', 'zy', or 'tile' of tile_y x tile_z rows);
    row_padding: cells added to a row beyond those it needs; row_offset: position of the first cell in a row;
    stride: elements from one direction array to the next (SoA) as a number in the text, so that few addresses lead to
    all populations of a cell (0: worked out at launch from the domain and `padding`);
    streaming_stores: non-temporal stores (1) or ordinary ones (0);
    wrap: periodic neighbours along x by selecting indices, or by ghost columns copied inside the row;
    prefetch_propagated, prefetch_local: cells ahead of which cache lines are asked for that come from neighbours, and
    from the cell itself (0: left to the hardware);
    steps: time steps of a launch; several go through tiles of rows, each some rows behind the one before;
    prefetch_rows: whether each asks for its share of the rows that the first one takes next (1) or not (0);
    representation: what a cell keeps, its populations or their moments, whose tiles (`tile_x` cells long) go through
    the steps of a launch with a halo;
    reads: a cell keeps its populations ('once'), or reads each pair again when it relaxes ('twice'), or that with the
    sums over all populations of the next cells worked out before ('ahead'), or without these but, as there, in the
    operator's form of fewest instructions ('lean');
    far_ends: where a row of vectors makes ready what its last cells read, in its loop ('inside') or between two parts
    of it ('between');
    gather: of indirect addressing, by gather and scatter instructions ('vector') or lane by lane ('lanes').
    pinning: threads left to the system ('none'), or each bound to a processor of its own ('cores');
    pages: as NumPy asks for them ('default': huge ones for large arrays, and nobody looks whether they came),
    or normal or huge ones, which is checked;
    first_touch: who writes to a page first, which decides where it lies: one thread ('serial'), or those that work on
    its rows later ('parallel').
    """

    backend: ClassVar[Literal["cuda", "cpu"]] = "cpu"
    BY_DEVICE: ClassVar[tuple[str, ...]] = ("threads", "vector_bits")

    threads: int = 1
    vector_bits: int = 512
    loop: str = "z"
    tile_y: int = 0
    tile_z: int = 0
    row_padding: int = 0
    row_offset: int = 16
    streaming_stores: int = 0
    wrap: str = "ghost"
    prefetch_propagated: int = 0
    prefetch_local: int = 0
    reads: str = "once"
    gather: str = "vector"
    pinning: str = "none"
    pages: str = "default"
    first_touch: str = "serial"
    steps: int = 1
    prefetch_rows: int = 0
    representation: str = "populations"
    tile_x: int = 0
    stride: int = 0
    far_ends: str = "inside"

    @property
    def family(self) -> str:
        """The kernel family."""
        if self.indirect:
            return "sparse"
        if self.of_moments:
            return "moments-wavefront"
        return "wavefront" if self.steps > 1 else "direct"

    collision_passes = property(
        lambda self: {"once": "one", "twice": "two", "ahead": "pipelined", "lean": "minimal"}[self.reads]
    )
    row_tail = property(lambda self: {"inside": "in_loop", "between": "peeled"}[self.far_ends])

    @property
    def lanes(self) -> int:
        """Cells that one access moves."""
        return self.vector_bits // (8 * self.computed.bytes) or 1

    @property
    def layout_parameters(self) -> LayoutParameters:
        """What the layout is tuned by."""
        return LayoutParameters(self.width, self.padding, self.group, self.layout_tile, self.stride)

    @property
    def of_moments(self) -> bool:
        """Whether a cell keeps moments."""
        return self.kept.name == "moments"

    @property
    def kept(self) -> Representation:
        """What a cell keeps."""
        return representation(self.representation)

    @property
    def fused_steps(self) -> int:
        """Time steps of a launch."""
        return self.steps

    @property
    def placed(self) -> bool:
        """Whether anything is said about the memory below the arrays."""
        return (self.pages, self.first_touch) != ("default", "serial")

    @property
    def printed(self) -> CpuConfig:
        """What the text of a kernel follows from: where it runs and in which memory changes none."""
        return replace(self, pinning="none", pages="default", first_touch="serial")


CONFIGS: Mapping[str, type[KernelConfig]] = {"cuda": CudaConfig, "cpu": CpuConfig}


def one_step(config: KernelConfig) -> KernelConfig:
    """The configuration of one time step per launch on the state that a configuration of several leaves."""
    if isinstance(config, CudaConfig):
        values = {f.name: getattr(config, f.name) for f in fields(config)}
        return OneStep(**{**values, "steps": 1, "launch": "call"})
    assert isinstance(config, CpuConfig)
    return replace(config, steps=1, prefetch_rows=0)


def from_flat(values: Mapping[str, Scalar]) -> KernelConfig:
    """The configuration of a flat dict; missing axes take their default. Raises InputError."""
    rest = dict(values)
    backend = str(rest.pop("backend", "cuda"))
    if backend not in CONFIGS:
        raise unknown("backend", backend, CONFIGS)
    return CONFIGS[backend]._parse(rest)


def parse_config(text: str, backend: str = "cuda") -> KernelConfig:
    """The configuration of 'scheme=aa,layout=soa,block=256x1x1'. Raises InputError."""
    values: dict[str, Scalar] = {"backend": backend}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = item.partition("=")
        if not equals:
            raise InputError(f"configuration part {item!r} is not of the form axis=value; write for example scheme=aa.")
        values[name.strip()] = value.strip()
    return from_flat(values)


@cache
def defaults(backend: str) -> Mapping[str, Scalar]:
    """What the axes of a backend's configurations are where nothing is said, in flat form."""
    return MappingProxyType(CONFIGS[backend]().flat())


def _text(values: Mapping[str, Scalar]) -> str:
    return ",".join(f"{name}={value}" for name, value in values.items())


def _scalar(value: object) -> Scalar:
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    assert isinstance(value, (int, str))
    return value


@cache
def _defaults(backend: str) -> dict[str, Any]:
    """The axes of a backend's configurations and their defaults; spaces of many points ask for them."""
    return {f.name: f.default for f in fields(CONFIGS[backend])}


@lru_cache(maxsize=4096, typed=True)
def _convert(name: str, default: object, value: Scalar) -> object:
    """The value in the type of the axis' default."""
    try:
        if isinstance(default, tuple):
            parts = tuple(int(part) for part in str(value).split("x"))
            if len(parts) != len(default):
                raise ValueError
            return parts
        return int(value) if isinstance(default, int) else str(value)
    except ValueError:
        form = "three numbers such as 256x1x1" if isinstance(default, tuple) else "a whole number"
        raise InputError(f"axis {name}={value!r} is not {form}; correct the value.") from None
