"""The record that every kernel family extends: identity, forms as text, and the questions that all families answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import lcm
from typing import Any, ClassVar, Literal, Self

from lbmtune.catalogue.family_knobs import ANY_LAYOUT, Declared, defaults, knobs_by_name, layout_of
from lbmtune.catalogue.knobs import Knob, Scalar, cached, converted, knob, own_knobs, scalar
from lbmtune.catalogue.layouts.layout import Extents, Int, Layout, index
from lbmtune.catalogue.layouts.soa import SoA
from lbmtune.catalogue.moments.representation import Representation, representation
from lbmtune.catalogue.precision import COMPUTES, STORAGES, Compute, Storage, compute, storage
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes import scheme
from lbmtune.catalogue.schemes.scheme import Scheme, bundled
from lbmtune.catalogue.storage_frame import Domain, StorageFrame
from lbmtune.errors import InputError, suggestion
from lbmtune.lattice import Lattice

Cells = tuple[int, int, int]
STORAGE = "format of stored values"
FAMILIES: dict[str, dict[str, type[KernelConfig]]] = {}
"""The families of each backend, by name; filled as their modules are imported (`lbmtune.catalogue.config`)."""


@dataclass(frozen=True, kw_only=True)
class KernelConfig(Declared):
    """A configuration of one kernel family. A frozen record whose canonical JSON is its identity.

    Subclasses with a `family` are the families; their fields are knobs (`lbmtune.catalogue.knobs`). What stands here
    without being a field holds for families that lack that knob.
    """

    indirect: ClassVar[bool] = False
    """True if fluid sites are listed, and neighbours found by an index list."""
    visits_solid_cells: ClassVar[bool] = False
    """True if solid cells are loaded and stored like all others."""
    place_source: ClassVar[Literal["scheme", "list", "fixed"]] = "scheme"
    """Source of the place of a population: the scheme's table, with nodes of a list, or nothing: it stays in place."""
    reads_halo: ClassVar[bool] = False
    """True if a launch loads cells around those that it updates."""
    state_place: ClassVar[str] = ""
    """Place of the state in words, if it is not in arrays of all cells."""
    on_chip: ClassVar[bool] = False
    """True if the state stays on chip through all steps of a launch, whose number is an argument."""
    tiled: ClassVar[bool] = False
    """True if thread blocks update tiles whose shape decides how much they load."""
    length_knob: ClassVar[str] = ""
    """Knob of the planes of a chunk or a tile."""
    clipped_knob: ClassVar[str] = ""
    """Knob of the extents of a thread block whose x may be cut to a short row."""

    storage: str = knob("fp32", STORAGE, allowed=tuple(STORAGES))
    compute: str = knob("fp32", "arithmetic precision", allowed=tuple(COMPUTES))
    layout: Layout = knob(SoA(), "memory layout of a cell's values", search=("soa", "aosoa"), allowed=ANY_LAYOUT)

    representation = "populations"
    steps = 1
    pointer_swap = 0
    flags = "compiled"
    boundary = "branch"
    order = "row"
    links = "all"
    prefetch_index = 0
    macroscopics = "never"

    def __init_subclass__(cls, *, listed: bool = True, **kwargs: Any) -> None:
        """Registers a family, unless it is made for one kernel of a user (listed)."""
        super().__init_subclass__(**kwargs)
        if listed and "family" in vars(cls):
            FAMILIES.setdefault(cls.backend, {})[cls.family] = cls

    @property
    def launch_sets_length(self) -> bool:
        """Return whether `length_knob` is a matter of the launch alone, on which the text does not depend."""
        return False

    @property
    def scheme(self) -> str:
        """Name of the propagation scheme."""
        return "pull"

    @property
    def chases(self) -> bool:
        """Return whether the index list holds pointers along the axes alone, from which others are chased."""
        return self.links != "all"

    @property
    def implicit(self) -> bool:
        """Return whether solid cells are skipped: a population comes back after two steps (implicit bounce-back)."""
        return self.boundary == "implicit"

    @property
    def propagation(self) -> Scheme:
        """Return the scheme; bundled directions have neighbouring slots."""
        found, together = scheme(self.scheme), self.memory.together
        return bundled(found, together) if together > 1 else found

    @property
    def memory(self) -> Layout:
        """Return the layout that the kernels have."""
        return self.layout

    @property
    def stored(self) -> Storage:
        """Return the storage format."""
        return storage(self.storage)

    @property
    def computed(self) -> Compute:
        """Return the arithmetic precision."""
        return compute(self.compute)

    @property
    def kept(self) -> Representation:
        """Return what a cell keeps: populations or moments."""
        return representation(self.representation)

    @property
    def of_moments(self) -> bool:
        """Return whether a cell keeps moments."""
        return self.kept.name == "moments"

    @property
    def fused_steps(self) -> int:
        """Return the time steps of a launch."""
        return self.steps

    @property
    def copies(self) -> int:
        """Return the copies of the state in memory."""
        return self.propagation.lattices

    @property
    def unit(self) -> float:
        """Return the density one as it is stored."""
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

    def value_index(self, k: Int, x: Int, y: Int, z: Int, extents: Extents, lattice: Lattice) -> Int:
        """Return the element of value k of a cell, or of a slot; ints, arrays that go together, or traced values."""
        return index(self.memory, extents, x, y, z, k)

    def stored_extents(self, case: Case, domain: Cells | None = None) -> Extents:
        """Return the storage extents of the case's domain or of another one."""
        return self.frame(case.stencil).extents(Domain(*(domain or case.domain)))

    def most_extents(self, case: Case) -> Extents | None:
        """Return the storage extents of a list if no cell were solid; None without a list."""
        return None

    def list_words(self, case: Case, nodes: int | None = None) -> int:
        """Return the 32-bit words of the index list; 0 without one. nodes: of a row of storage, if known."""
        return 0

    def word_bytes(self, case: Case) -> tuple[float, float]:
        """Return the bytes of flags and of words of the index list that one update reads."""
        return 0, 0

    @property
    def site_granule(self) -> int:
        """Return the number whose multiples are numbers of listed sites, for vectors and runs of the layout."""
        return 1

    @property
    def link_source(self) -> str:
        """Return the source of cut links: "compiled", "flags" or "list"."""
        return "flags" if self.flags == "memory" else "compiled"

    @property
    def access_cells(self) -> int:
        """Return the cells along x of one access of a thread."""
        raise NotImplementedError

    def row_cells(self, least: int) -> int:
        """Return the cells of a row of whole accesses and runs of the layout, at least so many."""
        unit = lcm(self.access_cells, max(self.memory.run, 1))
        return -(-least // unit) * unit

    def awkward_domain(self, case: Case) -> Cells:
        """Return a small domain that takes a kernel through its edges: extents that differ and fill no whole block."""
        raise NotImplementedError

    def extra_domains(self, case: Case) -> tuple[Cells, ...]:
        """Return the domains that take a kernel through other paths than the awkward one."""
        return ()

    def short_block(self, case: Case) -> Cells | None:
        """Return the cells of a thread block with short chunks; None if the grid does not set their length."""
        return None

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
        """Return backend, family, and knobs that differ from their defaults: a knob added later changes no identity."""
        usual = defaults(type(self))
        return {name: value for name, value in self.flat().items() if usual.get(name) != value}

    @property
    def key(self) -> str:
        """Return twelve hexadecimal digits of the SHA-256 of the canonical JSON of the identity."""
        canonical = json.dumps(self.identity, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]

    @property
    def brief(self) -> str:
        """Return the identity as text."""
        return _text(self.identity)

    @property
    def said(self) -> str:
        """Return the text that the command line reads back on any device: with what another device would fill in."""
        usual, told = defaults(type(self)), self.by_device
        return _text({name: value for name, value in self.flat().items() if usual.get(name) != value or name in told})

    def __str__(self) -> str:
        """The text form that the command line reads back."""
        return self.said

    @classmethod
    def parse(cls, values: Mapping[str, Scalar]) -> Self:
        """Return the configuration of flat values; missing knobs have their defaults. Raises InputError."""
        known, own = knobs_by_name(cls), _without_layout(cls)
        for name in values:
            if name not in known:
                raise unknown_knob(cls, name)
        given: dict[str, Any] = {name: converted(own[name], value) for name, value in values.items() if name in own}
        return cls(**given, layout=layout_of(cls, values))


@cached
def _without_layout(record: type[KernelConfig]) -> Mapping[str, Knob]:
    """Return the knobs that are fields of a record, by name, but its layout, which has knobs of its own."""
    return {one.name: one for one in own_knobs(record) if one.name != "layout"}


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


def _text(values: Mapping[str, Scalar]) -> str:
    return ",".join(f"{name}={value}" for name, value in values.items())
