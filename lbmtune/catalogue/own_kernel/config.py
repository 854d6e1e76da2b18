"""Configurations of users' kernels: a family of its own for each description, made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.family_knobs import knobs_by_name
from lbmtune.catalogue.knobs import Scalar, cached, converted, knob
from lbmtune.catalogue.layouts.layout import Layout
from lbmtune.catalogue.layouts.soa import SoA
from lbmtune.catalogue.own_kernel.definition import PREFIX, THREADS, Cells, OwnKernel
from lbmtune.catalogue.own_kernel.formulas import real
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.record import KernelConfig, unknown_knob
from lbmtune.catalogue.schemes import scheme
from lbmtune.catalogue.schemes.scheme import Scheme
from lbmtune.catalogue.storage_frame import StorageFrame, aligned
from lbmtune.errors import InputError
from lbmtune.lattice import Lattice

_FILLED_IN = ("compute", "vector_bits")
"""Values that `catalogue.config.completed` fills in for all families, and that these do not have."""
BASES: dict[str, type[OwnConfig]] = {}
"""What the families of each backend extend; filled as its module is imported (`lbmtune.catalogue.config`)."""
_DECLARED: dict[str, OwnKernel] = {}
"""Descriptions that this process has read, by the family of each."""


@dataclass(frozen=True, kw_only=True)
class OwnConfig(KernelConfig):
    """A configuration of a user's kernel. Its knobs are fields of the family that `family_of` makes.

    Storage, arithmetic and layout are what the text makes of them: they are no knobs.
    """

    kernel: ClassVar[OwnKernel]
    layouts: ClassVar[tuple[str, ...]] = ()

    storage: str = field(default="fp32", init=False, repr=False)
    compute: str = field(default="fp32", init=False, repr=False)
    layout: Layout = field(default=SoA(), init=False, repr=False)

    @property
    def scheme(self) -> str:
        """Return the name of the kernel, which has a scheme of its own."""
        return self.kernel.name

    @property
    def propagation(self) -> Scheme:
        """Return the scheme that stands for an unknown one: two buffers, of which one is read."""
        return scheme("pull")

    @property
    def copies(self) -> int:
        """Return 0: its buffers are its own, and `scratch_bytes` has all of them."""
        return 0

    @property
    def values(self) -> dict[str, Scalar]:
        """Return the values of its knobs."""
        return {name: value for name, value in self.flat().items() if name not in ("backend", "family")}

    def frame(self, lattice: Lattice) -> StorageFrame:
        """Return the place of cells in storage, of which only the text knows more."""
        return aligned((1, 1, 1), lattice.q)

    def scratch_bytes(self, case: Case) -> int:
        """Return the bytes of all buffers."""
        return sum(self.buffer_bytes(case.domain).values())

    def buffer_bytes(self, domain: Cells) -> dict[str, int]:
        """Return the bytes of each buffer. Raises FormulaError."""
        sizes = self.kernel.sizes(self.values, domain)
        return {one.name: sizes[one.name] * bytes_of(one.type) for one in self.kernel.buffers}

    def population_bytes(self, case: Case) -> float:
        """Return the bytes of an update: as described, or every element of each buffer once."""
        if self.kernel.bytes_per_update:
            return real(self.kernel.bytes_per_update, self.kernel.scope(self.values, case.domain))
        sizes, stored = self.buffer_bytes(case.domain), 2 if BACKENDS[self.backend].write_allocates else 1
        times = {"in": 1, "out": stored, "inout": 2}
        return sum(times[one.role] * sizes[one.name] for one in self.kernel.buffers) / case.sites

    def flop(self, case: Case) -> float:
        """Return the floating-point operations of an update, 0 if unknown."""
        return real(self.kernel.flop_per_update, self.kernel.scope(self.values, case.domain))

    def awkward_domain(self, case: Case) -> Cells:
        """Return the domain of its description, or that of the case if extents are compiled in."""
        return case.domain if self.kernel.is_baked else self.kernel.reference.domain

    @classmethod
    def parse(cls, values: Mapping[str, Scalar]) -> Self:
        """Return the configuration of flat values; missing knobs have their defaults. Raises InputError."""
        known, given = knobs_by_name(cls), {}
        for name, value in values.items():
            if name in known:
                given[name] = converted(known[name], value)
            elif name not in _FILLED_IN:
                raise unknown_knob(cls, name)
        return cls(**given)

    def _layout_values(self) -> list[tuple[str, Scalar]]:
        return []

    def __reduce__(self) -> tuple[Any, ...]:
        """Other processes make the family anew."""
        return _revived, (self.kernel, self.values)


def bytes_of(kind: str) -> int:
    """Return the bytes of a type of elements, such as 'float32'."""
    return int(kind.lstrip("abcdefghijklmnopqrstuvwxyz")) // 8


def family_of(kernel: OwnKernel) -> type[OwnConfig]:
    """Return the family of a kernel's configurations, which `catalogue.config.family` finds by its name from now on."""
    _DECLARED[kernel.family] = kernel
    return _made(kernel, BASES[kernel.backend])


def declared(name: str) -> type[OwnConfig]:
    """Return the family of a name that begins as those of users' kernels. Raises InputError."""
    if name not in _DECLARED:
        raise InputError(
            f"family {name} is that of a kernel which is described elsewhere; name its study, or its file by --kernel."
        )
    return family_of(_DECLARED[name])


def is_own(name: str) -> bool:
    """Return whether the name of a family is that of a user's kernel."""
    return name.startswith(PREFIX)


@cached
def _made(kernel: OwnKernel, base: type[OwnConfig]) -> type[OwnConfig]:
    fields: dict[str, Any] = {
        one.name: knob(one.values[0], f"macro of {kernel.name}", search=one.values, allowed=one.values)
        for one in kernel.knobs
        if one.name != THREADS
    }
    fixed = {"storage": kernel.precision, "compute": "fp64" if kernel.precision == "fp64" else "fp32"}
    types = {name: type(one.default) for name, one in fields.items()}
    settled = {name: field(default=value, init=False, repr=False) for name, value in fixed.items()}
    namespace = {
        "__annotations__": {**types, **dict.fromkeys(fixed, str)},
        "__module__": __name__,
        "__doc__": f"Configurations of {kernel.name}.",
        "kernel": kernel,
        "family": kernel.family,
        "title": f"kernel {kernel.name}",
        **fields,
        **settled,
    }
    made: Any = type("Own", (base,), namespace, listed=False)
    found: type[OwnConfig] = dataclass(frozen=True, kw_only=True)(made)
    return found


def _revived(kernel: OwnKernel, values: dict[str, Scalar]) -> OwnConfig:
    return family_of(kernel).parse(values)
