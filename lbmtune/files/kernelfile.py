"""Descriptions of users' kernels: TOML to OwnKernel. Every error names file, line and key.

Nothing that they name is compiled or run here.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.knobs import Scalar
from lbmtune.catalogue.own_kernel.config import family_of
from lbmtune.catalogue.own_kernel.definition import (
    EXTENTS,
    KNOB,
    THREADS,
    TYPES,
    Argument,
    Cells,
    Geometry,
    OwnKernel,
    OwnKnob,
    Reference,
    filled,
)
from lbmtune.catalogue.own_kernel.formulas import FormulaError, evaluated, names_of
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError, given_path, suggestion
from lbmtune.files.source import Source, read_text
from lbmtune.files.trees import converted, parsed

Formula = str | int | float
BACKENDS_OF: Mapping[str, Any] = {backend.suffix: name for name, backend in BACKENDS.items()}
"""The backend of a kernel by the suffix of its file."""
_ROLES = ("in", "out", "inout")
_NAME = re.compile(r"[A-Za-z_]\w*")
_ENTRY = re.compile(r"[A-Za-z_]\w*(<[\w\s,]+>)?")
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_LARGEST = 1e30
"""Largest first value of a buffer."""
_DEFAULT_LATTICES = {2: "d2q9", 3: "d3q19"}


@dataclass(frozen=True, kw_only=True)
class ArgumentFile:
    """A table [[argument]]. random: least and largest first value of a buffer (default: 0.9 to 1.1, integers 0)."""

    name: str
    type: str
    size: Formula = ""
    role: str = ""
    swap: str = ""
    random: tuple[float, float] | None = None
    value: Formula = ""


@dataclass(frozen=True, kw_only=True)
class LaunchFile:
    """The table [launch] of a CUDA kernel: formulas along x, y and z."""

    block: tuple[Formula, ...]
    grid: tuple[Formula, ...]
    shared_bytes: Formula = "0"


@dataclass(frozen=True, kw_only=True)
class ReferenceFile:
    """The table [reference]. python: file with the function `entry`, beside this one; without it the kernel's text."""

    entry: str = ""
    python: str = ""
    domain: tuple[int, ...] = ()
    tolerance: float | None = None


@dataclass(frozen=True, kw_only=True)
class KernelFile:
    """The tables of a description. kernel: file with the text (default: the one of the same name beside it).

    odd_entry: function of every second launch.
    """

    entry: str
    domain: tuple[int, ...]
    argument: tuple[ArgumentFile, ...]
    odd_entry: str = ""
    kernel: str = ""
    lattice: str = ""
    bytes_per_update: Formula = ""
    flop_per_update: Formula = "0"
    options: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    knobs: dict[str, tuple[Scalar, ...]] = field(default_factory=dict)
    macros: dict[str, Formula] = field(default_factory=dict)
    launch: LaunchFile | None = None
    reference: ReferenceFile = field(default_factory=ReferenceFile)


_TABLES = {"": KernelFile, "argument": ArgumentFile, "launch": LaunchFile, "reference": ReferenceFile}


def load_kernel(path: Path) -> tuple[OwnKernel, Case]:
    """Return the kernel that a file describes, and its domain as a case. path: of the description, or of the kernel.

    Raises InputError.
    """
    described = given_path(path) if path.suffix == ".toml" else given_path(path).with_suffix(".toml")
    if path.suffix != ".toml" and not described.exists():
        raise InputError(
            f"{path} has no description beside it ({described.name}); lbmtune kernel init {path} writes one."
        )
    text = read_text(described)
    source = Source(str(described), text, folder=described.parent)
    tree = parsed(text, str(described))
    _check_keys(tree, source)
    return _kernel(converted(tree, KernelFile, source), described, source)


def _check_keys(tree: Mapping[str, Any], source: Source) -> None:
    for table, kind in _TABLES.items():
        found = tree.get(table, {}) if table else tree
        for number, one in enumerate(found if isinstance(found, list) else [found], 1):
            place = f"{table}[{number}]" if isinstance(found, list) else table
            known = [f.name for f in fields(kind)]
            for key in one if isinstance(one, dict) else ():
                if key not in known:
                    source.fail(f"{place}.{key}" if place else key, f"unknown key; {suggestion(key, known)}")


def _kernel(file: KernelFile, described: Path, source: Source) -> tuple[OwnKernel, Case]:
    text, backend, name = _text_of(file, described, source)
    domain = _extents(file.domain, "domain", source)
    in_blocks = BACKENDS[backend].thread_blocks
    if in_blocks and file.launch is None:
        source.fail("launch", "is missing; a CUDA kernel needs [launch] with block and grid.")
    if not in_blocks and file.launch is not None:
        source.fail("launch", "does not go with a kernel in C; leave the table out.")
    kernel = OwnKernel(
        name=name,
        backend=backend,
        source=text,
        entry=file.entry,
        odd_entry=file.odd_entry,
        arguments=tuple(_argument(one, number, source) for number, one in enumerate(file.argument, 1)),
        knobs=tuple(_knob(key, values, backend, source) for key, values in file.knobs.items()),
        macros={key: str(formula) for key, formula in file.macros.items()},
        constraints=file.constraints,
        options=file.options,
        geometry=_geometry(file.launch, source) if file.launch else Geometry(),
        bytes_per_update=str(file.bytes_per_update),
        flop_per_update=str(file.flop_per_update),
        reference=_reference(file.reference, domain, source),
    )
    _check(kernel, domain, source)
    family_of(kernel)
    lattice = file.lattice or _DEFAULT_LATTICES[3 if domain[2] > 1 else 2]
    try:
        return kernel, Case(name, lattice, "none", domain, 1.0)
    except InputError as error:
        source.fail("lattice" if "lattice" in str(error) else "domain", str(error))


def _text_of(file: KernelFile, described: Path, source: Source) -> tuple[str, Any, str]:
    """Return the text of the kernel, its backend and its name."""
    beside = [described.with_suffix(suffix) for suffix in BACKENDS_OF]
    path = source.folder / file.kernel if file.kernel else next((one for one in beside if one.exists()), None)
    if path is None:
        source.fail("kernel", f"is missing, and neither {beside[0].name} nor {beside[1].name} is here; name the file.")
    if path.suffix not in BACKENDS_OF:
        source.fail("kernel", f"{path.name} ends neither in .c nor in .cu; rename it.")
    if not _FILE_NAME.fullmatch(path.stem):
        source.fail("kernel", f"{path.stem!r} is no name of up to 64 letters, digits, '_' and '-'; rename the file.")
    return read_text(path), BACKENDS_OF[path.suffix], path.stem


def _extents(given: tuple[int, ...], key: str, source: Source) -> Cells:
    if len(given) not in (2, 3) or min(given) < 1:
        source.fail(key, f"{list(given)} is not of the form [512, 512]; give two or three positive cell counts.")
    x, y, z = (*given, 1)[:3]
    return x, y, z


def _argument(file: ArgumentFile, number: int, source: Source) -> Argument:
    def fail(key: str, problem: str) -> NoReturn:
        source.fail(f"argument[{number}].{key}", problem)

    if not _NAME.fullmatch(file.name):
        fail("name", f"{file.name!r} is no name in C; correct it.")
    if file.type not in TYPES:
        fail("type", f"unknown type {file.type!r}; {suggestion(file.type, TYPES)}")
    if (file.size == "") == (file.value == ""):
        fail("name", f"{file.name} needs either a size, as a buffer has, or a value; give one of both.")
    if file.value != "":
        if file.role or file.swap or file.random:
            fail("value", f"{file.name} is a value, and role, swap and random are of buffers; leave them out.")
        if file.type == "float16":
            fail("type", f"{file.name} is a value, and C passes none of type float16; use float32.")
        return Argument(name=file.name, type=file.type, value=str(file.value))
    if file.role not in _ROLES:
        fail("role", f"{file.role!r} is not the role of a buffer (use {', '.join(_ROLES)}).")
    low, high = file.random or ((0, 0) if "int" in file.type else Argument.random)
    role: Any = file.role
    made = Argument(name=file.name, type=file.type, size=str(file.size), role=role, swap=file.swap, random=(low, high))
    least, most = made.range if made.is_whole else (-_LARGEST, _LARGEST)
    if not least <= low <= high <= most:
        fail("random", f"{[low, high]} are no least and largest value of {file.type}; correct them.")
    return made


def _knob(name: str, values: tuple[Scalar, ...], backend: str, source: Source) -> OwnKnob:
    key = f"knobs.{name}"
    if name == THREADS:
        if BACKENDS[backend].thread_blocks:
            source.fail(key, "is a knob of kernels for CPUs alone; leave it out.")
        if bad := [one for one in values if one not in ("all", "cores") and not (isinstance(one, int) and one > 0)]:
            source.fail(key, f"{bad[0]!r} is no number of threads (use a whole number from 1 up, 'all' or 'cores').")
    elif not KNOB.fullmatch(name) or name in EXTENTS:
        source.fail(key, "is no name of a macro in capital letters; rename it, here and in the kernel.")
    values = tuple(int(one) if isinstance(one, bool) else one for one in values)
    if not values or len(set(values)) < len(values):
        source.fail(key, f"{list(values)}: give one or several values, each once.")
    if name != THREADS and len({type(one) for one in values}) > 1:
        source.fail(key, f"{list(values)} has numbers and words; use either.")
    for one in values:
        if isinstance(one, str) and not _NAME.fullmatch(one):
            source.fail(key, f"{one!r} is no word of letters, digits and '_'; correct it.")
    return OwnKnob(name=name, values=values)


def _geometry(file: LaunchFile, source: Source) -> Geometry:
    found: dict[str, Any] = {"shared_bytes": str(file.shared_bytes)}
    for key in ("block", "grid"):
        given = tuple(map(str, getattr(file, key)))
        if not 1 <= len(given) <= 3:
            source.fail(f"launch.{key}", f"{list(given)} has not one to three formulas; correct it.")
        found[key] = (*given, "1", "1")[:3]
    for formula in found["block"]:
        if _names(formula, "launch.block", source) & {*EXTENTS}:
            source.fail("launch.block", f"{formula!r} reads the domain; a thread block may depend on knobs alone.")
    return Geometry(**found)


def _reference(file: ReferenceFile, domain: Cells, source: Source) -> Reference:
    if file.python and not file.entry:
        source.fail("reference.entry", "is missing; name the function of the Python file.")
    if file.tolerance is not None and not 0 < file.tolerance < 1:
        source.fail("reference.tolerance", f"{file.tolerance} is not between 0 and 1; give a relative deviation.")
    small = (min(domain[0], 36), min(domain[1], 19), min(domain[2], 13))
    return Reference(
        entry=file.entry,
        python=read_text(source.folder / file.python) if file.python else "",
        tolerance=file.tolerance,
        domain=_extents(file.domain, "reference.domain", source) if file.domain else small,
    )


def _check(kernel: OwnKernel, domain: Cells, source: Source) -> None:
    """Check what concerns several parts of a description. Raises InputError."""
    _check_names(kernel, source)
    _check_entries(kernel, source)
    _check_swaps(kernel, source)
    scope = kernel.scope(kernel.defaults, domain)
    for number, formula in enumerate(kernel.constraints, 1):
        _checked(formula, f"constraints[{number}]", scope, source)
    for key, formula in kernel.formulas():
        if formula:
            _checked(formula, key, scope, source)
    for what, of in (("the size of a buffer", kernel.sizes), ("the value of an argument", kernel.numbers)):
        try:
            of(kernel.defaults, domain)
        except FormulaError as error:
            source.fail("argument", f"{what} {error}; correct it.")
    if kernel.bytes_per_update and not evaluated(kernel.bytes_per_update, scope) > 0:
        source.fail("bytes_per_update", "is not positive; give the bytes that the update of a cell moves.")
    if not any(one.role != "in" for one in kernel.buffers):
        source.fail("argument", "no buffer has the role out or inout; name what the kernel writes.")


def _check_names(kernel: OwnKernel, source: Source) -> None:
    names = [one.name for one in kernel.arguments]
    for number, name in enumerate(names, 1):
        if name in names[: number - 1]:
            source.fail(f"argument[{number}].name", f"{name} is the name of two arguments; rename one.")
    taken = {one.name for one in kernel.knobs}
    for name in chain(kernel.macros, (one.name for one in kernel.buffers)):
        if name in taken or name in EXTENTS:
            source.fail("knobs", f"{name} names a knob or an extent, and a macro or a buffer as well; rename one.")
    for name in kernel.macros:
        if not _NAME.fullmatch(name):
            source.fail(f"macros.{name}", "is no name of a macro in C; correct it.")


def _check_entries(kernel: OwnKernel, source: Source) -> None:
    for key, entry in zip(("entry", "odd_entry"), kernel.entries, strict=False):
        if not _ENTRY.fullmatch(filled(entry, kernel.defaults)):
            source.fail(key, f"{entry!r} is no name of a function; correct it.")
    if kernel.odd_entry and kernel.reference.entry and not kernel.reference.python:
        source.fail("reference.entry", "is one function for launches of two; give a reference in NumPy, or none.")


def _check_swaps(kernel: OwnKernel, source: Source) -> None:
    buffers = {one.name: one for one in kernel.buffers}
    swapped = [name for one in kernel.buffers if one.swap for name in (one.name, one.swap)]
    for number, one in enumerate(kernel.arguments, 1):
        if not one.swap:
            continue
        if kernel.odd_entry:
            source.fail(f"argument[{number}].swap", "does not go with odd_entry, which says where buffers are.")
        other = buffers.get(one.swap)
        if other is None or other is one or (other.type, other.size) != (one.type, one.size):
            source.fail(f"argument[{number}].swap", f"{one.swap!r} is no other buffer of this type and size.")
        if swapped.count(one.name) > 1 or swapped.count(one.swap) > 1:
            source.fail(f"argument[{number}].swap", f"{one.name} and {one.swap} are swapped twice; say it once.")


def _checked(formula: str, key: str, scope: Mapping[str, Any], source: Source) -> None:
    _try(lambda: evaluated(formula, scope), formula, key, source)


def _names(formula: str, key: str, source: Source) -> frozenset[str]:
    found: frozenset[str] = _try(lambda: names_of(formula), formula, key, source)
    return found


def _try(of: Callable[[], Any], formula: str, key: str, source: Source) -> Any:
    try:
        return of()
    except FormulaError as error:
        source.fail(key, f"{formula!r} {error}; correct it.")
