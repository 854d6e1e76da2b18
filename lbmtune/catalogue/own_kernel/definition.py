"""The description of a user's kernel: its text, its arguments, what may vary, and what it is compared with."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal

from lbmtune.catalogue.knobs import Scalar
from lbmtune.catalogue.own_kernel.formulas import Value, evaluated, names_of, real, whole

Role = Literal["in", "out", "inout"]
Cells = tuple[int, int, int]
TYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
"""Types of elements and values, by their names in NumPy."""
EXTENTS = ("nx", "ny", "nz")
"""Names of the extents of the domain in formulas."""
THREADS = "threads"
"""The one knob that is no macro: threads of the parallel loop of a kernel for CPUs."""
PREFIX = "own:"
"""How the family of a user's kernel begins."""
KNOB = re.compile(r"[A-Z][A-Z0-9_]*")
"""Names of knobs that are macros."""
_PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, kw_only=True)
class Argument:
    """An argument of a kernel, in the order of its parameters: a buffer, or a value.

    type: of elements or of the value; size: elements of a buffer, a formula, '' of a value; role: of a buffer: the
    kernel reads it, writes it, or both; swap: name of the buffer with which this one changes places after each launch,
    '' without; random: least and largest of its first values; value: of a value, a formula.
    """

    name: str
    type: str
    size: str = ""
    role: Role = "in"
    swap: str = ""
    random: tuple[float, float] = (0.9, 1.1)
    value: str = ""

    @property
    def is_buffer(self) -> bool:
        """Return whether it is a buffer."""
        return bool(self.size)

    @property
    def range(self) -> tuple[int, int]:
        """Return the least and the largest whole number of its type."""
        bits, signed = int(self.type.lstrip("uint")), not self.type.startswith("u")
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    @property
    def is_whole(self) -> bool:
        """Return whether its elements are whole numbers."""
        return "int" in self.type


@dataclass(frozen=True, kw_only=True)
class OwnKnob:
    """A macro that is varied, or the number of threads. values: the first one is the default."""

    name: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """The launch of a CUDA kernel, as formulas. shared_bytes: dynamic shared memory of a block."""

    block: tuple[str, str, str] = ("1", "1", "1")
    grid: tuple[str, str, str] = ("1", "1", "1")
    shared_bytes: str = "0"


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Names what results are compared with: a function in NumPy, or another entry of the text.

    python: text of the file with the function `entry`; '': `entry` is one of the kernel's text, with the same macros
    and launch, or '' for that of the kernel itself with the defaults of all knobs.
    tolerance: largest deviation after one launch, as a share of the largest value of the buffer; None: by its type.
    domain: on which all configurations are checked; the finalists are checked on that of the case as well.
    """

    entry: str
    python: str = ""
    tolerance: float | None = None
    domain: Cells


@dataclass(frozen=True, kw_only=True)
class OwnKernel:
    """A user's kernel as it is tuned.

    name: of its file; source: its text; entry: with {KNOB} in the place of values, for templates or variants.
    macros: further ones, as formulas, such as extents of the domain; constraints: formulas that hold for legal values;
    options: of the compiler, with {KNOB} as in entry; bytes_per_update, flop_per_update: formulas, '0' if unknown.
    odd_entry: as entry, of every second launch, for kernels in place whose steps alternate; '': of all launches.
    """

    name: str
    backend: str
    source: str
    entry: str
    arguments: tuple[Argument, ...]
    knobs: tuple[OwnKnob, ...]
    macros: dict[str, str]
    constraints: tuple[str, ...]
    options: tuple[str, ...]
    geometry: Geometry
    bytes_per_update: str
    flop_per_update: str
    reference: Reference
    odd_entry: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError for what no description says, as of a damaged record."""
        for knob in self.knobs:
            if not knob.values or not (knob.name == THREADS or KNOB.fullmatch(knob.name)):
                raise ValueError(f"knob {knob.name!r} has no values, or is no name of a macro in capital letters")
        if unknown := [one.type for one in self.arguments if one.type not in TYPES]:
            raise ValueError(f"type {unknown[0]!r} is none of {', '.join(TYPES)}")
        for formula in (*self.constraints, *(formula for _, formula in self.formulas() if formula)):
            names_of(formula)

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of the description and of all texts."""
        told = asdict(self)
        if not self.odd_entry:  # as before there was one
            del told["odd_entry"]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    @property
    def family(self) -> str:
        """Return the name of its family, which holds its name and the beginning of its digest."""
        return f"{PREFIX}{self.name}-{self.digest[:8]}"

    @property
    def defaults(self) -> dict[str, Scalar]:
        """Return the first value of each knob."""
        return {knob.name: knob.values[0] for knob in self.knobs}

    @property
    def entries(self) -> tuple[str, ...]:
        """Return the entries that launches take turns in."""
        return (self.entry, self.odd_entry) if self.odd_entry else (self.entry,)

    @property
    def buffers(self) -> tuple[Argument, ...]:
        """Return the arguments that are buffers."""
        return tuple(one for one in self.arguments if one.is_buffer)

    @property
    def is_baked(self) -> bool:
        """Return whether extents are compiled into the kernel, which then is right on one domain alone."""
        return any(names_of(formula) & {*EXTENTS} for formula in self.macros.values())

    @property
    def precision(self) -> str:
        """Return the format of what it writes: that of the first such buffer of floating-point numbers."""
        written = (one.type for one in self.buffers if one.role != "in" and not one.is_whole)
        return f"fp{next(written, 'float32').removeprefix('float')}"

    def scope(self, values: Mapping[str, Scalar], domain: Cells) -> dict[str, Value]:
        """Return what formulas may read: extents of the domain, and knobs."""
        return {**dict(zip(EXTENTS, domain, strict=True)), **values}

    def sizes(self, values: Mapping[str, Scalar], domain: Cells) -> dict[str, int]:
        """Return the elements of each buffer. Raises FormulaError."""
        scope = self.scope(values, domain)
        return {one.name: whole(one.size, scope, 1) for one in self.buffers}

    def numbers(self, values: Mapping[str, Scalar], domain: Cells) -> dict[str, int | float]:
        """Return the arguments that are values. Raises FormulaError."""
        scope, found = self.scope(values, domain), dict[str, int | float]()
        for one in self.arguments:
            if not one.is_buffer:
                found[one.name] = whole(one.value, scope, *one.range) if one.is_whole else real(one.value, scope)
        return found

    def defines(self, values: Mapping[str, Scalar], domain: Cells) -> dict[str, Scalar | float]:
        """Return the macros of a configuration: its knobs but threads and those in braces, and those that follow."""
        scope = self.scope(values, domain)
        placed = {name for text in (*self.entries, *self.options) for name in _PLACE.findall(text)}
        knobs = {name: value for name, value in values.items() if name not in {THREADS, *placed}}
        return {**knobs, **{name: evaluated(formula, scope) for name, formula in self.macros.items()}}

    def formulas(self) -> Iterator[tuple[str, str]]:
        """Yield every formula after its key in the file, but the constraints."""
        for number, one in enumerate(self.arguments, 1):
            yield f"argument[{number}].{'size' if one.is_buffer else 'value'}", one.size or one.value
        yield from ((f"macros.{name}", formula) for name, formula in self.macros.items())
        yield from (("launch.block", formula) for formula in self.geometry.block)
        yield from (("launch.grid", formula) for formula in self.geometry.grid)
        yield "launch.shared_bytes", self.geometry.shared_bytes
        yield "bytes_per_update", self.bytes_per_update
        yield "flop_per_update", self.flop_per_update


def filled(text: str, values: Mapping[str, Scalar]) -> str:
    """Return an entry or an option with the values of knobs in the place of {KNOB}."""
    return _PLACE.sub(lambda found: str(values.get(found[1], found[0])), text)
