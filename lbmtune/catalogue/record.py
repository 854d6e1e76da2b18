"""The record that every kernel family extends: identity, forms as text, and the questions that all families answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from lbmtune.catalogue.knobs import Acts, Knob, Scalar, cached, converted, knob, own_knobs, scalar
from lbmtune.catalogue.layouts import LAYOUTS
from lbmtune.catalogue.layouts.layout import Layout
from lbmtune.catalogue.layouts.soa import SoA
from lbmtune.catalogue.moments.representation import POPULATIONS, Representation
from lbmtune.catalogue.precision import COMPUTES, STORAGES, Compute, Storage, compute, storage
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes import scheme
from lbmtune.catalogue.schemes.scheme import Scheme, bundled
from lbmtune.catalogue.storage_frame import StorageFrame
from lbmtune.errors import InputError, suggestion, unknown
from lbmtune.lattice import Lattice

Block = tuple[int, int, int]
FAMILIES: dict[str, dict[str, type[KernelConfig]]] = {}
"""The families of each backend, by name; filled as their modules are imported (`lbmtune.catalogue.config`)."""
_ANY_LAYOUT = tuple(LAYOUTS)


@dataclass(frozen=True, kw_only=True)
class KernelConfig:
    """A configuration of one kernel family. A frozen record whose canonical JSON is its identity.

    Subclasses with a `family` are the families; their fields are knobs (`lbmtune.catalogue.knobs`). What stands here
    without being a field holds for families that lack that knob.
    """

    backend: ClassVar[Literal["cuda", "cpu"]]
    family: ClassVar[str]
    title: ClassVar[str]
    """The family in words."""
    layouts: ClassVar[tuple[str, ...]] = _ANY_LAYOUT
    """Names of the layouts that its kernels have."""
    without: ClassVar[frozenset[str]] = frozenset()
    """Knobs of layouts that its kernels do not have."""
    searched: ClassVar[Mapping[str, tuple[Scalar, ...]]] = {}
    """Values of knobs of layouts that a study of this family searches, if others than the layout says."""
    by_device: ClassVar[tuple[str, ...]] = ()
    """Knobs whose value comes from the device if none is given."""
    indirect: ClassVar[bool] = False
    """Whether fluid sites are listed, and neighbours found by an index list."""
    visits_solid_cells: ClassVar[bool] = False
    """Whether solid cells are loaded and stored like all others."""

    storage: str = knob("fp32", "format of stored values", allowed=tuple(STORAGES))
    compute: str = knob("fp32", "arithmetic precision", allowed=tuple(COMPUTES))
    layout: Layout = knob(SoA(), "memory layout of a cell's values", search=("soa", "aosoa"), allowed=_ANY_LAYOUT)

    if TYPE_CHECKING:

        @property
        def scheme(self) -> str: ...
        @property
        def pointer_swap(self) -> int: ...
        @property
        def flags(self) -> str: ...
        @property
        def boundary(self) -> str: ...
        @property
        def order(self) -> str: ...
        @property
        def links(self) -> str: ...
        @property
        def prefetch_index(self) -> int: ...
        @property
        def macroscopics(self) -> str: ...

    else:
        scheme = "pull"
        pointer_swap = 0
        flags = "compiled"
        boundary = "branch"
        order = "row"
        links = "all"
        prefetch_index = 0
        macroscopics = "never"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Registers a family."""
        super().__init_subclass__(**kwargs)
        if "family" in vars(cls):
            FAMILIES.setdefault(cls.backend, {})[cls.family] = cls

    @property
    def implicit(self) -> bool:
        """Whether solid cells are skipped, so that a population comes back after two steps (implicit bounce-back)."""
        return self.boundary == "implicit"

    @property
    def propagation(self) -> Scheme:
        """The scheme; bundled directions have neighbouring slots."""
        found, together = scheme(self.scheme), self.memory.together
        return bundled(found, together) if together > 1 else found

    @property
    def memory(self) -> Layout:
        """The layout that the kernels have."""
        return self.layout

    @property
    def stored(self) -> Storage:
        """The storage format."""
        return storage(self.storage)

    @property
    def computed(self) -> Compute:
        """The arithmetic precision."""
        return compute(self.compute)

    @property
    def kept(self) -> Representation:
        """What a cell keeps: populations or moments."""
        return POPULATIONS

    @property
    def of_moments(self) -> bool:
        """Whether a cell keeps moments."""
        return self.kept.name == "moments"

    @property
    def fused_steps(self) -> int:
        """Time steps of a launch."""
        return 1

    @property
    def copies(self) -> int:
        """Copies of the state in memory."""
        return self.propagation.lattices

    @property
    def unit(self) -> float:
        """The density one as it is stored."""
        return self.kept.scale(self.stored)

    def exchanges(self, lattice: Lattice) -> bool:
        """Return whether two copies of the state swap roles after every launch."""
        return self.propagation.exchanges(lattice)

    def frame(self, lattice: Lattice) -> StorageFrame:
        """Return where the cells of a domain lie in storage."""
        raise NotImplementedError

    def population_bytes(self, case: Case) -> float:
        """Return the bytes of stored values that one cell update moves."""
        raise NotImplementedError

    def extra_elements(self, lattice: Lattice, domain: Any) -> Any:
        """Return the elements of a copy of the state beyond those of its cells."""
        return 0

    def scratch_bytes(self, case: Case) -> int:
        """Return the bytes of buffers that are neither the state nor words of flags or lists."""
        return 0

    @property
    def site_granule(self) -> int:
        """Numbers of listed sites are multiples of it, for vectors and runs of the layout."""
        return 1

    @classmethod
    def implied(cls, values: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Return values of knobs that follow from others, if they are not given."""
        return {}

    def single_step(self) -> KernelConfig:
        """Return the configuration of one time step per launch that works on the same state."""
        return self

    def flat(self) -> dict[str, Scalar]:
        """Return a flat dict of names and numbers, keys sorted; `from_flat` is the inverse."""
        values = {one.name: scalar(getattr(self, one.name)) for one in own_knobs(type(self))}
        layout = {name: value for name, value in self._layout_values() if name not in self.without}
        return dict(sorted({"backend": self.backend, "family": self.family, **values, **layout}.items()))

    def _layout_values(self) -> list[tuple[str, Scalar]]:
        return [(one.name, scalar(getattr(self.layout, one.name))) for one in own_knobs(type(self.layout))]

    @property
    def identity(self) -> dict[str, Scalar]:
        """Backend, family, and the knobs that differ from their defaults: a knob added later changes no identity."""
        usual = defaults(type(self))
        return {name: value for name, value in self.flat().items() if usual.get(name) != value}

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
        """The text that the command line reads back on any device: with what another device would fill in."""
        return _text({name: value for name, value in self.flat().items() if name in {*self.identity, *self.by_device}})

    def __str__(self) -> str:
        """The text form that the command line reads back."""
        return self.said

    @classmethod
    def parse(cls, values: Mapping[str, Scalar]) -> Self:
        """Return the configuration of flat values; missing knobs have their defaults. Raises InputError."""
        known = knobs_by_name(cls)
        for name in values:
            if name not in known:
                raise unknown_knob(cls, name)
        own = {one.name for one in own_knobs(cls)} - {"layout"}
        given: dict[str, Any] = {name: converted(known[name], value) for name, value in values.items() if name in own}
        return cls(**given, layout=_layout_of(cls, values))


@dataclass(frozen=True, kw_only=True)
class CudaConfig(KernelConfig):
    """What CUDA families share."""

    backend: ClassVar[Literal["cuda", "cpu"]] = "cuda"
    without: ClassVar[frozenset[str]] = frozenset({"stride"})
    searched: ClassVar[Mapping[str, tuple[Scalar, ...]]] = {"padding": (0, 64)}

    if TYPE_CHECKING:

        @property
        def block(self) -> Block: ...
        @property
        def cells_per_thread(self) -> int: ...
        @property
        def register_limit(self) -> str: ...
        @property
        def wrap(self) -> str: ...
        @property
        def load_hint(self) -> str: ...
        @property
        def store_hint(self) -> str: ...
        @property
        def l2_prefetch(self) -> int: ...
        @property
        def index_bits(self) -> int: ...
        @property
        def block_order(self) -> str: ...
        @property
        def launch(self) -> str: ...

    else:
        cells_per_thread = 1
        register_limit = "none"
        wrap = "arithmetic"
        load_hint = store_hint = "default"
        l2_prefetch = 0
        index_bits = 0
        block_order = "row"
        launch = "call"

    @property
    def max_registers(self) -> int:
        """Registers of a thread that the compiler may use at most (0: no cap)."""
        return _limited(self.register_limit, "registers")

    @property
    def min_blocks(self) -> int:
        """Thread blocks of a multiprocessor that launch bounds ask for (0: none)."""
        return _limited(self.register_limit, "blocks")

    def shared_bytes(self, case: Case) -> int:
        """Return the shared memory of a thread block, in bytes."""
        return 0

    def block_cells(self, lattice: Lattice) -> Block:
        """Return the cells along each axis that a thread block updates at most."""
        raise NotImplementedError

    def blocks(self, case: Case) -> Block:
        """Return the thread blocks of a launch along each axis."""
        cells = self.block_cells(case.stencil)
        x, y, z = (-(-n // c) for n, c in zip(case.domain, cells, strict=True))
        return x, y, z


@dataclass(frozen=True, kw_only=True)
class CpuConfig(KernelConfig):
    """What CPU families share."""

    backend: ClassVar[Literal["cuda", "cpu"]] = "cpu"
    by_device: ClassVar[tuple[str, ...]] = ("threads", "vector_bits")
    # 1040 keeps the direction arrays of power-of-two domains out of one cache set
    searched: ClassVar[Mapping[str, tuple[Scalar, ...]]] = {"padding": (0, 64, 1040)}

    threads: int = knob(1, "threads of the parallel loop; 'all': every core", unit="threads", search=("all",))
    vector_bits: int = knob(
        512,
        "bits of a SIMD access, of one register or two; 0: scalar loop",
        search=(0, 256, 512),
        allowed=(0, 256, 512),
    )
    pinning: str = knob("none", "threads bound to cores", allowed=("none", "cores"))
    pages: str = knob("default", "pages of memory; default: as NumPy allocates", allowed=("default", "normal", "huge"))
    first_touch: str = knob(
        "serial",
        "threads that touch pages first",
        allowed=("serial", "parallel"),
        acts=(Acts(on="threads", values=(1,), unless=True, because="one thread works on all rows"),),
    )

    if TYPE_CHECKING:

        @property
        def wrap(self) -> str: ...
        @property
        def streaming_stores(self) -> int: ...
        @property
        def row_offset(self) -> int: ...
        @property
        def row_padding(self) -> int: ...
        @property
        def collision_passes(self) -> str: ...
        @property
        def row_tail(self) -> str: ...
        @property
        def prefetch_propagated(self) -> int: ...
        @property
        def prefetch_local(self) -> int: ...
        @property
        def prefetch_rows(self) -> int: ...
        @property
        def loop(self) -> str: ...
        @property
        def tile_x(self) -> int: ...
        @property
        def tile_y(self) -> int: ...
        @property
        def tile_z(self) -> int: ...
        @property
        def gather(self) -> str: ...

    else:
        wrap = "ghost"
        streaming_stores = 0
        row_offset = row_padding = 0
        collision_passes = "one"
        row_tail = "in_loop"
        prefetch_propagated = prefetch_local = prefetch_rows = 0
        loop = "z"
        tile_x = tile_y = tile_z = 0
        gather = "vector"

    @property
    def lanes(self) -> int:
        """Cells of one SIMD access."""
        return self.vector_bits // (8 * self.computed.bytes) or 1

    @property
    def placed(self) -> bool:
        """Whether memory is placed otherwise than NumPy does."""
        return (self.pages, self.first_touch) != ("default", "serial")

    @property
    def printed(self) -> Self:
        """The configuration without the knobs that change no text: binding of threads and placement of memory."""
        return replace(self, pinning="none", pages="default", first_touch="serial")


@cached
def knobs(record: type[KernelConfig]) -> tuple[Knob, ...]:
    """Return the knobs of a family, each after those that decide whether it acts; those of layouts follow `layout`."""
    found: list[Knob] = []
    for one in own_knobs(record):
        if one.name != "layout":
            found.append(one)
            continue
        allowed = tuple(name for name in one.allowed if name in record.layouts)
        search = tuple(name for name in one.search if name in allowed)
        found += [replace(one, allowed=allowed, search=search), *_layout_knobs(record)]
    names = [one.name for one in found]
    return tuple(sorted(found, key=lambda one: max([names.index(one.name), *_after(one, names)])))


def _after(one: Knob, names: list[str]) -> list[int]:
    return [names.index(condition.on) for condition in one.acts if condition.on in names]


def _layout_knobs(record: type[KernelConfig]) -> list[Knob]:
    owners: dict[str, list[str]] = {}
    first: dict[str, Knob] = {}
    for name in record.layouts:
        for one in own_knobs(LAYOUTS[name]):
            if one.name not in record.without:
                owners.setdefault(one.name, []).append(name)
                first.setdefault(one.name, one)
    because = "other layouts have no such parameter"
    return [
        replace(
            first[name],
            search=record.searched.get(name, first[name].search),
            acts=(*first[name].acts, Acts(on="layout", values=tuple(having), because=because)),
        )
        for name, having in owners.items()
    ]


@cached
def layout_knobs(record: type[KernelConfig]) -> frozenset[str]:
    """Return the names of the knobs that belong to layouts of a family, not to the family itself."""
    return frozenset(one.name for one in _layout_knobs(record))


@cached
def knobs_by_name(record: type[KernelConfig]) -> Mapping[str, Knob]:
    """Return the knobs of a family by name."""
    return MappingProxyType({one.name: one for one in knobs(record)})


@cached
def defaults(record: type[KernelConfig]) -> Mapping[str, Scalar]:
    """Return the defaults of a family's knobs, those of every layout included."""
    return MappingProxyType({one.name: one.default for one in knobs(record)})


def families_with(name: str, backend: str) -> tuple[str, ...]:
    """Return the families of a backend that have a knob."""
    return tuple(family for family, record in FAMILIES[backend].items() if name in knobs_by_name(record))


def unknown_knob(record: type[KernelConfig], name: str) -> InputError:
    """Return the error for a knob that a family does not have: the families that have it, or the nearest name."""
    having = families_with(name, record.backend)
    if having:
        families, have = ("families", "have") if len(having) > 1 else ("family", "has")
        places = f"{families} {', '.join(having)} of {record.backend} {have} it"
        add = " or ".join(f"family={one}" for one in having)
        return InputError(f"{name} is not a knob of family {record.family} ({places}); add {add}.")
    near = suggestion(name, sorted(knobs_by_name(record)))
    return InputError(f"unknown knob {name!r} of family {record.family} ({record.backend}); {near}")


def _layout_of(record: type[KernelConfig], values: Mapping[str, Scalar]) -> Layout:
    name = str(values.get("layout", defaults(record)["layout"]))
    if name not in LAYOUTS:
        raise unknown("layout", name, record.layouts)
    known = knobs_by_name(record)
    own = [one.name for one in own_knobs(LAYOUTS[name]) if one.name not in record.without]
    others = {one.name for layout in record.layouts for one in own_knobs(LAYOUTS[layout])} - {*own}
    for parameter in others & values.keys():
        if values[parameter] != known[parameter].default:
            having = known[parameter].acts[-1].values
            raise InputError(
                f"{parameter}={values[parameter]} is not supported for layout={name} "
                f"(use layout={' or '.join(map(str, having))}, or leave it out): {known[parameter].acts[-1].because}."
            )
    given = {parameter: converted(known[parameter], values[parameter]) for parameter in own if parameter in values}
    return LAYOUTS[name](**given)


def _limited(limit: str, what: str) -> int:
    count, _, unit = limit.partition("-")
    return int(count) if unit == what and count.isdecimal() else 0


def _text(values: Mapping[str, Scalar]) -> str:
    return ",".join(f"{name}={value}" for name, value in values.items())


def field_names(record: type[KernelConfig]) -> tuple[str, ...]:
    """Return the names of a record's fields."""
    return tuple(f.name for f in fields(record))
