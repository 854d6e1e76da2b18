"""Texts that headers for GPUs and for CPUs share: names, the interface, the state in memory, rules of a domain."""

import re
from collections.abc import Iterator
from typing import Any

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.boundaries.arguments import WALL
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import conditions, told
from lbmtune.codegen.program import STEPS
from lbmtune.errors import InputError
from lbmtune.export.c_text import C_TYPES, braced, filled, lines_of, quoted, real, truth
from lbmtune.export.header_state import moments, number_codes, populations, tables
from lbmtune.printable import plain
from lbmtune.records.best_json.document import Best
from lbmtune.records.best_json.kernel import Kernel


def default_name(best: Best) -> str:
    """Return a C identifier made of the study and the key of the kernel, which no other kernel has."""
    words = re.sub(r"\W+", "_", f"{best.study}_{best.key[:6]}").strip("_").lower()
    return words if words[0].isalpha() else f"lbm_{words}"


def check_exportable(case: Case, target: str, kind: str) -> None:
    """Raise InputError for a kernel that a header of a format cannot hold. target: its backend; kind: the format."""
    if (use := BACKENDS[target].header) != kind:
        where = " or ".join(backend.device_kind for backend in BACKENDS.values() if backend.header == kind)
        refused = f"format={kind} is not supported for a kernel for target={target}"
        raise InputError(f"{refused} (use format={use}, or a study on {where}).")
    what = ""
    if case.interpolates:
        what = "interpolated walls (use walls=half-way, or best.json): their tables follow from the surface"
    elif case.patches or conditions(case):
        found = "patches" if case.patches else f"a {told(case)}"
        what = f"{found} (use periodic faces and walls, or best.json): it completes no populations when it reads them"
    if what:
        raise InputError(f"format={kind} is not supported for {what}.")


# Of C++20: a namespace of that name would not compile.
_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default delete
do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""


def check_name(name: str) -> None:
    """Raise InputError for a name that no namespace of C++ can have."""
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise InputError(
            f"name={name} is not supported for a namespace of C++ (use letters, digits and _, a letter first)."
        )
    if name in _KEYWORDS.split():
        raise InputError(f"name={name} is not supported for a namespace of C++ (use another): it is a keyword.")


def titles(best: Best, name: str, file: str) -> dict[str, Any]:
    """Return what the comment at the top says, and the names that all parts use. file: name of the header."""
    case, expected = best.case, best.expected
    domain = "x".join(map(str, case.domain))
    return {
        "name": name,
        "NAME": name.upper(),
        "title": f"{name}: {case.lattice} {case.collision}, {case.flow}",
        "version": plain(best.lbmtune),
        "measured": f"{expected.mlups:,.0f} {case.speed_unit} on {plain(best.environment.device)}, {domain} cells"
        f"{', not reliable' * bool(expected.doubts)}",
        "file": file,
        "directions": len(best.storage.velocities),
    }


def interface(best: Best, name: str, **fields: str) -> str:
    """Return the declarations for C and C++. fields: what differs between devices."""
    case, storage = best.case, best.storage
    return filled(
        "interface",
        name=name,
        NAME=name.upper(),
        real=C_TYPES[best.config.computed.dtype],
        directions=len(storage.velocities),
        velocities=_velocities(best),
        solid_said="nx * ny * nz bytes, x fastest" if case.geometry else "NULL, this kernel has none",
        **fields,
    )


def _velocities(best: Best) -> str:
    return ", ".join(braced(c) for c in best.storage.velocities)


def cells(best: Best, name: str, both: str, make_tables: str) -> str:
    """Return how the kernel keeps its state: codes of numbers, places, and functions of one cell.

    both: what begins a function of host and device; make_tables: the definition of the tables by the macro NAME_TABLES.
    """
    storage, config = best.storage, best.config
    held = moments(best, both) if storage.moments else populations(storage, both, implicit=config.implicit)
    return filled(
        "cells",
        NAME=name.upper(),
        both=both,
        make_tables=make_tables,
        stored=C_TYPES[storage.dtype],
        codes=number_codes(storage, both),
        state=held,
        has_state="true" if config.implicit or storage.links is None else "!is_solid(b, at)",
        velocities=_velocities(best),
        weights=braced(real(w) for w in storage.weights),
        faces=braced(best.case.faces),
        **tables(best),
    )


def properties(best: Best) -> dict[str, Any]:
    """Return what the solver knows of the kernel, and the values that it begins with."""
    kernel, case = best.kernel, best.case
    two = len([one for one in kernel.buffers if one.name in ("f0", "f1")]) > 1
    return {
        "extents": ", ".join(best.storage.extents),
        "conditions": lines_of(_conditions(kernel), 8),
        "steps": kernel.steps,
        "period": len(kernel.period),
        "parities": max(1, len(best.storage.locations)),
        "exchanges": truth(two and not kernel.keeps_roles),
        "any_steps": truth(STEPS in kernel.arguments),
        "has_single": truth(kernel.single),
        "takes_solids": truth(bool(case.geometry)),
        "takes_force": truth("force_x" in kernel.arguments),
        "takes_wall_velocity": truth(any(name in kernel.arguments for name in WALL)),
        "relaxation_rate": real(case.relaxation_rate),
        "force": ", ".join(map(real, case.force)),
        "wall_velocity": ", ".join(map(real, case.wall_velocity)),
    }


def _conditions(kernel: Kernel) -> Iterator[str]:
    assert kernel.domain  # of a best.json that this version has made
    for one in kernel.domain.conditions():
        many = " * multiprocessors()" if one.per_multiprocessor else ""
        most = "-1" if one.most is None else f"{one.most}LL{many}"
        yield f"{{{quoted(one.value)}, {one.value}, {one.multiple}, {one.least}, {most}, {quoted(one.because)}}},"
